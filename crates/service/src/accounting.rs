//! Usage accounting (USE): derives usage records from commits.
//!
//! Code that changes leases or instances doesn't deal with usage. [`Service::account`] adds the usage entries
//! that follow from a commit's writes to the same commit, so the records are complete even if the service
//! stops right after it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::host::Host;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::instance::Instance;
use leases::lease::Lease;
use leases::usage::{Account, Entries, Held, Span};
use store::{Commit, InstanceRecord, LeaseRecord, StoreError, Write, leases_after};

use crate::service::Service;
use crate::state::State;

impl Service {
    /// Adds usage entries to a commit. Requires the write lock, so that memory has the state that the commit
    /// is based on. Otherwise the store refuses the commit.
    pub(crate) fn account(&self, commit: &mut Commit) {
        let touches = |write: &Write| {
            write.lease().is_some() || matches!(write, Write::Instance { .. } | Write::ForgetInstance { .. })
        };
        if !commit.writes.iter().any(touches) {
            return;
        }
        let shares_store = self.progress().shares_clock();
        let state = self.state();
        let usage = entries(&state, commit);
        if shares_store {
            let seized = seized(&state, &usage, &leases_after(&commit.writes));
            commit.writes.extend(seized);
        }
        commit.usage = usage;
    }

    /// Starts to count leases and instances that have no usage record yet because they are older than the
    /// accounting.
    pub(crate) async fn count_what_is_held(&self) -> Result<(), StoreError> {
        while self.count_part_of_what_is_held().await? {}
        Ok(())
    }

    /// Counts uncounted leases and instances, up to the limit of a transaction. Returns whether there are
    /// more.
    async fn count_part_of_what_is_held(&self) -> Result<bool, StoreError> {
        let writer = self.loop_writer().await?;
        let now = self.now();
        let mut held = held_now(&self.snapshot(), now);
        if held.is_empty() {
            return Ok(false);
        }
        let counted: BTreeSet<String> = self.parts.store.open_usage().await?.iter().map(Span::key).collect();
        held.retain(|span| !counted.contains(&span.key()));
        if held.is_empty() {
            return Ok(false);
        }
        let limit = usize::try_from(self.decider.settings.writes.rows).unwrap_or(usize::MAX).max(1);
        let more = held.len() > limit;
        held.truncate(limit);
        tracing::info!(spans = held.len(), more, "usage accounting started");
        let usage = Entries { opened: held, ..Entries::default() };
        match writer.commit(Commit { usage, ..Commit::new(now) }).await {
            Err(store::CommitError::Store(error)) => Err(error),
            // The commit has no writes that could conflict.
            Err(_) => Ok(false),
            Ok(()) => Ok(more),
        }
    }
}

/// Usage entries that a commit needs.
fn entries(state: &State, commit: &Commit) -> Entries {
    let leases = leases_after(&commit.writes);
    let mut instances: BTreeMap<GuestId, Option<&Instance>> = BTreeMap::new();
    let mut hosts: BTreeMap<HostId, Host> = BTreeMap::new();
    for write in &commit.writes {
        match write {
            Write::Instance { record, .. } => {
                instances.insert(record.instance.id, Some(&record.instance));
            }
            Write::ForgetInstance { id, .. } => {
                instances.insert(*id, None);
            }
            Write::Host { record, .. } => {
                let pool = state.free_pool(record.host.pool);
                hosts.insert(record.host.id, pool.describe(record.host.clone()));
            }
            _ => {}
        }
    }
    let host = |id: HostId| hosts.get(&id).or_else(|| state.inventory.host(id));
    let mut account = Account::new(commit.at, host);
    let before = |id: LeaseId| state.leases.get(id).map(|record| &record.lease);
    let after = |id: LeaseId| match leases.get(&id) {
        // Offers and waiting requests hold nothing.
        Some(record) => record.map(|record| &record.lease).filter(|lease| lease.standing.is_firm()),
        None => before(id),
    };
    for id in leases.keys() {
        account.lease(before(*id), after(*id));
        for guest in state.instances.of_lease(*id) {
            let same = || state.instances.get(guest).map(|record| &record.instance);
            instances.entry(guest).or_insert_with(same);
        }
    }
    for (id, is) in instances {
        let was = state.instances.get(id).map(|record: &std::sync::Arc<InstanceRecord>| &record.instance);
        account.instance(
            was.map(|was| (was, was.kind.lease().and_then(before))),
            is.map(|is| (is, is.kind.lease().and_then(after))),
        );
    }
    account.entries()
}

/// Writes new versions of leases in which the commit opens an instance's span without writing the lease. The
/// span ends with the lease, so a concurrent change of the lease must conflict and be decided again.
fn seized(state: &State, usage: &Entries, written: &BTreeMap<LeaseId, Option<&LeaseRecord>>) -> Vec<Write> {
    let in_leases = usage.opened.iter().filter(|span| matches!(span.held, Held::Instance(_)));
    let leases: BTreeSet<LeaseId> = in_leases.filter_map(|span| span.lease).collect();
    let records = leases.iter().filter(|id| !written.contains_key(id));
    let seize = |record: &std::sync::Arc<LeaseRecord>| Write::Lease {
        record: Box::new(LeaseRecord { version: record.version.next(), ..LeaseRecord::clone(record) }),
        expected: Some(record.version),
    };
    records.filter_map(|id| state.leases.get(*id)).map(seize).collect()
}

/// Spans of all current leases and instances, starting now.
fn held_now(state: &State, now: Timestamp) -> Vec<Span> {
    let mut account = Account::new(now, |id| state.inventory.host(id));
    let lease_of = |id| state.leases.get(id).map(|record| &record.lease);
    for record in state.leases.iter() {
        account.lease(None, Some(&record.lease));
    }
    for record in state.instances.iter() {
        let lease: Option<&Lease> = record.instance.kind.lease().and_then(lease_of);
        account.instance(None, Some((&record.instance, lease)));
    }
    // Their actual beginnings were counted at the time, or never will be.
    account.entries().opened.into_iter().map(|span| Span { begins: false, ..span }).collect()
}
