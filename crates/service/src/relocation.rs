//! Moves preemptible instances to other gaps before they would have to leave (PRE).
//!
//! The target is recorded with the departure. The plan moves the instance, and asks it to leave if it hasn't
//! arrived in time.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::GuestId;
use leases::instance::{Departure, Instance, InstanceKind, InstanceStatus};
use leases::plan::{Guest, Observed};
use leases::work::Budget;
use store::{Commit, InstanceRecord, Write};

use crate::decider::Decider;
use crate::deciding::QUICK;
use crate::entries::{Effect, Entry};
use crate::execution::draft::Draft;
use crate::instances::{change, seize};
use crate::state::State;

/// An instance with a new target host: its record before, and the writes.
type Relocation = (Arc<InstanceRecord>, Vec<Write>);

impl Decider {
    /// Finds other gaps for instances that would have to leave soon.
    pub(crate) fn relocate(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let due = self.due_to_move(&state, now);
        if due.is_empty() {
            return;
        }
        let (relocations, without_result) = self.relocations(&state, due, now);
        if relocations.is_empty() {
            let mut progress = self.progress();
            match &mut progress.memos.relocations_tried {
                Some((revision, tried)) if *revision == state.revision => tried.extend(without_result),
                tried => *tried = Some((state.revision, without_result)),
            }
            return;
        }
        drop(state);
        let entry = |(before, writes): Relocation| {
            let relocates = Effect::InstanceRelocates(before.instance.id);
            Entry::new(Commit { writes, ..Commit::new(now) }, relocates)
        };
        draft.enter(self, relocations.into_iter().map(entry).collect());
    }

    /// Instances that must move now if at all, and for which there might be another gap.
    fn due_to_move(&self, state: &State, now: Timestamp) -> Vec<(Arc<InstanceRecord>, Departure)> {
        let rules = &self.settings.plan_rules;
        if rules.moving_time.is_zero() {
            return Vec::new();
        }
        let progress = self.progress();
        let tried =
            progress.memos.relocations_tried.as_ref().filter(|(revision, _)| *revision == state.revision);
        let due = |record: &Arc<InstanceRecord>| {
            let departure = record.instance.departure.filter(|departure| {
                departure.is_for_start()
                    && rules.clears_at(departure.gone_by) <= now
                    && now < departure.asked_at
            })?;
            let movable = record.instance.kind == InstanceKind::Preemptible
                && record.instance.status == InstanceStatus::Active
                && tried.is_none_or(|(_, without_result)| !without_result.contains(&record.instance.id))
                // Otherwise two services with different observations could overrule each other forever.
                && !progress.told_of_instances.contains(&record.instance.id);
            movable.then(|| (Arc::clone(record), departure))
        };
        state.instances.iter().filter_map(due).collect()
    }

    /// Targets of these instances, in turn, continuing after those tried in the last cycle, and the instances
    /// without a target. The write lock is held, so the pass ends after a small part of a decision's work,
    /// but tries at least one instance.
    fn relocations(
        &self,
        state: &State,
        mut due: Vec<(Arc<InstanceRecord>, Departure)>,
        now: Timestamp,
    ) -> (Vec<Relocation>, BTreeSet<GuestId>) {
        due.sort_by_key(|(record, _)| record.instance.id);
        let last = self.progress().memos.relocations_resume.take();
        let first = due.partition_point(|(record, _)| last >= Some(record.instance.id));
        due.rotate_left(first);
        let budget = Budget::new(self.settings.decision_work);
        let facts = self.host_facts(state, now);
        let admission = self.admission_at(state, &facts, now).with_budget(&budget);
        let mut observed = self.expected(state);
        let seen = self.observed();
        let ahead = self.settings.plan_rules.clear_ahead.unwrap_or_default();
        let (mut relocations, mut without_result, mut seized) =
            (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut last = None;
        for (record, departure) in due {
            if budget.used_part_of(QUICK) {
                let mut progress = self.progress();
                (progress.memos.relocations_resume, progress.unfinished) = (last, true);
                break;
            }
            let instance = &record.instance;
            last = Some(instance.id);
            // It isn't on its host, or is already moving or asked to leave.
            let Some(guest) = guest_of(&seen, instance).filter(|guest| guest.moving_to.is_none()) else {
                continue;
            };
            if guest.stopping_since.is_some() {
                continue;
            }
            let planned = instance.moves_to();
            let stands = |to| admission.may_go_on_to((instance, to), ahead, (&observed, &state.history));
            if planned.is_some_and(stands) {
                continue;
            }
            let found =
                admission.another_gap((instance, guest), self.least_gap(), (&observed, &state.history));
            if found == departure.moves_to {
                without_result.extend(found.is_none().then_some(instance.id));
                continue;
            }
            if let Some(host) = observed.hosts.get_mut(&instance.host)
                && let Some(guest) = host.guests.iter_mut().find(|guest| guest.id == instance.id)
            {
                guest.moving_to = found;
            }
            let departure = Some(Departure { moves_to: found, ..departure });
            let mut writes = vec![change(&record, Instance { departure, ..instance.clone() }, now)];
            let host = found.filter(|to| seized.insert(*to)).and_then(|to| state.hosts.get(&to));
            writes.extend(host.map(|host| seize(host)));
            relocations.push((record, writes));
        }
        (relocations, without_result)
    }
}

/// The guest of an instance, if it is observed on the instance's host.
fn guest_of<'o>(observed: &'o Observed, instance: &Instance) -> Option<&'o Guest> {
    observed.hosts.get(&instance.host)?.guests.iter().find(|guest| guest.id == instance.id)
}
