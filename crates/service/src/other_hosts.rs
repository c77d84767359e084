//! Leases that are given other hosts, because one of theirs is removed or closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{HealingInterval, heal_all};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::lease::Lease;
use leases::status::LeaseStatus;
use store::{Commit, LeaseRecord, Write};

use crate::notices::{self, notice};
use crate::state::State;
use crate::types::ServiceError;

/// The leases that are to have the host, with others in its stead, and what each is like now (FP-5). A lease that has
/// begun does not lose a host; nor does one for which there is no other.
pub(crate) fn without_host(
    state: &State,
    rules: &leases::admission::Rules,
    facts: &HostFacts<'_>,
    host: HostId,
    now: Timestamp,
) -> Result<Vec<(Arc<LeaseRecord>, Lease)>, ServiceError> {
    let concerned: Vec<_> = having(state, host).collect();
    let needed = |id, why: &str| {
        let text = format!("Can't remove host {host}. Lease {id} {why}.");
        ServiceError::Conflict(text)
    };
    if let Some(begun) = concerned.iter().find(|record| record.lease.status != LeaseStatus::Pending) {
        return Err(needed(begun.lease.id, "has it"));
    }
    let mut inventory = state.inventory.clone();
    inventory.remove_host(host);
    let mut calendar = state.calendar.clone();
    let before = concerned.iter().map(|record| &record.lease);
    let healed = heal_all(&mut calendar, &inventory, rules, facts, before, HealingInterval(None), now);
    let mut moved = Vec::with_capacity(concerned.len());
    for record in concerned {
        let after = healed.iter().find(|lease| lease.id == record.lease.id).cloned();
        let has = |lease: &Lease| lease.reservations.iter().any(|r| r.allocation.hosts().contains(&host));
        let after = after.filter(|after| !has(after) && after.has_as_much_as(&record.lease));
        let after =
            after.ok_or_else(|| needed(record.lease.id, "is to have it, and there is no other for it"))?;
        moved.push((record.clone(), after));
    }
    Ok(moved)
}

/// The leases that are to have a host that is being closed and can have others in its stead, and what each is like then.
pub(crate) fn elsewhere(
    state: &State,
    rules: &leases::admission::Rules,
    facts: &HostFacts<'_>,
    host: HostId,
    now: Timestamp,
) -> Vec<(Arc<LeaseRecord>, Lease)> {
    let concerned: Vec<_> =
        having(state, host).filter(|record| record.lease.status == LeaseStatus::Pending).collect();
    let mut inventory = state.inventory.clone();
    if let Some(host) = inventory.host_mut(host) {
        host.reservable = false;
    }
    let mut calendar = state.calendar.clone();
    let before = concerned.iter().map(|record| &record.lease);
    let healed = heal_all(&mut calendar, &inventory, rules, facts, before, HealingInterval(None), now);
    let known = |after: Lease| Some((state.leases.get(after.id)?.clone(), after));
    healed.into_iter().filter_map(known).collect()
}

/// Enters leases that were given other hosts.
pub(crate) fn enter_moved(commit: &mut Commit, moved: Vec<(Arc<LeaseRecord>, Lease)>) {
    for (before, lease) in moved {
        let record = LeaseRecord {
            lease,
            version: before.version.next(),
            updated_at: Some(commit.at),
            ..LeaseRecord::clone(&before)
        };
        commit.notifications.push(notice(notices::UPDATE, &record));
        commit.writes.push(Write::Lease { record: Box::new(record), expected: Some(before.version) });
    }
}

/// The leases that have the host, or are to have it.
fn having(state: &State, host: HostId) -> impl Iterator<Item = &Arc<LeaseRecord>> {
    let ids: BTreeSet<_> = state.calendar.bookings(host).map(|(_, booking)| booking.lease).collect();
    let known = ids.into_iter().filter_map(|id| state.leases.get(id));
    known.filter(|record| record.lease.keeps_resources())
}
