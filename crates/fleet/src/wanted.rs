//! The stored reservations, for drivers of fleets that can be changed outside the service, and the
//! differences that these drivers find.

use std::collections::BTreeMap;

use leases::ids::{HostId, LeaseId, ReservationId};
use leases::project::ProjectId;
use leases::terms::ReservationTerms;

/// The stored reservations. They determine the owner of a reservation, never metadata in the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Identifier of the store, if it has one.
    pub store: Option<String>,
    /// Reservations of all leases that have not ended.
    pub reservations: BTreeMap<ReservationId, WantedReservation>,
}

/// A stored reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedReservation {
    pub lease: LeaseId,
    /// Project that owns the lease.
    pub project: ProjectId,
    pub terms: ReservationTerms,
    /// Number of slots on each host, for a reservation of instances.
    pub slots: BTreeMap<HostId, u32>,
    /// Whether the lease runs or will run. Objects of a lease that ends are being deleted and are not compared.
    pub is_kept: bool,
}

/// A difference between the fleet and the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub reservation: Option<ReservationId>,
    pub host: Option<HostId>,
    /// Description for operators: the object, its value and the expected value.
    pub what: String,
    /// Description for the owner of the lease, which must not name hosts or other projects.
    pub for_owner: &'static str,
    /// Whether the service reverts it if the next observation still finds it.
    pub is_undone: bool,
}
