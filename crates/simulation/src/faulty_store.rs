//! A store whose calls fail, before or after they took effect.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ambient::{Clock, ManualClock};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use leases::energy::Sleep;
use leases::ids::{HostId, LeaseId};
use leases::occupants::{self, Interval};
use leases::plan::Action;
use leases::project::ProjectId;
use leases::shortage::Shortage;
use leases::usage::{Event, Query, Span, Sum};
use leases::window::Window;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use store::archive::{Archive, ImportError};
use store::memory::MemoryStore;
use store::{
    Advance, AuditFilter, AuditRecord, Changes, Claim, Commit, CommitError, Finished, Holder,
    IdempotencyRecord, Journal, JournalSize, LeaseRecord, Notification, Origin, RefusalFilter, RefusalRecord,
    Revision, Revocation, Sizes, Snapshot, Store, StoreError, TokenKey, TokenState, Trimmed, UsageFilter,
    WriteSize,
};
use tokio::sync::watch;

/// Fault of a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// The call has no effect.
    Before,
    /// The call takes effect, but its answer is lost.
    After,
    /// The call takes effect, and the caller's task panics. Only happens if planned.
    Panic,
}

/// One service's connection to a store in memory, with injected faults. Several services can share the store.
pub struct FaultyStore {
    inner: Arc<MemoryStore>,
    /// The store's own clock. `None` if it has none.
    clock: Option<Arc<ManualClock>>,
    state: Mutex<State>,
    /// Whether checks hang.
    silent: watch::Sender<bool>,
}

struct State {
    rng: SmallRng,
    probability: f64,
    /// Faults of the next commits, in order. `None` leaves a commit to the random faults.
    planned: Vec<Option<StoreFault>>,
    loses_next_claims: bool,
    down: bool,
    slow: bool,
    commits: u64,
    checks: u64,
    measured: Option<Measured>,
    /// Duration of a read of a journal, and the clock it is added to.
    read_time: Option<(Arc<ManualClock>, SignedDuration)>,
    reads: u64,
}

/// Sizes of commits, and the leases that are needed to compute them.
#[derive(Default)]
struct Measured {
    leases: BTreeMap<LeaseId, LeaseRecord>,
    sizes: Vec<WriteSize>,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").finish_non_exhaustive()
    }
}

impl FaultyStore {
    /// A connection that has no faults yet.
    pub fn new(seed: u64, inner: Arc<MemoryStore>, clock: Option<Arc<ManualClock>>) -> Self {
        let rng = SmallRng::seed_from_u64(seed);
        let state = State {
            rng,
            probability: 0.0,
            planned: Vec::new(),
            loses_next_claims: false,
            down: false,
            slow: false,
            commits: 0,
            checks: 0,
            measured: None,
            read_time: None,
            reads: 0,
        };
        Self { inner, clock, state: Mutex::new(state), silent: watch::Sender::new(false) }
    }

    /// Makes each call fail with that probability from now on.
    pub fn set_faults(&self, probability: f64) {
        self.state().probability = probability;
    }

    /// Plans the faults of the next commits.
    pub fn plan(&self, faults: impl IntoIterator<Item = Option<StoreFault>>) {
        self.state().planned.extend(faults);
    }

    /// Grants the next claims, but loses the answer.
    pub fn lose_next_claims(&self) {
        self.state().loses_next_claims = true;
    }

    /// Makes all calls fail, or lets them work again.
    pub fn set_down(&self, down: bool) {
        self.state().down = down;
    }

    /// Makes each call yield to other tasks before and after it takes effect.
    pub fn set_slow(&self, slow: bool) {
        self.state().slow = slow;
    }

    /// Makes checks hang, or ends the hang.
    pub fn set_silent(&self, silent: bool) {
        self.silent.send_replace(silent);
    }

    /// Number of checks begun.
    pub fn checks(&self) -> u64 {
        self.state().checks
    }

    /// Yields to other tasks, if the store is slow.
    async fn dawdle(&self) {
        if self.state().slow {
            tokio::task::yield_now().await;
        }
    }

    /// Records the sizes of commits from now on.
    pub async fn measure(&self) {
        let leases = self.contents().await.leases.into_iter().map(|record| (record.lease.id, record));
        self.state().measured = Some(Measured { leases: leases.collect(), sizes: Vec::new() });
    }

