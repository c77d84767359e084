//! Every operation that the document names is charged to its project for what it answers and for the time that the store
//! takes. A new endpoint that reads the store by itself is a failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ambient::ManualClock;
use async_trait::async_trait;
use axum::http::Method;
use jiff::{SignedDuration, Timestamp};
use leases::energy::Sleep;
use leases::ids::HostId;
use leases::plan::Action;
use leases::project::ProjectId;
use leases::usage::{Event, Query, Span, Sum};
use leases::window::Window;
use serde_json::json;
use service::cost;
use store::archive::{Archive, ImportError};
use store::memory::MemoryStore;
use store::{
    Advance, AuditFilter, AuditRecord, Changes, Claim, Commit, CommitError, Finished, Holder,
    IdempotencyRecord, Notification, Revision, Revocation, Snapshot, Store, StoreError, TokenKey, TokenState,
    UsageFilter,
};

use crate::authorisation::{endpoints, furnish};
use crate::site::{NOW, Site};

/// What a read of the store takes by the test's clock.
const READ: SignedDuration = SignedDuration::from_millis(7);
/// The same in units of work.
const COST_OF_READ: u64 = 700_000;

/// A store whose journals are slow to read.
#[derive(Debug)]
struct SlowStore {
    inner: MemoryStore,
    clock: Arc<ManualClock>,
    reads: AtomicU64,
}

impl SlowStore {
    fn slowly(&self) -> &MemoryStore {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(READ);
        &self.inner
    }

    fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Store for SlowStore {
    async fn load(&self) -> Result<Snapshot, StoreError> {
        self.inner.load().await
    }

    async fn changes_since(&self, revision: Revision) -> Result<Changes, StoreError> {
        self.inner.changes_since(revision).await
    }

    async fn wait_for_change(&self, revision: Revision) -> Result<(), StoreError> {
        self.inner.wait_for_change(revision).await
    }

    async fn commit(&self, commit: &Commit) -> Result<Advance, CommitError> {
        self.inner.commit(commit).await
    }

    async fn claim(
        &self,
        actions: &[Action],
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claim>, StoreError> {
        self.inner.claim(actions, holder, now, until).await
    }

    async fn finish(&self, finished: &[Finished], now: Timestamp) -> Result<Option<Advance>, StoreError> {
        self.inner.finish(finished, now).await
    }

    async fn release_claims(&self, holder: &Holder, known: &[Claim]) -> Result<(), StoreError> {
        self.inner.release_claims(holder, known).await
    }

    async fn prune_steps(&self, gone: &[Action]) -> Result<Option<Advance>, StoreError> {
        self.inner.prune_steps(gone).await
    }

    async fn lead(
        &self,
        role: &str,
        holder: &Holder,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.inner.lead(role, holder, now, until).await
    }

    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        self.inner.now().await
    }

    async fn take_fence(&self) -> Result<u64, StoreError> {
        self.inner.take_fence().await
    }

    async fn idempotent(
        &self,
        project: &ProjectId,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        self.inner.idempotent(project, key, now).await
    }

    async fn notifications(
        &self,
        project: Option<&ProjectId>,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Notification>, StoreError> {
        self.slowly().notifications(project, after, limit).await
    }
    async fn last_notification(&self) -> Result<u64, StoreError> {
        self.inner.last_notification().await
    }

    async fn delivered(&self, listener: &str) -> Result<u64, StoreError> {
        self.inner.delivered(listener).await
    }

    async fn set_delivered(&self, listener: &str, number: u64) -> Result<(), StoreError> {
        self.inner.set_delivered(listener, number).await
    }

    async fn prune(&self, before: Timestamp, undelivered: Timestamp, limit: u32) -> Result<bool, StoreError> {
        self.inner.prune(before, undelivered, limit).await
    }

    async fn audit(&self, limit: u32) -> Result<Vec<AuditRecord>, StoreError> {
        self.slowly().audit(limit).await
    }

    async fn audit_page(
        &self,
        filter: &AuditFilter,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<(u64, AuditRecord)>, StoreError> {
        self.slowly().audit_page(filter, before, limit).await
    }

    async fn usage(&self, query: &Query) -> Result<Vec<Sum>, StoreError> {
        self.slowly().usage(query).await
    }

    async fn open_usage(&self) -> Result<Vec<Span>, StoreError> {
        self.inner.open_usage().await
    }

    async fn usage_events(
        &self,
        filter: &UsageFilter,
        after: u64,
        limit: u32,
    ) -> Result<Vec<(u64, Event)>, StoreError> {
        self.slowly().usage_events(filter, after, limit).await
    }

    async fn sleeps(&self, period: &Window) -> Result<Vec<Sleep>, StoreError> {
        self.slowly().sleeps(period).await
    }

    async fn held_hosts(&self, period: &Window) -> Result<Vec<(HostId, Window)>, StoreError> {
        self.slowly().held_hosts(period).await
    }

    async fn prune_usage(&self, before: Timestamp, limit: u32) -> Result<bool, StoreError> {
        self.inner.prune_usage(before, limit).await
    }

    async fn tokens(&self) -> Result<TokenState, StoreError> {
        self.inner.tokens().await
    }

    async fn add_token_key(&self, key: &TokenKey, oldest: u32) -> Result<(), StoreError> {
        self.inner.add_token_key(key, oldest).await
    }

    async fn revoke_token(&self, revocation: &Revocation) -> Result<(), StoreError> {
        self.inner.revoke_token(revocation).await
    }

    async fn export(&self) -> Result<Archive, StoreError> {
        self.slowly().export().await
    }

    async fn import(&self, archive: &Archive) -> Result<(), ImportError> {
        self.inner.import(archive).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.inner.check().await
    }
}

async fn slow_site() -> (Arc<SlowStore>, Site) {
    let clock = Arc::new(ManualClock::watched(NOW.parse().expect("an instant")));
    let inner = MemoryStore::new();
    let store = SlowStore { inner, clock: Arc::clone(&clock), reads: AtomicU64::new(0) };
    let store = Arc::new(store);
    let site = Site::guarded_on(Arc::<SlowStore>::clone(&store), clock).await;
    (store, site)
}

fn charged(site: &Site) -> u64 {
    site.service.charged(&ProjectId("p".to_owned()))
}

#[tokio::test]
async fn every_get_is_charged_for_its_answer_and_for_reading_the_store() {
    let (store, site) = slow_site().await;
    let names = furnish(&site).await;
    let mut read = Vec::new();
    for (method, path) in endpoints() {
        // What is public is nobody's, and costs little.
        let public = ["/versions", "/healthz", "/readyz", "/metrics"].contains(&&*path);
        if method != "GET" || path == "/" || public || path.starts_with("/identity") {
            continue;
        }
        let named = names.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
        let (reads_before, before) = (store.reads(), charged(&site));
        let answer = site.send_as("admin", Method::GET, &named, None).await;
        // There is no lease pool.
        let found = answer.status.is_success() || path.starts_with("/v1/leasepools/");
        assert!(found, "{named}: {}", answer.text);
        let (reads, charged) = (store.reads() - reads_before, charged(&site) - before);
        let least = cost::FLAT + cost::of_answer(answer.text.len() as u64) + COST_OF_READ * reads;
        assert!(charged >= least, "{named}: {charged} of {least}, {reads} reads");
        if reads > 0 {
            read.push(path);
        }
    }
    assert!(read.len() >= 7, "these read the store: {read:?}");
}

#[tokio::test]
async fn a_body_is_charged_though_it_is_refused() {
    let (_, site) = slow_site().await;
    let cost_of = async |length: usize| {
        let before = charged(&site);
        let body = json!({"name": "x".repeat(length)});
        site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.ok(400);
        charged(&site) - before
    };
    let (short, long) = (cost_of(1000).await, cost_of(101_000).await);
    assert!(long - short >= cost::of_body(100_000), "{short} {long}");
}

#[tokio::test]
async fn a_long_period_is_read_in_parts_and_each_is_charged() {
    let (store, site) = slow_site().await;
    let (reads, before) = (store.reads(), charged(&site));
    let path = "/v1/usage?group_by=hour&start=2029-12-01&end=2029-12-31";
    site.send_as("member", Method::GET, path, None).await.ok(200);
    let parts = store.reads() - reads;
    assert!(parts > 10, "{parts} parts of 720 hours");
    assert!(charged(&site) - before >= parts * COST_OF_READ);
}

#[tokio::test]
async fn an_operation_of_one_project_is_not_charged_to_another() {
    let (_, site) = slow_site().await;
    let before = charged(&site);
    site.send_as("foreign", Method::GET, "/v1/usage", None).await.ok(200);
    assert_eq!(charged(&site), before);
}
