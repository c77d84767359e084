//! Instances that are started through the service, for fleets without a cloud (spec CLS-08).
//!
//! An instance is what was asked for and is kept in the store; the [guest](crate::plan::Guest) of the same identifier
//! is what is seen of it on a host. [`crate::admission`] chooses the host, [`crate::plan`] has the guest started and
//! destroyed there, and notices when it has ended by itself.

use crate::ids::{GuestId, HostId, LeaseId, ReservationId};
use crate::lease::{Lease, Reservation};
use crate::plan::{GuestOwner, GuestSize};
use crate::project::Owner;
use crate::status::LeaseStatus;

/// An instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its identifier, which its guest has as well.
    pub id: GuestId,
    /// What its owner calls it.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Where it may run.
    pub kind: InstanceKind,
    /// What it uses of its host.
    pub size: GuestSize,
    /// The host that was chosen, or to which it was moved since.
    pub host: HostId,
    /// How far it is.
    pub status: InstanceStatus,
    /// Why it could not be started.
    pub reason: Option<String>,
}

/// Where an instance may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceKind {
    /// In a lease: on what a reservation holds.
    Reserved {
        /// The lease.
        lease: LeaseId,
        /// The reservation.
        reservation: ReservationId,
    },
    /// On hosts of the free pool that nobody has reserved.
    Regular,
    /// On hosts of the free pool until the next lease of the host, which it makes way for (seed 004).
    Preemptible,
}

impl InstanceKind {
    /// Its name: `reserved`, `regular` or `preemptible`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved { .. } => "reserved",
            Self::Regular => "regular",
            Self::Preemptible => "preemptible",
        }
    }

    /// Whose its guest is.
    pub fn guest_owner(self) -> GuestOwner {
        match self {
            Self::Reserved { lease, .. } => GuestOwner::Lease(lease),
            Self::Regular => GuestOwner::Other,
            Self::Preemptible => GuestOwner::Preemptible,
        }
    }

    /// The lease that it is part of, if of one.
    pub fn lease(self) -> Option<LeaseId> {
        match self {
            Self::Reserved { lease, .. } => Some(lease),
            Self::Regular | Self::Preemptible => None,
        }
    }
}

/// How far an instance is. The names are Nova's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceStatus {
    /// It is being started.
    Building,
    /// It runs, as far as is known.
    Active,
    /// It is being destroyed, because its owner, or the end of its lease, wants it so.
    Deleting,
    /// It could not be started.
    Error,
}

impl InstanceStatus {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Building, "BUILD"),
        (Self::Active, "ACTIVE"),
        (Self::Deleting, "DELETING"),
        (Self::Error, "ERROR"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }
}

impl Instance {
    /// Whether it needs its place: it runs there, or is about to.
    pub fn needs_place(&self) -> bool {
        self.status != InstanceStatus::Error
    }

    /// The same in another status, with nothing to explain.
    #[must_use]
    pub fn becoming(&self, status: InstanceStatus) -> Self {
        Self { status, reason: None, ..self.clone() }
    }
}

/// Which lease an instance is to be part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseHint {
    /// That lease, in its first reservation of hosts or of room on them.
    Lease(LeaseId),
    /// The lease of that reservation.
    Reservation(ReservationId),
}

/// The reservation of an active lease that the hint means, if it has hosts or room on them.
pub fn reservation_for(lease: &Lease, hint: LeaseHint) -> Option<&Reservation> {
    let hosts = |reservation: &&Reservation| !reservation.allocation.hosts().is_empty();
    lease
        .reservations
        .iter()
        .filter(hosts)
        .find(|reservation| {
            matches!(hint, LeaseHint::Lease(_)) || hint == LeaseHint::Reservation(reservation.id)
        })
        .filter(|_| lease.status == LeaseStatus::Active)
}
