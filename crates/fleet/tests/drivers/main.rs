//! Every driver is held to the promises of the conformance suite.

mod hooks;
mod simulated;
