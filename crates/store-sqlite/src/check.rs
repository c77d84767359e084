//! Checking a database without changing it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ambient::{Purpose, TemporaryDirectory};
use leases::text::escaped;
use sqlx::Connection;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use store::archive::Archive;
use store::{Store, StoreError};
use thiserror::Error;

use crate::archive;
use crate::backup::{BackupError, copy_into};
use crate::connection::migrations;
use crate::file;
use crate::open::check_schema;
use crate::open_error::OpenError;
use crate::sqlite_store::SqliteStore;
use crate::view::{View, contents};

/// Maximum number of differences in an error.
const NAMED: usize = 10;

/// Reason why a database fails the check.
#[derive(Debug, Error)]
pub enum CheckError {
    /// The file can't be opened, or isn't a database of this program.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file can't be read.
    #[error("{path} is damaged: {reason}; restore a backup")]
    Damaged {
        path: PathBuf,
        /// Report of SQLite.
        reason: String,
    },
    /// Tables, indexes or triggers don't match the version of the file.
    #[error("{path} does not have schema {version} as this version of allot makes it: {differences}")]
    Schema {
        path: PathBuf,
        /// The newest migration of the file.
        version: i64,
        /// The first differences, by name.
        differences: String,
    },
    /// Only a later version knows the schema.
    #[error(
        "{path} has schema {found}, and this version of allot knows {known}: check it with a later version"
    )]
    Later {
        path: PathBuf,
        /// The newest migration of the file.
        found: i64,
        /// The newest migration of this version.
        known: i64,
    },
    /// The migrations don't run in memory.
    #[error("cannot make the schema to compare with: {0}")]
    Migrate(#[from] MigrateError),
    /// A database of an earlier version can't be copied.
    #[error("cannot read the old database from a temporary copy: {0}")]
    Copy(#[source] Box<BackupError>),
    /// There is no directory for such a copy.
    #[error("cannot make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
    /// A record is invalid.
    #[error("{path}: {error}")]
    Read {
        path: PathBuf,
        #[source]
        error: StoreError,
    },
}

/// A database that passed the check.
#[derive(Debug)]
pub struct Checked {
    pub archive: Archive,
    /// The newest migration of the file.
    pub found: i64,
    /// The newest migration of this version.
    pub known: i64,
}

/// Reads a whole database and compares its schema with the migrations that it went through. Neither changes
/// the database nor creates files in its directory. A service can have it open.
pub async fn check(path: &Path) -> Result<Checked, CheckError> {
    let path = &file::resolve(path)?;
    if file::is_empty(path)? {
        return Err(OpenError::Empty(path.to_owned()).into());
    }
    let damaged =
        |error: sqlx::Error| CheckError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let mut view = View::open(path).await?;
    // One transaction, so that all reads are consistent.
    let mut reading = view.db.begin().await.map_err(damaged)?;
    let found = contents(&mut reading).await;
    found.map_err(|error| OpenError::Open { path: path.to_owned(), error })?.require(path)?;
    // SQLx can't check pragmas at compile time.
    let integrity = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut *reading).await;
    let integrity: String = integrity.map_err(damaged)?;
    if integrity != "ok" {
        return Err(CheckError::Damaged { path: path.to_owned(), reason: escaped(&integrity) });
    }
    require_whole_pages(&mut reading, path).await?;
    let migrations = migrations();
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    check_schema(&mut reading, path, &migrations).await?;
    let found = compare_schema(&mut reading, path, &migrations, known).await?;
    let archive = if found == known {
        let read = archive::export(&mut reading).await;
        read.map_err(|error| CheckError::Read { path: path.to_owned(), error })?
    } else {
        reading.rollback().await.map_err(damaged)?;
        read_old(view, path).await?
    };
    Ok(Checked { archive, found, known })
}

/// Rejects a file with an incomplete last page, because SQLite reads zeros for the missing bytes. Accepts a
/// file with a journal, which could contain the rest of the page.
async fn require_whole_pages(db: &mut SqliteConnection, path: &Path) -> Result<(), CheckError> {
    let damaged = |reason: String| CheckError::Damaged { path: path.to_owned(), reason };
    // SQLx can't check pragmas at compile time.
    let page: i64 = sqlx::query_scalar("PRAGMA page_size")
        .fetch_one(db)
        .await
        .map_err(|error| damaged(error.to_string()))?;
    let length = fs::metadata(path).map_err(|error| damaged(error.to_string()))?.len();
    if file::journal_of(path).is_none() && !length.is_multiple_of(page.cast_unsigned()) {
        return Err(damaged(format!(
            "its last page is incomplete: it has {length} bytes, in pages of {page}"
        )));
    }
    Ok(())
}

