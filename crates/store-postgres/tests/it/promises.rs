//! The store keeps all promises, even after it was closed or its server crashed.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::plan::Action;
use store::{Holder, Store};

use crate::{database, open, own_server};

macro_rules! tests {
    ($($promise:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            let store: Arc<dyn Store> = open(&database()).await;
            store::conformance::$promise(&store).await;
        }
    )* };
}
store::promises!(tests);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_survives_a_service() {
    let servers = database();
    let store: Arc<dyn Store> = open(&servers).await;
    let reopen = async |store: Arc<dyn Store>| -> Arc<dyn Store> {
        drop(store);
        let store: Arc<dyn Store> = open(&servers).await;
        store
    };
    store::conformance::what_was_committed_survives(store, reopen).await;
}

/// Another service could still be running the step.
#[tokio::test(flavor = "multi_thread")]
async fn claims_survive_a_service() {
    let servers = database();
    let (actions, now) = ([Action::Fence(HostId(1))], Timestamp::UNIX_EPOCH);
    let until = now + SignedDuration::from_secs(5);
    let claim = async |name: &str, now| {
        let store = open(&servers).await;
        store.claim(&actions, &Holder(name.into()), now, until).await.expect("works").len()
    };
    assert_eq!(claim("a", now).await, 1);
    assert_eq!(claim("b", now).await, 0);
    assert_eq!(claim("b", until).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_survives_the_server() {
    let server = own_server();
    let url = server.database(None).expect("a database");
    let store: Arc<dyn Store> = open(&url.parse().expect("an address")).await;
    let reopen = async |store: Arc<dyn Store>| -> Arc<dyn Store> {
        // The store stays open, but all its connections are broken.
        server.restart().expect("it starts again");
        store
    };
    store::conformance::what_was_committed_survives(store, reopen).await;
}
