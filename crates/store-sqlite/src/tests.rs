//! Tests of internals: the schema without the code around it, and a full disk.

use std::sync::Arc;

use leases::ids::HostId;
use leases::plan::Action;
use sqlx::{Connection, SqliteConnection};
use store::conformance::sample::{
    add, add_hosts, at, audit, commit, host, hosts, lease, notification, slots, window,
};
use store::{Changes, Commit, CommitError, Finished, Holder, Store, StoreError};
use tempfile::TempDir;

use crate::SqliteStore;

async fn open() -> (SqliteStore, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(directory.path().join("allot.db")).await.expect("it can be opened");
    (store, directory)
}

/// Runs a statement directly, as a user of the `sqlite3` shell does, without this crate's code.
async fn by_hand(store: &SqliteStore, statement: &'static str) -> Result<u64, String> {
    let url = format!("sqlite://{}", store.path().display());
    let mut db = SqliteConnection::connect(&url).await.expect("it can be opened");
    sqlx::query(statement).execute(&mut db).await.map(|done| done.rows_affected()).map_err(|e| e.to_string())
}

#[tokio::test]
async fn w1_the_schema_alone_refuses_double_bookings() {
    let (store, _directory) = open().await;
    store.commit(&commit(add_hosts([1, 2]))).await.expect("accepted");
    let first = lease(1, window(10, 20), vec![hosts(&[1])]);
    let second = lease(2, window(20, 30), vec![hosts(&[1]), slots(&[(2, 3)])]);
    let third = lease(3, window(10, 20), vec![slots(&[(2, 4)])]);
    store.commit(&commit([add(&first), add(&second), add(&third)])).await.expect("accepted");
    for (statement, says) in [
        ("UPDATE host_allocation SET ends_us = ends_us + 1", "has to be inserted anew"),
        ("UPDATE host_allocation SET starts_us = starts_us - 1", "has to be inserted anew"),
        ("UPDATE host_allocation SET host = 2", "has to be inserted anew"),
        ("UPDATE slot_use SET amount = amount + 1", "has to be inserted anew"),
        ("UPDATE slot_use SET ends_us = ends_us + 1", "has to be inserted anew"),
        (
            "INSERT INTO host_allocation SELECT lease, id, 1, 0, 9223372036854775807, 1 FROM reservation",
            "allot: taken",
        ),
        ("INSERT INTO host_allocation SELECT lease, id, 3, 0, 1, 1 FROM reservation", "allot: gone"),
        ("DELETE FROM host", "allot: in_use"),
        (
            "INSERT INTO slot_use SELECT lease, reservation, host, 'GPU', 1, starts_us, ends_us, 1 FROM slot_use",
            "allot: no_room",
        ),
    ] {
        let error = by_hand(&store, statement).await.expect_err(statement);
        assert!(error.contains(says), "{statement}: {error}");
    }
    let shorter = by_hand(&store, "UPDATE host_allocation SET ends_us = ends_us - 1").await;
    assert_eq!(shorter, Ok(2));
}

#[tokio::test]
async fn a_transaction_that_sqlite_undid_by_itself_is_in_nobodys_way() {
    let (store, _directory) = open().await;
    {
        let mut writer = store.writer().await;
        let mut transaction = writer.begin().await.expect("begins");
        // SQLite does this when a commit doesn't fit on the disk.
        sqlx::query("ROLLBACK").execute(&mut *transaction).await.expect("works");
    }
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    assert_eq!(store.load().await.expect("works").hosts.len(), 1);
}

/// Keeps the file from growing, like a full disk.
async fn fill_disk(store: &SqliteStore) {
    let mut writer = store.writer.lock().await;
    let db = writer.as_mut().expect("open");
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut *db).await.expect("works");
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {}", pages + 8));
    sqlx::query(limit).execute(db).await.expect("works");
}

async fn empty_disk(store: &SqliteStore) {
    let mut writer = store.writer.lock().await;
    let db = writer.as_mut().expect("open");
    sqlx::query("PRAGMA max_page_count = 1000000").execute(db).await.expect("works");
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_half_done_and_nothing_acknowledged_is_lost() {
    let (store, _directory) = open().await;
    store.commit(&commit(add_hosts(1..=50))).await.expect("accepted");
    fill_disk(&store).await;
    let of_all_hosts = |number: i64| {
        let all: Vec<u64> = (1..=50).collect();
        let record = lease(number as u128, window(number, number + 1), vec![hosts(&all)]);
        let (audit, notifications) = (vec![audit("lease.create")], vec![notification("lease.create")]);
        Commit { writes: vec![add(&record)], audit, notifications, ..Commit::new(at(number)) }
    };
    let mut acknowledged = 0;
    let error = loop {
        match store.commit(&of_all_hosts(acknowledged)).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1000, "the disk does not get full");
    };
    assert!(matches!(error, CommitError::Store(StoreError::Unavailable(_))), "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    let expect = async |count: i64| {
        let leases = store.load().await.expect("it can be read").leases;
        assert_eq!(leases.len() as i64, count);
        assert!(leases.iter().all(|record| record.lease.reservations[0].allocation.amount() == 50));
        assert_eq!(store.audit(2000).await.expect("it can be read").len() as i64, count);
        assert_eq!(store.notifications(None, 0, 2000).await.expect("it can be read").len() as i64, count);
    };
    expect(acknowledged).await;
    empty_disk(&store).await;
    store.commit(&of_all_hosts(acknowledged)).await.expect("there is room again");
    expect(acknowledged + 1).await;
}

