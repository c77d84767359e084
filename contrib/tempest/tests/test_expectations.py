"""Tests of the scenarios' requests and expectations, and of the table of options. They need no Tempest."""

import datetime
import pathlib
import re
import sys
import types
import unittest

HERE = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(HERE))


def option(name, default=None, **_):
    return types.SimpleNamespace(name=name, default=default)


def kind(name, **_):
    return types.SimpleNamespace(name=name)


# A stub for oslo.config.
oslo_config = types.ModuleType("oslo_config")
oslo_config.cfg = types.SimpleNamespace(
    StrOpt=option, BoolOpt=option, IntOpt=option, DictOpt=option, OptGroup=kind)
sys.modules.setdefault("oslo_config", oslo_config)

from allot_tempest_plugin import config  # noqa: E402
from allot_tempest_plugin import expectations as under_test  # noqa: E402


def at(text):
    return datetime.datetime.fromisoformat(f"2030-01-01T{text}").replace(tzinfo=under_test.UTC)


def span(seconds):
    return datetime.timedelta(seconds=seconds)


def server(host, status="ACTIVE"):
    return under_test.Seen("id", status, host, "")


HOSTS = {
    "1": {"id": "1", "hypervisor_hostname": "host1", "vcpus": 10, "reservable": True},
    "2": {"id": "2", "hypervisor_hostname": "host2", "vcpus": 8, "reservable": True},
}
SMALL = {"vcpus": 1, "ram": 512, "disk": 1}


class Dates(unittest.TestCase):
    def test_a_lease_starts_with_the_first_minute_that_leaves_servers_their_notice(self):
        for now, notice, start in [
            ("10:00:00", 100, "10:02:00"),
            ("10:00:01", 100, "10:03:00"),
            ("10:00:00", 0, "10:01:00"),
            ("10:59:59", 100, "11:02:00"),
        ]:
            self.assertEqual(at(start), under_test.start_of_lease(at(now), span(notice)), now)

    def test_dates_of_answers_are_in_utc_with_and_without_the_letter(self):
        for text in ("2030-01-01T10:00:00.000000", "2030-01-01T10:00:00Z"):
            self.assertEqual(at("10:00:00"), under_test.read_date(text))

    def test_a_lease_is_asked_for_to_the_minute(self):
        lease = under_test.lease("name", at("10:02:00"), {"resource_type": "physical:host"})
        self.assertEqual(("2030-01-01 10:02", "2030-01-01 10:32"), (lease["start_date"], lease["end_date"]))


class Room(unittest.TestCase):
    def test_an_instance_fits_on_the_largest_host_beside_one_server_and_not_beside_two(self):
        wanted = under_test.instance_to_reserve(HOSTS.values(), SMALL)
        self.assertEqual(9, wanted["vcpus"])
        for servers, fewest in [(0, 0), (1, 0), (2, 1), (4, 3)]:
            self.assertEqual(fewest, under_test.fewest_to_leave(HOSTS["1"], SMALL, servers, wanted))

    def test_where_the_instance_has_all_everybody_leaves(self):
        self.assertEqual(2, under_test.fewest_to_leave(HOSTS["2"], SMALL, 2, {"vcpus": 9}))
        self.assertEqual(1, under_test.fewest_to_leave(HOSTS["2"], {"vcpus": 4}, 2, {"vcpus": 1}))


class Hosts(unittest.TestCase):
    def test_hosts_that_may_not_be_reserved_are_left_out(self):
        closed = {"id": "3", "hypervisor_hostname": "host3", "reservable": False}
        self.assertEqual(HOSTS, under_test.leasable([*HOSTS.values(), closed]))

    def test_the_hosts_of_a_reservation_are_found_among_those_of_others(self):
        allocations = [
            {"resource_id": "1", "reservations": [{"id": "other"}, {"id": "mine"}]},
            {"resource_id": "2", "reservations": [{"id": "other"}]},
        ]
        self.assertEqual({"host1"}, under_test.hosts_of(allocations, "mine", HOSTS))


