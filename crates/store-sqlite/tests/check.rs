//! Checks change nothing, and no command changes files that aren't databases of this program.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use store::Store;
use store::conformance::sample::{add, add_hosts, commit, hosts, lease, window};
use store_sqlite::{BackupError, CheckError, OpenError, SqliteStore, Staged, backup, check, migrate};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn beside(path: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", path.display()))
}

/// Mode, inode, length, modification time in seconds and nanoseconds, and contents.
type File = (u32, u64, u64, i64, i64, Vec<u8>);

/// All visible properties of a directory's files.
fn seen(directory: &Path) -> BTreeMap<PathBuf, File> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = entries.map(|path| {
        let file = fs::symlink_metadata(&path).expect("there");
        let bytes = if file.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
        (path, (file.mode(), file.ino(), file.len(), file.mtime(), file.mtime_nsec(), bytes))
    });
    files.collect()
}

async fn filled(path: &Path) -> SqliteStore {
    let store = SqliteStore::open(path).await.expect("opens");
    store.commit(&commit(add_hosts([1, 2]))).await.expect("accepted");
    let added = store.commit(&commit([add(&lease(1, window(0, 60), vec![hosts(&[1, 2])]))])).await;
    added.expect("accepted");
    store
}

async fn execute(path: &Path, statements: &str) {
    let url = format!("sqlite://{}?mode=rwc", path.display());
    let mut db = SqliteConnection::connect(&url).await.expect("opens");
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut db).await.expect("works");
    db.close().await.expect("closes");
}

#[tokio::test]
async fn a_check_changes_nothing() {
    let directory = directory();
    let path = directory.path().join("allot.db");
    let store = filled(&path).await;
    let log_and_file = || {
        let mut files = seen(directory.path());
        // Memory that the service shares with its readers.
        assert!(files.remove(&beside(&path, "-shm")).is_some());
        files
    };
    let before = log_and_file();
    assert_eq!(check(&path).await.expect("in order, in use").archive.snapshot.leases.len(), 1);
    assert_eq!(log_and_file(), before);
    store.commit(&commit(add_hosts([3]))).await.expect("goes on");

    // Files as a killed service leaves them, with and without the index.
    for ends in [["", "-wal"].as_slice(), &["", "-wal", "-shm"], &["", "-wal", "-shm", ".lock"]] {
        let away = self::directory();
        let killed = away.path().join("killed.db");
        for end in ends {
            fs::copy(beside(&path, end), beside(&killed, end)).expect("copied");
        }
        let before = seen(away.path());
        let checked = check(&killed).await.expect("in order");
        assert_eq!((checked.archive.snapshot.hosts.len(), checked.found), (3, checked.known), "{ends:?}");
        assert_eq!(seen(away.path()), before, "{ends:?}");
    }

    store.close().await.expect("closes");
    drop(store);
    let alone = directory.path().join("alone.db");
    fs::copy(&path, &alone).expect("copied");
    let before = seen(directory.path());
    for path in [&path, &alone] {
        assert_eq!(check(path).await.expect("in order").archive.snapshot.leases.len(), 1);
    }
    assert_eq!(seen(directory.path()), before);
}

#[tokio::test]
async fn a_schema_of_an_earlier_version_is_named() {
    let directory = directory();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let some = self::directory();
    for entry in fs::read_dir(&all).expect("a directory") {
        let name = entry.expect("an entry").file_name();
        if name.to_str().is_some_and(|name| name < "0012") {
            fs::copy(all.join(&name), some.path().join(&name)).expect("copied");
        }
    }
    let path = directory.path().join("old.db");
    let mut old =
        SqliteConnection::connect(&format!("sqlite://{}?mode=rwc", path.display())).await.expect("made");
    Migrator::new(some.path()).await.expect("read").run(&mut old).await.expect("works");
    old.close().await.expect("closed");
    let before = seen(directory.path());
    let checked = check(&path).await.expect("in order");
    assert_eq!(checked.found, 11);
    assert!(checked.known > 11 && checked.archive.is_empty());
    execute(&path, "DROP INDEX usage_span_ends").await;
    let error = check(&path).await.expect_err("an index is missing");
    assert!(
        matches!(&error, CheckError::Schema { version: 11, differences, .. } if differences == "missing index usage_span_ends"),
        "{error}"
    );
    assert_eq!(seen(directory.path()).len(), before.len());
}

