//! Reallocation of pending leases whose host is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{HealingInterval, heal_all, healing_order};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::lease::Lease;
use leases::status::LeaseStatus;
use store::{Commit, LeaseRecord, Write};

use crate::notices::{self, notice};
use crate::state::State;
use crate::types::ServiceError;

/// Reallocates the first `most` pending leases that include the host (FP-5). Fails if a lease that includes it has started
/// or has no replacement for it.
pub(crate) fn without_host(
    state: &State,
    rules: &leases::admission::Rules,
    facts: &HostFacts<'_>,
    host: HostId,
    most: usize,
    now: Timestamp,
) -> Result<Moved, ServiceError> {
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
    let moved = concerned.into_iter().map(|record| {
        let after = healed.remove(&record.lease.id);
        let after = after.filter(|after| !has(after) && after.has_as_much_as(&record.lease));
        let after =
            after.ok_or_else(|| needed(record.lease.id, "is to have it, and there is no other for it"))?;
        Ok((Arc::clone(record), after))
    });
    Ok(Moved { leases: moved.collect::<Result<_, ServiceError>>()?, all })
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
