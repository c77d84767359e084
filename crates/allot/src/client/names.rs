//! Names of the commands that talk to a service.

/// The words that begin such a command.
pub(crate) const NAMES: [&str; 18] = [
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
    "energy",
    "settings",
    "doctor",
    "whoami",
];
