//! Changing a lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, Changes, Refusal, Updated};
use leases::ids::{LeaseId, OffersId, ReservationId};
use leases::lease::{Allocation, Lease, Reservation};
use leases::window::Window;
use leases::work::Budget;
use store::{Commit, LeaseRecord, Wording, Write};

use super::Leases;
use super::enforcing::{Question, granted};
use super::holding::Decision;
use super::moving::{enter_reallocated, reallocated};
use crate::execution::sight::Observation;
use crate::notices::{self, notice};
use crate::state::State;
use crate::transact::ATTEMPTS;
use crate::types::{Caller, LeaseChanges, NotFound, ServiceError};
use crate::writing::{audit, conflict_error, retry_on_conflict, truncate_to_stored_precision};

/// Wording of a lease's reservations.
pub(crate) type Words = BTreeMap<ReservationId, Wording>;

/// A change that was granted but isn't committed.
struct Change {
    before: Arc<LeaseRecord>,
    after: Arc<LeaseRecord>,
    before_end_rearmed: bool,
    /// Writes that withdraw offers.
    first: Vec<Write>,
    /// Leases that get other hosts to make room for it, before and after.
    moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>,
}

/// Outcome of deciding a change.
pub(crate) struct Decided {
    /// The lease after the change.
    pub lease: Lease,
    pub wording: Words,
    /// Whether the before-end action had been done and is due again.
    pub before_end_rearmed: bool,
    /// Leases that get other hosts to make room for it.
    pub moved: Vec<Lease>,
}

impl Decided {
    /// A decision that changes only the lease: same wording, no moved leases.
    pub fn only(lease: Lease, before: &LeaseRecord) -> Self {
        Self { lease, wording: before.wording.clone(), before_end_rearmed: false, moved: Vec::new() }
    }

    /// Marks the lease with the observation that it was decided on, if it changed.
    pub fn on(mut self, observation: Observation, before: &LeaseRecord) -> Self {
        if self.lease != before.lease {
            observation.mark(&mut self.lease);
        }
        self
    }
}

/// Inputs of a decision.
pub(crate) struct Basis<'a> {
    pub state: &'a State,
    /// Work that the decision can spend.
    pub budget: &'a Budget,
}

impl Change {
    /// Whether only the name changes, and perhaps the mark that the owner keeps an unused lease. The enforcer isn't asked about
    /// such a change, and listeners aren't notified. It is asked about any other change, even if that decides nothing.
    fn renames_only(&self) -> bool {
        let Lease { name, marks, .. } = &self.after.lease;
        let renamed = Lease { name: name.clone(), marks: marks.clone(), ..self.before.lease.clone() };
        renamed == self.after.lease && self.before.wording == self.after.wording
    }
}