class Requests(unittest.TestCase):
    def test_the_owner_uses_the_hint_unless_the_reservation_names_flavors(self):
        hosts = {"id": "r", "resource_type": "physical:host"}
        self.assertEqual(
            {"flavorRef": "small", "scheduler_hints": {"reservation": "r"}}, under_test.owners_server(hosts, "small"))
        named = dict(hosts, flavor_ids=["r.large", "r.small"])
        self.assertEqual({"flavorRef": "r.small"}, under_test.owners_server(named, "small"))
        self.assertEqual({"flavorRef": "r.large"}, under_test.owners_server(named, "tiny"))

    def test_the_owner_uses_the_flavor_of_a_reservation_of_instances(self):
        room = {"id": "r", "resource_type": "virtual:instance"}
        self.assertEqual({"flavorRef": "r"}, under_test.owners_server(room, "small"))
        self.assertEqual({"flavorRef": "f"}, under_test.owners_server(dict(room, flavor_id="f"), "small"))

    def test_preemptible_servers_have_the_hints_of_the_options_and_that_of_their_group(self):
        self.assertEqual({"flavorRef": "spot"}, under_test.preemptible_server("spot", {}))
        hints = {"preemptible": "true"}
        self.assertEqual(
            {"flavorRef": "small", "scheduler_hints": {"preemptible": "true", "group": "g"}},
            under_test.preemptible_server("small", hints, "g"))
        self.assertEqual({"preemptible": "true"}, hints)


class Leaving(unittest.TestCase):
    BEFORE = {"a": server("host1"), "b": server("host1"), "c": server("host2")}

    def test_whoever_is_gone_or_on_another_host_has_left(self):
        now = {"b": server("host2"), "c": server("host2", "SHUTOFF")}
        self.assertEqual({"a", "b"}, under_test.that_left(self.BEFORE, now))

    def test_servers_on_hosts_are_found(self):
        self.assertEqual({"c"}, set(under_test.on_hosts(self.BEFORE, {"host2", "host3"})))
        self.assertEqual({}, under_test.on_hosts({"d": server(None, "ERROR")}, {"host1"}))

    def test_nobody_is_to_be_deleted_before_the_notice_or_to_stay_beyond_the_start(self):
        start = at("10:02:00")
        times = under_test.times_to_leave(start, True, span(60), span(180))
        moved = {"b": server("host2")}
        for name, when, wrong in [
            ("a", "10:00:59", True),
            ("a", "10:01:00", False),
            ("a", "10:02:01", True),
            ("b", "10:00:10", False),
            ("b", "10:02:01", True),
        ]:
            left = {name: at(when)}
            self.assertEqual(left if wrong else {}, under_test.at_wrong_times(left, moved, *times), (name, when))

    def test_where_they_are_asked_at_the_start_they_leave_after_it(self):
        start = at("10:02:00")
        times = under_test.times_to_leave(start, False, span(60), span(180))
        self.assertEqual((start, at("10:05:00")), times)

    def test_a_failure_says_what_was_seen(self):
        fault = under_test.Seen.of({"id": "x", "status": "ERROR", "fault": {"message": "No valid host"}})
        said = under_test.described({"b": fault, "a": server("host1")})
        self.assertEqual("a: ACTIVE on host1; b: ERROR on no host (No valid host)", said)
        self.assertEqual("no servers", under_test.described({}))


class Page(unittest.TestCase):
    def test_the_page_has_all_options_with_their_defaults(self):
        rows = re.findall(r"^\| `(\w+)` \| (?:`([^`]*)`)? ?\| .+ \|$", (HERE / "README.md").read_text(), re.MULTILINE)
        options = {one.name: "" if one.default in ("", {}) else str(one.default) for one in config.OPTIONS}
        self.assertEqual(options, dict(rows))


if __name__ == "__main__":
    unittest.main()
