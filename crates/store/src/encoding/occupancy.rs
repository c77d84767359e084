//! Parts of occupancy as columns.

use leases::ids::GuestId;
use leases::occupants::Fact;
use leases::project::ProjectId;

use super::{Unreadable, named};

/// The instance that a fact is about; 0 of other facts, so that an index has each open one once.
pub fn instance(fact: &Fact) -> u128 {
    fact.instance().map_or(0, |(id, _)| id.0)
}

/// The project of the instance that a fact is about, if it is about one and its project is known.
pub fn instance_project(fact: &Fact) -> Option<&str> {
    fact.instance().and_then(|(_, project)| project).map(|project| project.0.as_str())
}

/// The fact in these columns.
pub fn fact(name: &str, instance: u128, project: Option<String>) -> Result<Fact, Unreadable> {
    named("fact", name, |name| Fact::from_parts(name, GuestId(instance), project.map(ProjectId)))
}