impl Leases<'_> {
    /// Changes a lease, completely or not at all.
    pub async fn update(
        self,
        caller: &Caller,
        id: LeaseId,
        changes: LeaseChanges,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let now = truncate_to_stored_precision(changes.asked_at);
        let observation = self.observe_for_change(id, &changes).await;
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let decided = self.updated(basis, before, &changes, now)?;
            Ok(decided.on(observation, before))
        };
        self.change(caller, id, now, None, decide).await
    }

    /// The lease after this change if it were made now. Neither makes the change nor asks the external
    /// enforcer.
    pub async fn preview_update(
        self,
        id: LeaseId,
        changes: &LeaseChanges,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let now = truncate_to_stored_precision(changes.asked_at);
        let observation = self.observe_for_change(id, changes).await;
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let decided = self.updated(basis, before, changes, now)?;
            Ok(decided.on(observation, before))
        };
        let propose = |budget: &Budget| self.propose_change(id, None, decide, now, budget);
        Ok(self.service.consider(propose).await?.after)
    }

    /// Observes the hosts first if the change can assign other hosts and the lease has started or starts now.
    async fn observe_for_change(self, id: LeaseId, changes: &LeaseChanges) -> Observation {
        let Some(before) = self.get(id) else { return Observation::default() };
        if !changes.changes.ask_for_more(&before.lease) {
            return Observation::default();
        }
        let start = changes.changes.start.unwrap_or(before.lease.window.start());
        let terms = before.lease.reservations.iter().map(|reservation| &reservation.terms);
        self.service.observe_for(start, terms).await
    }

    fn updated(
        self,
        basis: &Basis<'_>,
        before: &LeaseRecord,
        changes: &LeaseChanges,
        now: Timestamp,
    ) -> Result<Decided, ServiceError> {
        let state = basis.state;
        let facts = self.service.decider.host_facts(state, now);
        let admission = self.service.decider.admission(state, &facts, now, basis.budget);
        let decide = |admission: &Admission<'_>| -> Result<Updated, Refusal> {
            let updated = admission.update(&before.lease, &changes.changes)?;
            self.service.decider.check_stack_of(state, Some(&before.lease), &updated.lease)?;
            Ok(updated)
        };
        let (updated, moved) = match decide(&admission) {
            Ok(updated) => (updated, Vec::new()),
            Err(refusal) if !refusal.is_lack() => return Err(refusal.into()),
            Err(refusal) => {
                let movable = self.service.decider.movable(state, admission.now, Some(before.lease.id));
                let wanted = admission.wanted_by(&before.lease, &changes.changes)?;
                let room = movable.make_room(&admission, &wanted, refusal, decide, |updated| &updated.lease);
                room.map_err(|refusal| {
                    let others = (movable.others.as_slice(), movable.settled);
                    let refusal =
                        admission.ends_later_by_moves(&before.lease, &changes.changes, others, refusal);
                    let refusal = naming_own_lease(state, &before.lease, refusal);
                    self.with_quota_of_change(&admission, state, &before.lease, &changes.changes, refusal)
                })?
            }
        };
        let Updated { lease, before_end_rearmed } = updated;
        Ok(Decided { lease, wording: reworded(&before.wording, &changes.wording), before_end_rearmed, moved })
    }

    /// Adds the quota to a refusal for lack of capacity, if it would refuse the change as well.
    fn with_quota_of_change(
        self,
        admission: &Admission<'_>,
        state: &State,
        before: &Lease,
        changes: &Changes,
        refusal: Refusal,
    ) -> Refusal {
        let Some(asked) = admission.least_use(before, changes) else { return refusal };
        let asked = (Some(before), &asked);
        self.service.decider.with_quota(state, &before.owner.project, asked, &[], refusal)
    }

    /// Decides, asks the external enforcer if there is one, and commits.
    pub(crate) async fn change(
        self,
        caller: &Caller,
        id: LeaseId,
        now: Timestamp,
        accepted: Option<OffersId>,
        decide: impl Fn(&Basis<'_>, &LeaseRecord) -> Result<Decided, ServiceError>,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let mut approved: Option<Lease> = None;
        // If the dates change, all of the lease's allocations are written again.
        if let Some(record) = self.get(id) {
            self.service.expect_rewritten(&record);
        }
        for _ in 0..ATTEMPTS {
            let propose = |budget: &Budget| self.propose_change(id, accepted, &decide, now, budget);
            let (writer, change) =
                self.service.decided(propose, |state, change| self.change_holds(state, change, now)).await?;
            let (before, after) = (&change.before, &change.after);
            if before.lease == after.lease && before.wording == after.wording {
                return Ok(before.clone());
            }
            if let Some(enforcer) = &self.service.parts.enforcer
                && !change.renames_only()
                && approved.as_ref() != Some(&after.lease)
            {
                let question = self.question(&change);
                drop(writer);
                self.ask(enforcer.as_ref(), caller, &question).await?;
                approved = Some(after.lease.clone());
                continue;
            }
            let after = after.clone();
            match writer.commit_request(commit_of(caller, change, now)).await {
                Ok(()) => {
                    self.service.wake.notify_one();
                    return Ok(after);
                }
                Err(error) => retry_on_conflict(error)?,
            }
        }
        Err(conflict_error())
    }

    /// Whether the change is still valid with the leases that exist now.
    fn change_holds(self, state: &State, change: &Change, now: Timestamp) -> bool {
        let moved = change.moved.iter().map(|(before, after)| (Some(&**before), after));
        let decisions: Vec<Decision<'_>> = moved.chain([(Some(&*change.before), &*change.after)]).collect();
        self.service.decider.still_hold(state, &decisions, now)
    }

    fn question(self, change: &Change) -> Question {
        let state = self.service.state();
        Question::Update(granted(&state, change.before.clone()), granted(&state, change.after.clone()))
    }

    /// Decides the change. Also withdraws the offers of the `accepted` group, and offers to change the lease,
    /// since accepting one of these would undo this change.
    fn propose_change(
        self,
        id: LeaseId,
        accepted: Option<OffersId>,
        decide: impl Fn(&Basis<'_>, &LeaseRecord) -> Result<Decided, ServiceError>,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Change, ServiceError> {
        let state = self.service.snapshot();
        let before = state.leases.get(id).cloned().ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
        let mut groups = state.proposals.changing(&BTreeSet::from([id]));
        groups.extend(accepted);
        let first = state.withdrawing_offers(&groups);
        let Decided { lease, wording, before_end_rearmed, moved } =
            decide(&Basis { state: &state, budget }, &before)?;
        let after = LeaseRecord { wording, ..before.becomes(lease, now) };
        self.service.decider.settings.writes.check_text(before.text(), after.text())?;
        let moved = reallocated(&state, moved, now);
        Ok(Change { before, after: Arc::new(after), before_end_rearmed, first, moved })
    }
}

/// If a later end is refused because another lease of the same project holds one of the hosts, adds that
/// lease's name to the refusal.
fn naming_own_lease(state: &State, lease: &Lease, mut refusal: Refusal) -> Refusal {
    if let Refusal::EndsTooLate { taken_from, taken_by, .. } = &mut refusal {
        let taken_at = Window::starting(*taken_from, SignedDuration::from_mins(1));
        let own = |reservation: &Reservation, host| {
            // Any of the leases with slots on the host can be the cause.
            let is_whole = matches!(reservation.allocation, Allocation::Hosts(_));
            let bookings = state.calendar.bookings_in(host, taken_at).map(|(_, booking)| booking);
            let takes = bookings.filter(|booking| is_whole || booking.used.is_none());
            let leases = takes.map(|booking| booking.lease).filter(|id| *id != lease.id);
            let mut records = leases.filter_map(|id| state.leases.get(id));
            let found = records.find(|record| record.lease.owner.project == lease.owner.project);
            found.map(|record| record.lease.name.clone())
        };
        *taken_by = lease.reservations.iter().find_map(|reservation| {
            reservation.allocation.hosts().into_iter().find_map(|host| own(reservation, host))
        });
    }
    refusal
}

/// Overwrites old wording with new wording. All reservations in `new` exist: changes to unknown ones were
/// rejected before.
pub(crate) fn reworded(old: &Words, new: &Words) -> Words {
    let mut all = old.clone();
    for (id, new) in new {
        let words = all.entry(*id).or_default();
        if new.hypervisor_properties.is_some() {
            words.hypervisor_properties.clone_from(&new.hypervisor_properties);
        }
        if new.resource_properties.is_some() {
            words.resource_properties.clone_from(&new.resource_properties);
        }
    }
    all
}

fn commit_of(caller: &Caller, change: Change, now: Timestamp) -> Commit {
    let renames_only = change.renames_only();
    let mut commit = Commit::new(now);
    commit.writes = change.first;
    enter_reallocated(&mut commit, change.moved);
    commit.writes.push(Write::Lease {
        record: Box::new(LeaseRecord::clone(&change.after)),
        expected: Some(change.before.version),
    });
    commit.audit.push(audit(caller, now, notices::UPDATE, &change.after.lease.id));
    if change.before_end_rearmed {
        commit.notifications.push(notice(notices::BEFORE_END_STOP, &change.after));
    }
    if !renames_only {
        commit.notifications.push(notice(notices::UPDATE, &change.after));
    }
    commit
}
