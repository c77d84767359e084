"""Requests that the scenarios send, and their expected results. This module needs neither Tempest nor a cloud."""

import datetime
from typing import NamedTuple, Optional

UTC = datetime.timezone.utc

# Duration of the tests' leases. The tests end them earlier.
LASTS = datetime.timedelta(minutes=30)

# Minimum time between the request for a lease and the earliest moment when servers are asked to leave for it.
LEAD = datetime.timedelta(seconds=20)


class Seen(NamedTuple):
    """A server as an administrator sees it."""

    id: str
    status: str
    host: Optional[str]
    fault: str

    @classmethod
    def of(cls, server):
        """The relevant parts of Nova's description of a server."""
        fault = (server.get("fault") or {}).get("message", "")
        return cls(server["id"], server["status"], server.get("OS-EXT-SRV-ATTR:hypervisor_hostname"), fault)

    def __str__(self):
        place = self.host or "no host"
        return f"{self.status} on {place}" + (f" ({self.fault})" if self.fault else "")


def described(servers):
    """Describes servers, by name, for a failure message."""
    return "; ".join(f"{name}: {server}" for name, server in sorted(servers.items())) or "no servers"


def read_date(text):
    """Parses a date from an answer of the service, in UTC."""
    return datetime.datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=UTC)


def sent_date(date):
    """Formats a date for a request, with a precision of one minute."""
    return date.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def start_of_lease(now, notice):
    """The earliest full minute after the servers' notice and `LEAD`."""
    earliest = now + notice + LEAD
    whole = earliest.replace(second=0, microsecond=0)
    return whole if whole == earliest else whole + datetime.timedelta(minutes=1)


def lease(name, start, reservation):
    """The request for a lease with one reservation."""
    return {
        "name": name,
        "start_date": sent_date(start),
        "end_date": sent_date(start + LASTS),
        "reservations": [reservation],
        "events": [],
    }


def hosts_to_reserve(number):
    """A reservation of `number` hosts."""
    return {
        "resource_type": "physical:host",
        "min": number,
        "max": number,
        "hypervisor_properties": "",
        "resource_properties": "",
    }


def instance_to_reserve(hosts, flavor):
    """A reservation of an instance. It fits on the largest hosts together with one server of the flavor, not with two."""
    return {
        "resource_type": "virtual:instance",
        "vcpus": max(host["vcpus"] for host in hosts) - flavor["vcpus"],
        "memory_mb": flavor["ram"],
        "disk_gb": flavor["disk"],
        "amount": 1,
        "affinity": None,
        "resource_properties": "",
    }


def fewest_to_leave(host, flavor, servers, reserved):
    """Minimum number of servers of the flavor that must leave a host to fit the reserved instance."""
    room = max(0, host["vcpus"] - reserved["vcpus"])
    return max(0, servers - room // flavor["vcpus"])


def leasable(hosts):
    """The hosts that can be reserved, by identifier."""
    return {host["id"]: host for host in hosts if host["reservable"]}


def hosts_of(allocations, reservation, hosts):
    """The names of a reservation's hosts, which are known by identifier."""
    ids = {
        entry["resource_id"]
        for entry in allocations
        if any(one["id"] == reservation for one in entry["reservations"])
    }
    return {hosts[one]["hypervisor_hostname"] for one in ids}


def owners_server(reservation, flavor):
    """Arguments for starting a server of the lease's owner, which must use a flavor of the reservation if it names any."""
    if reservation["resource_type"] == "virtual:instance":
        return {"flavorRef": reservation.get("flavor_id") or reservation["id"]}
    named = reservation.get("flavor_ids") or []
    if named:
        copy = f"{reservation['id']}.{flavor}"
        return {"flavorRef": copy if copy in named else named[0]}
    # With the fence `tenant` the hint has no effect, because Nova places the owner's servers only on the lease's hosts.
    return {"flavorRef": flavor, "scheduler_hints": {"reservation": reservation["id"]}}


def preemptible_server(flavor, hints, group=None):
    """Arguments for starting a preemptible server, optionally in a server group."""
    wanted = {"flavorRef": flavor}
    hints = dict(hints, group=group) if group else dict(hints)
    if hints:
        wanted["scheduler_hints"] = hints
    return wanted


def times_to_leave(start, before_start, notice, timeout):
    """The earliest and latest moment when servers can leave for a lease that starts at `start`."""
    return (start - notice, start) if before_start else (start, start + timeout)


def on_hosts(servers, hosts):
    """The servers, by name, that are on one of the hosts."""
    return {name: server for name, server in servers.items() if server.host in hosts}


def that_left(before, now):
    """Names of servers that are gone or on another host."""
    return {name for name, server in before.items() if name not in now or now[name].host != server.host}


def at_wrong_times(left, now, earliest, latest):
    """Names of the servers that left too early or too late, with the moment when this was observed.
    Servers can move to another host at any time before the start."""
    return {
        name: when
        for name, when in left.items()
        if when > latest or (name not in now and when < earliest)
    }
