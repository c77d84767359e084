//! A copy of the file as of one instant, made while a service goes on with it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use thiserror::Error;

use crate::open::{BUSY_TIMEOUT, private};

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum BackupError {
    /// What is there is not overwritten.
    #[error("{0} exists already: give the copy another name")]
    Exists(PathBuf),
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

/// Copies a database, whether a service has it open or not. The copy is there when it is whole, and not before; only its
/// owner can read it.
pub async fn backup(database: &Path, copy: &Path) -> Result<(), BackupError> {
    if copy.exists() {
        return Err(BackupError::Exists(copy.to_owned()));
    }
    let partial = partial(copy);
    let cannot_write = |error| BackupError::Write { copy: copy.to_owned(), error };
    match fs::remove_file(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(cannot_write(error)),
        _ => {}
    }
    // SQLite takes an empty file, and would make one that others can read.
    private().open(&partial).map_err(cannot_write)?;
    let copied = write(database, &partial).await;
    copied.map_err(|error| BackupError::Copy {
        database: database.to_owned(),
        copy: copy.to_owned(),
        error,
    })?;
    let said = check(&partial).await.unwrap_or_else(|error| error.to_string());
    if said != "ok" {
        return Err(BackupError::Damaged { copy: partial, reason: said });
    }
    let keep = || {
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, copy)
    };
    keep().map_err(cannot_write)
}

/// Where the copy is until it is whole.
fn partial(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
}

async fn write(database: &Path, copy: &Path) -> Result<(), sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(database).read_only(true).busy_timeout(BUSY_TIMEOUT);
    let mut source = SqliteConnection::connect_with(&options).await?;
    let copy = copy.to_str().ok_or_else(|| sqlx::Error::Configuration("its name is not UTF-8".into()))?;
    // A statement without rows or tables: nothing in it for the compiler to look at.
    sqlx::query("VACUUM INTO ?").bind(copy).execute(&mut source).await?;
    source.close().await
}

async fn check(copy: &Path) -> Result<String, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(copy).read_only(true);
    let mut copy = SqliteConnection::connect_with(&options).await?;
    let said: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut copy).await?;
    copy.close().await?;
    Ok(said)
}
