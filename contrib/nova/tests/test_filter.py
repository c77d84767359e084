"""Tests of the filter with stubs for Nova and oslo.config, and with a fake service."""

import http.server
import json
import os
import pathlib
import sys
import tempfile
import threading
import time
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))


class Options:
    """Options of a section, with their defaults."""

    def register_opts(self, options, group):
        section = types.SimpleNamespace(**{option.name: option.default for option in options})
        setattr(self, group, section)


def option(name, default=None, help=""):
    return types.SimpleNamespace(name=name, default=default)


def module(name, **content):
    made = types.ModuleType(name)
    made.__dict__.update(content)
    sys.modules[name] = made
    return made


CONF = Options()
nova = module("nova", conf=module("nova.conf", CONF=CONF))
nova.scheduler = module("nova.scheduler", filters=module("nova.scheduler.filters", BaseHostFilter=object))
module("oslo_config", cfg=types.SimpleNamespace(StrOpt=option, FloatOpt=option))

from allot_nova import filter as under_test  # noqa: E402


class Service(http.server.BaseHTTPRequestHandler):
    """A fake service that gives preset answers and records requests."""

    asked = []
    status = 200
    delay = 0.0
    drip = 0
    answer = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).asked.append((self.path, self.headers["X-Auth-Token"], body))
        time.sleep(self.delay)
        answer = self.answer
        if answer is None:
            odd = [{"host": name, "allowed": number % 2 == 0} for number, name in enumerate(body["hosts"])]
            answer = json.dumps({"kind": "regular", "hosts": odd})
        content = answer.encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            for at in range(0, len(content), self.drip or len(content) or 1):
                self.wfile.write(content[at:at + (self.drip or len(content))])
                self.wfile.flush()
                time.sleep(0.2 if self.drip else 0)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def host(name, *aggregates):
    made = [types.SimpleNamespace(name=named, metadata=metadata) for named, metadata in aggregates]
    return types.SimpleNamespace(nodename=name, aggregates=made)


def spec(hints=None, extra_specs=None, **more):
    flavor = types.SimpleNamespace(extra_specs=extra_specs)
    return types.SimpleNamespace(scheduler_hints=hints, flavor=flavor, project_id="p1", instance_uuid="i1", **more)


FREE = host("free", ("freepool", {}))
HELD = host("held", ("r1", {"availability_zone": "blazar_r1"}))
ROOM = host("room", ("freepool", {}), ("r2", {"allot:lease": "l2"}))
GATE = host("gate", ("r3 gate", {"availability_zone": "blazar_r3"}))
OTHER = host("other", ("ssd", {"ssd": "true"}))
PLAIN = host("plain")
ALL = [FREE, HELD, ROOM, GATE, OTHER, PLAIN]


