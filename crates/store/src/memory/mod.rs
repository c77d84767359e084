//! A store in memory: what every store promises, written as plainly as can be. It is the model that others are
//! compared with, and what simulations run on.
//!
//! It lives as long as the value: a service that is dropped and made anew on it has crashed and come back.

mod draft;
mod page;

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use leases::host::NetworkId;
use leases::ids::{FloatingIpId, HostId, LeaseId};
use leases::plan::{Action, History};
use leases::project::ProjectId;

use self::draft::{apply, work_out};
use self::page::Page;
use crate::booking::Subject;
use crate::{
    AuditRecord, Claim, Commit, CommitError, Finished, FlavorRecord, FloatingIpRecord, Holder, HostRecord,
    IdempotencyRecord, LeaseRecord, Notification, PropertyRecord, Snapshot, Store, StoreError,
};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    leases: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    hosts: BTreeMap<HostId, HostRecord>,
    host_names: BTreeMap<String, HostId>,
    floating_ips: BTreeMap<FloatingIpId, FloatingIpRecord>,
    addresses: BTreeMap<(NetworkId, IpAddr), FloatingIpId>,
    flavors: BTreeMap<String, FlavorRecord>,
    /// By name.
    properties: BTreeMap<String, PropertyRecord>,
    /// What leases keep from others.
    pages: BTreeMap<Subject, Page>,
    history: History,
    claims: BTreeMap<Action, Claimed>,
    last_fence: u64,
    notifications: VecDeque<Notification>,
    last_number: u64,
    delivered: BTreeMap<String, u64>,
    audit: VecDeque<AuditRecord>,
    requests: BTreeMap<(ProjectId, String), IdempotencyRecord>,
}

/// A claim that was not given up.
#[derive(Debug)]
struct Claimed {
    holder: Holder,
    fence: u64,
    until: Timestamp,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state. A thread that panicked had not begun to change it: everything is worked out first.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn commit(&mut self, commit: &Commit) -> Result<(), CommitError> {
        if let Some(record) = &commit.idempotency {
            self.check_repetition(record, commit.at)?;
        }
        let changed = work_out(self, commit)?;
        apply(&mut self.leases, changed.leases);
        apply(&mut self.hosts, changed.hosts);
        apply(&mut self.host_names, changed.host_names);
        apply(&mut self.floating_ips, changed.floating_ips);
        apply(&mut self.addresses, changed.addresses);
        apply(&mut self.flavors, changed.flavors);
        apply(&mut self.properties, changed.properties);
        apply(&mut self.pages, changed.pages);
        self.audit.extend(commit.audit.iter().cloned());
        for content in &commit.notifications {
            self.last_number += 1;
            let number = self.last_number;
            self.notifications.push_back(Notification { number, at: commit.at, content: content.clone() });
        }
        if let Some(record) = &commit.idempotency {
            self.requests.insert((record.project.clone(), record.key.clone()), record.clone());
        }
        Ok(())
    }

    fn check_repetition(&self, record: &IdempotencyRecord, now: Timestamp) -> Result<(), CommitError> {
        let served = self.requests.get(&(record.project.clone(), record.key.clone()));
        match served {
            Some(served) if served.counts_at(now) => Err(CommitError::Repeated(record.key.clone())),
            _ => Ok(()),
        }
    }

    fn claim(&mut self, action: Action, holder: &Holder, now: Timestamp, until: Timestamp) -> Option<Claim> {
        if self.claims.get(&action).is_some_and(|claimed| now < claimed.until) {
            return None;
        }
        self.last_fence += 1;
        let fence = self.last_fence;
        self.claims.insert(action, Claimed { holder: holder.clone(), fence, until });
        Some(Claim { action, fence })
    }

    fn finish(&mut self, finished: &Finished, now: Timestamp) {
        let action = finished.claim.action;
        if self.claims.get(&action).is_none_or(|claimed| claimed.fence != finished.claim.fence) {
            return;
        }
        self.claims.remove(&action);
        match &finished.result {
            Ok(()) => self.history.succeeded(action, now),
            Err(message) => self.history.failed(action, now, message.as_str()),
        }
    }

    fn prune(&mut self, before: Timestamp) {
        let told = self.delivered.values().copied().min().unwrap_or(u64::MAX);
        self.notifications.retain(|n| n.at >= before || n.number > told);
        self.audit.retain(|record| record.at >= before);
        self.requests.retain(|_, record| record.at >= before);
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        let state = self.state();
        Ok(Snapshot {
            hosts: state.hosts.values().cloned().collect(),
            floating_ips: state.floating_ips.values().cloned().collect(),
            flavors: state.flavors.values().cloned().collect(),
            properties: state.properties.values().cloned().collect(),
            leases: state.leases.values().map(|record| LeaseRecord::clone(record)).collect(),
            history: state.history.clone(),
        })
    }

    async fn commit(&self, commit: &Commit) -> Result<(), CommitError> {
        self.state().commit(commit)
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        let mut state = self.state();
        Ok(actions.iter().filter_map(|action| state.claim(*action, holder, now, until)).collect())
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<(), StoreError> {
        let mut state = self.state();
        for finished in finished {
            state.finish(finished, now);
        }
        Ok(())
    }

    async fn release_claims(&self, holder: &Holder) -> Result<(), StoreError> {
        self.state().claims.retain(|_, claimed| claimed.holder != *holder);
        Ok(())
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<(), StoreError> {
        let history = &mut self.state().history;
        for action in gone {
            history.failures.remove(action);
            history.done.remove(action);
        }
        Ok(())
    }

    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let state = self.state();
        let served = state.requests.get(&(project.clone(), key.to_owned()));
        Ok(served.filter(|record| record.counts_at(now)).cloned())
    }

    async fn notifications(&self, after: u64, limit: u32) -> Result<Vec<Notification>, StoreError> {
        let state = self.state();
        let first = state.notifications.partition_point(|notification| notification.number <= after);
        Ok(state.notifications.range(first..).take(limit as usize).cloned().collect())
    }

    async fn delivered(&self, listener: &str) -> Result<u64, StoreError> {
        Ok(self.state().delivered.get(listener).copied().unwrap_or(0))
    }

    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let told = state.delivered.entry(listener.to_owned()).or_insert(0);
        *told = number.max(*told);
        Ok(())
    }

    async fn prune(&self, before: Timestamp) -> Result<(), StoreError> {
        self.state().prune(before);
        Ok(())
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(self.state().audit.iter().rev().take(limit as usize).cloned().collect())
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
