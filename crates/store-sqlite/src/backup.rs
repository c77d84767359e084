//! Consistent copies of the file, even while a service has it open.

use std::io;
use std::path::{Path, PathBuf};

use ambient::PartialFile;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use thiserror::Error;

use crate::connection::{BUSY_TIMEOUT, options};
use crate::file::{self, Lock};
use crate::open_error::OpenError;
use crate::view::{View, refuse_foreign};

/// Reason why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// An existing file isn't overwritten.
    #[error("{0} exists already: give the copy another name")]
    Exists(PathBuf),
    /// The database can't be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database can't be read, or the copy can't be written.
    #[error("cannot copy {database} to {copy}: {error}")]
    Copy {
        database: PathBuf,
        copy: PathBuf,
        #[source]
        error: sqlx::Error,
    },
    /// The copy fails SQLite's integrity check.
    #[error("the copy {copy} is damaged: {reason}")]
    Damaged {
        copy: PathBuf,
        /// Report of SQLite's integrity check.
        reason: String,
    },
    /// The copy can't be moved to its place.
    #[error("cannot write {copy}: {error}")]
    Write {
        copy: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// Content of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied {
    pub leases: u64,
    pub hosts: u64,
    /// Size of the file.
    pub bytes: u64,
}

/// Copies a database, even while a service has it open. The copy appears when it is complete, and only its
/// owner can read it.
pub async fn backup(database: &Path, copy: &Path) -> Result<Copied, BackupError> {
    if copy.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(copy.to_owned()));
    }
    let cannot_write = |error| BackupError::Write { copy: copy.to_owned(), error };
    if let Some(journal) = file::journal_of(copy) {
        // SQLite would take it for the copy's journal.
        return Err(BackupError::Exists(journal));
    }
    let cannot_copy =
        |error| BackupError::Copy { database: database.to_owned(), copy: copy.to_owned(), error };
    let database = file::resolve(database)?;
    if file::is_empty(&database)? {
        return Err(OpenError::Empty(database).into());
    }
    let lock = file::find_lock(&database)?;
    if !matches!(lock, Lock::Held) {
        refuse_foreign(&database).await?;
    }
    let partial = PartialFile::beside(copy).map_err(cannot_write)?;
    let written = match lock {
        Lock::Held => read(&database, partial.path()).await,
        Lock::Free(_) => write(&database, partial.path()).await,
        // Without a lock, writing isn't safe. Reading in place would make SQLite leave files in the
        // database's directory.
        Lock::Missing => copy_into(&mut View::unused(&database, None).await?.db, partial.path()).await,
    };
    written.map_err(cannot_copy)?;
    let said = check(partial.path()).await.unwrap_or_else(|error| error.to_string());
    if said != "ok" {
        return Err(BackupError::Damaged { copy: copy.to_owned(), reason: said });
    }
    let copied = count(partial.path()).await.map_err(cannot_copy)?;
    partial.put_new().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(copy.to_owned()),
        _ => cannot_write(error),
    })?;
    Ok(copied)
}

/// Copies a database that no other process uses.
pub(crate) async fn write(database: &Path, copy: &Path) -> Result<(), sqlx::Error> {
    copy_by(&options(database), copy).await
}

/// Copies a database through a read-only connection, while another process can have it open.
async fn read(database: &Path, copy: &Path) -> Result<(), sqlx::Error> {
    copy_by(&SqliteConnectOptions::new().filename(database).read_only(true).busy_timeout(BUSY_TIMEOUT), copy)
        .await
}

async fn copy_by(options: &SqliteConnectOptions, copy: &Path) -> Result<(), sqlx::Error> {
    let mut source = SqliteConnection::connect_with(options).await?;
    copy_into(&mut source, copy).await?;
    source.close().await
}

/// Copies the database as this connection sees it.
pub(crate) async fn copy_into(source: &mut SqliteConnection, copy: &Path) -> Result<(), sqlx::Error> {
    let copy = copy.to_str().ok_or_else(|| sqlx::Error::Configuration("its name is not UTF-8".into()))?;
    // SQLx has nothing to check in a statement without rows or tables.
    sqlx::query("VACUUM INTO ?").bind(copy).execute(source).await.map(drop)
}

async fn check(copy: &Path) -> Result<String, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true);
    let mut copy = SqliteConnection::connect_with(&options).await?;
    let said: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut copy).await?;
    copy.close().await?;
    Ok(said)
}

async fn count(copy: &Path) -> Result<Copied, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true);
    let mut db = SqliteConnection::connect_with(&options).await?;
    let leases: i64 = sqlx::query_scalar("SELECT count(*) FROM lease").fetch_one(&mut db).await?;
    let hosts: i64 = sqlx::query_scalar("SELECT count(*) FROM host").fetch_one(&mut db).await?;
    db.close().await?;
    let bytes = copy.metadata()?.len();
    Ok(Copied { leases: leases.unsigned_abs(), hosts: hosts.unsigned_abs(), bytes })
}
