//! Every operation in the OpenAPI document is charged to its project, for the response and for the time spent
//! in the store. A new endpoint that reads the store without being charged fails the test.

use std::sync::Arc;

use ambient::ManualClock;
use axum::http::Method;
use jiff::SignedDuration;
use leases::project::ProjectId;
use serde_json::json;
use service::cost;
use simulation::FaultyStore;
use store::memory::MemoryStore;

use crate::authorisation::{endpoints, furnish};
use crate::site::{NOW, Site};

/// Duration of a store read, by the test's clock.
const READ: SignedDuration = SignedDuration::from_millis(7);
/// Charge for a store read, in units of work.
const COST_OF_READ: u64 = 700_000;

async fn slow_site() -> (Arc<FaultyStore>, Site) {
    let clock = Arc::new(ManualClock::watched(NOW.parse().expect("an instant")));
    let store = Arc::new(FaultyStore::new(0, Arc::new(MemoryStore::new()), None));
    store.set_read_time(&clock, READ);
    let site = Site::guarded_on(Arc::<FaultyStore>::clone(&store), clock).await;
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
        // Public endpoints have no project to charge, and cost little.
        let public = ["/versions", "/healthz", "/readyz", "/metrics"].contains(&&*path);
        if method != "GET" || path == "/" || public || path.starts_with("/identity") {
            continue;
        }
        let named = names.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
        let (reads_before, before) = (store.reads(), charged(&site));
        let answer = site.send_as("admin", Method::GET, &named, None).await;
        // The site has no lease pool.
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
