//! Domain values as text for database columns. Values are read back as they were written. Columns of the
//! database's own types (numbers, times) are up to each store.
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

/// Number of the lease that a notification is about. A notification about no lease has 0, because services of
/// earlier versions that share the store expect a lease.
pub fn subject_number(lease: Option<LeaseId>) -> u128 {
    lease.map_or(0, |lease| lease.0)
}

/// The lease that a notification is about; `None` for 0.
pub fn subject_lease(number: u128) -> Option<LeaseId> {
    (number != 0).then_some(LeaseId(number))
}

/// Stored text that can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} '{text}': {why}")]
pub struct Unreadable {
    /// Kind of value that was expected.
    what: &'static str,
    text: String,
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

/// Parses a name, such as a status. `from_name` must know all names.
pub fn named<T>(
    what: &'static str,
    name: &str,
    from_name: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Unreadable> {
    from_name(name).ok_or_else(|| Unreadable::new(what, name, "nothing has that name"))
}

/// A map or a list of simple values, as JSON.
pub fn json<T: Serialize>(value: &T) -> String {
    // All keys are text, so this can't fail. Empty text would be rejected when read.
    serde_json::to_string(value).unwrap_or_default()
}

/// A UUID as 32 digits. Rows are passed in bulk as JSON, which has no type for bytes.
pub fn hex(uuid: u128) -> String {
    format!("{uuid:032x}")
}

/// Parses the digits that [`hex`] returns.
pub fn from_hex(digits: &str) -> Result<u128, Unreadable> {
    u128::from_str_radix(digits, 16).map_err(|error| Unreadable::new("UUID", digits, error))
}

/// Parses JSON; `what` names the value in the error.
pub fn from_json<'a, T: Deserialize<'a>>(what: &'static str, text: &'a str) -> Result<T, Unreadable> {
    serde_json::from_str(text).map_err(|error| Unreadable::new(what, text, error))
}

pub fn end_action_name(action: EndAction) -> &'static str {
    match action {
        EndAction::DeleteGuests => "delete_guests",
        EndAction::KeepGuests => "keep_guests",
        EndAction::SnapshotGuests => "snapshot_guests",
        EndAction::MoveGuests => "move_guests",
    }
}

pub fn end_action_from_name(name: &str) -> Option<EndAction> {
    [EndAction::DeleteGuests, EndAction::KeepGuests, EndAction::SnapshotGuests, EndAction::MoveGuests]
        .into_iter()
        .find(|a| end_action_name(*a) == name)
}

pub fn health_name(health: Health) -> &'static str {
    match health {
        Health::Up => "up",
        Health::Failed => "failed",
        Health::Unknown => "unknown",
    }
}

pub fn health_from_name(name: &str) -> Option<Health> {
    [Health::Up, Health::Failed, Health::Unknown].into_iter().find(|health| health_name(*health) == name)
}

/// Amounts by Placement's name of the class. `VCPU`, `MEMORY_MB` and `DISK_GB` are always included.
pub fn amounts(resources: &Resources) -> impl Iterator<Item = (&str, u64)> {
    let three =
        [("VCPU", resources.vcpus), ("MEMORY_MB", resources.memory_mib), ("DISK_GB", resources.disk_gib)];
    three.into_iter().chain(resources.other.iter().map(|(class, amount)| (class.0.as_str(), *amount)))
}

pub fn resources<'a>(amounts: impl IntoIterator<Item = (&'a str, u64)>) -> Resources {
    let mut resources = Resources::default();
    for (class, amount) in amounts {
        resources.set(class, amount);
    }
    resources
}
