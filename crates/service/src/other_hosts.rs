//! Leases that are given other hosts, because one of theirs is removed.

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

/// The first of the leases that are to have the host, at most so many, with others in its stead (FP-5). A lease that has
/// begun does not lose a host; nor does one for which there is no other.
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

/// Leases before and after they were given other hosts.
#[derive(Clone)]
pub(crate) struct Moved {
    pub leases: Vec<(Arc<LeaseRecord>, Lease)>,
    /// Whether these are all that have to be moved.
    pub all: bool,
}

/// Enters leases that were given other hosts.
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

/// The leases that have the host, or are to have it.
fn having(state: &State, host: HostId) -> impl Iterator<Item = &Arc<LeaseRecord>> {
    let ids: BTreeSet<_> = state.calendar.bookings(host).map(|(_, booking)| booking.lease).collect();
    let known = ids.into_iter().filter_map(|id| state.leases.get(id));
    known.filter(|record| record.lease.keeps_resources())
}