/// Reads a database of an earlier version from a copy with the current schema.
async fn read_old(mut view: View, path: &Path) -> Result<Archive, CheckError> {
    let directory = TemporaryDirectory::new(Purpose::Database).map_err(CheckError::Temporary)?;
    let copy = directory.path().join("migrated.db");
    let copied = copy_into(&mut view.db, &copy).await;
    copied.map_err(|error| {
        let error = BackupError::Copy { database: path.to_owned(), copy: copy.clone(), error };
        CheckError::Copy(Box::new(error))
    })?;
    let read = async {
        let store = SqliteStore::open(&copy).await?;
        let archive = store.export().await.map_err(|error| CheckError::Read { path: path.to_owned(), error });
        store.close().await.map_err(|error| CheckError::Read { path: path.to_owned(), error })?;
        archive
    };
    read.await
}

/// Compares the schema with the result of running the same migrations in an empty database. Returns the
/// newest migration.
async fn compare_schema(
    db: &mut SqliteConnection,
    path: &Path,
    migrations: &Migrator,
    known: i64,
) -> Result<i64, CheckError> {
    let damaged =
        |error: sqlx::Error| CheckError::Damaged { path: path.to_owned(), reason: error.to_string() };
    let done = sqlx::query_as("SELECT version, success, checksum FROM _sqlx_migrations ORDER BY version");
    let done: Vec<(i64, bool, Vec<u8>)> = done.fetch_all(&mut *db).await.map_err(damaged)?;
    let found = done.last().map_or(0, |(version, ..)| *version);
    if found > known {
        return Err(CheckError::Later { path: path.to_owned(), found, known });
    }
    let passed: Vec<_> = migrations.iter().filter(|migration| migration.version <= found).cloned().collect();
    let mut differences = Vec::new();
    for migration in &passed {
        let version = migration.version;
        match done.iter().find(|(done, ..)| *done == version) {
            None => differences.push(format!("migration {version} is missing")),
            Some((_, true, checksum)) if **checksum == *migration.checksum => {}
            Some(_) => differences.push(format!("migration {version} is another one")),
        }
    }
    let mut model =
        SqliteConnection::connect_with(&SqliteConnectOptions::new().in_memory(true).foreign_keys(true))
            .await
            .map_err(damaged)?;
    Migrator::with_migrations(passed).run(&mut model).await?;
    let (wanted, actual) = (objects(&mut model).await.map_err(damaged)?, objects(db).await.map_err(damaged)?);
    differences.extend(differences_between(&wanted, &actual));
    if differences.is_empty() {
        return Ok(found);
    }
    let more = differences.len().saturating_sub(NAMED);
    differences.truncate(NAMED);
    if more > 0 {
        differences.push(format!("and {more} more"));
    }
    let differences = differences.join(", ");
    Err(CheckError::Schema { path: path.to_owned(), version: found, differences })
}

/// Objects of a schema: type and name, table and definition.
type Objects = BTreeMap<(String, String), (String, String)>;

async fn objects(db: &mut SqliteConnection) -> Result<Objects, sqlx::Error> {
    // Statistics of ANALYZE are SQLite's own.
    let rows = sqlx::query_as(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE substr(name, 1, 11) <> 'sqlite_stat'",
    );
    let rows: Vec<(String, String, String, String)> = rows.fetch_all(db).await?;
    Ok(rows.into_iter().map(|(kind, name, table, sql)| ((kind, name), (table, sql))).collect())
}

fn differences_between(wanted: &Objects, actual: &Objects) -> Vec<String> {
    let described =
        |how: &str, (kind, name): &(String, String)| format!("{how} {} {}", escaped(kind), escaped(name));
    let unknown = actual
        .keys()
        .filter(|object| !wanted.contains_key(object))
        .map(|object| described("unknown", object));
    let others = wanted.iter().filter_map(|(object, definition)| match actual.get(object) {
        None => Some(described("missing", object)),
        Some(found) if found != definition => Some(described("changed", object)),
        Some(_) => None,
    });
    unknown.chain(others).collect()
}
