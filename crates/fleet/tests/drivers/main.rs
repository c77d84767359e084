//! Runs the conformance suite and leases on every driver.

mod conductor;
mod hooks;
mod reservations;
mod simulated;
