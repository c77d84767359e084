//! Tables that another program keeps locked.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::Store as _;

use crate::{SERVER, open};

#[tokio::test(flavor = "multi_thread")]
async fn a_check_waits_for_every_table_that_is_locked() {
    let url = SERVER.database(None).expect("a database");
    let store = open(&url.parse().expect("an address")).await;
    let mut other = PgConnection::connect(&url).await.expect("connected");
    let tables = sqlx::query_scalar("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'");
    let tables: Vec<String> = tables.fetch_all(&mut other).await.expect("read");
    assert!(tables.iter().any(|table| table == "lease"), "{tables:?}");
    for table in tables {
        let mut locking = other.begin().await.expect("begun");
        let lock = sqlx::query(AssertSqlSafe(format!("LOCK TABLE {table}")));
        lock.execute(&mut *locking).await.expect("locked");
        let checking = store.clone();
        let check = tokio::spawn(async move { checking.check().await });
        let mut waits = false;
        while !waits && !check.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let waiting = sqlx::query_scalar(
                "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = $1::text::regclass)",
            );
            waits = waiting.bind(&table).fetch_one(&mut *locking).await.expect("read");
        }
        assert!(waits || check.await.expect("no panic").is_err(), "{table} is locked");
        locking.rollback().await.expect("released");
        store.check().await.expect("released");
    }
}
