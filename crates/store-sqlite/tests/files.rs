//! Files of a database: complete when a command ends, private, under one name, and noticed when they
//! disappear.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sqlx::migrate::Migrator;
use sqlx::{Connection as _, SqliteConnection};
use store::conformance::sample::{add, add_hosts, commit, hosts, lease, window};
use store::{Store, StoreError};
use store_sqlite::{BackupError, OpenError, SqliteStore, Staged, backup, migrate, open_to_others};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("UTF-8");
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

/// Suffixes of the files that a killed command leaves.
const LEFT: [&str; 3] =
    [".partial-0123456789abcdef", ".partial-0123456789abcdef-wal", ".partial-0123456789abcdef-journal"];

async fn fill(store: &SqliteStore) {
    store.commit(&commit(add_hosts([1, 2]))).await.expect("accepted");
    let added = store.commit(&commit([add(&lease(1, window(0, 60), vec![hosts(&[1, 2])]))])).await;
    added.expect("accepted");
}

/// Moves the database file alone to another directory, and returns its number of leases.
async fn leases_alone(path: &Path) -> usize {
    let away = directory();
    let moved = away.path().join("moved.db");
    fs::rename(path, &moved).expect("moved");
    let store = SqliteStore::open(&moved).await.expect("opens");
    store.load().await.expect("loads").leases.len()
}

#[tokio::test]
async fn a_new_database_takes_its_place_complete_and_not_before() {
    let directory = directory();
    let path = directory.path().join("new.db");
    for end in LEFT {
        fs::write(beside(&path, end), "of a command that was killed").expect("written");
    }
    let staged = Staged::new(&path).await.expect("begins");
    fill(staged.store()).await;
    assert!(!path.exists(), "it is not complete");
    let other = Staged::new(&path).await.expect_err("one at a time");
    assert!(matches!(other, OpenError::InUse(_)), "{other}");
    staged.put_in_place().await.expect("works");
    assert_eq!(names(directory.path()), ["new.db", "new.db.lock"]);
    assert_eq!(leases_alone(&path).await, 1);
    drop(Staged::new(&path).await.expect("begins"));
    assert_eq!(names(directory.path()), ["new.db.lock"], "nothing is left of one that is given up");
}

#[tokio::test]
async fn a_copy_is_complete_and_leaves_nothing_beside_what_was_copied() {
    let directory = directory();
    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await.expect("opens");
    fill(&store).await;
    let copy = directory.path().join("copy.db");
    let copied = backup(&path, &copy).await.expect("copied, while it is open");
    let bytes = fs::metadata(&copy).expect("there").len();
    assert_eq!((copied.leases, copied.bytes), (1, bytes));
    assert_eq!(leases_alone(&copy).await, 1);
    store.close().await.expect("closes");
    drop(store);
    for end in LEFT {
        fs::write(beside(&copy, end), "of a command that was killed").expect("written");
    }
    backup(&path, &copy).await.expect("copied, while it is closed");
    assert_eq!(names(directory.path()), ["allot.db", "allot.db.lock", "copy.db"]);
    assert_eq!(leases_alone(&copy).await, 1);
    // SQLite would take it for the copy's journal.
    fs::write(beside(&copy, "-wal"), "of another database").expect("written");
    let error = backup(&path, &copy).await.expect_err("a journal is there");
    assert!(matches!(error, BackupError::Exists(_)), "{error}");
}

#[tokio::test]
async fn an_old_schema_is_brought_up_to_date_in_a_copy() {
    let directory = directory();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let some = directory.path().join("migrations");
    fs::create_dir(&some).expect("made");
    for name in names(&all).into_iter().filter(|name| name.as_str() < "0012") {
        fs::copy(all.join(&name), some.join(&name)).expect("copied");
    }
    let path = directory.path().join("old.db");
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let mut old = SqliteConnection::connect(&url).await.expect("made");
    sqlx::query("PRAGMA journal_mode = WAL").execute(&mut old).await.expect("works");
    let migrations = Migrator::new(some.as_path()).await.expect("read");
    migrations.run(&mut old).await.expect("works");
    fs::remove_dir_all(&some).expect("removed");
    // The file is as a killed process leaves it: the schema is in the log.
    let (open, killed) = (path, directory.path().join("killed.db"));
    for end in ["", "-wal"] {
        fs::copy(beside(&open, end), beside(&killed, end)).expect("copied");
    }
    old.close().await.expect("closed");
    fs::remove_file(&open).expect("removed");
    let path = killed;
    let before = fs::metadata(&path).expect("there").ino();
    migrate(&path).await.expect("works");
    assert_ne!(fs::metadata(&path).expect("there").ino(), before, "the old file was replaced");
    assert_eq!(names(directory.path()), ["killed.db", "killed.db.lock"]);
    let (path_of_new, inode) = (directory.path().join("new.db"), fs::metadata(&path).expect("there").ino());
    migrate(&path).await.expect("works");
    assert_eq!(fs::metadata(&path).expect("there").ino(), inode, "there was nothing to do");
    migrate(&path_of_new).await.expect("makes one");
    assert_eq!(names(directory.path()), ["killed.db", "killed.db.lock", "new.db", "new.db.lock"]);
    assert_eq!(leases_alone(&path).await, 0);
}

