//! Where an instance may run: what kind of instance a request makes (PRE-02, PRE-03), and on which hosts it may be.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Backfill, Within, size_of_instances};
use leases::instance::{InstanceKind, LeaseHint, reservation_for};
use leases::lease::{Lease, Reservation};
use leases::plan::GuestSize;
use leases::preemption::{Class, NotPreemptible};
use leases::project::ProjectId;
use store::LeaseRecord;

use crate::decider::Decider;
use crate::state::State;
use crate::types::{NotFound, Placing, ServiceError};

/// What kind of instance it is, and where it may be.
pub(crate) struct Place<'a> {
    pub kind: InstanceKind,
    pub within: Within<'a>,
    pub size: Option<GuestSize>,
    pub class: Option<Class>,
}

impl Decider {
    /// What kind of instance a request of the project makes, and where it may be.
    pub(crate) fn place_of<'a>(
        &self,
        state: &'a State,
        project: &'a ProjectId,
        placing: &Placing,
        now: Timestamp,
    ) -> Result<Place<'a>, ServiceError> {
        let Some(hint) = placing.hint else {
            let (kind, within) = self.beside_leases(state, project, placing)?;
            let class = placing.class.as_deref().filter(|_| kind == InstanceKind::Preemptible);
            let class = class.map(|name| self.settings.preemption.class(name)).transpose()?.cloned();
            not_of_class(placing.class.as_ref().filter(|_| class.is_none()))?;
            return Ok(Place { kind, within, size: placing.size, class });
        };
        placing.marked.in_lease()?;
        not_of_class(placing.class.as_ref())?;
        let (lease, reservation) = part_of(&lease_of(state, project, hint)?.lease, hint, now)?;
        Ok(Place {
            kind: InstanceKind::Reserved { lease: lease.id, reservation: reservation.id },
            within: Within::Reservation(lease, reservation),
            size: size_of(placing.size, size_of_instances(&reservation.terms))?,
            class: None,
        })
    }

    /// Where an instance that is part of no lease may run.
    fn beside_leases<'a>(
        &self,
        state: &State,
        project: &'a ProjectId,
        placing: &Placing,
    ) -> Result<(InstanceKind, Within<'a>), ServiceError> {
        let listed = state.preemptible_projects.values().filter(|_| self.settings.preemptible_by_project);
        let listed = listed.map(|record| &record.pattern);
        if !self.settings.preemption.makes_preemptible(project, &placing.marked, listed)? {
            return Ok((InstanceKind::Regular, Within::FreePool(project)));
        }
        Ok((InstanceKind::Preemptible, Within::Gap(project, self.least_gap())))
    }

    /// For how long nobody may have the host of a preemptible instance that is started now: its least lifetime, and so long
    /// before the lease that comes next it is asked to leave.
    pub(crate) fn least_gap(&self) -> SignedDuration {
        let ahead = self.settings.plan_rules.clear_ahead.unwrap_or_default();
        self.settings.preemption.least_lifetime.saturating_add(ahead)
    }

    /// Hosts of leases that an instance of that kind may be started on, if there are to be any.
    pub(crate) fn backfill(&self, state: &State, kind: InstanceKind, now: Timestamp) -> Option<Backfill> {
        let wanted = kind == InstanceKind::Preemptible && self.settings.plan_rules.backfill;
        let leases = wanted.then(|| state.leases.going().map(|record| &record.lease))?;
        Some(Backfill::new(leases, state.instances.iter().map(|record| &record.instance), now))
    }
}

/// A class is wanted of what is not preemptible.
fn not_of_class(name: Option<&String>) -> Result<(), NotPreemptible> {
    name.map_or(Ok(()), |name| Err(NotPreemptible::NotOfClass(name.clone())))
}

/// The lease that is meant, if it is the project's: of others' it is not said that they are there.
fn lease_of<'a>(
    state: &'a State,
    project: &ProjectId,
    hint: LeaseHint,
) -> Result<&'a Arc<LeaseRecord>, ServiceError> {
    let (id, unknown) = match hint {
        LeaseHint::Lease(id) => (Some(id), NotFound::Lease(id)),
        LeaseHint::Reservation(id) => (state.leases.of_reservation(id), NotFound::Reservation(id)),
    };
    let found = id.and_then(|id| state.leases.get(id));
    found.filter(|record| record.lease.owner.project == *project).ok_or(ServiceError::NotFound(unknown))
}

/// Where in the lease the instance is to be.
fn part_of(lease: &Lease, hint: LeaseHint, now: Timestamp) -> Result<(&Lease, &Reservation), ServiceError> {
    let reservation = reservation_for(lease, hint).filter(|_| now < lease.window.end());
    reservation.map(|reservation| (lease, reservation)).ok_or_else(|| {
        ServiceError::Conflict(format!(
            "Lease {} is {}: instances can be started in a lease that is ACTIVE, before its end, on its hosts",
            lease.id,
            lease.status.name()
        ))
    })
}

/// The size that is asked for, or that of the reservation, if it is for instances of one size.
fn size_of(asked: Option<GuestSize>, reserved: Option<GuestSize>) -> Result<Option<GuestSize>, ServiceError> {
    match (asked, reserved) {
        (Some(asked), Some(reserved)) if asked != reserved => Err(ServiceError::Invalid(format!(
            "the reservation is for instances of {} vCPUs, {} MiB of memory and {} GiB of disk; leave the size out",
            reserved.vcpus, reserved.memory_mib, reserved.disk_gib
        ))),
        (asked, reserved) => Ok(reserved.or(asked)),
    }
}
