//! Housekeeping in the loop (HK): reminders, and unused leases.

use std::sync::Arc;

use leases::host::Health;
use leases::housekeeping::{Tended, Use};
use leases::lease::Lease;
use leases::plan::GuestOwner;

use super::draft::Draft;
use super::plan::Change;
use super::progress::Progress;
use crate::decider::Decider;
use crate::state::State;

impl Decider {
    /// Sends due reminders and handles unused leases.
    pub(super) fn keep_house(&self, draft: &mut Draft) {
        let rules = &self.settings.housekeeping;
        if rules.idle() {
            return;
        }
        let now = draft.now;
        let mut changes = Vec::new();
        let wake_at = {
            let (state, progress) = (draft.state(), self.progress());
            let ahead = rules.looks_ahead_to(now);
            let mut wake_at = state.leases.next_start(ahead).and_then(|start| rules.looks_at(start));
            for before in state.leases.to_tend(ahead) {
                let seen = seen(&state, &progress, &before.lease);
                let Tended { lease, wake_at: next } = rules.tend(&before.lease, before.created_at, seen, now);
                wake_at = wake_at.into_iter().chain(next).min();
                changes.extend(lease.map(|lease| Change { before: Arc::clone(before), after: Some(lease) }));
            }
            wake_at
        };
        draft.wake_at(wake_at);
        self.enter_changes(draft, changes);
    }
}

/// Whether instances run in the lease. `Unknown` if no instance was observed, but a host doesn't report
/// guests or wasn't observed since its last possible change.
fn seen(state: &State, progress: &Progress, lease: &Lease) -> Use {
    let own = GuestOwner::Lease(lease.id);
    let mut hosts = lease.reservations.iter().flat_map(|reservation| reservation.allocation.hosts());
    let mut known = progress.settled(lease.id);
    let used = hosts.any(|host| {
        let Some(seen) = progress.observed.hosts.get(&host) else {
            known = false;
            return false;
        };
        known &= seen.health == Health::Up && seen.reports_guests;
        seen.guests.iter().any(|guest| guest.owner == own)
    });
    match (used || state.instances.of_lease(lease.id).next().is_some(), known) {
        (true, _) => Use::Used,
        (false, true) => Use::Unused,
        (false, false) => Use::Unknown,
    }
}
