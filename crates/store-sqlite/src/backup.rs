//! A copy of the file as of one instant, made while a service goes on with it, or of one that nobody has open.

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

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// What is there is not overwritten.
    #[error("{0} exists already: give the copy another name")]
    Exists(PathBuf),
    /// The database cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database cannot be read, or the copy not be written.
    #[error("cannot copy {database} to {copy}: {error}")]
    Copy {
        /// The database.
        database: PathBuf,
        /// Where it was to be copied.
        copy: PathBuf,
        /// Why not.
        #[source]
        error: sqlx::Error,
    },
    /// The copy is not what was written.
    #[error("the copy {copy} is damaged: {reason}")]
    Damaged {
        /// The copy.
        copy: PathBuf,
        /// What SQLite says.
        reason: String,
    },
    /// The copy cannot be put in its place.
    #[error("cannot write {copy}: {error}")]
    Write {
        /// The copy.
        copy: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// Copies a database, whether a service has it open or not. The copy is there when it is complete, and not before; only
/// its owner can read it.
pub async fn backup(database: &Path, copy: &Path) -> Result<(), BackupError> {
    if copy.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(copy.to_owned()));
    }
    let cannot_write = |error| BackupError::Write { copy: copy.to_owned(), error };
    if let Some(journal) = file::journal_of(copy) {
        // It would be taken for that of the copy.
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
        // Without a lock, writing isn't safe. Reading in place would make SQLite leave files beside the database.
        Lock::Missing => copy_into(&mut View::unused(&database, None).await?.db, partial.path()).await,
    };
    written.map_err(cannot_copy)?;
    let said = check(partial.path()).await.unwrap_or_else(|error| error.to_string());
    if said != "ok" {
        return Err(BackupError::Damaged { copy: copy.to_owned(), reason: said });
    }
    partial.put_new().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists(copy.to_owned()),
        _ => cannot_write(error),
    })
}

/// Copies a database that nobody else has.
pub(crate) async fn write(database: &Path, copy: &Path) -> Result<(), sqlx::Error> {
    copy_by(&options(database), copy).await
}

/// Copies a database that a service may have.
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
    // A statement without rows or tables: nothing in it for the compiler to look at.
    sqlx::query("VACUUM INTO ?").bind(copy).execute(source).await.map(drop)
}

async fn check(copy: &Path) -> Result<String, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true);
    let mut copy = SqliteConnection::connect_with(&options).await?;
    let said: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut copy).await?;
    copy.close().await?;
    Ok(said)
}
