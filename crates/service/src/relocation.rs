//! Preemptible instances that are moved to another gap before they would have to leave (PRE).
//!
//! It is noted with the departure where each goes; the plan moves it, and asks it to leave if it has not got there in time.

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

/// One that goes elsewhere, or does not any more: as it was, and what is written.
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

    /// Instances that are to be moved now if they are, and for which there may be another gap.
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
                // Two who see different things must not contradict each other by turns forever.
                && !progress.told_of_instances.contains(&record.instance.id);
            movable.then(|| (Arc::clone(record), departure))
        };
        state.instances.iter().filter_map(due).collect()
    }

    /// Where these go, one after the other, behind those that were tried in the last cycle; and those that have nowhere to
    /// go. The write lock is held meanwhile, so as many are tried as take a small part of the work of a decision, and one
    /// at least.
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
            // It is on its way, or asked to leave already.
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

/// The guest of an instance, if it is seen on its host.
fn guest_of<'o>(observed: &'o Observed, instance: &Instance) -> Option<&'o Guest> {
    observed.hosts.get(&instance.host)?.guests.iter().find(|guest| guest.id == instance.id)
}
