//! Reallocation of pending leases when their host is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, HealingInterval, Replanned, heal_all, healing_order};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::lease::Lease;
use leases::status::LeaseStatus;
use leases::work::Budget;
use store::{Commit, LeaseRecord, Write};

use crate::notices::{self, notice};
use crate::settings::Settings;
use crate::state::State;
use crate::types::ServiceError;

/// Reallocates the first `most` pending leases that include the host (FP-5). Fails if a lease that includes
/// it has started or has no replacement for it.
pub(crate) fn without_host(
    state: &State,
    settings: &Settings,
    facts: &HostFacts<'_>,
    host: HostId,
    most: usize,
    now: Timestamp,
) -> Result<Moved, ServiceError> {
    let rules = &settings.rules;
    let budget = Budget::new(settings.decision_work);
    let settled = settings.settled_until(now);
    let mut concerned: Vec<_> = having(state, host).collect();
    let needed = |id, why: &str| {
        let text = format!("Can't remove host {host}. Lease {id} {why}.");
        ServiceError::Conflict(text)
    };
    if let Some(begun) = concerned.iter().find(|record| record.lease.status != LeaseStatus::Pending) {
        return Err(needed(begun.lease.id, "has it"));
    }
    concerned.sort_by_key(|record| healing_order(&record.lease));
    let all = concerned.len() <= most;
    concerned.truncate(most);
    let mut inventory = state.inventory.clone();
    inventory.remove_host(host);
    let mut calendar = state.calendar.clone();
    let before = concerned.iter().map(|record| &record.lease);
    let healed = heal_all(&mut calendar, &inventory, rules, facts, before, HealingInterval(None), now);
    let mut healed: BTreeMap<_, _> = healed.into_iter().map(|lease| (lease.id, lease)).collect();
    let has = |lease: &Lease| lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host));
    healed.retain(|id, after| {
        let before = state.leases.get(*id).map(|record| &record.lease);
        !has(after) && before.is_some_and(|before| after.has_as_much_as(before))
    });
    for record in concerned {
        let lease = &record.lease;
        if healed.contains_key(&lease.id) {
            continue;
        }
        // Leases that already left the host can move as well, from their new hosts.
        let others = state.leases.pending().filter(|other| other.lease.id != lease.id);
        let others: Vec<&Lease> =
            others.map(|other| healed.get(&other.lease.id).unwrap_or(&other.lease)).collect();
        let admission = Admission::new(&calendar, &inventory, rules, facts, now).with_budget(&budget);
        let left = admission.heal_by_moves(lease, HealingInterval(None), others, settled);
        let Replanned { decided, moved } = left
            .filter(|left| left.decided.has_at_least(lease))
            .ok_or_else(|| needed(lease.id, "is to have it, and there is no other for it"))?;
        // Their hosts were found free in this calendar.
        let _ = calendar.put_all(moved.iter().chain([&decided]), now);
        healed.extend(moved.into_iter().chain([decided]).map(|lease| (lease.id, lease)));
    }
    let leases = healed.into_iter();
    let leases = leases.filter_map(|(id, after)| Some((Arc::clone(state.leases.get(id)?), after))).collect();
    Ok(Moved { leases, all })
}

/// Leases before and after their reallocation.
#[derive(Clone)]
pub(crate) struct Moved {
    pub leases: Vec<(Arc<LeaseRecord>, Lease)>,
    /// Whether no other lease includes the host.
    pub all: bool,
}

/// Adds reallocated leases and their notifications to a commit.
pub(crate) fn enter_moved(commit: &mut Commit, moved: &[(Arc<LeaseRecord>, Lease)]) {
    for (before, lease) in moved {
        let record = LeaseRecord {
            lease: lease.clone(),
            version: before.version.next(),
            updated_at: Some(commit.at),
            ..LeaseRecord::clone(before)
        };
        commit.notifications.push(notice(notices::UPDATE, &record));
        commit.writes.push(Write::Lease { record: Box::new(record), expected: Some(before.version) });
    }
}

/// Current and pending leases that include the host.
fn having(state: &State, host: HostId) -> impl Iterator<Item = &Arc<LeaseRecord>> {
    let ids: BTreeSet<_> = state.calendar.bookings(host).map(|(_, booking)| booking.lease).collect();
    let known = ids.into_iter().filter_map(|id| state.leases.get(id));
    known.filter(|record| record.lease.keeps_resources())
}
