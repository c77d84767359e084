//! Properties of decisions on random clusters.

mod allocating;
mod balancing;
mod filling;
#[path = "../../../cluster/tests/properties/generate.rs"]
mod generate;
mod redundant;
mod repairing;
mod scoring;
mod squeezing;