#[tokio::test]
async fn amounts_that_no_sum_can_hold_are_kept_as_the_largest_there_is() {
    let (store, _directory) = open().await;
    let mut endless = host(1);
    let class = leases::resources::ResourceClass("X".into());
    endless.host.other_resources.insert(class.clone(), u64::MAX);
    store.commit(&commit([store::conformance::sample::add_host(endless)])).await.expect("accepted");
    let kept = store.load().await.expect("works").hosts.remove(0).host.other_resources[&class];
    assert_eq!(kept, (1 << 62) - 1);
}

/// Notifications of other projects must not slow down the query.
#[tokio::test]
async fn notifications_of_a_project_are_found_by_an_index() {
    let (store, _directory) = open().await;
    let plan = "EXPLAIN QUERY PLAN SELECT payload FROM notification WHERE project = 'p' AND number > 3
                ORDER BY number LIMIT 9";
    let mut db = SqliteConnection::connect_with(&store.options).await.expect("it can be opened");
    let steps: Vec<(i64, i64, i64, String)> = sqlx::query_as(plan).fetch_all(&mut db).await.expect("works");
    let steps: Vec<&str> = steps.iter().map(|step| step.3.as_str()).collect();
    assert_eq!(steps, ["SEARCH notification USING INDEX notification_project (project=? AND number>?)"]);
}

/// A lease that starts takes several steps on each host, so their cost counts.
#[tokio::test]
async fn a_step_that_succeeds_writes_one_page() {
    let (store, _directory) = open().await;
    let log = store.path().with_extension("db-wal");
    let length = || std::fs::metadata(&log).expect("a log").len();
    let (before, holder) = (length(), Holder("me".into()));
    for number in 1..=10 {
        let claims = store.claim(&[Action::Fence(HostId(1))], &holder, at(number), at(number + 9)).await;
        let claim = claims.expect("works").remove(0);
        store.finish(&[Finished { claim, result: Ok(()) }], at(number)).await.expect("works");
    }
    let page_and_frame_header = 1024 + 24;
    assert_eq!(length() - before, 10 * page_and_frame_header);
}

/// A service that was killed doesn't wait for itself.
#[tokio::test]
async fn claims_end_with_the_process_and_fences_go_on() {
    let (store, _directory) = open().await;
    let (path, action) = (store.path().to_owned(), [Action::Fence(HostId(1))]);
    let first = store.claim(&action, &Holder("me".into()), at(1), at(9)).await.expect("works").remove(0);
    drop(store);
    let store = SqliteStore::open(&path).await.expect("it can be opened");
    let second = store.claim(&action, &Holder("other".into()), at(2), at(9)).await.expect("works").remove(0);
    assert!(second.fence > first.fence);
}

