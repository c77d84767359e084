//! Healing and planning: changes of leases, and the next steps.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Replanned, healing_order};
use leases::ids::LeaseId;
use leases::instance::Instance;
use leases::lease::Lease;
use leases::plan::{self, Action, LeaseChange, Plan, PlanRules, World};
use leases::status::LeaseStatus;
use leases::work::Budget;
use store::{Commit, LeaseRecord, Write};

use super::draft::Draft;
use super::pass_cursor::Known;
use super::progress::Progress;
use crate::decider::{Abilities, Decider};
use crate::entries::{Effect, Entry};
use crate::leasing::moving::{enter_reallocated, reallocated};
use crate::notices::{self, notice};
use crate::state::State;

/// A lease before and after a change; `after` is `None` if the lease is removed from the store.
pub(super) struct Change {
    pub(super) before: Arc<LeaseRecord>,
    pub(super) after: Option<Lease>,
}

impl Change {
    /// The changed record; `None` if the lease is removed.
    pub(super) fn after_record(&self, now: Timestamp) -> Option<LeaseRecord> {
        Some(self.before.becomes(self.after.clone()?, now))
    }

    /// The commit of the change, with its effects.
    pub(super) fn entry(self, now: Timestamp) -> Entry {
        let commit = self.commit(now);
        let Self { before, after } = self;
        Entry::new(commit, Effect::Lease { before, after: after.map(Box::new), at: now })
    }

    fn commit(&self, now: Timestamp) -> Commit {
        let mut commit = Commit::new(now);
        let (before, expected) = (&self.before, self.before.version);
        if let Some(record) = self.after_record(now) {
            commit.notifications = notices::of_change(&before.lease, &record);
            commit.writes.push(Write::Lease { record: Box::new(record), expected: Some(expected) });
        } else {
            commit.notifications.push(notice(notices::DELETE, before));
            commit.writes.push(Write::ForgetLease { id: before.lease.id, expected });
        }
        commit
    }
}

impl Decider {
    /// Replaces failed hosts, closed hosts of pending leases and blocked hosts of starting leases, and adds
    /// missing hosts (W20). Handles as many leases per cycle as the budget allows.
    pub(super) fn heal(&self, draft: &mut Draft) {
        let state = draft.state();
        let mut ill = state.ill();
        // Hosts can stay closed for a long time. Leases leave a closed host immediately, unlike a failed one,
        // however far ahead they are. So while nothing has changed, trying again finds nothing new.
        let at_once = draft.now.checked_add(self.settings.rules.deadlines.immediate);
        let occupied = || self.occupied(&state, &self.observed(), draft.now);
        let (mut blocked, mut occupied) = state.blocked(at_once.unwrap_or(Timestamp::MAX), occupied);
        let unseen = self.changed_since_look(&state, &blocked, draft.now);
        if !unseen.is_empty() {
            draft.wake_at(self.progress().ask_for_look(draft.now));
            blocked.retain(|id| !unseen.contains(id));
            // Try these leases once more after the look.
            occupied.clear();
        }
        let known = (state.revision, occupied);
        let by_moves = self.heals_by_moves(&state, &ill, &known, draft.now);
        if by_moves {
            ill.extend(state.on_closed_hosts());
            ill.extend(blocked);
        }
        let mut ill: Vec<_> = ill.iter().filter_map(|id| state.leases.get(*id)).collect();
        if ill.is_empty() {
            return;
        }
        ill.sort_by_key(|record| healing_order(&record.lease));
        let changes = self.healed(&state, &ill, (known, by_moves, &unseen), draft.now);
        drop(state);
        draft.enter(self, changes);
    }

    /// Whether to try moves of other leases. They are as costly as leaving closed hosts and are tried as
    /// rarely: after a change, and once a lease enters the healing interval.
    fn heals_by_moves(&self, state: &State, ill: &BTreeSet<LeaseId>, known: &Known, now: Timestamp) -> bool {
        let includes = |id: &&LeaseId| {
            let record = state.leases.get(**id);
            record.is_some_and(|record| self.settings.healing_interval.includes(&record.lease.window, now))
        };
        let soon: BTreeSet<LeaseId> = ill.iter().filter(includes).copied().collect();
        let mut progress = self.progress();
        let memos = &mut progress.memos;
        if !soon.is_subset(&memos.ill_soon) {
            memos.to_heal.retry();
        }
        memos.ill_soon = soon;
        !memos.to_heal.is_without_result(known)
    }

