"""Asks Allotment on which hosts a server can run, with one request for all hosts of a scheduling request.

While the service doesn't answer, the filter decides from the aggregates that the scheduler knows: ordinary servers can
use hosts that Allotment does not manage, and preemptible servers and servers of leases find no host. So the hosts of
leases stay protected, because every host that Allotment manages is always in one of its aggregates.
"""

import http.client
import json
import logging
import ssl
import time
from urllib.parse import urlsplit

import nova.conf
from nova.scheduler import filters
from oslo_config import cfg

LOG = logging.getLogger(__name__)

OPTIONS = [
    cfg.StrOpt("url", default="http://127.0.0.1:1234", help="Address of the service, without /v1"),
    cfg.StrOpt("token_file", default="/etc/nova/allot.token", help="File with an administrator's token for the service"),
    cfg.StrOpt("ca_file", help="CA bundle (PEM) for the service's certificate; by default, the system's"),
    cfg.FloatOpt("timeout", default=2.0, help="Time limit for an answer of the service, seconds"),
    cfg.FloatOpt("pause", default=5.0, help="Pause before the next request after the service did not answer, seconds"),
    cfg.StrOpt("free_pool", default="freepool", help="Aggregate of the free pool, as in the service's openstack.free_pool"),
]
nova.conf.CONF.register_opts(OPTIONS, group="allot")

# Prefixes of the names of leases' availability zones, and of metadata keys of the service's aggregates.
ZONE = "blazar_"
KEY = "allot:"

# Properties of flavors and scheduler hints that mark a server as preemptible or place it in a lease.
PREEMPTIBLE = "blazar:preemptible"
OF_RESERVATION = "aggregate_instance_extra_specs:reservation"
HINTS = ("reservation", "lease", "preemptible")
# Rejected hint: Nova doesn't report a server's class, so the service couldn't recognize it later.
CLASS = "preemptible_class"

# HTTP statuses that reject the request. Every other error means that the service is unavailable.
ABOUT_THE_REQUEST = (400, 404, 409)

# Maximum length of an answer in bytes, five times the length for 10,000 hosts.
MOST_BYTES = 8 << 20


class NoAnswer(Exception):
    """The service has not answered on which hosts the server can run."""

    def __init__(self, why, away=True):
        super().__init__(why)
        # Whether the service is unavailable, so it isn't asked again before the pause is over.
        self.away = away


def wishes(spec):
    """Scheduler hints and flavor properties of a request that concern leases or mark preemptible servers."""
    said = {}
    if (spec.scheduler_hints or {}).get(CLASS):
        raise NoAnswer(f"the hint {CLASS} cannot be used with Nova", away=False)
    for name in HINTS:
        # Nova keeps each hint as a list.
        values = (spec.scheduler_hints or {}).get(name) or []
        values = [values] if isinstance(values, str) else list(values)
        if len(values) > 1:
            raise NoAnswer(f"the hint {name} is given {len(values)} times", away=False)
        if values:
            said[name] = values[0]
    extra_specs = getattr(spec.flavor, "extra_specs", None) or {}
    if OF_RESERVATION in extra_specs:
        said.setdefault("reservation", extra_specs[OF_RESERVATION])
    flavor = {PREEMPTIBLE: extra_specs[PREEMPTIBLE]} if PREEMPTIBLE in extra_specs else {}
    return said, flavor


def wants_nothing(spec):
    """Whether the server is ordinary: neither in a lease nor preemptible."""
    try:
        return wishes(spec) == ({}, {})
    except NoAnswer:
        return False


def is_managed(host):
    """Whether the service manages a host, going by the aggregates that the scheduler knows."""
    def ours(aggregate):
        metadata = aggregate.metadata or {}
        zone = metadata.get("availability_zone") or ""
        keys = any(key.startswith(KEY) for key in metadata)
        return keys or zone.startswith(ZONE) or aggregate.name == nova.conf.CONF.allot.free_pool
    return any(ours(aggregate) for aggregate in host.aggregates or [])


