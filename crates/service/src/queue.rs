//! Restarts preempted instances as soon as capacity allows (PRE).
//!
//! An instance is never started twice. Instead, a new one with the same terms takes the place of the
//! preempted one.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Within};
use leases::hints::InstanceHints;
use leases::ids::{GuestId, HostId};
use leases::instance::{Instance, InstanceKind, InstanceStatus};
use leases::plan::{Guest, Observed};
use leases::work::Budget;
use store::{Commit, InstanceRecord, Version, Write};

use crate::decider::Decider;
use crate::deciding::QUICK;
use crate::entries::{Effect, Entry};
use crate::execution::draft::Draft;
use crate::instances::{change, seize};
use crate::notices;
use crate::state::State;

/// Maximum number of instances started in one commit. They are decided one after another.
const AT_ONCE: usize = 64;

/// An instance that can start: its record before, and the writes.
type Start = (Arc<InstanceRecord>, Vec<Write>);

impl Decider {
    /// The successor of an instance that this write preempts, if it is requeued.
    pub(crate) fn successor(
        &self,
        before: &InstanceRecord,
        write: &Write,
        now: Timestamp,
    ) -> Option<InstanceRecord> {
        let instance = &before.instance;
        let given_up = |after: &InstanceRecord| {
            instance.status == InstanceStatus::Building && after.instance.status == InstanceStatus::Deleting
        };
        let preempted = match write {
            Write::Instance { record, .. } => instance.is_departing(now) && given_up(record),
            write => notices::preempted(before, write, now),
        };
        (instance.requeue && preempted).then(|| InstanceRecord {
            instance: instance.successor(GuestId(self.ids.uuid())),
            version: Version::FIRST,
            // Keeps its place in the queue.
            created_at: before.created_at,
            updated_at: Some(now),
        })
    }

    /// Starts queued instances as far as capacity allows.
    pub(crate) fn start_queued(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        // Leases that start or end now don't wait for work that can be done in the next cycle.
        let may_wait = self.queue_may_wait(&state, draft.steps_ended, now);
        if may_wait || self.progress().memos.queue_tried == Some(state.revision) {
            return;
        }
        let budget = Budget::new(self.settings.decision_work);
        let starts = self.startable(&state, now, &budget);
        drop(state);
        let entry = |(before, writes): Start| {
            let restarts = Effect::InstanceRestarts(before.instance.id);
            Entry::new(Commit { writes, ..Commit::new(now) }, restarts)
        };
        draft.enter(self, starts.into_iter().map(entry).collect());
    }

    /// Queued instances that can start now, in order of creation, continuing after those tried in the last
    /// cycle. The write lock is held, so the pass ends after a small part of a decision's work, but tries at
    /// least one instance.
    fn startable(&self, state: &State, now: Timestamp, budget: &Budget) -> Vec<Start> {
        let queued = |record: &&Arc<InstanceRecord>| record.instance.status == InstanceStatus::Queued;
        let mut waiting: Vec<_> = state.instances.iter().filter(queued).cloned().collect();
        if waiting.is_empty() || !self.settings.preemption.allowed {
            self.progress().memos.queue_tried = Some(state.revision);
            return Vec::new();
        }
        waiting.sort_by_key(|record| (record.created_at, record.instance.id));
        let (mut began, mut last) = (state.revision, None);
        if let Some((earlier, after)) = self.progress().memos.queue_resumes.take()
            && let Some(position) = waiting.iter().position(|record| record.instance.id == after)
        {
            (began, last) = (earlier, Some(after));
            waiting.drain(..=position);
        }
        let backfill = self.backfill(state, InstanceKind::Preemptible, now);
        let facts = self.host_facts(state, now);
        let admission =
            self.admission_at(state, &facts, now).with_backfill(backfill.as_ref()).with_budget(budget);
        let mut observed = self.expected(state);
        let (mut without_result, mut seized, mut starts) = (Vec::new(), BTreeSet::new(), Vec::new());
        for record in waiting {
            let terms = (record.instance.owner.project.clone(), record.instance.size);
            if budget.used_part_of(QUICK) {
                self.progress().memos.queue_resumes = last.map(|last| (began, last));
                break;
            }
            if starts.len() == AT_ONCE || without_result.contains(&terms) {
                continue;
            }
            last = Some(record.instance.id);
            let Some(host) = self.gap_for(&admission, &record.instance, &observed) else {
                without_result.push(terms);
                continue;
            };
            let Some(known) = state.hosts.get(&host) else { continue };
            if let Some(seen) = observed.hosts.get_mut(&host) {
                let owner = record.instance.kind.guest_owner();
                seen.guests
                    .push(Guest { size: record.instance.size, ..Guest::new(record.instance.id, owner) });
            }
            let backfills = backfill.as_ref().and_then(|backfill| backfill.holder(host));
            let new = Instance { host, backfills, ..record.instance.becoming(InstanceStatus::Building) };
            let started = Instance { departure: self.departure_of_new(state, &new, now), ..new };
            let mut writes = vec![change(&record, started, now)];
            writes.extend(seized.insert(host).then(|| seize(known)));
            starts.push((record, writes));
        }
        let mut progress = self.progress();
        if starts.is_empty() && progress.memos.queue_resumes.is_none() {
            // Wait for a change: until then, gaps only become shorter. Instances tried before the last change
            // are tried again.
            progress.memos.queue_tried = Some(began);
        }
        progress.unfinished |= progress.memos.queue_tried != Some(state.revision);
        starts
    }

    fn gap_for(&self, admission: &Admission<'_>, instance: &Instance, observed: &Observed) -> Option<HostId> {
        let within = Within::Gap(&instance.owner.project, self.least_gap());
        admission.host_for(within, instance.size, &InstanceHints::default(), observed).ok()
    }
}
