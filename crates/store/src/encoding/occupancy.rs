//! Facts of occupancy as columns.

use leases::ids::GuestId;
use leases::occupants::Fact;
use leases::project::ProjectId;

use super::{Unreadable, named};

/// The instance that a fact is about. Other facts have 0, so that an index can ensure that each fact is open
/// only once.
pub fn instance(fact: &Fact) -> u128 {
    fact.instance().map_or(0, |(id, _)| id.0)
}

/// Project of the instance. `None` if the project is unknown or the fact isn't about an instance.
pub fn instance_project(fact: &Fact) -> Option<&str> {
    fact.instance().and_then(|(_, project)| project).map(|project| project.0.as_str())
}

pub fn fact(name: &str, instance: u128, project: Option<String>) -> Result<Fact, Unreadable> {
    named("fact", name, |name| Fact::from_parts(name, GuestId(instance), project.map(ProjectId)))
}
