//! Instances started through the service (CLS-08).

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
use crate::writing::{audit, conflict_error};

/// Access to instances started through the service or placed by an external scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Instances<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Instances<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    pub fn get(self, id: GuestId) -> Option<Arc<InstanceRecord>> {
        self.service.state().instances.get(id).cloned()
    }

    /// Instances in order of creation, optionally only of a project or of a lease.
    pub fn all(self, project: Option<&ProjectId>, lease: Option<LeaseId>) -> Vec<Arc<InstanceRecord>> {
        let state = self.service.state();
        whole(|after| state.instances.page(project, lease, after, usize::MAX))
    }

    /// Like [`Self::all`], but at most `limit` instances after a position.
    pub fn page(
        self,
        project: Option<&ProjectId>,
        lease: Option<LeaseId>,
        after: Option<Position>,
        limit: usize,
    ) -> Page<InstanceRecord> {
        self.service.state().instances.page(project, lease, after, limit)
    }

    /// Creates an instance and chooses its host. The loop starts it there.
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

    /// Chooses a host for a new instance, and instances of its project to preempt if necessary.
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
                    // Unknown whether there is enough capacity.
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
        let host = state.hosts.get(&host).cloned().ok_or_else(conflict_error)?;
        Ok(Proposal { instance, host, displaced })
    }

    /// Time until which a preemptible instance can stay, unless its host fails: it is then asked to leave for
    /// the next lease that needs its place, or because of its lifetime. `None` if it isn't preemptible or no
    /// such time is known. The current time if it is on a host of a lease, because the lease can need the
    /// host at any moment.
    pub fn safe_until(self, instance: &Instance) -> Option<Timestamp> {
        let now = self.service.now();
        let asked_at = self.departure(instance).map(|departure| departure.asked_at.max(now));
        if instance.backfills.is_some() { Some(now) } else { asked_at }
    }

    /// Time by which a running preemptible instance is gone because of its maximum lifetime. `None` without a
    /// limit.
    pub fn deadline(self, instance: &Instance) -> Option<Timestamp> {
        let expiry = expiry_of(&self.service.decider.settings.plan_rules, instance);
        expiry.map(|expiry| expiry.gone_by)
    }

    /// Known preemption time of an instance: for a lease or because of its lifetime, whichever is earlier.
    pub fn departure(self, instance: &Instance) -> Option<Departure> {
        known_departure(&self.service.decider.settings.plan_rules, instance)
    }

    /// Time that the instance has to shut down.
    pub fn notice(self, instance: &Instance) -> SignedDuration {
        self.service.decider.settings.plan_rules.notice(instance.class.as_ref())
    }

    /// Destroys an instance. It is DELETING when this returns, and the loop removes it. A queued instance is
    /// removed immediately.
    pub async fn delete(self, caller: &Caller, id: GuestId) -> Result<(), ServiceError> {
        let delete = |state: &State, now| {
            let before = state.instances.get(id).ok_or(ServiceError::NotFound(NotFound::Instance(id)))?;
            if before.instance.status == InstanceStatus::Deleting {
                return Ok(Transaction::none(()));
            }
            let mut commit = Commit::new(now);
            commit.audit.push(audit(caller, now, "instance.delete", &id));
            commit.writes.push(match before.instance.status {
                // It has no host, and no stopped guest is kept for it.
                InstanceStatus::Queued if before.instance.resumes.is_none() => {
                    Write::ForgetInstance { id, expected: before.version }
                }
                _ => change(before, before.instance.becoming(InstanceStatus::Deleting), now),
            });
            Ok(Transaction::of(commit, ()).wakes())
        };
        self.service.transact(delete).await
    }

    /// Starts a stopped instance that was kept, as soon as there is capacity. It continues under a new
    /// identifier, because no instance is ever started twice, and joins the queue.
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

    /// The instance, if its guest should still be started. A deletion is committed before the destruction is
    /// claimed. So a service that claims a start either has the older claim, which the fleet notices when
    /// both calls arrive, or learns here that the instance is no longer wanted.
    pub(crate) async fn still_wanted(self, id: GuestId) -> Result<Option<Arc<InstanceRecord>>, ServiceError> {
        self.service.refresh().await?;
        Ok(self.get(id).filter(|record| record.instance.status == InstanceStatus::Building))
    }
}

impl Decider {
    /// Preempts instances immediately for a regular instance of their own project.
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

    /// Pairs planned changes with the instances in `state`.
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

    /// Enters changes of instances into the draft.
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

/// A new instance and its host, and the instances of its project that are preempted for it, with their
/// writes.
struct Proposal {
    instance: Instance,
    host: Arc<HostRecord>,
    displaced: Vec<(Arc<InstanceRecord>, Write)>,
}

/// A change of an instance.
pub(crate) struct Change {
    before: Arc<InstanceRecord>,
    write: Write,
    /// Instance that takes its place.
    successor: Option<InstanceRecord>,
}

impl Change {
    fn notification(&self, rules: &PlanRules, now: Timestamp) -> Option<NewNotification> {
        let successor = self.successor.as_ref().map(|record| record.instance.id);
        notices::of_instance(&self.before, &self.write, rules, successor, now)
    }
}

/// Increments the version of a host, so that one of two concurrent decisions that rely on the same free
/// capacity conflicts.
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
