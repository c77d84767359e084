//! It keeps all promises of a store, also after it was closed or its server broke down.

use std::sync::Arc;

use store::Store;

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

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_survives_the_server() {
    let server = own_server();
    let url = server.database(None).expect("a database");
    let store: Arc<dyn Store> = open(&url.parse().expect("an address")).await;
    let reopen = async |store: Arc<dyn Store>| -> Arc<dyn Store> {
        // The store stays as it is: all its connections are broken.
        server.restart().expect("it starts again");
        store
    };
    store::conformance::what_was_committed_survives(store, reopen).await;
}
