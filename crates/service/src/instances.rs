//! Instances that are started through the service (CLS-08).

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::NoHost;
use leases::hints::InstanceHints;
use leases::ids::{GuestId, LeaseId};
use leases::instance::{Cause, Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::{InstanceChange, PlanRules};
use leases::project::{Owner, ProjectId};
use leases::work::Budget;
use store::{Commit, HostRecord, InstanceRecord, NewNotification, Version, Write};

use crate::decider::Decider;
use crate::deciding::never;
use crate::entries::{Effect, Entry};
use crate::execution::draft::Draft;
use crate::hints::places;
use crate::lifetimes::{expiry_of, known_departure};
use crate::listing::{Page, Position, whole};
use crate::notices;
use crate::placing::Place;
use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, NewInstance, NotFound, ServiceError};
use crate::usage::Usage;
use crate::writing::{audit, overtaken};

/// Instances that are started through the service, or placed by an external scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Instances<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Instances<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// An instance.
    pub fn get(self, id: GuestId) -> Option<Arc<InstanceRecord>> {
        self.service.state().instances.get(id).cloned()
    }

    /// Instances in the order of their creation; of one project only, if it is given, and of one lease.
    pub fn all(self, project: Option<&ProjectId>, lease: Option<LeaseId>) -> Vec<Arc<InstanceRecord>> {
        let state = self.service.state();
        whole(|after| state.instances.page(project, lease, after, usize::MAX))
    }

    /// The same after a position, at most so many.
    pub fn page(
        self,
        project: Option<&ProjectId>,
        lease: Option<LeaseId>,
        after: Option<Position>,
        limit: usize,
    ) -> Page<InstanceRecord> {
        self.service.state().instances.page(project, lease, after, limit)
    }

    /// Chooses a host for an instance, and has it started there.
    pub async fn create(
        self,
        caller: &Caller,
        new: NewInstance,
    ) -> Result<Arc<InstanceRecord>, ServiceError> {
        let id = GuestId(self.service.parts.ids.uuid());
        if self.service.decider.settings.quotas.preemptible_usage.is_some() {
            let kind = self
                .service
                .decider
                .place_of(&self.service.snapshot(), &caller.project, &new.placing, self.service.now())?
                .kind;
            if kind == InstanceKind::Preemptible {
                Usage::of(self.service).check_preemptible(&caller.project, self.service.now()).await?;
            }
        }
        let propose = |budget: &Budget| {
            let now = self.service.now();
            Ok((now, self.propose(caller, id, &new, now, budget)?))
        };
        let create = |(now, proposal): (Timestamp, Proposal)| {
            let Proposal { instance, host, displaced } = proposal;
            let record =
                InstanceRecord { instance, version: Version::FIRST, created_at: now, updated_at: None };
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "instance.create", &id));
            commit.writes.push(Write::Instance { record: Box::new(record.clone()), expected: None });
            commit.writes.push(seize(&host));
            for (before, write) in &displaced {
                let rules = &self.service.decider.settings.plan_rules;
                commit.notifications.extend(notices::of_instance(before, write, rules, None, now));
            }
            commit.writes.extend(displaced.into_iter().map(|(_, write)| write));
            Ok(Transaction::of(commit, Arc::new(record)).wakes())
        };
        self.service.transact_decided(propose, never, create).await
    }

    /// The instance as it would be, and the host that it would be on.
    fn propose(
        self,
        caller: &Caller,
        id: GuestId,
        new: &NewInstance,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Proposal, ServiceError> {
        let state = self.service.snapshot();
        let Place { kind, within, size, class } =
            self.service.decider.place_of(&state, &caller.project, &new.placing, now)?;
        let missing = || ServiceError::Invalid("vcpus, memory_mb and disk_gb are missing".to_owned());
        let size = size.ok_or_else(missing)?;
        let all = state.instances.iter().map(|record| &record.instance);
        self.service.decider.settings.quotas.check(&caller.project, (kind, size), all)?;
        let backfill = self.service.decider.backfill(&state, kind, now);
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self
            .service
            .decider
            .admission_at(&state, &facts, now)
            .with_backfill(backfill.as_ref())
            .with_budget(budget);
        let observed = self.service.decider.expected(&state);
        let hints = places(&state, &caller.project, &new.placing.others)?;
        let found = admission.host_for(within, size, &hints, &observed);
        let (host, displaced) = match found {
            Ok(host) => (host, Vec::new()),
            Err(NoHost::NoRoom { .. })
                if kind == InstanceKind::Regular && hints == InstanceHints::default() =>
            {
                let all = state.instances.iter().map(|record| &record.instance);
                let room = admission.displacing(&caller.project, size, &observed, all);
                if let (None, Some(stop)) = (&room, budget.stopped()) {
                    // It is not known whether there is room.
                    return Err(NoHost::Stopped(stop).into());
                }
                let (host, leaving) = room.ok_or(ServiceError::from(found.unwrap_err()))?;
                (host, self.service.decider.displace(&state, &leaving, now))
            }
            Err(error) => return Err(error.into()),
        };
        let owner = Owner { project: caller.project.clone(), user: caller.user.clone() };
        let requeue = new.requeue;
        if requeue && kind != InstanceKind::Preemptible {
            return Err(ServiceError::Invalid("requeue is for instances that are preemptible".to_owned()));
        }
        let new = Instance::new(id, new.name.clone(), owner, kind, size, host);
        let backfills = backfill.and_then(|backfill| backfill.holder(host));
        let new = Instance { class, requeue, backfills, ..new };
        let instance =
            Instance { departure: self.service.decider.departure_of_new(&state, &new, now), ..new };
        let host = state.hosts.get(&host).cloned().ok_or_else(overtaken)?;
        Ok(Proposal { instance, host, displaced })
    }

    /// Until when a preemptible instance may stay, unless its host fails: when it is asked to leave for the next lease
    /// that needs its place, or because of its lifetime. None if it is not preemptible, or neither is known. On a host of a
    /// lease it is the present, since its holder may need that at any time.
    pub fn safe_until(self, instance: &Instance) -> Option<Timestamp> {
        let now = self.service.now();
        let asked_at = self.departure(instance).map(|departure| departure.asked_at.max(now));
        if instance.backfills.is_some() { Some(now) } else { asked_at }
    }

    /// When a preemptible instance that runs has run for as long as it may, and is gone; none if that is not limited.
    pub fn deadline(self, instance: &Instance) -> Option<Timestamp> {
        let expiry = expiry_of(&self.service.decider.settings.plan_rules, instance);
        expiry.map(|expiry| expiry.gone_by)
    }

    /// When an instance is preempted, as far as is known: for a lease, or because of its lifetime, whichever is earlier.
    pub fn departure(self, instance: &Instance) -> Option<Departure> {
        known_departure(&self.service.decider.settings.plan_rules, instance)
    }

    /// How long the instance has to shut down.
    pub fn notice(self, instance: &Instance) -> SignedDuration {
        self.service.decider.settings.plan_rules.notice(instance.class.as_ref())
    }

    /// Has an instance destroyed. It is DELETING when this returns, and goes by itself; one that waits is gone.
    pub async fn delete(self, caller: &Caller, id: GuestId) -> Result<(), ServiceError> {
        let delete = |state: &State, now| {
            let before = state.instances.get(id).ok_or(ServiceError::NotFound(NotFound::Instance(id)))?;
            if before.instance.status == InstanceStatus::Deleting {
                return Ok(Transaction::none(()));
            }
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "instance.delete", &id));
            commit.writes.push(match before.instance.status {
                // It is nowhere, and nothing is kept for it.
                InstanceStatus::Queued if before.instance.resumes.is_none() => {
                    Write::ForgetInstance { id, expected: before.version }
                }
                _ => change(before, before.instance.becoming(InstanceStatus::Deleting), now),
            });
            Ok(Transaction::of(commit, ()).wakes())
        };
        self.service.transact(delete).await
    }

    /// Starts an instance that was stopped and is kept, as soon as there is room. It goes on as another one, since
    /// nothing is ever started twice, which takes its turn among those that wait.
    pub async fn start(self, caller: &Caller, id: GuestId) -> Result<Arc<InstanceRecord>, ServiceError> {
        let successor = GuestId(self.service.parts.ids.uuid());
        let known = self.get(id).ok_or(ServiceError::NotFound(NotFound::Instance(id)))?;
        Usage::of(self.service).check_preemptible(&known.instance.owner.project, self.service.now()).await?;
        let start = |state: &State, now| {
            let before = state.instances.get(id).ok_or(ServiceError::NotFound(NotFound::Instance(id)))?;
            let Instance { status, kind, size, .. } = before.instance;
            if status != InstanceStatus::Shelved {
                return Err(ServiceError::Conflict(format!(
                    "Instance {id} is {}: one can be started that is {}",
                    status.name(),
                    InstanceStatus::Shelved.name()
                )));
            }
            let all = state.instances.iter().map(|record| &record.instance);
            self.service.decider.settings.quotas.check(&before.instance.owner.project, (kind, size), all)?;
            let instance = before.instance.successor(successor);
            let record =
                InstanceRecord { instance, version: Version::FIRST, created_at: now, updated_at: None };
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "instance.start", &id));
            commit.writes.push(Write::ForgetInstance { id, expected: before.version });
            commit.writes.push(Write::Instance { record: Box::new(record.clone()), expected: None });
            Ok(Transaction::of(commit, Arc::new(record)).wakes())
        };
        self.service.transact(start).await
    }

    /// The instance, if its guest is to be started still. Whoever has it destroyed commits that first, and claims the
    /// destruction then. So of who claims the start, either its claim is the older one, and the fleet knows that when
    /// both calls arrive, or it learns here that it is not wanted any more.
    pub(crate) async fn still_wanted(self, id: GuestId) -> Result<Option<Arc<InstanceRecord>>, ServiceError> {
        self.service.refresh().await?;
        Ok(self.get(id).filter(|record| record.instance.status == InstanceStatus::Building))
    }
}

