//! Names of the commands that talk to a service.

/// Whether a command talks to a service. `path` consists of its words without `allot`.
pub(crate) fn is_client(path: &str) -> bool {
    path.split(' ').next().is_some_and(|name| NAMES.contains(&name))
}

/// First words of the commands that talk to a service.
pub(crate) const NAMES: [&str; 19] = [
    "lease",
    "host",
    "freepool",
    "leasepool",
    "floatingip",
    "flavor",
    "instance",
    "preemptible",
    "maintenance",
    "availability",
    "calendar",
    "events",
    "audit",
    "usage",
    "capacity",
    "energy",
    "settings",
    "doctor",
    "whoami",
];
