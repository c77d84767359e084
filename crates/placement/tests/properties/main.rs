//! Properties of decisions on random clusters.

mod allocating;
mod balancing;
mod clearing;
mod draining;
mod filling;
#[path = "../../../cluster/tests/properties/generate.rs"]
mod generate;
mod questions;
mod rebooting;
mod redundant;
mod repairing;
mod scoring;
mod searching;
mod squeezing;
mod verified;
