//! Every driver is held to the promises of the conformance suite, and leases are run on each.

mod conductor;
mod hooks;
mod reservations;
mod simulated;