#[tokio::test]
async fn what_makes_no_sense_is_an_error_and_no_panic() {
    let (store, _directory) = open().await;
    store.commit(&commit(add_hosts([1]))).await.expect("accepted");
    store.commit(&commit([add(&lease(1, window(0, 9), vec![hosts(&[1])]))])).await.expect("accepted");
    by_hand(&store, "UPDATE reservation SET terms = '{}'").await.expect("works");
    let error = store.load().await.expect_err("no terms");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_does_not_wait_for_who_writes() {
    let (store, _directory) = open().await;
    let store = Arc::new(store);
    let writer = store.writer.lock().await;
    assert!(store.load().await.expect("works").leases.is_empty());
    drop(writer);
    let holder = Holder("me".into());
    store.release_claims(&holder, &[]).await.expect("works");
}

#[tokio::test]
async fn who_is_too_far_behind_loads_everything() {
    let (store, _directory) = open().await;
    let first = store.load().await.expect("works").revision;
    let second = store.commit(&commit(add_hosts([1]))).await.expect("accepted").to;
    by_hand(&store, "DELETE FROM change WHERE number = 0").await.expect("works");
    assert!(matches!(store.changes_since(first).await.expect("works"), Changes::Reload));
    assert!(matches!(store.changes_since(second).await.expect("works"), Changes::Delta(_)));
}

#[tokio::test]
async fn a_later_schema_is_refused_only_if_it_says_so() {
    let (store, _directory) = open().await;
    let later = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (9999, 'later', 1, x'', 0)";
    by_hand(&store, later).await.expect("works");
    let path = store.path().to_owned();
    drop(store);
    let store = SqliteStore::open(&path).await.expect("it goes together");
    by_hand(&store, "UPDATE compatibility SET oldest = 9999").await.expect("works");
    drop(store);
    let error = SqliteStore::open(&path).await.expect_err("it does not go together").to_string();
    assert!(error.contains("allot.db") && error.contains("schema 9999 is needed"), "{error}");
}

/// Number of stored texts, and number of references to them.
async fn texts(store: &SqliteStore) -> (u64, u64) {
    let mut db = SqliteConnection::connect_with(&store.options).await.expect("it can be opened");
    let counts: (i64, i64) =
        sqlx::query_as("SELECT (SELECT count(*) FROM long_text), (SELECT count(*) FROM lease_text)")
            .fetch_one(&mut db)
            .await
            .expect("works");
    (counts.0.cast_unsigned(), counts.1.cast_unsigned())
}

#[tokio::test]
async fn long_text_is_stored_once() {
    let (store, _directory) = open().await;
    let store = Arc::new(store);
    let shared: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
    store::conformance::long_text_is_stored_once(&shared, async || texts(&store).await).await;
}

#[tokio::test]
async fn long_text_in_rows_is_read_and_moves() {
    let (store, _directory) = open().await;
    let store = Arc::new(store);
    let shared: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
    let inline = async |text: &str| {
        let mut db = SqliteConnection::connect_with(&store.options).await.expect("it can be opened");
        for change in ["UPDATE lease SET name = ?", "UPDATE reservation SET resource_properties = ?"] {
            sqlx::query(change).bind(text).execute(&mut db).await.expect("works");
        }
    };
    store::conformance::long_text_in_rows_is_read_and_moves(&shared, inline, async || texts(&store).await)
        .await;
}

#[tokio::test]
async fn a_status_change_writes_no_text() {
    let (store, _directory) = open().await;
    let store = Arc::new(store);
    let shared: Arc<dyn Store> = Arc::<SqliteStore>::clone(&store);
    let sizes = async || {
        let mut db = SqliteConnection::connect_with(&store.options).await.expect("it can be opened");
        let mut of = async |table: &str| {
            let columns = "SELECT group_concat('coalesce(length(CAST(' || name || ' AS BLOB)), 0)', ' + ')
                           FROM pragma_table_info(?)";
            let columns: String =
                sqlx::query_scalar(columns).bind(table).fetch_one(&mut db).await.expect("works");
            let size = sqlx::AssertSqlSafe(format!("SELECT max({columns}) FROM {table}"));
            let size: i64 = sqlx::query_scalar(size).fetch_one(&mut db).await.expect("works");
            size.cast_unsigned()
        };
        (of("lease").await, of("reservation").await)
    };
    let forbid = async || {
        for event in ["INSERT", "UPDATE", "DELETE"] {
            for table in ["long_text", "lease_text"] {
                let trigger = format!(
                    "CREATE TRIGGER forbid_{event}_{table} BEFORE {event} ON {table}
                     BEGIN SELECT RAISE(ABORT, 'it is written'); END"
                );
                let mut db = SqliteConnection::connect_with(&store.options).await.expect("it can be opened");
                sqlx::query(sqlx::AssertSqlSafe(trigger)).execute(&mut db).await.expect("works");
            }
        }
    };
    store::conformance::a_status_change_writes_no_text(&shared, sizes, forbid).await;
}

/// Fills the file, deletes everything part by part, and returns unused pages.
async fn fill_and_forget(store: &SqliteStore) {
    let many = |minute| {
        let audit = (0..2000)
            .map(|number| store::AuditRecord { at: at(minute), ..audit(&format!("{number:0>200}")) });
        Commit { audit: audit.collect(), ..Commit::new(at(minute)) }
    };
    for minute in 0..4 {
        store.commit(&many(minute)).await.expect("accepted");
    }
    while store.prune(at(9), at(9), 1000).await.expect("works") {}
    while store.reclaim().await.expect("works") {}
}

#[tokio::test]
async fn a_file_gets_smaller_when_records_are_forgotten() {
    let (store, _directory) = open().await;
    let empty = store.sizes().await.expect("works");
    fill_and_forget(&store).await;
    let after = store.sizes().await.expect("works");
    assert_eq!((after.free_bytes, after.records["audit"]), (0, 0));
    assert!(after.bytes < empty.bytes + 100_000, "{empty:?} {after:?}");
}

/// The file is like one from before files returned pages.
#[tokio::test]
async fn an_older_file_fills_what_is_free_again() {
    let (store, _directory) = open().await;
    let path = store.path().to_owned();
    store.close().await.expect("closed");
    drop(store);
    let url = format!("sqlite://{}", path.display());
    let mut db = SqliteConnection::connect(&url).await.expect("it can be opened");
    sqlx::raw_sql("PRAGMA auto_vacuum = NONE; VACUUM").execute(&mut db).await.expect("rewritten");
    db.close().await.expect("closed");
    let store = SqliteStore::open(&path).await.expect("it can be opened");
    fill_and_forget(&store).await;
    let once = store.sizes().await.expect("works");
    assert!(once.free_bytes > 1_000_000, "{once:?}");
    fill_and_forget(&store).await;
    let twice = store.sizes().await.expect("works");
    assert!(twice.bytes < once.bytes + 100_000, "{once:?} {twice:?}");
}
