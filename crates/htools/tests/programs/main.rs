//! Tests of whole programs, on the examples from the documents that they implement.

mod capacity_checks;
mod dedicated_allocation;
mod dedicated_requests;
mod explaining;
mod failure_tags;
mod health;
mod iallocator_examples;
mod migration;
mod names;
mod pinning;
mod program;
mod reboots;
mod repairing;
mod searching;
mod squeezing;