#[tokio::test]
async fn a_schema_with_other_objects_is_refused_and_they_are_named() {
    for (change, says) in [
        ("CREATE TRIGGER evil AFTER INSERT ON lease BEGIN DELETE FROM lease; END", "unknown trigger evil"),
        ("CREATE TABLE more (x)", "unknown table more"),
        ("CREATE VIEW \"a\u{1b}[31m\" AS SELECT 1", "unknown view a\\u{1b}[31m"),
        ("DROP TRIGGER host_in_use", "missing trigger host_in_use"),
        ("DROP INDEX host_allocation_kept", "missing index host_allocation_kept"),
        ("DROP TABLE audit", "missing table audit"),
        ("ALTER TABLE audit ADD COLUMN more TEXT", "changed table audit"),
        (
            "DROP TRIGGER host_in_use; CREATE TRIGGER host_in_use BEFORE DELETE ON host BEGIN SELECT 1; END",
            "changed trigger host_in_use",
        ),
        ("DELETE FROM _sqlx_migrations WHERE version = 3", "migration 3 is missing"),
        ("UPDATE _sqlx_migrations SET checksum = x'00' WHERE version = 3", "migration 3 is another one"),
    ] {
        let directory = directory();
        let path = directory.path().join("allot.db");
        migrate(&path).await.expect("made");
        check(&path).await.expect("in order");
        execute(&path, change).await;
        let error = check(&path).await.expect_err(change);
        assert!(
            matches!(&error, CheckError::Schema { differences, .. } if differences.starts_with(says)),
            "{error}"
        );
    }
    let directory = directory();
    let path = directory.path().join("allot.db");
    migrate(&path).await.expect("made");
    execute(&path, "ANALYZE").await;
    check(&path).await.expect("statistics are SQLite's own");
}

/// Errors of every command that takes a database, for that path.
async fn refusals(path: &Path) -> Vec<OpenError> {
    let checked = match check(path).await.expect_err("refused") {
        CheckError::Open(error) => error,
        error => panic!("{error}"),
    };
    let copied = match backup(path, &beside(path, ".copy")).await.expect_err("refused") {
        BackupError::Open(error) => error,
        error => panic!("{error}"),
    };
    let migrated = match migrate(path).await.expect_err("refused") {
        BackupError::Open(error) => error,
        error => panic!("{error}"),
    };
    let opened = SqliteStore::open(path).await.expect_err("refused");
    let staged = Staged::new(path).await.expect_err("refused");
    vec![checked, copied, migrated, opened, staged]
}

fn special_files(directory: &Path) -> Vec<PathBuf> {
    let at = |name: &str| directory.join(name);
    fs::create_dir(at("directory")).expect("made");
    let private = Mode::from_raw_mode(0o600);
    mknodat(CWD, at("pipe"), FileType::Fifo, private, 0).expect("made");
    drop(UnixListener::bind(at("socket")).expect("made"));
    let mut paths = vec![at("directory"), at("pipe"), at("socket")];
    // Only root can create devices.
    if mknodat(CWD, at("device"), FileType::CharacterDevice, private, makedev(1, 3)).is_ok() {
        paths.push(at("device"));
    }
    for path in paths.clone() {
        symlink(&path, beside(&path, ".link")).expect("linked");
        paths.push(beside(&path, ".link"));
    }
    paths
}