    /// Leases that changed after the last observation of all hosts began. Another service might have just
    /// moved them away from a host that looks free here. If each service went by its own last observation,
    /// they could move a lease back and forth without end.
    fn changed_since_look(
        &self,
        state: &State,
        leases: &BTreeSet<LeaseId>,
        now: Timestamp,
    ) -> BTreeSet<LeaseId> {
        let progress = self.progress();
        // A later time is from before the clock was set back.
        let latest = now.saturating_add(self.settings.longest_clock_skew).unwrap_or(Timestamp::MAX);
        let unseen = |id: &&LeaseId| {
            let record = state.leases.get(**id);
            let changed_at = record.map(|record| record.updated_at.unwrap_or(record.created_at));
            changed_at.is_some_and(|at| at <= latest && !progress.saw_hosts_after(at))
        };
        leases.iter().filter(unseen).copied().collect()
    }

    fn healed(
        &self,
        state: &State,
        ill: &[&Arc<LeaseRecord>],
        (known, by_moves, unseen): (Known, bool, &BTreeSet<LeaseId>),
        now: Timestamp,
    ) -> Vec<Entry> {
        let (rules, interval) = (&self.settings.rules, self.settings.healing_interval);
        let (inventory, facts) = (&state.inventory, self.host_facts(state, now));
        let budget = Budget::new(self.settings.decision_work);
        // A copy, because decisions count only once they are committed.
        let calendar = RefCell::new(state.calendar.clone());
        let entries = RefCell::new(Vec::new());
        // Leases with a decision. Each is changed once.
        let decided = RefCell::new(BTreeSet::new());
        let heal = |record: &Arc<LeaseRecord>| {
            let mut calendar = calendar.borrow_mut();
            let admission = Admission::new(&calendar, inventory, rules, &facts, now);
            let admission = admission.with_healing(interval).with_budget(&budget);
            let is_unseen = unseen.contains(&record.lease.id);
            let admission = if is_unseen { admission.keeping_blocked_hosts() } else { admission };
            let mut decided = decided.borrow_mut();
            if decided.contains(&record.lease.id) {
                return None;
            }
            let healed = admission.heal(&record.lease, interval);
            let so_far = healed.as_ref().unwrap_or(&record.lease);
            let leaves = so_far.status == LeaseStatus::Pending && admission.has_to_leave(so_far);
            let lacks = so_far.lacks_hosts() && interval.includes(&so_far.window, now);
            let needs_moves = by_moves && (lacks || leaves);
            let by_moves = needs_moves.then(|| {
                let movable = self.movable(state, now, Some(record.lease.id));
                let others = movable.others.into_iter().filter(|other| !decided.contains(&other.id));
                admission.heal_by_moves(&record.lease, interval, others, movable.settled)
            });
            let healed = healed.map(|lease| Replanned { decided: lease, moved: Vec::new() });
            let Replanned { decided: lease, moved } = by_moves.flatten().or(healed)?;
            let entered = calendar.put_all(moved.iter().chain([&lease]), now);
            debug_assert_eq!(entered, Ok(()), "healing takes only free hosts");
            if entered.is_ok() {
                decided.extend(moved.iter().chain([&lease]).map(|lease| lease.id));
                let change = Change { before: Arc::clone(record), after: Some(lease) };
                let others = reallocated(state, moved, now);
                let mut entry = change.entry(now);
                enter_reallocated(&mut entry.commit, others);
                entries.borrow_mut().push(entry);
            }
            // Continue with the next lease.
            None::<()>
        };
        let found = self.go_on(|memos| &mut memos.to_heal, ill, known, &budget, heal);
        self.found(found);
        entries.into_inner()
    }

    /// Plans changes of leases and instances, and the steps on machines.
    pub(super) fn plan_steps(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let Plan { steps, changes, instances, wake_at, .. } = self.plan(&state, now);
        let changes = planned_for(&state, changes);
        let instances = self.instances_planned_for(&state, instances, now);
        drop(state);
        self.enter_changes(draft, changes);
        self.enter_instances(draft, instances);
        draft.take_steps(steps);
        draft.wake_at(wake_at);
    }

