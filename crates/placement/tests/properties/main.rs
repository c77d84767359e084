//! Properties of decisions on random clusters.

mod allocating;
mod balancing;
#[path = "../../../cluster/tests/properties/generate.rs"]
mod generate;
mod rebooting;
mod redundant;
mod scoring;