#[tokio::test]
async fn what_is_no_regular_file_is_left_alone() {
    let directory = directory();
    let paths = special_files(directory.path());
    let before = seen(directory.path());
    for path in &paths {
        for error in refusals(path).await {
            assert!(matches!(error, OpenError::NotRegular { .. }), "{}: {error}", path.display());
        }
        assert_eq!(seen(directory.path()), before, "{}", path.display());
    }
    let database = self::directory();
    let database = database.path().join("allot.db");
    migrate(&database).await.expect("made");
    for path in &paths {
        let error = backup(&database, path).await.expect_err("it is there");
        assert!(matches!(error, BackupError::Exists(_)), "{error}");
    }
    assert_eq!(seen(directory.path()), before);
}

#[tokio::test]
async fn special_files_in_the_place_of_ours_are_left_alone() {
    let others = directory();
    let mut paths = special_files(others.path());
    let text = others.path().join("text");
    fs::write(&text, "of another program").expect("written");
    let before = seen(others.path());
    paths.push(text);
    for target in &paths {
        let directory = directory();
        let path = directory.path().join("allot.db");
        symlink(target, beside(&path, ".lock")).expect("linked");
        for error in [
            SqliteStore::open(&path).await.expect_err("no lock"),
            Staged::new(&path).await.expect_err("no lock"),
        ] {
            assert!(matches!(error, OpenError::Lock { .. }), "{error}");
        }
        fs::remove_file(beside(&path, ".lock")).expect("removed");
        migrate(&path).await.expect("made");
        symlink(target, beside(&path, ".copy.partial")).expect("linked");
        backup(&path, &beside(&path, ".copy")).await.expect("copied");
        assert!(beside(&path, ".copy.partial").is_symlink());
    }
    assert_eq!(seen(others.path()), before);
}

#[tokio::test]
async fn files_of_other_programs_are_left_alone() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("text"), "root:x:0:0:root:/root:/bin/sh\n").expect("written");
    execute(&at("plain.db"), "CREATE TABLE places (x); INSERT INTO places VALUES (1)").await;
    execute(&at("wal.db"), "PRAGMA journal_mode = WAL; CREATE TABLE places (x)").await;
    execute(&at("migrated.db"), "CREATE TABLE places (x); CREATE TABLE _sqlx_migrations (version, success, checksum); INSERT INTO _sqlx_migrations VALUES (1, 1, x'00')").await;
    // The program was killed, so its tables are in the log.
    execute(&at("open.db"), "PRAGMA journal_mode = WAL").await;
    let url = format!("sqlite://{}", at("open.db").display());
    let mut open = SqliteConnection::connect(&url).await.expect("opens");
    sqlx::raw_sql("CREATE TABLE places (x)").execute(&mut open).await.expect("works");
    for end in ["", "-wal"] {
        fs::copy(beside(&at("open.db"), end), beside(&at("killed.db"), end)).expect("copied");
    }
    open.close().await.expect("closes");
    fs::remove_file(at("open.db")).expect("removed");
    let before = seen(directory.path());
    for name in ["plain.db", "wal.db", "migrated.db", "killed.db"] {
        for error in refusals(&at(name)).await {
            assert!(
                matches!(&error, OpenError::Foreign { tables, .. } if tables.contains("places")),
                "{name}: {error}"
            );
        }
    }
    assert!(check(&at("text")).await.is_err() && SqliteStore::open(at("text")).await.is_err());
    assert!(migrate(&at("text")).await.is_err() && Staged::new(&at("text")).await.is_err());
    assert!(backup(&at("text"), &at("copy")).await.is_err());
    assert_eq!(seen(directory.path()), before);
}

#[tokio::test]
async fn an_empty_file_is_no_database() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("nothing.db"), "").expect("written");
    execute(&at("tables.db"), "CREATE TABLE x (x); DROP TABLE x").await;
    let before = seen(directory.path());
    for name in ["nothing.db", "tables.db"] {
        let error = check(&at(name)).await.expect_err("empty");
        assert!(matches!(error, CheckError::Open(OpenError::Empty(_))), "{name}: {error}");
    }
    let error = backup(&at("nothing.db"), &at("copy.db")).await.expect_err("empty");
    assert!(matches!(error, BackupError::Open(OpenError::Empty(_))), "{error}");
    assert_eq!(seen(directory.path()), before);
}