impl Decider {
    /// Preempts instances at once for one of their own project.
    fn displace(
        &self,
        state: &State,
        leaving: &BTreeSet<GuestId>,
        now: Timestamp,
    ) -> Vec<(Arc<InstanceRecord>, Write)> {
        let leave = |id: &GuestId| {
            let before = state.instances.get(*id)?.clone();
            let notice = self.settings.plan_rules.notice(before.instance.class.as_ref());
            let departure = Some(Departure::at_once(Cause::OwnProject, now, notice));
            let write = change(&before, Instance { departure, ..before.instance.clone() }, now);
            Some((before, write))
        };
        leaving.iter().filter_map(leave).collect()
    }

    /// What becomes of instances that were planned for as they are in `state`.
    pub(crate) fn instances_planned_for(
        &self,
        state: &State,
        changes: Vec<InstanceChange>,
        now: Timestamp,
    ) -> Vec<Change> {
        let write = |planned| {
            let before = state.instances.get(InstanceChange::instance(&planned))?.clone();
            let write = match planned {
                InstanceChange::Becomes(after) => change(&before, *after, now),
                InstanceChange::Gone(id) => Write::ForgetInstance { id, expected: before.version },
            };
            let successor = self.successor(&before, &write, now);
            Some(Change { before, write, successor })
        };
        changes.into_iter().filter_map(write).collect()
    }

