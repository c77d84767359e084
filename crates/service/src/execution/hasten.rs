//! Leases that start as soon as possible: advances waiting leases when hosts become free, and replans hunts
//! that make no progress (CLS-03).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, LeaseId};
use leases::lease::Lease;
use leases::status::LeaseStatus;
use leases::work::Budget;
use store::{LeaseRecord, StoreError};

use super::Execution;
use super::draft::Draft;
use super::memos::Memos;
use super::pass_cursor::{ANYTHING, Found, Known, PassCursor};
use super::pause::Pause;
use super::plan::Change;
use crate::decider::Decider;
use crate::entries::{Effect, Entries};
use crate::state::State;

/// Pause after no hunt could be replanned.
const HUNT_AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(5);

impl Execution<'_> {
    /// Advances one waiting lease to an earlier start, if possible: the one with the earliest request.
    /// Returns whether it did.
    pub(super) async fn hasten(self, now: Timestamp) -> Result<bool, StoreError> {
        let holds = |state: &State, change: &Change| {
            let after = change.after_record(now);
            after.is_some_and(|after| {
                self.service.decider.still_hold(state, &[(Some(&change.before), &after)], now)
            })
        };
        let find = |budget: &Budget| self.hastened(now, budget);
        let found =
            self.service.decided_by_pass_for_lease(find, holds, |change| change.after.as_ref()).await?;
        let Some((writer, change)) = found else { return Ok(false) };
        Ok(writer.commit_entries(Entries::of(vec![change.entry(now)]), now).await?.any)
    }

    fn hastened(self, now: Timestamp, budget: &Budget) -> Option<Change> {
        let state = self.service.snapshot();
        let facts = self.service.decider.host_facts(&state, now);
        let known = (state.revision, facts.occupied.clone());
        if !self.service.decider.any_to_hasten(&state, &known) {
            return None;
        }
        let admission = self.service.decider.admission(&state, &facts, now, budget);
        let waiting: Vec<_> = state.leases.waiting_for_hosts().collect();
        let sooner = |before: &Arc<LeaseRecord>| {
            let after = admission.sooner(&before.lease)?;
            Some(Change { before: Arc::clone(before), after: Some(after) })
        };
        self.service.decider.go_on(|memos| &mut memos.to_hasten, &waiting, known, budget, sooner).any()
    }
}

impl Decider {
    /// Whether a waiting lease might start earlier, given the current state.
    pub(super) fn any_to_hasten(&self, state: &State, known: &Known) -> bool {
        state.leases.waiting_for_hosts().next().is_some()
            && !self.progress().memos.to_hasten.is_without_result(known)
    }

    /// Continues a pass over leases. Holds no lock while leases are tried.
    pub(crate) fn go_on<T>(
        &self,
        cursor: impl Fn(&mut Memos) -> &mut PassCursor,
        records: &[&Arc<LeaseRecord>],
        known: Known,
        budget: &Budget,
        attempt: impl Fn(&Arc<LeaseRecord>) -> Option<T>,
    ) -> Found<T> {
        let mut under_way = std::mem::take(cursor(&mut self.progress().memos));
        let found =
            under_way.go_on(records, |record| record.lease.id, known, budget, |record| attempt(record));
        *cursor(&mut self.progress().memos) = under_way;
        found
    }

    /// Result of a pass of a cycle, if any. Marks the cycle as unfinished if the pass must continue in the
    /// next one.
    pub(crate) fn found<T>(&self, found: Found<T>) -> Option<T> {
        match found {
            Found::One(found) => Some(found),
            Found::Nothing => None,
            Found::Unfinished => {
                self.progress().unfinished = true;
                None
            }
        }
    }

    /// Replans a hunt with an outdated plan; one per cycle.
    pub(super) fn replan_hunt(&self, draft: &mut Draft) {
        let budget = Budget::new(self.settings.decision_work);
        let change = self.replanned_hunt(&draft.state(), draft.now, &budget);
        self.enter_changes_of_hunts(draft, change, Effect::HuntReplanned);
    }

