//! A store in memory that keeps the promises of every store, written as plainly as possible. It is the model
//! that other stores are compared with, and simulations run on it.
//!
//! Its contents live as long as the value. A service that is dropped and created again on the same store has
//! crashed and restarted.

mod draft;
mod journals;
mod log;
mod occupancy;
mod page;
mod refusals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use leases::energy::Sleep;
use leases::host::NetworkId;
use leases::ids::{FloatingIpId, FreePoolId, GuestId, HostId, LeaseId};
use leases::occupants::{self, Interval};
use leases::plan::{Action, History};
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::usage::{Entries, Event, Ledger, Query, Span, Sum, held_hosts, sums};
use leases::window::Window;
use tokio::sync::watch;

use self::draft::{apply, work_out};
use self::journals::prune;
use self::log::Log;
use self::occupancy::Occupancy;
use self::page::Page;
use crate::archive::{Archive, ImportError};
use crate::booking::Subject;
use crate::{
    Advance, AuditFilter, AuditRecord, Changes, Claim, Claims, Commit, CommitError, Delta, Document,
    DocumentKey, Finished, FloatingIpRecord, FreePoolRecord, Holder, HostRecord, IdempotencyRecord,
    InstanceRecord, Journal, JournalSize, LeaseRecord, Notification, Origin, RecordKey, RefusalFilter,
    RefusalRecord, Revision, Revocation, Sizes, Snapshot, StepHistory, Store, StoreError, TokenKey,
    TokenState, Trimmed, UsageFilter, WriteSize,
};

/// A store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    revisions: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct State {
    leases: BTreeMap<LeaseId, Arc<LeaseRecord>>,
    hosts: BTreeMap<HostId, HostRecord>,
    host_names: BTreeMap<String, HostId>,
    floating_ips: BTreeMap<FloatingIpId, FloatingIpRecord>,
    addresses: BTreeMap<(NetworkId, IpAddr), FloatingIpId>,
    documents: BTreeMap<DocumentKey, Document>,
    instances: BTreeMap<GuestId, InstanceRecord>,
    free_pools: BTreeMap<FreePoolId, FreePoolRecord>,
    /// Bookings that exclude other leases.
    pages: BTreeMap<Subject, Page>,
    history: History,
    claims: Claims,
    last_fence: u64,
    notifications: VecDeque<Notification>,
    last_number: u64,
    delivered: BTreeMap<String, u64>,
    /// With their numbers.
    audit: VecDeque<(u64, AuditRecord)>,
    last_audit: u64,
    requests: BTreeMap<(ProjectId, String), IdempotencyRecord>,
    usage: Ledger,
    /// With their numbers.
    usage_events: VecDeque<(u64, Event)>,
    last_usage_event: u64,
    slept: Vec<Sleep>,
    /// Refused requests by project, day and shortage.
    refusals: BTreeMap<(ProjectId, Timestamp, Shortage), u64>,
    occupancy: Occupancy,
    tokens: TokenState,
    log: Log,
    /// Leader of each role, and the end of its term.
    leaders: BTreeMap<String, (Holder, Timestamp)>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// A lock poisoned by a panic is usable, because changes are worked out before any is applied.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes callers that wait for a change.
    fn tell(&self, advance: Option<Advance>) {
        if let Some(advance) = advance {
            // Commits can get here in another order than they were made.
            self.revisions.send_if_modified(|last| {
                let newer = advance.to.number > last.number;
                *last = if newer { advance.to } else { *last };
                newer
            });
        }
    }
}

