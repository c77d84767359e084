//! Properties of decisions on random clusters.

mod allocating;
mod balancing;
mod clearing;
mod draining;
mod filling;
#[path = "../../../cluster/tests/properties/generate.rs"]
mod generate;
mod ledger;
mod pinned;
mod questions;
mod rebooting;
mod redundant;
mod refusing;
mod repairing;
mod scoring;
mod searching;
mod squeezing;
mod verified;