    fn replanned_hunt(&self, state: &State, now: Timestamp, budget: &Budget) -> Option<Change> {
        // Only hunts that have begun: before, nothing can have gone wrong. Not if another service has changed
        // the lease, because two services with different observations would replan in turns forever.
        let told = self.progress().told.clone();
        let begun = |record: &&Arc<LeaseRecord>| {
            record.lease.status == LeaseStatus::Starting
                && !told.contains(&record.lease.id)
                && !self.anybody_between_looks(&record.lease)
        };
        let mut hunters = state.leases.hunters().filter(begun).peekable();
        hunters.peek()?;
        if !self.may_replan(now) {
            return None;
        }
        let facts = self.host_facts(state, now);
        let admission = self.admission(state, &facts, now, budget);
        let hunters: Vec<_> = hunters.collect();
        let replan = |before: &Arc<LeaseRecord>| {
            let after = admission.replan_hunt(&before.lease)?;
            Some(Change { before: Arc::clone(before), after: Some(after) })
        };
        let found = self.go_on(|memos| &mut memos.to_replan, &hunters, ANYTHING, budget, replan);
        let failed = matches!(found, Found::Nothing)
            && hunters.iter().any(|record| admission.obstructed(&record.lease));
        self.progress().memos.hunts_not_replanned = failed.then(|| Pause::of(now, HUNT_AGAIN_AFTER));
        self.found(found)
    }

    fn enter_changes_of_hunts(
        &self,
        draft: &mut Draft,
        changes: impl IntoIterator<Item = Change>,
        effect: impl Fn(LeaseId) -> Effect,
    ) {
        let now = draft.now;
        let entry = |change: Change| {
            let id = change.before.lease.id;
            change.entry(now).and(effect(id))
        };
        draft.enter(self, changes.into_iter().map(entry).collect());
    }

    /// Cancels all moves to hosts that leases have got, even if they can't be replanned yet. Guests must not
    /// be moved to a leased host.
    pub(super) fn withdraw_moves(&self, draft: &mut Draft) {
        let changes = self.moves_withdrawn(&draft.state(), draft.now);
        self.enter_changes_of_hunts(draft, changes, Effect::MovesWithdrawn);
    }

    fn moves_withdrawn(&self, state: &State, now: Timestamp) -> Vec<Change> {
        let observed = self.observed();
        let facts = self.host_facts(state, now);
        let admission = self.admission_at(state, &facts, now);
        let withdrawn = |before: &Arc<LeaseRecord>| {
            let after = admission.without_lost_destinations(&before.lease, &observed)?;
            Some(Change { before: Arc::clone(before), after: Some(after) })
        };
        state.leases.hunters().filter_map(withdrawn).collect()
    }

    /// Whether a guest that is being moved for the lease was observed nowhere, because hosts are observed one
    /// after another. A plan made now would not count the guest at its destination.
    fn anybody_between_looks(&self, lease: &Lease) -> bool {
        let progress = self.progress();
        let moves = lease.hunt.iter().flat_map(|hunt| &hunt.moves);
        moves.filter(|mov| progress.is_moving(mov)).any(|mov| {
            let on = |host: &HostId| {
                let seen = progress.observed.hosts.get(host);
                seen.is_some_and(|seen| seen.guests.iter().any(|guest| guest.id == mov.guest))
            };
            ![mov.from, mov.to].iter().any(on)
        })
    }

    /// Plans the end migration of a lease; one per cycle.
    pub(super) fn depart(&self, draft: &mut Draft) {
        let budget = Budget::new(self.settings.decision_work);
        let change = self.departure(&draft.state(), draft.now, &budget);
        self.enter_changes(draft, change.into_iter().collect());
    }

    fn departure(&self, state: &State, now: Timestamp, budget: &Budget) -> Option<Change> {
        // The guests are known only after the lease's hosts were observed since its end.
        let ready = |lease: &Lease| {
            let progress = self.progress();
            !progress.told.contains(&lease.id) && !progress.looks_at_end(lease)
        };
        let departing = |record: &&Arc<LeaseRecord>| record.lease.departing() && ready(&record.lease);
        let departing: Vec<_> = state.leases.hunters().filter(departing).collect();
        departing.first()?;
        let facts = self.host_facts(state, now);
        let admission = self.admission(state, &facts, now, budget);
        let leaving = |before: &Arc<LeaseRecord>| {
            let after = admission.departure(&before.lease)?;
            Some(Change { before: Arc::clone(before), after: Some(after) })
        };
        let found = self.go_on(|memos| &mut memos.to_depart, &departing, ANYTHING, budget, leaving);
        self.found(found)
    }

    fn may_replan(&self, now: Timestamp) -> bool {
        !self.progress().memos.hunts_not_replanned.is_some_and(|pause| pause.lasts(now))
    }
}