    /// Sizes of commits since [`Self::measure`].
    pub fn sizes(&self) -> Vec<WriteSize> {
        self.state().measured.as_ref().map(|measured| measured.sizes.clone()).unwrap_or_default()
    }

    /// Advances the clock by that time on each read of a journal.
    pub fn set_read_time(&self, clock: &Arc<ManualClock>, time: SignedDuration) {
        self.state().read_time = Some((Arc::clone(clock), time));
    }

    /// Number of reads of journals: notifications, the audit log and usage.
    pub fn reads(&self) -> u64 {
        self.state().reads
    }

    /// Number of commits that took effect.
    pub fn commits(&self) -> u64 {
        self.state().commits
    }

    /// The store's contents, read without faults.
    pub async fn contents(&self) -> Snapshot {
        self.inner.load().await.unwrap_or_default()
    }

    /// All usage in the store: spans and events.
    pub async fn contents_usage(&self) -> (Vec<Span>, Vec<Event>) {
        let usage = self.inner.export().await.unwrap_or_default().usage;
        (usage.opened, usage.events)
    }

    /// Types of all notifications in the store, oldest first.
    pub async fn contents_notifications(&self) -> Vec<String> {
        let all = self.inner.notifications(None, 0, u32::MAX).await.unwrap_or_default();
        all.into_iter().map(|notification| notification.content.event_type).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fault(&self) -> Option<StoreFault> {
        let mut state = self.state();
        if state.down {
            return Some(StoreFault::Before);
        }
        let probability = state.probability;
        if probability <= 0.0 || !state.rng.random_bool(probability) {
            return None;
        }
        Some(if state.rng.random_bool(0.5) { StoreFault::Before } else { StoreFault::After })
    }

    fn planned(&self) -> Option<StoreFault> {
        let mut state = self.state();
        if state.planned.is_empty() { None } else { state.planned.remove(0) }
    }

    /// Runs the call, unless a fault comes before it.
    async fn unless<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        self.dawdle().await;
        let fault = self.fault();
        if fault == Some(StoreFault::Before) {
            return Err(broken());
        }
        let answer = call.await;
        self.dawdle().await;
        if fault.is_some() { answer.and(Err(broken())) } else { answer }
    }

    /// Like [`Self::unless`], for a read of a journal: counts it and adds its duration to the clock.
    async fn read<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        {
            let mut state = self.state();
            state.reads += 1;
            if let Some((clock, time)) = &state.read_time {
                clock.advance(*time);
            }
        }
        self.unless(call).await
    }
}

impl Measured {
    fn note(&mut self, commit: &Commit) {
        let Self { leases, sizes } = self;
        sizes.push(commit.size(|id| leases.get(&id)));
        for (id, record) in store::leases_after(&commit.writes) {
            match record {
                Some(record) => leases.insert(id, record.clone()),
                None => leases.remove(&id),
            };
        }
    }
}

fn broken() -> StoreError {
    StoreError::Unavailable("broke off (simulated)".to_owned())
}