def question(spec, hosts):
    """The body of the request."""
    said, flavor = wishes(spec)
    body = {"hosts": [host.nodename for host in hosts], "project_id": spec.project_id}
    # Nova also schedules a server again when it is moved. The identifier tells the service which one.
    if getattr(spec, "instance_uuid", None):
        body["instance_id"] = spec.instance_uuid
    if said:
        body["scheduler_hints"] = said
    if flavor:
        body["flavor_properties"] = flavor
    return body


def allowed(answer):
    """The hosts that an answer names as allowed."""
    try:
        return {host["host"] for host in json.loads(answer)["hosts"] if host["allowed"] is True}
    except (ValueError, TypeError, KeyError) as error:
        raise NoAnswer(f"the answer cannot be read: {error!r}") from None


def fetch(body):
    """Sends a request and returns the body of the answer, within the time limit for both."""
    settings = nova.conf.CONF.allot
    deadline = time.monotonic() + settings.timeout
    address = urlsplit(settings.url)
    try:
        with open(settings.token_file, encoding="ascii") as file:
            token = file.read().strip()
        if address.scheme == "https":
            context = ssl.create_default_context(cafile=settings.ca_file)
            connection = http.client.HTTPSConnection(address.netloc, timeout=settings.timeout, context=context)
        else:
            connection = http.client.HTTPConnection(address.netloc, timeout=settings.timeout)
    except (OSError, ValueError) as error:
        raise NoAnswer(str(error)) from None
    try:
        headers = {"Content-Type": "application/json", "X-Auth-Token": token}
        path = address.path.rstrip("/") + "/v1/instances/filter"
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        content = read(connection, answer, deadline)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from None
    finally:
        connection.close()
    if answer.status != 200:
        text = content[:200].decode("utf-8", "replace")
        # A request for a lease or for preemptible servers can also get 403, because its project lacks the rights.
        # Without hints and flavor properties, 403 means that the filter's token lacks the rights.
        marked = "scheduler_hints" in body or "flavor_properties" in body
        about_request = answer.status in ABOUT_THE_REQUEST or (answer.status == 403 and marked)
        raise NoAnswer(f"it answered {answer.status}: {text}", away=not about_request)
    return content


def read(connection, answer, deadline):
    """Reads the body of an answer. The deadline is for the whole body, even if each part arrives quickly."""
    content = bytearray()
    while len(content) <= MOST_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("it took too long")
        # The socket is None if the service closes the connection after its answer.
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = answer.read1(1 << 16)
        if not part:
            return bytes(content)
        content += part
    raise NoAnswer(f"the answer is longer than {MOST_BYTES} bytes")


class AllotFilter(filters.BaseHostFilter):
    """Passes the hosts that the service allows."""

    RUN_ON_REBUILD = False
    # All servers of a request get the same answer for a host.
    run_filter_once_per_request = True

    # Monotonic time of the next request to a service that did not answer; None if it answered.
    away_until = None

    def filter_all(self, filter_obj_list, spec_obj):
        hosts = list(filter_obj_list)
        if not hosts:
            return hosts
        try:
            names = self._ask(spec_obj, hosts)
        except NoAnswer as why:
            left = [host for host in hosts if not is_managed(host)] if wants_nothing(spec_obj) else []
            LOG.info("Allot has not answered for a server of project %s (%s): %d of %d hosts pass, without Allot's hosts",
                     spec_obj.project_id, why, len(left), len(hosts))
            return left
        return [host for host in hosts if host.nodename in names]

    def host_passes(self, host_state, filter_properties):
        return bool(self.filter_all([host_state], filter_properties))

    @classmethod
    def _ask(cls, spec, hosts):
        body = question(spec, hosts)
        if cls.away_until is not None and time.monotonic() < cls.away_until:
            raise NoAnswer("it was away a moment ago", away=False)
        try:
            names = allowed(fetch(body))
        except NoAnswer as why:
            if why.away:
                if cls.away_until is None:
                    LOG.warning("Allot does not answer: %s", why)
                cls.away_until = time.monotonic() + nova.conf.CONF.allot.pause
            raise
        if cls.away_until is not None:
            LOG.warning("Allot answers again")
            cls.away_until = None
        return names