    /// Enters what becomes of instances.
    pub(crate) fn enter_instances(&self, draft: &mut Draft, changes: Vec<Change>) {
        let now = draft.now;
        let entry = |change: Change| {
            let rules = &self.settings.plan_rules;
            let successor = change.successor.clone();
            let successor =
                successor.map(|record| Write::Instance { record: Box::new(record), expected: None });
            let commit = Commit {
                writes: [change.write.clone()].into_iter().chain(successor).collect(),
                notifications: change.notification(rules, now).into_iter().collect(),
                ..Commit::new(now)
            };
            let preempted = notices::preempted(&change.before, &change.write, now);
            Entry::new(commit, Effect::Instance { record: change.write.key(), preempted })
        };
        draft.enter(self, changes.into_iter().map(entry).collect());
    }
}

/// An instance as it would be, the host that it would be on, and those of its project that are preempted for it, as
/// they are and with what is written.
struct Proposal {
    instance: Instance,
    host: Arc<HostRecord>,
    displaced: Vec<(Arc<InstanceRecord>, Write)>,
}

/// What becomes of an instance.
pub(crate) struct Change {
    before: Arc<InstanceRecord>,
    write: Write,
    /// Who takes its place.
    successor: Option<InstanceRecord>,
}

impl Change {
    fn notification(&self, rules: &PlanRules, now: Timestamp) -> Option<NewNotification> {
        let successor = self.successor.as_ref().map(|record| record.instance.id);
        notices::of_instance(&self.before, &self.write, rules, successor, now)
    }
}

/// The host in another version: of two who put something on it at the same time, each counting on the same room, one
/// is refused.
pub(crate) fn seize(host: &HostRecord) -> Write {
    let record = HostRecord { version: host.version.next(), ..host.clone() };
    Write::Host { record: Box::new(record), expected: Some(host.version) }
}

pub(crate) fn change(before: &InstanceRecord, after: Instance, now: Timestamp) -> Write {
    let record = InstanceRecord {
        instance: after,
        version: before.version.next(),
        created_at: before.created_at,
        updated_at: Some(now),
    };
    Write::Instance { record: Box::new(record), expected: Some(before.version) }
}
