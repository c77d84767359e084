//! What was last seen of the machines. The planner starts from this and from nothing it remembers, which is
//! why a crash at any point costs nothing (spec W4).

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::host::Health;
use crate::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};

/// Everything that was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Hosts of the fleet. One that is absent is gone, and what was on it as well. One that nothing was heard
    /// of for long stays here as it was seen last, with [`Health::Unknown`].
    pub hosts: BTreeMap<HostId, ObservedHost>,
    /// Floating IPs that a reservation's project can use.
    pub floating_ips: BTreeMap<FloatingIpId, ReservationId>,
}

/// A host as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHost {
    /// Where it is.
    pub place: Place,
    /// Whether it works.
    pub health: Health,
    /// What runs there, in any state.
    pub guests: Vec<Guest>,
    /// Slots that were granted to reservations of instances.
    pub slots: BTreeMap<ReservationId, u32>,
}

impl ObservedHost {
    /// A healthy, empty host in the free pool.
    pub fn free() -> Self {
        Self { place: Place::FreePool, health: Health::Up, guests: Vec::new(), slots: BTreeMap::new() }
    }
}

/// Where a host is, that is, who may start guests there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Preemptible guests, and guests of reservations that have slots there.
    FreePool,
    /// Nobody. It is being emptied, or about to be handed over.
    Fenced {
        /// Since it was fenced it was found to be empty but for guests of that reservation's lease.
        verified_for: Option<ReservationId>,
    },
    /// The project of that reservation.
    Held(ReservationId),
    /// Perhaps still the project of that reservation: taking the host back was begun and has not succeeded. It has
    /// to, before anybody gets the host, that reservation included.
    Releasing(ReservationId),
}

/// A guest on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its identifier.
    pub id: GuestId,
    /// Whose it is.
    pub owner: GuestOwner,
    /// Since when it is asked to shut down, if it is.
    pub stopping_since: Option<Timestamp>,
}

/// Whose a guest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestOwner {
    /// Nobody's who could complain: it makes way for leases, after its grace time.
    Preemptible,
    /// The lease's in which it was started.
    Lease(LeaseId),
    /// Somebody's else. It is never touched.
    Other,
}
