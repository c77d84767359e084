//! Placement of instances: the kind of instance a request creates (PRE-02, PRE-03), and the hosts it can run
//! on.

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

/// Kind of an instance and hosts it can run on.
pub(crate) struct Place<'a> {
    pub kind: InstanceKind,
    pub within: Within<'a>,
    pub size: Option<GuestSize>,
    pub class: Option<Class>,
}

impl Decider {
    /// Kind of instance that a project's request creates, and hosts it can run on.
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

    /// Hosts for an instance that belongs to no lease.
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

    /// Minimum time during which the host of a new preemptible instance must be free of leases: its least
    /// lifetime, plus the time by which it is asked to leave before the next lease starts.
    pub(crate) fn least_gap(&self) -> SignedDuration {
        let ahead = self.settings.plan_rules.clear_ahead.unwrap_or_default();
        self.settings.preemption.least_lifetime.saturating_add(ahead)
    }

    /// Leased hosts that an instance of that kind can backfill. `None` unless backfill is on and the instance
    /// is preemptible.
    pub(crate) fn backfill(&self, state: &State, kind: InstanceKind, now: Timestamp) -> Option<Backfill> {
        let wanted = kind == InstanceKind::Preemptible && self.settings.plan_rules.backfill;
        let leases = wanted.then(|| state.leases.going().map(|record| &record.lease))?;
        Some(Backfill::new(leases, state.instances.iter().map(|record| &record.instance), now))
    }
}

/// Rejects a class for an instance that isn't preemptible.
fn not_of_class(name: Option<&String>) -> Result<(), NotPreemptible> {
    name.map_or(Ok(()), |name| Err(NotPreemptible::NotOfClass(name.clone())))
}

/// The lease that the hint names. Leases of other projects count as not found, so their existence isn't
/// revealed.
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

/// The reservation of the lease that the instance will be part of.
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

/// The requested size, or the reservation's size if it is for instances of one size.
fn size_of(asked: Option<GuestSize>, reserved: Option<GuestSize>) -> Result<Option<GuestSize>, ServiceError> {
    match (asked, reserved) {
        (Some(asked), Some(reserved)) if asked != reserved => Err(ServiceError::Invalid(format!(
            "the reservation is for instances of {} vCPUs, {} MiB of memory and {} GiB of disk; leave the size out",
            reserved.vcpus, reserved.memory_mib, reserved.disk_gib
        ))),
        (asked, reserved) => Ok(reserved.or(asked)),
    }
}
