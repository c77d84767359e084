//! Moves leases that haven't started to other hosts to make room for another lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Refusal, Replanned, Wanted};
use leases::ids::LeaseId;
use leases::lease::Lease;
use leases::project::ProjectId;
use leases::terms::Terms;
use store::{Commit, LeaseRecord, Write};

use crate::decider::Decider;
use crate::notices::{self, notice};
use crate::state::State;

impl Decider {
    /// Leases that can move out of the way of another one. `own` is that lease's identifier if it already
    /// exists.
    pub(crate) fn movable<'a>(&self, state: &'a State, now: Timestamp, own: Option<LeaseId>) -> Movable<'a> {
        let settled = self.settings.settled_until(now);
        let others = state.leases.pending().map(|record| &record.lease);
        Movable { others: others.filter(|other| Some(other.id) != own).collect(), settled }
    }
}

/// Leases that haven't started and can move.
pub(crate) struct Movable<'a> {
    pub others: Vec<&'a Lease>,
    /// Leases that start before this instant don't move.
    pub settled: Timestamp,
}

impl Movable<'_> {
    /// If capacity is short, decides again with other hosts for some of these leases. Returns the original
    /// refusal if that doesn't help.
    pub fn make_room<T>(
        &self,
        admission: &Admission<'_>,
        wanted: &Wanted,
        refusal: Refusal,
        decide: impl Fn(&Admission<'_>) -> Result<T, Refusal>,
        lease: impl Fn(&T) -> &Lease,
    ) -> Result<(T, Vec<Lease>), Refusal> {
        let others = self.others.iter().copied();
        match admission.replan(others, self.settled, (wanted, &refusal), decide, lease) {
            Some(Replanned { decided, moved }) => Ok((decided, moved)),
            None => Err(refusal),
        }
    }
}

/// Decides on a new lease of a project with these terms. If capacity is short, decides again after moving
/// some of the `movable` leases. Returns the lease and the leases that moved.
pub(crate) fn decide_new<'a>(
    admission: &Admission<'_>,
    (project, terms): (&ProjectId, &Terms),
    movable: impl FnOnce() -> Movable<'a>,
    decide: impl Fn(&Admission<'_>) -> Result<Lease, Refusal>,
) -> Result<(Lease, Vec<Lease>), Refusal> {
    match decide(admission) {
        Ok(lease) => Ok((lease, Vec::new())),
        Err(refusal) if terms.has_dates() && refusal.is_lack() => {
            let wanted = Wanted::for_new(project, terms);
            movable().make_room(admission, &wanted, refusal, decide, |lease| lease)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Records of leases that get other hosts, before and after.
pub(crate) fn reallocated(
    state: &State,
    moved: Vec<Lease>,
    now: Timestamp,
) -> Vec<(Arc<LeaseRecord>, LeaseRecord)> {
    let record = |lease: Lease| {
        let before = state.leases.get(lease.id)?.clone();
        let after = before.becomes(lease, now);
        Some((before, after))
    };
    moved.into_iter().filter_map(record).collect()
}

/// Adds moved leases to a commit, and notifies listeners of them.
pub(crate) fn enter_reallocated(commit: &mut Commit, moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>) {
    for (before, after) in moved {
        commit.notifications.push(notice(notices::UPDATE, &after));
        commit.writes.push(Write::Lease { record: Box::new(after), expected: Some(before.version) });
    }
}
