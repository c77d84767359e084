//! Where an instance may run: what kind of instance a request makes (PRE-02, PRE-03), and on which hosts it may be.
//!
//! An external scheduler asks the same as is decided for instances of the service's own ([`Instances::hosts_for`]).

use std::collections::HashMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Backfill, Within, size_of_instances};
use leases::instance::{InstanceKind, LeaseHint, reservation_for};
use leases::lease::{Lease, Reservation};
use leases::plan::GuestSize;
use leases::preemption::{Class, NotPreemptible};
use leases::project::ProjectId;
use leases::work::Budget;
use store::LeaseRecord;

use crate::decider::Decider;
use crate::hints::places;
use crate::instances::Instances;
use crate::state::State;
use crate::types::{HostAnswer, HostQuestion, HostRefusal, NotFound, Placing, ServiceError};

/// What kind of instance it is, and where it may be.
pub(crate) struct Place<'a> {
    pub kind: InstanceKind,
    pub within: Within<'a>,
    pub size: Option<GuestSize>,
    pub class: Option<Class>,
}

impl Instances<'_> {
    /// Which hosts may have such an instance, and until when: what [`Instances::create`] would choose from. Nothing
    /// is kept free by asking.
    pub async fn hosts_for(self, question: &HostQuestion) -> Result<HostAnswer, ServiceError> {
        self.service.consider(|budget| self.hosts_now_for(question, budget)).await
    }

    fn hosts_now_for(self, question: &HostQuestion, budget: &Budget) -> Result<HostAnswer, ServiceError> {
        let (state, now) = (self.service.snapshot(), self.service.now());
        if let Some(moved) = self.moved(&state, question) {
            return Ok(moved);
        }
        let Place { kind, within, size, class } =
            self.service.decider.place_of(&state, &question.project, &question.placing, now)?;
        let hints = places(&state, &question.project, &question.placing.others)?;
        let backfill = self.service.decider.backfill(&state, kind, now);
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self
            .service
            .decider
            .admission_at(&state, &facts, now)
            .with_backfill(backfill.as_ref())
            .with_budget(budget);
        let filter = |observed: &_| {
            let verdicts = admission.filter(within, size, &hints, (state.inventory.hosts(), observed));
            verdicts.into_iter().map(|(host, verdict)| (host.name.as_str(), verdict)).collect::<Vec<_>>()
        };
        // Guests that are about to be there need room; who has no size asks for none.
        let verdicts = match size {
            Some(_) => filter(&self.service.decider.expected(&state)),
            None => filter(&self.service.observed()),
        };
        let rules = &self.service.decider.settings.plan_rules;
        let notice = rules.notice(class.as_ref());
        let leaves = |until: Timestamp| match kind {
            InstanceKind::Preemptible => rules.asks_at(until, notice).max(now),
            InstanceKind::Reserved { .. } | InstanceKind::Regular => until,
        };
        let closed = kind == InstanceKind::Regular && !self.service.decider.settings.open_pool;
        let verdicts = verdicts.into_iter().map(|(name, verdict)| {
            let verdict = verdict.map(|until| until.map(leaves)).map_err(HostRefusal::Unfit);
            (name, if closed { verdict.and(Err(HostRefusal::Closed)) } else { verdict })
        });
        let Some(names) = &question.hosts else {
            let hosts = verdicts.map(|(name, verdict)| (name.to_owned(), verdict)).collect();
            return Ok(HostAnswer { kind, hosts });
        };
        let known: HashMap<&str, _> = verdicts.collect();
        // Whoever is on hosts of others is in nobody's way here.
        let not_managed = || match kind {
            InstanceKind::Regular => Ok(None),
            InstanceKind::Reserved { .. } | InstanceKind::Preemptible => Err(HostRefusal::NotManaged),
        };
        let verdict =
            |name: &String| (name.clone(), known.get(name.as_str()).copied().unwrap_or_else(not_managed));
        Ok(HostAnswer { kind, hosts: names.iter().map(verdict).collect() })
    }

    /// The answer for a guest that is moved for a lease: it may go where it is moved to, and nowhere else.
    fn moved(self, state: &State, question: &HostQuestion) -> Option<HostAnswer> {
        let guest = question.instance?;
        let observed = self.service.observed();
        let hunts = state.leases.hunters().filter_map(|record| record.lease.hunt.as_ref());
        let mut moves = hunts.flat_map(|hunt| hunt.open(&observed));
        let to = state.inventory.host(moves.find(|mov| mov.guest == guest)?.to)?.name.clone();
        let names = question.hosts.clone().unwrap_or_else(|| vec![to.clone()]);
        let verdict = |name: String| {
            let verdict = if name == to { Ok(None) } else { Err(HostRefusal::MovedElsewhere) };
            (name, verdict)
        };
        Some(HostAnswer { kind: InstanceKind::Regular, hosts: names.into_iter().map(verdict).collect() })
    }
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
