//! Leases.

pub mod admission;
pub mod calendar;
pub mod enforcement;
pub mod filters;
pub mod host;
pub mod ids;
pub mod lease;
pub mod plan;
pub mod project;
pub mod requirement;
pub mod resources;
pub mod status;
pub mod terms;
#[cfg(test)]
mod testing;
pub mod window;
