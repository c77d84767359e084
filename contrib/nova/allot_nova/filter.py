"""Asks Allotment which hosts a server may use: one request for all hosts of a scheduling request.

While there is no answer, the filter answers itself, from the aggregates that the scheduler knows: a server that wants nothing
of a lease may use hosts that Allotment does not manage, and all others wait. That keeps everybody off the hosts of leases, since
a host that Allotment manages is in an aggregate of it at every moment.
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
    cfg.StrOpt("url", default="http://127.0.0.1:1234", help="The address of the service, without /v1"),
    cfg.StrOpt("token_file", default="/etc/nova/allot.token", help="File with a token that the service knows as an administrator's"),
    cfg.StrOpt("ca_file", help="Authorities (PEM) that the service's certificate is of; without it, the system's"),
    cfg.FloatOpt("timeout", default=2.0, help="How long the service may take to answer, seconds"),
    cfg.FloatOpt("pause", default=5.0, help="So long the service is not asked after it did not answer, seconds"),
    cfg.StrOpt("free_pool", default="freepool", help="The free pool's aggregate: the service's openstack.free_pool"),
]
nova.conf.CONF.register_opts(OPTIONS, group="allot")

# How the zones of hosts in leases begin, and the keys of the metadata of the service's aggregates.
ZONE = "blazar_"
KEY = "allot:"

# What of a request says that its server is preemptible, or is in a lease.
PREEMPTIBLE = "blazar:preemptible"
OF_RESERVATION = "aggregate_instance_extra_specs:reservation"
HINTS = ("reservation", "lease", "preemptible")
# Nova's servers cannot be of a class: the service would not know later which.
CLASS = "preemptible_class"

# Statuses that say something of the request, and not that the service cannot answer.
ABOUT_THE_REQUEST = (400, 404, 409)

# Longest answer, bytes: 10,000 hosts take a fifth of it.
MOST_BYTES = 8 << 20


class NoAnswer(Exception):
    """The service has not said which hosts the server may use."""

    def __init__(self, why, away=True):
        super().__init__(why)
        # Whether it is of no use to ask again at once.
        self.away = away


def wishes(spec):
    """What a request says of leases and of being preemptible: the hints, and the flavor's properties."""
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
    """Whether it is an ordinary server, in no lease, that nobody may remove."""
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
    # Nova keeps who is asked for, and asks again when the server is moved.
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
    """Asks the service, within the time that it has in all."""
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
        # Whoever asks for what is not allowed is refused with the status of a filter without rights.
        marked = "scheduler_hints" in body or "flavor_properties" in body
        about_request = answer.status in ABOUT_THE_REQUEST or (answer.status == 403 and marked)
        raise NoAnswer(f"it answered {answer.status}: {text}", away=not about_request)
    return content


def read(connection, answer, deadline):
    """The body of an answer, if it comes in time: each part that comes late counts, however many there are."""
    content = bytearray()
    while len(content) <= MOST_BYTES:
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("it took too long")
        # A connection that the service closes after its answer is taken off already.
        if connection.sock is not None:
            connection.sock.settimeout(left)
        part = answer.read1(1 << 16)
        if not part:
            return bytes(content)
        content += part
    raise NoAnswer(f"the answer is longer than {MOST_BYTES} bytes")


class AllotFilter(filters.BaseHostFilter):
    """Lets those hosts pass that the service allows."""

    RUN_ON_REBUILD = False
    # Whether a host may be used is the same for all servers of a request.
    run_filter_once_per_request = True

    # When the service is asked again, by the monotonic clock, if it does not answer.
    away_until = None

    def filter_all(self, filter_obj_list, spec_obj):
        hosts = list(filter_obj_list)
        if not hosts:
            return hosts
        try:
            names = self._ask(spec_obj, hosts)
        except NoAnswer as why:
            left = [host for host in hosts if not is_managed(host)] if wants_nothing(spec_obj) else []
            LOG.info("Allot has not answered for a server of project %s (%s): %d of %d hosts pass, none of Allot's",
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
