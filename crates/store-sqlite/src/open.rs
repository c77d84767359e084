//! Opening a store.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnection, SqliteJournalMode, SqlitePoolOptions};
use store::Store as _;
use store::schema::Schema;
use tokio::sync::{self, watch};

use crate::connection::{migrations, options};
use crate::file::{self, Lock};
use crate::open_error::OpenError;
use crate::sqlite_store::SqliteStore;
use crate::view::refuse_foreign;

/// Maximum number of connections for reading.
const READERS: u32 = 4;

/// Number of rows that SQLite's thread can read ahead. Passing on one row at a time makes two threads wait
/// for each other, which takes much longer than reading.
const ROWS_AHEAD: usize = 4096;

/// Page size of a new file. A commit writes every page that it changes, and usually changes one row in each of a dozen
/// tables and indexes.
const PAGE_BYTES: u32 = 1024;

/// Number of pages in the log at which SQLite writes them back to the database: 8 MiB. A lease of 1,000
/// instances on different hosts changes half as many pages, so two such leases are written back together.
const LOG_PAGES: &str = "8192";

/// Length in bytes to which SQLite truncates the log when it starts again at its beginning, 16 MiB.
const LOG_BYTES: &str = "16777216";

/// Memory for pages of the writer, 16 MiB, so that a large commit needn't write changed pages early and read
/// them again. Negative values of `PRAGMA cache_size` are in KiB.
const WRITER_CACHE: &str = "-16384";

impl SqliteStore {
    /// Opens the store in a file, creating the file if it is missing, and locks it. The lock ends with the
    /// process, even if the process is killed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let real = file::resolve(path.as_ref())?;
        let lock = lock(&real).await?;
        file::make(&real)?;
        Self::open_locked(path.as_ref(), lock).await
    }

    /// Opens the store in an existing file, with a lock that is already held.
    pub(crate) async fn open_locked(path: &Path, lock: File) -> Result<Self, OpenError> {
        let options = options(path).create_if_missing(false).journal_mode(SqliteJournalMode::Wal);
        let reading = options.clone().read_only(true).row_buffer_size(ROWS_AHEAD);
        // An existing file keeps its page size and vacuum mode.
        let options = options.auto_vacuum(SqliteAutoVacuum::Incremental).page_size(PAGE_BYTES);
        let options = options.pragma("cache_size", WRITER_CACHE).pragma("wal_autocheckpoint", LOG_PAGES);
        let options = options.pragma("journal_size_limit", LOG_BYTES);
        let cannot_open = |error| OpenError::Open { path: path.to_owned(), error };
        let mut writer = SqliteConnection::connect_with(&options).await.map_err(cannot_open)?;
        let migrations = migrations();
        check_schema(&mut writer, path, &migrations).await?;
        let cannot_migrate = |error| OpenError::Migrate { path: path.to_owned(), error };
        migrations.run(&mut writer).await.map_err(cannot_migrate)?;
        let readers = SqlitePoolOptions::new().max_connections(READERS).connect_lazy_with(reading);
        let writer = sync::Mutex::new(Some(writer));
        let revision = watch::Sender::new(None);
        let store = Self {
            path: path.to_owned(),
            writer,
            options,
            readers,
            claims: Mutex::default(),
            revision,
            opened: OnceLock::new(),
            _lock: lock,
        };
        // The first write creates the journal.
        let unusable = |error| OpenError::File { path: path.to_owned(), error };
        let probed = store.check().await;
        probed.map_err(|error| unusable(io::Error::other(error)))?;
        let _ = store.opened.set(file::Opened::new(path).map_err(unusable)?);
        let confirmed = store.writer().await.confirm().await;
        confirmed.map_err(|error| unusable(io::Error::other(error)))?;
        Ok(store)
    }
}

/// Locks the path of a database, of an empty file, or of a file to create. Fails for a database of another
/// program without creating a lock for it.
pub(crate) async fn lock(database: &Path) -> Result<File, OpenError> {
    let found = match file::find_lock(database)? {
        Lock::Held => return Err(OpenError::InUse(database.to_owned())),
        Lock::Free(lock) => Some(lock),
        Lock::Missing => None,
    };
    refuse_foreign(database).await?;
    found.map_or_else(|| file::lock(database), Ok)
}

/// Rejects a schema that this version can't work with. Returns whether migrations are pending.
pub(crate) async fn check_schema(
    db: &mut SqliteConnection,
    path: &Path,
    migrations: &Migrator,
) -> Result<bool, OpenError> {
    let read = schema(db).await;
    let Some(schema) = read.map_err(|error| OpenError::Open { path: path.to_owned(), error })? else {
        return Ok(true);
    };
    let known = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    schema.check(known).map_err(|error| OpenError::Newer { path: path.to_owned(), error })?;
    Ok(schema.newest < known)
}

/// Schema of the file; `None` if it has no table `compatibility`, like a new file.
async fn schema(db: &mut SqliteConnection) -> Result<Option<Schema>, sqlx::Error> {
    let written = sqlx::query_scalar!(
        r#"SELECT count(*) AS "tables: i64" FROM sqlite_schema WHERE type = 'table' AND name = 'compatibility'"#
    );
    if written.fetch_one(&mut *db).await? == 0 {
        return Ok(None);
    }
    // Not checked at compile time, because the migrator creates this table.
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations");
    let newest: i64 = newest.fetch_one(&mut *db).await?;
    let oldest = sqlx::query_scalar!("SELECT oldest FROM compatibility").fetch_one(db).await?;
    Ok(Some(Schema { newest, oldest }))
}
