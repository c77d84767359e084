"""What the scenarios ask the service for, and what they expect to see. Nothing here needs Tempest or a cloud."""

import datetime
from typing import NamedTuple, Optional

UTC = datetime.timezone.utc

# How long a lease of the tests would last. They end it themselves.
LASTS = datetime.timedelta(minutes=30)

# What is left between the request for a lease and the earliest moment at which servers are asked to leave for it.
LEAD = datetime.timedelta(seconds=20)


class Seen(NamedTuple):
    """A server as an administrator sees it."""

    id: str
    status: str
    host: Optional[str]
    fault: str

    @classmethod
    def of(cls, server):
        """What matters of Nova's description."""
        fault = (server.get("fault") or {}).get("message", "")
        return cls(server["id"], server["status"], server.get("OS-EXT-SRV-ATTR:hypervisor_hostname"), fault)

    def __str__(self):
        place = self.host or "no host"
        return f"{self.status} on {place}" + (f" ({self.fault})" if self.fault else "")


def described(servers):
    """Servers by name, as one text for the message of a failure."""
    return "; ".join(f"{name}: {server}" for name, server in sorted(servers.items())) or "no servers"


def read_date(text):
    """A date of the service's answers, which are in UTC."""
    return datetime.datetime.fromisoformat(text.rstrip("Z")).replace(tzinfo=UTC)


def sent_date(date):
    """A date as requests have it: to the minute."""
    return date.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def start_of_lease(now, notice):
    """The first minute that leaves servers all of their notice, and the request some time before that."""
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
    """A reservation of so many hosts."""
    return {
        "resource_type": "physical:host",
        "min": number,
        "max": number,
        "hypervisor_properties": "",
        "resource_properties": "",
    }


def instance_to_reserve(hosts, flavor):
    """A reservation of room for one instance. On the largest hosts it fits beside one server of the flavor, not beside two."""
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
    """How many of so many servers of the flavor have to leave a host so that what is reserved fits beside the rest."""
    room = max(0, host["vcpus"] - reserved["vcpus"])
    return max(0, servers - room // flavor["vcpus"])


def leasable(hosts):
    """Those of the service's hosts that may be reserved, by identifier."""
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
    """What a server of the owner's is started with. Where the reservation names flavors there is no other way in."""
    if reservation["resource_type"] == "virtual:instance":
        return {"flavorRef": reservation.get("flavor_id") or reservation["id"]}
    named = reservation.get("flavor_ids") or []
    if named:
        copy = f"{reservation['id']}.{flavor}"
        return {"flavorRef": copy if copy in named else named[0]}
    # Where Nova itself keeps tenants apart the hint does nothing, and the owner has no other host.
    return {"flavorRef": flavor, "scheduler_hints": {"reservation": reservation["id"]}}


def preemptible_server(flavor, hints, group=None):
    """What a preemptible server is started with; in a server group of which each host has one member at most."""
    wanted = {"flavorRef": flavor}
    hints = dict(hints, group=group) if group else dict(hints)
    if hints:
        wanted["scheduler_hints"] = hints
    return wanted


def times_to_leave(start, before_start, notice, timeout):
    """From when on, and until when, servers may leave for a lease that starts then."""
    return (start - notice, start) if before_start else (start, start + timeout)


def on_hosts(servers, hosts):
    """Those of the servers, by name, that are on one of the hosts."""
    return {name: server for name, server in servers.items() if server.host in hosts}


def that_left(before, now):
    """The names of servers that are not where they were: they are gone, or on another host."""
    return {name for name, server in before.items() if name not in now or now[name].host != server.host}


def at_wrong_times(left, now, earliest, latest):
    """Those of the servers that left, by name and with the moment when that was seen, that left too early or too late.
    Whoever is on another host was moved, which may be done at any time before the start."""
    return {
        name: when
        for name, when in left.items()
        if when > latest or (name not in now and when < earliest)
    }
