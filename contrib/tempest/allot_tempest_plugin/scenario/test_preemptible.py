"""Preemptible servers run in the free pool, and leave when a reservation that needs their capacity starts."""

import datetime
import time
from typing import NamedTuple, Optional

from tempest import clients
from tempest import config
from tempest import test
from tempest.common import credentials_factory
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import exceptions

from allot_tempest_plugin import expectations as expected

CONF = config.CONF

# The first version of Nova's API in which a server needs no network. The tests don't log in to servers.
WITHOUT_NETWORK = "2.37"


def seconds(number):
    """A span of time."""
    return datetime.timedelta(seconds=number)


class Started(NamedTuple):
    """A requested server, and the client that requested it."""

    id: str
    client: object
    group: Optional[str]


def now():
    """Current time, by the clock of the machine that runs the tests."""
    return datetime.datetime.now(expected.UTC)


class TestPreemptible(test.BaseTestCase):
    """Tempest's first project owns the leases, and its second one competes with it. An administrator observes servers."""

    credentials = ["primary", "alt", "admin"]

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        for service in ("nova", "allot"):
            if not getattr(CONF.service_available, service):
                raise cls.skipException(f"{service} is not available")

    @classmethod
    def setup_credentials(cls):
        cls.set_network_resources()
        super().setup_credentials()

    @classmethod
    def setup_clients(cls):
        super().setup_clients()
        cls.leases = cls.os_primary.allot.ReservationClient()
        cls.hosts_client = cls.os_admin.allot.ReservationClient()
        cls.os_preemptible = cls.os_alt
        if CONF.allot.preemptible_username:
            cls.os_preemptible = clients.Manager(credentials_factory.get_credentials(
                username=CONF.allot.preemptible_username,
                password=CONF.allot.preemptible_password,
                project_name=CONF.allot.preemptible_project_name,
                domain_name=CONF.allot.preemptible_domain_name,
            ))

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.hosts = expected.leasable(cls.hosts_client.list_hosts())
        least, most = CONF.allot.leased_hosts, CONF.allot.max_hosts
        if not least <= len(cls.hosts) <= most:
            raise cls.skipException(f"{len(cls.hosts)} hosts can be reserved; the tests need {least} to {most}")
        cls.names = {host["hypervisor_hostname"] for host in cls.hosts.values()}
        cls.flavor = CONF.compute.flavor_ref
        cls.preemptible_flavor = CONF.allot.preemptible_flavor_ref or cls.flavor

    def setUp(self):
        super().setUp()
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(compute_microversion=WITHOUT_NETWORK))
        self.prefix = data_utils.rand_name("allot")
        self.started = {}
        self.addCleanup(self._delete_servers)

    def test_hosts_are_reserved(self):
        """All preemptible servers leave the hosts of a lease before it is active, and run there again after it."""
        group = self._group()
        self._fill(group)
        before = self._seen()
        lease, start = self._lease(expected.hosts_to_reserve(CONF.allot.leased_hosts))
        reservation, hosts, left = self._until_active(lease, start, before)
        self.assertEqual(CONF.allot.leased_hosts, len(hosts), hosts)
        there = expected.on_hosts(before, hosts)
        self.assertEqual(set(there), left, f"the servers that left aren't the servers on {hosts}: {expected.described(before)}")

        foreign = [self._start_preemptible("late") for _ in range(len(hosts) + 1)]
        foreign.append(self._start(self.os_alt, "ordinary", flavorRef=self.flavor))
        seen = self._seen()
        intruders = set(expected.on_hosts(seen, hosts)) & set(foreign)
        self.assertFalse(intruders, f"on {hosts}, which are reserved: {expected.described(seen)}")
        mine = self._owner_uses(reservation, hosts)

        self._end(lease, [mine])
        self._fill(group)

    def test_room_for_an_instance_is_reserved(self):
        """No more preemptible servers leave than the reserved instance requires."""
        flavor = self.os_admin.flavors_client.show_flavor(self.preemptible_flavor)["flavor"]
        groups = [self._group(), self._group()]
        for group in groups:
            self._fill(group)
        wanted = expected.instance_to_reserve(self.hosts.values(), flavor)
        before = self._seen()
        lease, start = self._lease(wanted)
        reservation, hosts, left = self._until_active(lease, start, before)
        self.assertEqual(1, len(hosts), hosts)
        host = next(host for host in self.hosts.values() if host["hypervisor_hostname"] in hosts)
        there = expected.on_hosts(before, hosts)
        fewest = expected.fewest_to_leave(host, flavor, len(there), wanted)
        self.assertEqual(fewest, len(left), f"{sorted(left)} left for {wanted}: {expected.described(before)}")
        self.assertLessEqual(left, set(there), f"servers left other hosts than {hosts}")

        ordinary = self._start(self.os_alt, "ordinary", flavorRef=self.flavor)
        self.assertNotIn(ordinary, expected.on_hosts(self._seen(), hosts))
        late = self._start_preemptible("late")
        preemptible = set(before) | {late}
        self._until(
            lambda seen: not expected.fewest_to_leave(
                host, flavor, len(preemptible & set(expected.on_hosts(seen, hosts))), wanted),
            CONF.allot.start_timeout, f"too many preemptible servers are on {hosts} to fit the reserved instance")
        mine = self._owner_uses(reservation, hosts)

        self._end(lease, [mine])
        for group in groups:
            self._fill(group)

    def _owner_uses(self, reservation, hosts):
        """Starts a server of the owner, checks that it is on a host of the lease, and returns its name."""
        mine = self._start(self.os_primary, "mine", **expected.owners_server(reservation, self.flavor))
        seen = self._seen()
        running = mine in seen and seen[mine].status == "ACTIVE" and seen[mine].host in hosts
        self.assertTrue(running, f"{mine} does not run on {hosts}: {expected.described(seen)}")
        return mine

    def _lease(self, reservation):
        """Creates a lease that starts soon. Returns its identifier and start."""
        start = expected.start_of_lease(now(), seconds(CONF.allot.notice))
        lease = self.leases.create_lease(**expected.lease(self.prefix, start, reservation))
        self.addCleanup(self._end, lease["id"])
        return lease["id"], expected.read_date(lease["start_date"])

    def _until_active(self, lease, start, before):
        """Waits until the lease is active, and notes when the servers in `before` leave. Returns the reservation, the
        names of its hosts, and the names of the servers that left."""
        left, timeout = {}, seconds(CONF.allot.start_timeout)
        while True:
            # Order matters: if the lease is active before the servers are listed, no foreign server can be on its
            # hosts.
            shown, seen, moment = self.leases.show_lease(lease), self._seen(), now()
            for name in expected.that_left(before, seen):
                left.setdefault(name, moment)
            if shown["status"] == "ACTIVE":
                break
            if shown["status"] in ("ERROR", "TERMINATED") or moment > start + timeout:
                self.fail(f"the lease of {start} is {shown['status']} ({shown.get('status_reason')}): "
                          f"{expected.described(seen)}")
            time.sleep(CONF.allot.build_interval)
        self.assertGreaterEqual(moment, start, "the lease is active before its start")
        reservation = shown["reservations"][0]
        allocations = self.hosts_client.list_allocations(reservation["id"])
        hosts = expected.hosts_of(allocations, reservation["id"], self.hosts)
        if reservation["resource_type"] == "physical:host":
            there = expected.on_hosts(seen, hosts)
            self.assertFalse(there, f"the lease is active, and on its hosts are {expected.described(there)}")
        times = expected.times_to_leave(start, CONF.allot.leave_before_start, seconds(CONF.allot.notice), timeout)
        wrong = expected.at_wrong_times(left, seen, *times)
        self.assertFalse(wrong, f"not between {times[0]} and {times[1]}: {wrong}")
        return reservation, hosts, set(left)

    def _end(self, lease, servers=()):
        """Deletes a lease if it exists, and waits until it and these servers of its owner are gone."""
        test_utils.call_and_ignore_notfound_exc(self.leases.delete_lease, lease)
        deadline = time.monotonic() + CONF.allot.end_timeout
        while shown := self._lease_if_there(lease):
            if time.monotonic() > deadline:
                self.fail(f"the lease is not gone: it is {shown['status']} ({shown.get('status_reason')})")
            time.sleep(CONF.allot.build_interval)
        self._until(lambda seen: not set(servers) & set(seen), CONF.allot.end_timeout, f"{servers} are not deleted")

    def _lease_if_there(self, lease):
        try:
            return self.leases.show_lease(lease)
        except exceptions.NotFound:
            return None

    def _group(self):
        """Creates a server group with at most one member on each host."""
        made = self.os_preemptible.server_groups_client.create_server_group(
            name=data_utils.rand_name("allot"), policies=["anti-affinity"])["server_group"]["id"]
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.os_preemptible.server_groups_client.delete_server_group, made)
        return made

    def _fill(self, group):
        """Starts preemptible servers until each leasable host has one of the group. A server that finds no host is
        deleted and replaced, because a host could still be returning from a lease."""
        deadline, failed = time.monotonic() + CONF.allot.end_timeout, None
        while True:
            seen = self._seen()
            missing = self.names - {server.host for name, server in seen.items() if self.started[name].group == group}
            if not missing:
                return
            if time.monotonic() > deadline:
                self.fail(f"no preemptible server runs on {sorted(missing)}: {expected.described(seen)}; "
                          f"the last that failed: {failed}")
            name = self._start_preemptible("spot", group)
            server = self._seen().get(name)
            if server is None or server.status != "ACTIVE":
                failed = server
                self._delete([name])
                time.sleep(CONF.allot.build_interval)

    def _start_preemptible(self, word, group=None):
        wanted = expected.preemptible_server(self.preemptible_flavor, CONF.allot.preemptible_hints, group)
        return self._start(self.os_preemptible, word, group, **wanted)

    def _start(self, manager, word, group=None, **wanted):
        """Starts a server, and waits until it runs or has failed. Returns its name."""
        name = f"{self.prefix}-{word}-{len(self.started)}"
        servers = manager.servers_client
        made = servers.create_server(name=name, imageRef=CONF.compute.image_ref, networks="none", **wanted)
        self.started[name] = Started(made["server"]["id"], servers, group)
        self._until(lambda seen: name not in seen or seen[name].status != "BUILD",
                    CONF.allot.build_timeout, f"{name} is not built")
        return name

    def _delete(self, names):
        for name in names:
            started = self.started[name]
            test_utils.call_and_ignore_notfound_exc(started.client.delete_server, started.id)
        self._until(lambda seen: not set(names) & set(seen), CONF.allot.build_timeout, "servers are not deleted")

    def _delete_servers(self):
        self._delete(list(self.started))

    def _seen(self):
        """All existing servers of this test, by name."""
        shown = self.os_admin.servers_client.list_servers(detail=True, all_tenants=1, name=self.prefix)["servers"]
        return {server["name"]: expected.Seen.of(server) for server in shown}

    def _until(self, is_so, timeout, otherwise):
        """Waits until the existing servers satisfy a condition."""
        deadline = time.monotonic() + timeout
        while not is_so(seen := self._seen()):
            if time.monotonic() > deadline:
                self.fail(f"{otherwise}: {expected.described(seen)}")
            time.sleep(CONF.allot.build_interval)
