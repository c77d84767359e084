//! Domain values as text, for columns of databases. What is written is read back as it was; columns of a type
//! of the database's own (numbers, times) are each store's business.
//!
//! Names of statuses are in [`leases::status`].

mod action;
pub mod booking;
pub mod column;
mod document;
mod extras;
mod free_pool;
mod hunt;
mod instance;
mod lease;
pub mod occupancy;
mod outcome;
mod power;
mod record;
mod requirement;
mod standing;
mod terms;
#[cfg(test)]
mod tests;
mod text;
pub mod usage;

use std::fmt;

use leases::host::Health;
use leases::ids::LeaseId;
use leases::lease::EndAction;
use leases::resources::Resources;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use self::action::{action_from_key, action_key};
pub use self::document::{
    flavor_from_json, flavor_json, preemptible_project_from_json, preemptible_project_json,
    property_from_json, property_json,
};
pub use self::extras::{Extras, extras_from_json, extras_json, hints_json};
pub use self::free_pool::{free_pool_from_json, free_pool_json};
pub use self::hunt::{hunt_from_json, hunt_json};
pub use self::instance::{instance_from_json, instance_json};
pub use self::lease::LeaseRow;
pub use self::outcome::Outcomes;
pub use self::power::{power_from_json, power_json};
pub use self::record::{record_key_from_text, record_key_text, record_keys};
pub use self::requirement::{requirement_from_json, requirement_json};
pub use self::standing::{standing_from_json, standing_json};
pub use self::terms::{terms_from_json, terms_json};
pub use self::text::{LongText, MOST_INLINE, ReservationText, StoredText, TextChanges, TextHash};
use crate::StoreError;

/// The lease that a notification is about, as a number: nil if it is about none, since services of earlier versions, which
/// may share the store, know of no others.
pub fn subject_number(lease: Option<LeaseId>) -> u128 {
    lease.map_or(0, |lease| lease.0)
}

/// The lease that a notification is about, from its number.
pub fn subject_lease(number: u128) -> Option<LeaseId> {
    (number != 0).then_some(LeaseId(number))
}

/// Text that nobody has written who knows what is meant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} '{text}': {why}")]
pub struct Unreadable {
    /// What it should be.
    what: &'static str,
    /// What it is.
    text: String,
    /// What is wrong with it.
    why: String,
}

impl Unreadable {
    fn new(what: &'static str, text: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self { what, text: text.to_string(), why: why.to_string() }
    }
}

impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Corrupt(unreadable.to_string())
    }
}

/// Reads a name, such as a status; `from_name` knows all of them.
pub fn named<T>(
    what: &'static str,
    name: &str,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Unreadable> {
    from_name(name).ok_or_else(|| Unreadable::new(what, name, "nothing has that name"))
}

/// A map or a list of simple values, as JSON.
pub fn json<T: Serialize>(value: &T) -> String {
    // Only values whose keys are text are written, so it cannot fail; text that is empty would not be read.
    serde_json::to_string(value).unwrap_or_default()
}

/// A UUID in 32 digits: JSON, in which many rows are handed over at once, has no bytes.
pub fn hex(uuid: u128) -> String {
    format!("{uuid:032x}")
}

/// Reads such digits.
pub fn from_hex(digits: &str) -> Result<u128, Unreadable> {
    u128::from_str_radix(digits, 16).map_err(|error| Unreadable::new("UUID", digits, error))
}

/// Reads such a map or list.
pub fn from_json<'a, T: Deserialize<'a>>(what: &'static str, text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable::new(what, text, error))
}

/// The name of what becomes of guests at the end.
pub fn end_action_name(action: EndAction) -> &'static str {
    match action {
        EndAction::DeleteGuests => "delete_guests",
        EndAction::KeepGuests => "keep_guests",
        EndAction::SnapshotGuests => "snapshot_guests",
        EndAction::MoveGuests => "move_guests",
    }
}

/// What becomes of guests at the end.
pub fn end_action_from_name(name: &str) -> Option<EndAction> {
    [EndAction::DeleteGuests, EndAction::KeepGuests, EndAction::SnapshotGuests, EndAction::MoveGuests]
        .into_iter()
        .find(|a| end_action_name(*a) == name)
}

/// The name of a host's health.
pub fn health_name(health: Health) -> &'static str {
    match health {
        Health::Up => "up",
        Health::Failed => "failed",
        Health::Unknown => "unknown",
    }
}

/// A host's health.
pub fn health_from_name(name: &str) -> Option<Health> {
    [Health::Up, Health::Failed, Health::Unknown].into_iter().find(|health| health_name(*health) == name)
}

/// Amounts by Placement's names of the classes; the three that every host has are always there.
pub fn amounts(resources: &Resources) -> impl Iterator<Item = (&str, u64)> {
    let three =
        [("VCPU", resources.vcpus), ("MEMORY_MB", resources.memory_mib), ("DISK_GB", resources.disk_gib)];
    three.into_iter().chain(resources.other.iter().map(|(class, amount)| (class.0.as_str(), *amount)))
}

/// Resources of those amounts.
pub fn resources<'a>(amounts: impl IntoIterator<Item = (&'a str, u64)>) -> Resources {
    let mut resources = Resources::default();
    for (class, amount) in amounts {
        resources.set(class, amount);
    }
    resources
}
