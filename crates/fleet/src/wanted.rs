//! The stored reservations, for drivers of fleets that others can change, and the differences that these drivers find.

use std::collections::BTreeMap;

use leases::ids::{HostId, LeaseId, ReservationId};
use leases::project::ProjectId;
use leases::terms::ReservationTerms;

/// The stored reservations. A driver decides by these who owns a reservation, never by metadata in the fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The identifier of the store, if it has one.
    pub store: Option<String>,
    /// The reservations of all leases that are not over.
    pub reservations: BTreeMap<ReservationId, WantedReservation>,
}

/// A reservation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedReservation {
    /// Its lease.
    pub lease: LeaseId,
    /// The project that has the lease.
    pub project: ProjectId,
    /// What is reserved.
    pub terms: ReservationTerms,
    /// How many slots of each host it has, if it is one of instances.
    pub slots: BTreeMap<HostId, u32>,
    /// Whether the lease runs or will run. Objects of a lease that ends are being deleted and are not compared.
    pub is_kept: bool,
}

/// A difference between the fleet and the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The reservation that it is about, if it is about one.
    pub reservation: Option<ReservationId>,
    /// The host that it is about, if it is about one.
    pub host: Option<HostId>,
    /// Description for operators: the object, its value and the expected value.
    pub what: String,
    /// Description for the owner of the lease, without hosts and other projects.
    pub for_owner: &'static str,
    /// Whether the service undoes it if the next look still finds it.
    pub is_undone: bool,
}