class FilterTest(unittest.TestCase):
    def setUp(self):
        Service.asked, Service.status, Service.delay, Service.drip, Service.answer = [], 200, 0.0, 0, None
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        token = os.path.join(directory.name, "token")
        pathlib.Path(token).write_text("t0ken\n", encoding="ascii")
        CONF.allot.url = f"http://127.0.0.1:{self.server.server_port}/"
        CONF.allot.token_file, CONF.allot.timeout, CONF.allot.pause = token, 30.0, 3600.0
        under_test.AllotFilter.away_until = None
        self.filter = under_test.AllotFilter()

    def passes(self, request, hosts=None):
        return [host.nodename for host in self.filter.filter_all(iter(ALL if hosts is None else hosts), request)]

    def test_one_request_asks_about_all_hosts(self):
        self.assertEqual(self.passes(spec()), ["free", "room", "other"])
        names = ["free", "held", "room", "gate", "other", "plain"]
        body = {"hosts": names, "project_id": "p1", "instance_id": "i1"}
        self.assertEqual(Service.asked, [("/v1/instances/filter", "t0ken", body)])
        self.assertTrue(self.filter.run_filter_once_per_request)

    def test_nothing_is_asked_about_no_hosts(self):
        self.assertEqual(self.passes(spec(), []), [])
        self.assertEqual(Service.asked, [])

    def test_a_single_host_is_asked_about_as_well(self):
        self.assertTrue(self.filter.host_passes(FREE, spec()))
        self.assertEqual(Service.asked[0][2]["hosts"], ["free"])

    def test_what_a_request_wants_is_passed_on(self):
        for hints, extra_specs, expected, properties in [
            ({"reservation": ["r1"]}, {}, {"reservation": "r1"}, None),
            ({"reservation": "r1", "_nova_check_type": ["rebuild"]}, None, {"reservation": "r1"}, None),
            ({"lease": ["l1"]}, {}, {"lease": "l1"}, None),
            ({"preemptible": ["true"]}, {}, {"preemptible": "true"}, None),
            ({}, {"blazar:preemptible": "true", "hw:cpu_policy": "shared"}, None, {"blazar:preemptible": "true"}),
            (None, {"aggregate_instance_extra_specs:reservation": "r2"}, {"reservation": "r2"}, None),
        ]:
            self.passes(spec(hints, extra_specs))
            body = Service.asked[-1][2]
            self.assertEqual((body.get("scheduler_hints"), body.get("flavor_properties")), (expected, properties))

    def closed(self, asked, case):
        """Only ordinary servers find hosts, and only hosts that the service does not manage."""
        self.assertEqual(self.passes(spec()), ["other", "plain"], case)
        for hints, extra_specs in [
            ({"reservation": ["r1"]}, {}), ({"lease": ["l1"]}, {}), ({"preemptible": ["true"]}, {}),
            ({}, {"blazar:preemptible": "true"}), ({}, {"aggregate_instance_extra_specs:reservation": "r2"}),
            ({"reservation": ["r1", "r2"]}, {}), ({"preemptible_class": ["batch"]}, {}),
        ]:
            self.assertEqual(self.passes(spec(hints, extra_specs)), [], case)
        if asked is not None:
            self.assertEqual(len(Service.asked), asked, case)

    def test_while_the_service_is_away_hosts_of_the_service_are_closed_and_it_is_not_asked_again_at_once(self):
        for status in [401, 403, 500, 503]:
            Service.asked, Service.status, under_test.AllotFilter.away_until = [], status, None
            self.closed(1, status)
        for answer in ["", "nothing", "[]", "{}", '{"hosts": [{"host": "held"}]}', '{"hosts": null}']:
            Service.asked, Service.status, Service.answer = [], 200, answer
            under_test.AllotFilter.away_until = None
            self.closed(1, answer)

    def test_a_service_that_is_slow_or_not_there_is_away(self):
        CONF.allot.timeout = 0.3
        Service.delay = 1.0
        self.closed(None, "slow")
        # Each part arrives quickly, but the whole body misses the deadline.
        Service.asked, Service.delay, Service.drip, under_test.AllotFilter.away_until = [], 0.0, 10, None
        self.closed(None, "dripping")
        CONF.allot.timeout, CONF.allot.url = 30.0, "http://127.0.0.1:1"
        Service.asked, under_test.AllotFilter.away_until = [], None
        self.closed(0, "not there")
        CONF.allot.token_file = "/nonexistent/token"
        under_test.AllotFilter.away_until = None
        self.closed(0, "no token")

    def test_a_request_that_is_refused_says_nothing_of_the_next_one(self):
        for status in [400, 404, 409]:
            Service.status = status
            self.assertEqual(self.passes(spec({"reservation": ["r1"]})), [])
            Service.status = 200
            self.assertEqual(self.passes(spec()), ["free", "room", "other"])
        # Forbidden requests of a user must not make the filter consider the service unavailable for all users.
        Service.status = 403
        self.assertEqual(self.passes(spec({"preemptible": ["true"]})), [])
        Service.status = 200
        self.assertEqual(self.passes(spec()), ["free", "room", "other"])

    def test_a_service_that_is_back_is_asked(self):
        Service.status, CONF.allot.pause = 503, 0.0
        self.assertEqual(self.passes(spec()), ["other", "plain"])
        Service.status = 200
        with self.assertLogs(under_test.LOG, "WARNING") as logs:
            self.assertEqual(self.passes(spec()), ["free", "room", "other"])
        self.assertIn("answers again", logs.output[0])

    def test_hosts_that_the_answer_does_not_name_do_not_pass(self):
        Service.answer = json.dumps({"hosts": [{"host": "held", "allowed": "yes"}, {"host": "elsewhere", "allowed": True}]})
        self.assertEqual(self.passes(spec()), [])


if __name__ == "__main__":
    unittest.main()