#[async_trait]
impl Store for FaultyStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.unless(self.inner.load()).await
    }

    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError> {
        self.unless(self.inner.changes_since(revision)).await
    }

    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError> {
        self.unless(self.inner.wait_for_change(revision)).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError> {
        self.dawdle().await;
        let fault = self.planned().or_else(|| self.fault());
        if fault == Some(StoreFault::Before) {
            return Err(broken().into());
        }
        let advance = self.inner.commit(commit).await?;
        {
            let mut state = self.state();
            state.commits += 1;
            if let Some(measured) = &mut state.measured {
                measured.note(commit);
            }
        }
        self.dawdle().await;
        assert!(fault != Some(StoreFault::Panic), "the store panics (simulated)");
        if fault.is_some() { Err(broken().into()) } else { Ok(advance) }
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        let claims = self.unless(self.inner.claim(actions, holder, now, until)).await?;
        if std::mem::take(&mut self.state().loses_next_claims) { Err(broken()) } else { Ok(claims) }
    }

    async fn renew_claims(&self, claims: &[Claim], until: Timestamp) -> Result<Vec<Claim>, StoreError> {
        self.unless(self.inner.renew_claims(claims, until)).await
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError> {
        self.unless(self.inner.finish(finished, now)).await
    }

    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError> {
        self.unless(self.inner.release_claims(holder, known)).await
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError> {
        self.unless(self.inner.prune_steps(gone)).await
    }

    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.unless(self.inner.lead(role, holder, now, until)).await
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        let now = self.clock.as_ref().map(|clock| clock.now());
        self.unless(async { Ok(now) }).await
    }

    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.unless(self.inner.idempotent(project, key, now)).await
    }

    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError> {
        self.read(self.inner.notifications(project, after, limit)).await
    }

    async fn last_notification(&self) -> Result<u64, StoreError> {
        self.unless(self.inner.last_notification()).await
    }

    async fn delivered(&self, listener: &str) -> Result<u64, StoreError> {
        self.unless(self.inner.delivered(listener)).await
    }

    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError> {
        self.unless(self.inner.set_delivered(listener, number)).await
    }

    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError> {
        self.unless(self.inner.prune(before, undelivered, limit)).await
    }

    async fn count_journals(&self, limit: u32) -> Result<bool, StoreError> {
        self.unless(self.inner.count_journals(limit)).await
    }

    async fn journals_over(&self, bytes: u64) -> Result<Vec<JournalSize>, StoreError> {
        self.unless(self.inner.journals_over(bytes)).await
    }

    async fn trim(
        &self,
        journal: Journal,
        project: &ProjectId,
        most: u64,
        part: WriteSize,
    ) -> Result<Trimmed, StoreError> {
        self.unless(self.inner.trim(journal, project, most, part)).await
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        self.read(self.inner.audit(limit)).await
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
        self.read(self.inner.audit_page(filter, before, limit)).await
    }

    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError> {
        self.read(self.inner.usage(query)).await
    }

    async fn open_usage(&self) -> Result<Vec<Span>, StoreError> {
        self.unless(self.inner.open_usage()).await
    }

    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        self.read(self.inner.usage_events(filter, after, limit)).await
    }

    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError> {
        self.read(self.inner.sleeps(period)).await
    }

    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError> {
        self.read(self.inner.held_hosts(period)).await
    }

    async fn add_refusals(&self, refusals: &[RefusalRecord]) -> Result<(), StoreError> {
        self.unless(self.inner.add_refusals(refusals)).await
    }

    async fn refusals(&self, filter: &RefusalFilter, kinds: u32) -> Result<Vec<(Shortage, u64)>, StoreError> {
        self.read(self.inner.refusals(filter, kinds)).await
    }

    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError> {
        self.unless(self.inner.prune_usage(before, limit)).await
    }

    async fn record_occupancy(&self, changes: &occupants::Changes) -> Result<(), StoreError> {
        self.unless(self.inner.record_occupancy(changes)).await
    }

    async fn open_occupancy(&self) -> Result<Vec<Interval>, StoreError> {
        self.unless(self.inner.open_occupancy()).await
    }

    async fn occupancy_seen_until(&self) -> Result<Option<Timestamp>, StoreError> {
        self.unless(self.inner.occupancy_seen_until()).await
    }

    async fn occupancy(
        &self,
        lease: LeaseId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Interval)>, StoreError> {
        self.read(self.inner.occupancy(lease, after, limit)).await
    }

    async fn prune_occupancy(
        &self,
        before: Option<Timestamp>,
        most: u64,
        limit: u32,
    ) -> Result<bool, StoreError> {
        self.unless(self.inner.prune_occupancy(before, most, limit)).await
    }

    async fn reclaim(&self) -> Result<bool, StoreError> {
        self.unless(self.inner.reclaim()).await
    }

    async fn sizes(&self) -> Result<Sizes, StoreError> {
        self.unless(self.inner.sizes()).await
    }

    async fn tokens(&self) -> Result<TokenState, StoreError> {
        self.unless(self.inner.tokens()).await
    }

    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError> {
        self.unless(self.inner.add_token_key(key, oldest)).await
    }

    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError> {
        self.unless(self.inner.revoke_token(revocation)).await
    }

    async fn export(&self) -> Result<Archive, StoreError> {
        self.read(self.inner.export()).await
    }

    async fn import(&self, archive: &Archive) -> Result<(), ImportError> {
        self.inner.import(archive).await
    }

    async fn origin(&self) -> Result<Option<Origin>, StoreError> {
        self.inner.origin().await
    }

    async fn take_fence(&self) -> Result<u64, StoreError> {
        self.unless(self.inner.take_fence()).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.state().checks += 1;
        let _ = self.silent.subscribe().wait_for(|silent| !silent).await;
        self.unless(self.inner.check()).await
    }
}