impl State {
    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            revision: self.log.revision(),
            hosts: self.hosts.values().cloned().collect(),
            floating_ips: self.floating_ips.values().cloned().collect(),
            leases: self.leases.values().map(|record| LeaseRecord::clone(record)).collect(),
            instances: self.instances.values().cloned().collect(),
            free_pools: self.free_pools.values().cloned().collect(),
            history: self.history.clone(),
            ..Snapshot::default()
        };
        for document in self.documents.values() {
            snapshot.add_document(document.clone());
        }
        snapshot
    }

    fn export(&self) -> Archive {
        Archive {
            snapshot: self.snapshot(),
            notifications: self.notifications.iter().cloned().collect(),
            last_notification: self.last_number,
            delivered: self.delivered.clone(),
            audit: self.audit.iter().map(|(_, record)| record.clone()).collect(),
            requests: self.requests.values().cloned().collect(),
            usage: Entries {
                changed: Vec::new(),
                opened: self.usage.spans().to_vec(),
                events: self.usage_events.iter().map(|(_, event)| event.clone()).collect(),
            },
            slept: self.slept.clone(),
            refusals: self.refusal_records(),
            occupancy: occupants::Changes {
                closed: Vec::new(),
                opened: self.occupancy.intervals().map(|(_, interval)| interval.clone()).collect(),
                seen_until: self.occupancy.seen_until,
            },
            tokens: self.tokens.clone(),
            last_fence: self.last_fence,
            id: None,
        }
    }

    fn import(&mut self, archive: &Archive) -> Result<Advance, ImportError> {
        if !self.export().is_empty() {
            return Err(ImportError::NotEmpty);
        }
        let advance = self.commit(&archive.commit())?;
        self.history = archive.snapshot.history.clone();
        self.notifications = archive.notifications.iter().cloned().collect();
        self.last_number = archive.last_notification;
        self.delivered = archive.delivered.clone();
        let keyed = archive.requests.iter().map(|r| ((r.project.clone(), r.key.clone()), r.clone()));
        self.requests = keyed.collect();
        self.add_refusals(&archive.refusals);
        self.occupancy.record(&archive.occupancy);
        self.tokens = archive.tokens.clone();
        self.last_fence = archive.last_fence;
        Ok(advance)
    }

    fn commit(&mut self, commit: &Commit) -> Result<Advance, CommitError> {
        if let Some(record) = &commit.idempotency {
            self.check_repetition(record, commit.at)?;
        }
        let changed = work_out(self, commit)?;
        apply(&mut self.leases, changed.leases);
        apply(&mut self.hosts, changed.hosts);
        apply(&mut self.host_names, changed.host_names);
        apply(&mut self.floating_ips, changed.floating_ips);
        apply(&mut self.addresses, changed.addresses);
        apply(&mut self.documents, changed.documents);
        apply(&mut self.instances, changed.instances);
        apply(&mut self.free_pools, changed.free_pools);
        apply(&mut self.pages, changed.pages);
        for record in &commit.audit {
            self.last_audit += 1;
            self.audit.push_back((self.last_audit, record.clone()));
        }
        for content in &commit.notifications {
            self.last_number += 1;
            let number = self.last_number;
            self.notifications.push_back(Notification { number, at: commit.at, content: content.clone() });
        }
        self.slept.extend(commit.slept.iter().cloned());
        self.usage.enter(&commit.usage);
        for event in &commit.usage.events {
            self.last_usage_event += 1;
            self.usage_events.push_back((self.last_usage_event, event.clone()));
        }
        if let Some(record) = &commit.idempotency {
            self.requests.insert((record.project.clone(), record.key.clone()), record.clone());
        }
        Ok(self.log.enter(commit.keys()))
    }

    fn check_repetition(&self, record: &IdempotencyRecord, now: Timestamp) -> Result<(), CommitError> {
        let served = self.requests.get(&(record.project.clone(), record.key.clone()));
        match served {
            Some(served) if served.counts_at(now) => Err(CommitError::Repeated(record.key.clone())),
            _ => Ok(()),
        }
    }

    /// Gives out `count` fences. Returns the last.
    fn take_fences(&mut self, count: usize) -> u64 {
        self.last_fence += count as u64;
        self.last_fence
    }

    /// Returns the step's key if its history changed.
    fn finish(&mut self, finished: &Finished, now: Timestamp) -> Option<RecordKey> {
        let action = finished.claim.action;
        if !self.claims.give_up(&finished.claim) {
            return None;
        }
        let before = StepHistory::of(action, &self.history);
        match &finished.result {
            Ok(()) => self.history.succeeded(action, now),
            Err(message) => self.history.failed(action, now, message.as_str()),
        }
        (StepHistory::of(action, &self.history) != before).then_some(RecordKey::Step(action))
    }

    /// Makes a revision if any record changed.
    fn enter_some(&mut self, keys: BTreeSet<RecordKey>) -> Option<Advance> {
        (!keys.is_empty()).then(|| self.log.enter(keys))
    }

    fn lead(&mut self, role: &str, holder: &Holder, now: Timestamp, until: Timestamp) -> bool {
        if self.leaders.get(role).is_some_and(|(leader, over)| leader != holder && now < *over) {
            return false;
        }
        self.leaders.insert(role.to_owned(), (holder.clone(), until));
        now < until
    }

    fn delta(&self, keys: BTreeSet<RecordKey>) -> Delta {
        let mut delta = Delta { revision: self.log.revision(), ..Delta::default() };
        for key in keys {
            match key {
                RecordKey::Lease(id) => {
                    delta.leases.insert(id, self.leases.get(&id).map(|record| LeaseRecord::clone(record)));
                }
                RecordKey::Host(id) => {
                    delta.hosts.insert(id, self.hosts.get(&id).cloned());
                }
                RecordKey::FloatingIp(id) => {
                    delta.floating_ips.insert(id, self.floating_ips.get(&id).cloned());
                }
                RecordKey::Document(key) => {
                    let document = self.documents.get(&key).cloned();
                    delta.set_document(key, document);
                }
                RecordKey::Instance(id) => {
                    delta.instances.insert(id, self.instances.get(&id).cloned());
                }
                RecordKey::FreePool(id) => {
                    delta.free_pools.insert(id, self.free_pools.get(&id).cloned());
                }
                RecordKey::Step(action) => {
                    delta.steps.insert(action, StepHistory::of(action, &self.history));
                }
            }
        }
        delta
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        Ok(self.state().snapshot())
    }

    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError> {
        let state = self.state();
        Ok(match state.log.since(revision) {
            Some(keys) => Changes::Delta(Box::new(state.delta(keys))),
            None => Changes::Reload,
        })
    }

    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError> {
        let mut revisions = self.revisions.subscribe();
        // The sender lives as long as the store, so this can't fail.
        let _ = revisions.wait_for(|last| *last != revision).await;
        Ok(())
    }

    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError> {
        let advance = self.state().commit(commit)?;
        self.tell(Some(advance));
        Ok(advance)
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        let mut state = self.state();
        let free = state.claims.free(actions, now);
        let last_fence = state.take_fences(free.len());
        Ok(state.claims.add(&free, last_fence, holder, until))
    }

    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError> {
        Ok(self.state().claims.renew(claims, until))
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError> {
        let mut state = self.state();
        let changed = finished.iter().filter_map(|finished| state.finish(finished, now)).collect();
        let advance = state.enter_some(changed);
        drop(state);
        self.tell(advance);
        Ok(advance)
    }

    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError> {
        self.state().claims.release(holder, known);
        Ok(())
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError> {
        let mut state = self.state();
        let mut changed = BTreeSet::new();
        for action in gone {
            let failures = state.history.failures.remove(action).is_some();
            let done = state.history.done.remove(action).is_some();
            if failures || done {
                changed.insert(RecordKey::Step(*action));
            }
        }
        let advance = state.enter_some(changed);
        drop(state);
        self.tell(advance);
        Ok(advance)
    }

    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.state().lead(role, holder, now, until))
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
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

    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError> {
        let state = self.state();
        let first = state.notifications.partition_point(|notification| notification.number <= after);
        let visible = state
            .notifications
            .range(first..)
            .filter(|notification| project.is_none_or(|project| *project == notification.content.project));
        Ok(visible.take(limit as usize).cloned().collect())
    }

    async fn last_notification(&self) -> Result<u64, StoreError> {
        Ok(self.state().last_number)
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

    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError> {
        Ok(self.state().prune(before, undelivered, limit as usize))
    }

    async fn journals_over(&self, bytes: u64) -> Result<Vec<JournalSize>, StoreError> {
        let mut sizes = self.state().journals();
        sizes.retain(|size| size.bytes > bytes);
        Ok(sizes)
    }

    async fn trim(
        &self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Result<Trimmed, StoreError> {
        Ok(self.state().trim(journal, project, most, part))
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(self.state().audit.iter().rev().take(limit as usize).map(|(_, record)| record.clone()).collect())
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
        let state = self.state();
        let earlier =
            state.audit.iter().rev().filter(|(number, _)| before.is_none_or(|before| *number < before));
        let found = earlier.filter(|(_, record)| filter.lets_through(record));
        Ok(found.take(limit as usize).cloned().collect())
    }

    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError> {
        Ok(sums(self.state().usage.spans(), query))
    }

    async fn open_usage(&self) -> Result<Vec<Span>, StoreError> {
        let state = self.state();
        let mut open: Vec<_> = state.usage.spans().iter().filter(|span| span.open).cloned().collect();
        open.sort_by_cached_key(Span::key);
        Ok(open)
    }

    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        let state = self.state();
        let first = state.usage_events.partition_point(|(number, _)| *number <= after);
        let found = state.usage_events.range(first..).filter(|(_, event)| filter.lets_through(event));
        Ok(found.take(limit as usize).cloned().collect())
    }

    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError> {
        let touches =
            |sleep: &&Sleep| sleep.window.end() >= period.start() && sleep.window.start() < period.end();
        Ok(self.state().slept.iter().filter(touches).cloned().collect())
    }

    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError> {
        Ok(held_hosts(self.state().usage.spans(), period))
    }

    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError> {
        self.state().add_refusals(refusals);
        Ok(())
    }

    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError> {
        Ok(self.state().refusals(filter, kinds))
    }

    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError> {
        let mut state = self.state();
        state.refusals.retain(|(_, day, _), _| *day >= before);
        state.slept.retain(|sleep| sleep.window.end() >= before);
        // All at once, because a part would be just as much work.
        state.usage.prune(before);
        Ok(prune(&mut state.usage_events, limit as usize, |(_, event)| event.at < before))
    }

    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError> {
        self.state().occupancy.record(changes);
        Ok(())
    }

    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError> {
        Ok(self.state().occupancy.open())
    }

    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state().occupancy.seen_until)
    }

    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError> {
        let state = self.state();
        let later = state.occupancy.intervals().filter(|(number, one)| *number > after && one.lease == lease);
        Ok(later.take(limit as usize).map(|(number, interval)| (number, interval.clone())).collect())
    }

    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError> {
        Ok(self.state().occupancy.prune(before, most, limit as usize))
    }

    async fn sizes(&self) -> Result<Sizes, StoreError> {
        let state = self.state();
        let records = [
            ("notifications", state.notifications.len()),
            ("audit", state.audit.len()),
            ("usage_events", state.usage_events.len()),
            ("usage_spans", state.usage.spans().len()),
        ];
        let records = records.into_iter().map(|(kind, count)| (kind, count as u64)).collect();
        Ok(Sizes { records, ..Sizes::default() })
    }

    async fn tokens(&self) -> Result<TokenState, StoreError> {
        Ok(self.state().tokens.clone())
    }

    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError> {
        self.state().tokens.add_key(key, oldest);
        Ok(())
    }

    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError> {
        self.state().tokens.revoke(revocation);
        Ok(())
    }

    async fn export(&self) -> Result<Archive, StoreError> {
        Ok(self.state().export())
    }

    async fn import(&self, archive: &Archive) -> Result<(), ImportError> {
        let advance = self.state().import(archive)?;
        self.tell(Some(advance));
        Ok(())
    }

    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        Ok(Some(Origin { id: None, last_fence: self.state().last_fence }))
    }

    async fn take_fence(&self) -> Result<u64, StoreError> {
        Ok(self.state().take_fences(1))
    }

    async fn check(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
