//! `/readyz` while another program locks the database file.

use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection};
use store_sqlite::SqliteStore;

use crate::site::Site;

#[tokio::test]
async fn a_locked_file_is_told_until_it_is_released() {
    const LOCKED: (u16, &str) = (503, "the store did not answer within 2 s\n");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("allot.db");
    let site = Site::still(Arc::new(SqliteStore::open(&path).await.expect("a store"))).await;
    let mut other = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("opens");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("locked");
    // Paused time advances when all tasks are waiting.
    tokio::time::pause();
    for _ in 0..2 {
        let answer = site.get("/readyz").await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), LOCKED);
    }
    tokio::time::resume();
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("released");
    loop {
        let answer = site.get("/readyz").await;
        if answer.text != LOCKED.1 {
            // The store responded. The loop doesn't run in this test.
            assert!(answer.text.starts_with("the loop"), "{}", answer.text);
            break;
        }
        tokio::task::yield_now().await;
    }
}