#[tokio::test]
async fn no_command_removes_files_of_other_programs() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let foreign = [".partial", ".partial-wal", ".partial-shm", ".partial-journal"];
    let foreign = ["allot.db", "copy.db"].map(|name| foreign.map(|end| beside(&at(name), end))).concat();
    for path in &foreign {
        fs::write(path, "of another program").expect("written");
    }
    migrate(&at("allot.db")).await.expect("made");
    backup(&at("allot.db"), &at("copy.db")).await.expect("copied");
    Staged::new(&at("allot.db")).await.expect("begins").put_in_place().await.expect("works");
    for path in &foreign {
        let text = fs::read_to_string(path).expect("there");
        assert_eq!(text, "of another program", "{}", path.display());
    }
    assert_eq!(names(directory.path()).len(), foreign.len() + 3);
}

#[tokio::test]
async fn a_backup_replaces_no_file_that_is_made_meanwhile() {
    let directory = directory();
    let (path, copy) = (directory.path().join("allot.db"), directory.path().join("copy.db"));
    migrate(&path).await.expect("made");
    let (one, other) = tokio::join!(backup(&path, &copy), backup(&path, &copy));
    let error = one.and(other).expect_err("one at a time");
    assert!(matches!(error, BackupError::Exists(_)), "{error}");
    assert_eq!(names(directory.path()), ["allot.db", "allot.db.lock", "copy.db"]);
}

#[tokio::test]
async fn files_are_private_from_the_start_and_others_are_named() {
    let directory = directory();
    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await.expect("opens");
    fill(&store).await;
    backup(&path, &directory.path().join("copy.db")).await.expect("copied");
    let files = names(directory.path());
    assert_eq!(files, ["allot.db", "allot.db-shm", "allot.db-wal", "allot.db.lock", "copy.db"]);
    for name in files {
        let mode = fs::metadata(directory.path().join(&name)).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    assert_eq!(open_to_others(&path), []);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
    assert_eq!(open_to_others(&path), [(path.canonicalize().expect("there"), 0o640)]);
}

#[tokio::test]
async fn a_database_has_one_lock_whatever_it_is_called() {
    let directory = directory();
    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await.expect("opens");
    let link = directory.path().join("link.db");
    symlink("allot.db", &link).expect("linked");
    let error = SqliteStore::open(&link).await.expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    drop(store);
    let store = SqliteStore::open(&link).await.expect("opens");
    fill(&store).await;
    let error = SqliteStore::open(&path).await.expect_err("it is in use");
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
    drop(store);
    fs::hard_link(&path, directory.path().join("hard.db")).expect("linked");
    for name in [&path, &link, &directory.path().join("hard.db")] {
        let error = SqliteStore::open(name).await.expect_err("it has two names");
        assert!(matches!(error, OpenError::Linked { links: 2, .. }), "{error}");
    }
    symlink("nowhere.db", directory.path().join("dangling.db")).expect("linked");
    let error = SqliteStore::open(directory.path().join("dangling.db")).await.expect_err("nothing there");
    assert!(matches!(error, OpenError::Dangling(_)), "{error}");
}

#[tokio::test]
async fn a_log_without_its_database_is_not_thrown_away() {
    let directory = directory();
    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await.expect("opens");
    fill(&store).await;
    let copy = directory.path().join("killed.db");
    // This happens when the service is killed and the file is moved without its log.
    fs::copy(beside(&path, "-wal"), beside(&copy, "-wal")).expect("copied");
    let error = SqliteStore::open(&copy).await.expect_err("the file is missing");
    assert!(matches!(error, OpenError::JournalAlone { .. }), "{error}");
    assert!(migrate(&copy).await.is_err() && Staged::new(&copy).await.is_err());
    assert!(fs::metadata(beside(&copy, "-wal")).expect("still there").len() > 0 && !copy.exists());
}

#[tokio::test]
async fn nothing_is_acknowledged_into_files_that_went_away() {
    for end in ["", "-wal", "-shm"] {
        for replaced in [false, true] {
            let directory = directory();
            let path = directory.path().join("allot.db");
            let store = SqliteStore::open(&path).await.expect("opens");
            fill(&store).await;
            let (file, away) = (beside(&path, end), directory.path().join("away"));
            fs::rename(&file, &away).expect("moved");
            if replaced {
                fs::copy(&away, &file).expect("copied");
            }
            let error = store.check().await.expect_err("it went away");
            assert!(
                matches!(&error, StoreError::Unavailable(why) if why.contains("since the service opened it"))
            );
            assert!(store.commit(&commit(add_hosts([3]))).await.is_err(), "{end} {replaced}");
            fs::rename(&away, &file).expect("moved back");
            store.check().await.expect("it is back");
            store.commit(&commit(add_hosts([3]))).await.expect("accepted");
        }
    }
}
