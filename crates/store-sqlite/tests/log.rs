//! A write-ahead log that another program truncates or overwrites suspends the service, and SQLite's own checkpoints don't.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sqlx::{Connection as _, SqliteConnection};
use store::conformance::sample::{add, add_hosts, commit, hosts, lease, window};
use store::{Store, StoreError};
use store_sqlite::{SqliteStore, backup};

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

async fn opened(directory: &Path) -> SqliteStore {
    let store = SqliteStore::open(directory.join("allot.db")).await.expect("opens");
    store.commit(&commit(add_hosts([1, 2]))).await.expect("accepted");
    let added = store.commit(&commit([add(&lease(1, window(0, 60), vec![hosts(&[1, 2])]))])).await;
    added.expect("accepted");
    store
}

fn says_so(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(why) if why.contains("-wal was truncated or overwritten"))
}

/// Damages a log, given its length.
type Damage = fn(&File, u64);

#[tokio::test]
async fn nothing_is_acknowledged_after_the_log_was_damaged() {
    let damages: [(&str, Damage); 6] = [
        ("to nothing", |log, _| log.set_len(0).expect("truncated")),
        ("to its header", |log, _| log.set_len(32).expect("truncated")),
        ("to half", |log, length| log.set_len(length / 2).expect("truncated")),
        ("by the last page", |log, length| log.set_len(length - 1024 - 24).expect("truncated")),
        ("and filled with zeros", |log, length| {
            log.set_len(0).and_then(|()| log.set_len(length)).expect("truncated");
        }),
        ("by an old log", |log, _| log.write_all_at(&[7; 16], 16).expect("written")),
    ];
    for (how, damage) in damages {
        let directory = tempfile::tempdir().expect("a directory");
        let store = opened(directory.path()).await;
        let (path, log) = (store.path().to_owned(), beside(store.path(), "-wal"));
        let whole = fs::read(&log).expect("read");
        damage(&File::options().write(true).open(&log).expect("opened"), whole.len() as u64);
        let error = store.check().await.expect_err(how);
        assert!(says_so(&error), "{how}: {error}");
        assert!(store.commit(&commit(add_hosts([3]))).await.is_err(), "{how}");
        assert!(store.take_fence().await.is_err() && store.reclaim().await.is_err(), "{how}");
        // Closing keeps the rest of the log out of the database.
        let before = fs::read(&path).expect("read");
        assert!(says_so(&store.close().await.expect_err(how)), "{how}");
        drop(store);
        assert!(fs::read(&path).expect("read") == before, "{how}");
        assert!(beside(&path, "-wal").exists(), "{how}");
    }
}

#[tokio::test]
async fn a_log_that_is_brought_back_ends_the_suspension() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = opened(directory.path()).await;
    let log = beside(store.path(), "-wal");
    let whole = fs::read(&log).expect("read");
    fs::write(&log, "").expect("truncated");
    assert!(says_so(&store.check().await.expect_err("truncated")));
    fs::write(&log, whole).expect("written");
    store.commit(&commit(add_hosts([3]))).await.expect("accepted");
    assert_eq!(store.load().await.expect("loads").hosts.len(), 3);
}

/// Length of the log to which it is truncated.
const LIMIT: u64 = 16 << 20;

/// Commits that lengthen the log by this much, without a lasting change.
async fn lengthen(db: &mut SqliteConnection, mebibytes: u64) {
    for statement in [
        "PRAGMA wal_autocheckpoint = 0".to_owned(),
        "CREATE TABLE long (bytes BLOB)".to_owned(),
        format!("INSERT INTO long VALUES (zeroblob({}))", mebibytes << 20),
        "DROP TABLE long".to_owned(),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut *db).await.expect("works");
    }
}

fn length(log: &Path) -> u64 {
    fs::metadata(log).expect("there").len()
}

#[tokio::test]
async fn a_log_that_became_long_is_truncated() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = opened(directory.path()).await;
    let (url, log) = (format!("sqlite://{}", store.path().display()), beside(store.path(), "-wal"));
    let mut other = SqliteConnection::connect(&url).await.expect("opens");
    lengthen(&mut other, 20).await;
    assert!(length(&log) > LIMIT);
    for number in 1..=2 {
        store.set_delivered("listener", number).await.expect("written");
    }
    assert!(length(&log) <= LIMIT, "{} bytes", length(&log));
    store.check().await.expect("no damage");
}

/// Each reader starts before a commit and ends after it, so that SQLite alone never restarts the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_is_restarted_between_readers() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(opened(directory.path()).await);
    let (url, log) = (format!("sqlite://{}", store.path().display()), beside(store.path(), "-wal"));
    let mut other = SqliteConnection::connect(&url).await.expect("opens");
    let mut reader = SqliteConnection::connect(&url).await.expect("opens");
    for number in 1..=20 {
        let mut reading = reader.begin().await.expect("begins");
        sqlx::query("SELECT writes FROM probe").fetch_all(&mut *reading).await.expect("read");
        if number == 1 {
            lengthen(&mut other, 33).await;
        } else {
            lengthen(&mut other, 9).await;
        }
        let writer = store.clone();
        let writing = tokio::spawn(async move { writer.set_delivered("listener", number).await });
        while store.delivered("listener").await.expect("read") < number {
            tokio::task::yield_now().await;
        }
        reading.rollback().await.expect("ends");
        writing.await.expect("no panic").expect("written");
        // Another reader overlaps this commit.
        let mut next = SqliteConnection::connect(&url).await.expect("opens");
        let mut reading = next.begin().await.expect("begins");
        sqlx::query("SELECT writes FROM probe").fetch_all(&mut *reading).await.expect("read");
        store.check().await.expect("no damage");
        if length(&log) <= LIMIT {
            return;
        }
        reading.rollback().await.expect("ends");
        reader = next;
    }
    panic!("{} bytes", length(&log));
}

#[tokio::test(flavor = "multi_thread")]
async fn checkpoints_backups_and_other_writers_are_no_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(opened(directory.path()).await);
    let url = format!("sqlite://{}", store.path().display());
    let mut other = SqliteConnection::connect(&url).await.expect("opens");
    let statements = [
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "VACUUM",
        "PRAGMA journal_size_limit = 0",
        "UPDATE probe SET writes = writes + 1",
    ];
    for round in 0..300_u64 {
        store.set_delivered("listener", round).await.expect("written");
        let statement = statements[usize::try_from(round).expect("small") % statements.len()];
        if round % 5 == 0 {
            sqlx::query(statement).fetch_all(&mut other).await.expect(statement);
        }
        if round % 7 == 0 {
            // The caller stops waiting for this write.
            let abandoned = store.clone();
            let task = tokio::spawn(async move { abandoned.take_fence().await });
            tokio::task::yield_now().await;
            task.abort();
        }
        if round % 11 == 0 {
            // This commit is rejected and rolled back.
            assert!(store.commit(&commit(add_hosts([1]))).await.is_err());
        }
        if round % 100 == 0 {
            backup(store.path(), &directory.path().join(format!("{round}.db"))).await.expect("copied");
            store.reclaim().await.expect("works");
        }
        store.check().await.expect("no damage");
    }
    let leases = (10..400).map(|number| add(&lease(number, window(0, 60), vec![]))).collect::<Vec<_>>();
    store.commit(&commit(leases)).await.expect("a commit that is longer than all before");
    store.check().await.expect("no damage");
    store.close().await.expect("closes");
}
