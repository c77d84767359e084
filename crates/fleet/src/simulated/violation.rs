//! Promises of leasing that were broken on simulated machines.

use jiff::Timestamp;
use leases::ids::{GuestId, HostId};
use thiserror::Error;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A preemptible guest was deleted without having been given its time.
    #[error("at {at}, preemptible guest {guest} on host {host} was deleted; it was asked to shut down at {}",
        .asked_at.map_or_else(|| "no time".to_owned(), |at| at.to_string()))]
    DeletedBeforeGrace {
        /// Where.
        host: HostId,
        /// Which.
        guest: GuestId,
        /// Since when it was to shut down, if it was.
        asked_at: Option<Timestamp>,
        /// When.
        at: Timestamp,
    },
    /// A guest was stopped or deleted that is nobody's business.
    #[error("at {at}, guest {guest} on host {host} was stopped or deleted; it is somebody else's")]
    TouchedForeignGuest {
        /// Where.
        host: HostId,
        /// Which.
        guest: GuestId,
        /// When.
        at: Timestamp,
    },
    /// A host was handed over with a guest on it that is not the lease's.
    #[error("at {at}, host {host} was handed over with foreign guest {guest} on it")]
    HeldWithForeignGuest {
        /// Where.
        host: HostId,
        /// Which.
        guest: GuestId,
        /// When.
        at: Timestamp,
    },
    /// A foreign guest got onto a host that a lease holds.
    #[error("at {at}, foreign guest {guest} landed on host {host}, which a lease holds")]
    LandedOnHeldHost {
        /// Where.
        host: HostId,
        /// Which.
        guest: GuestId,
        /// When.
        at: Timestamp,
    },
    /// A guest got onto a host after it was found to be empty.
    #[error("at {at}, guest {guest} landed on host {host}, which was verified to be empty")]
    LandedAfterVerification {
        /// Where.
        host: HostId,
        /// Which.
        guest: GuestId,
        /// When.
        at: Timestamp,
    },
}