    /// The plan for leases that matter now. Omits conclusions from missing hosts and guests while these are
    /// uncertain: a lease with a step in progress can get a host at any moment.
    fn plan(&self, state: &State, now: Timestamp) -> Plan {
        let instances: Vec<&Instance> = state.instances.iter().map(|record| &record.instance).collect();
        // Long work doesn't hold this lock, because metrics and health checks need it.
        let (rules, observed, gone, others_leaving) = {
            let mut progress = self.progress();
            let records = state.instances.iter().map(AsRef::as_ref);
            let gone = progress.gone(records, |host| state.hosts.contains_key(&host), now);
            (
                self.plan_rules(&progress),
                Arc::clone(&progress.observed),
                gone,
                progress.others_leaving.clone(),
            )
        };
        let world = World::new(&observed, &state.history, &rules, now);
        let (others_leaving, asleep) = (&others_leaving, &state.asleep);
        let names = Some(&state.inventory);
        let Abilities { prepares, remedy, .. } = self.abilities;
        let world = World { others_leaving, gone: &gone, asleep, names, prepares, remedy, ..world };
        let world = World { instances: &instances, ..world };
        let mut plan = plan::plan(state.due(&observed, rules.horizon(now)), world);
        let all = state.leases.pending().chain(state.leases.going()).map(|record| &record.lease);
        let lease_of =
            |reservation| Some(&state.leases.get(state.leases.of_reservation(reservation)?)?.lease);
        let (steps, wake_at) = plan::plan_reservations(all, lease_of, world);
        plan.steps.extend(steps);
        plan.wake_at = plan.wake_at.into_iter().chain(wake_at).min();
        let progress = self.progress();
        if progress.memos.announced.as_ref().is_none_or(|announced| announced.revision != state.revision) {
            // The instances to preempt for these leases are not known yet.
            let all = plan.steps.len();
            plan.steps.retain(|step| !matches!(step.action, Action::Grant(..)));
            if plan.steps.len() < all {
                plan.wake_at = Some(now);
            }
        }
        plan.changes.retain(|change| {
            let certain = concluded(change).is_none_or(|lease| progress.settled(lease));
            let said = progress.told.contains(&change.lease()) && changes_reason_only(change, state);
            certain && !said
        });
        if !plan.instances.is_empty() {
            let may_have_moved = progress.seen_on_touched_hosts();
            plan.instances.retain(|change| {
                let id = change.instance();
                let known = state.instances.get(id);
                let settled = known.is_some_and(|record| progress.settled_instance(&record.instance));
                settled && !may_have_moved.contains(&id) && !progress.told_of_instances.contains(&id)
            });
        }
        plan
    }

    /// Rules of the handover. In a shared store they allow for clock skew, because a service with a slow
    /// clock might have started a guest's grace period.
    pub(crate) fn plan_rules(&self, progress: &Progress) -> PlanRules {
        let rules = self.settings.plan_rules;
        if !progress.shares_clock() {
            return rules;
        }
        PlanRules { slack: self.settings.longest_clock_skew, ..rules }
    }

    pub(super) fn enter_changes(&self, draft: &mut Draft, changes: Vec<Change>) {
        let now = draft.now;
        draft.enter(self, changes.into_iter().map(|change| change.entry(now)).collect());
    }
}

/// Pairs planned changes with the current lease records.
fn planned_for(state: &State, changes: Vec<LeaseChange>) -> Vec<Change> {
    let change = |change| {
        let (id, after) = match change {
            LeaseChange::Becomes(lease) => (lease.id, Some(*lease)),
            LeaseChange::Forgotten(id) => (id, None),
        };
        Some(Change { before: state.leases.get(id)?.clone(), after })
    };
    changes.into_iter().filter_map(change).collect()
}

/// The lease, if the change concludes that nothing of the lease is left anywhere.
fn concluded(change: &LeaseChange) -> Option<LeaseId> {
    match change {
        LeaseChange::Forgotten(id) => Some(*id),
        LeaseChange::Becomes(lease) => lease.over().then_some(lease.id),
    }
}

/// Whether the change only updates the reason why the lease is blocked.
fn changes_reason_only(change: &LeaseChange, state: &State) -> bool {
    let LeaseChange::Becomes(after) = change else { return false };
    let before = state.leases.get(after.id).map(|record| &record.lease);
    before.is_some_and(|before| Lease { reason: after.reason.clone(), ..before.clone() } == **after)
}
