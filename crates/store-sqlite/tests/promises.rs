//! The store in a file keeps all promises, even after it was closed, or dropped without being closed.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use store::Store;
use store_sqlite::{OpenError, SqliteStore};
use tempfile::TempDir;

async fn open(directory: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(directory.join("allot.db")).await.expect("it can be opened"))
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

macro_rules! tests {
    ($($promise:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread")]
        async fn $promise() {
            let directory = directory();
            let store: Arc<dyn Store> = open(directory.path()).await;
            store::conformance::$promise(&store).await;
        }
    )* };
}
store::promises!(tests);

#[tokio::test]
async fn what_was_committed_survives_the_end_of_the_process() {
    let directory = directory();
    let store: Arc<dyn Store> = open(directory.path()).await;
    let reopen = async |store: Arc<dyn Store>| -> Arc<dyn Store> {
        drop(store);
        let store: Arc<dyn Store> = open(directory.path()).await;
        store
    };
    store::conformance::what_was_committed_survives(store, reopen).await;
}

/// The files contain all leases and the keys that sign tokens. With the umask of most machines, every user
/// could read new files.
#[tokio::test]
async fn only_their_owner_can_read_what_is_made() {
    let directory = directory();
    let store = open(directory.path()).await;
    store.check().await.expect("works");
    let copy = directory.path().join("copy.db");
    store_sqlite::backup(store.path(), &copy).await.expect("it can be copied");
    let files: Vec<_> =
        fs::read_dir(directory.path()).expect("there").map(|file| file.expect("there")).collect();
    let mut names: Vec<_> = files.iter().map(|file| file.file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    assert_eq!(names, ["allot.db", "allot.db-shm", "allot.db-wal", "allot.db.lock", "copy.db"]);
    for file in files {
        let mode = file.metadata().expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?} has {mode:o}", file.file_name());
    }
}

#[tokio::test]
async fn a_closed_store_says_so_and_can_be_opened_again() {
    let directory = directory();
    let store = open(directory.path()).await;
    store.close().await.expect("works");
    store.close().await.expect("closing twice is closing once");
    assert!(store.check().await.is_err() && store.load().await.is_err());
    drop(store);
    open(directory.path()).await.check().await.expect("works");
}

#[tokio::test]
async fn two_services_cannot_open_one_file() {
    let directory = directory();
    let first = open(directory.path()).await;
    let second = SqliteStore::open(first.path()).await.expect_err("it is in use");
    assert!(matches!(second, OpenError::InUse(_)), "{second}");
    drop(first);
    open(directory.path()).await.check().await.expect("works");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let directory = directory();
    let path = directory.path().join("notes.txt");
    let text =
        "not a database, but long enough to have a header of its own, which is what is looked at first.";
    std::fs::write(&path, text).expect("written");
    let error = SqliteStore::open(&path).await.expect_err("no database").to_string();
    assert!(error.contains("notes.txt"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
}

#[tokio::test]
async fn a_directory_that_does_not_exist_is_named() {
    let directory = directory();
    let error = SqliteStore::open(directory.path().join("missing/allot.db")).await.expect_err("no directory");
    assert!(error.to_string().contains("missing"), "{error}");
}
