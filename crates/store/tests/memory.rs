//! The store in memory keeps all promises.

use std::sync::Arc;

use store::Store;
use store::memory::MemoryStore;

macro_rules! tests {
    ($($promise:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
            store::conformance::$promise(&store).await;
        }
    )* };
}
store::promises!(tests);
