//! Promises of leasing that were broken on simulated machines.

use jiff::Timestamp;
use leases::ids::{GuestId, HostId};
use thiserror::Error;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A preemptible guest was deleted before its grace time ended.
    #[error("at {at}, preemptible guest {guest} on host {host} was deleted; it was asked to shut down at {}",
        .asked_at.map_or_else(|| "no time".to_owned(), |at| at.to_string()))]
    DeletedBeforeGrace {
        host: HostId,
        guest: GuestId,
        /// Time of the request to shut down; `None` if there was none.
        asked_at: Option<Timestamp>,
        at: Timestamp,
    },
    /// A guest of another owner, which the service must not touch, was stopped or deleted.
    #[error("at {at}, guest {guest} on host {host} was stopped or deleted; it belongs to another owner")]
    TouchedForeignGuest { host: HostId, guest: GuestId, at: Timestamp },
    /// A host was handed over with another owner's guest on it.
    #[error("at {at}, host {host} was handed over with foreign guest {guest} on it")]
    HeldWithForeignGuest { host: HostId, guest: GuestId, at: Timestamp },
    /// A foreign guest appeared on a host that a lease holds.
    #[error("at {at}, foreign guest {guest} landed on host {host}, which a lease holds")]
    LandedOnHeldHost { host: HostId, guest: GuestId, at: Timestamp },
    /// A guest appeared on a host after the host was verified to be empty.
    #[error("at {at}, guest {guest} landed on host {host}, which was verified to be empty")]
    LandedAfterVerification { host: HostId, guest: GuestId, at: Timestamp },
}
