//! Accounting (USE): what commits mean for usage.
//!
//! Nothing that changes a lease or an instance has to think of it: [`Service::account`] adds to every commit what
//! follows from its writes, so that the records are complete whenever a service stops.

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
    /// Adds to a commit what its writes mean for usage. For who has the write lock, so that memory says what the commit
    /// is based on; if it does not, the commit is refused.
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

    /// Counts from now on what leases and instances hold and is not counted: they had it before there was any
    /// accounting.
    pub(crate) async fn count_what_is_held(&self) -> Result<(), StoreError> {
        while self.count_part_of_what_is_held().await? {}
        Ok(())
    }

    /// Does as much of that as a transaction may hold. Says whether there is more.
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
            // There is nothing in it that could be refused.
            Err(_) => Ok(false),
            Ok(()) => Ok(more),
        }
    }
}

/// What is to be written down with a commit.
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
        // What is only offered, or waits, is none yet.
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

/// Leases in which a commit opens a span of an instance without writing them. Such a span ends with its lease, so
/// that whoever changes the lease at the same time has to decide again.
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

/// What leases and instances hold, counted from now on.
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
    // That they began was counted then, or never will be.
    account.entries().opened.into_iter().map(|span| Span { begins: false, ..span }).collect()
}
