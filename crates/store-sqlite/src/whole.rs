//! Files that are complete when a command ends, without a journal, so each can be moved alone.

use std::io;
use std::path::{Path, PathBuf};

use ambient::PartialFile;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use store::StoreError;

use crate::backup::{self, BackupError};
use crate::connection::{migrations, options};
use crate::error::unavailable;
use crate::file;
use crate::open::{check_schema, lock};
use crate::open_error::OpenError;
use crate::sqlite_store::SqliteStore;

impl SqliteStore {
    /// Writes everything back into the file, so that it is complete without SQLite's other files, and closes
    /// the store for good.
    pub async fn close_whole(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        self.doubt();
        let Some(mut writer) = self.take_writer().await? else { return Ok(()) };
        settle(&mut writer).await.map_err(unavailable)?;
        writer.close().await.map_err(unavailable)
    }
}

/// Ends write-ahead logging, which writes the log back into the file and removes it.
async fn settle(db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode = DELETE").fetch_one(db).await?;
    if mode == "delete" {
        return Ok(());
    }
    Err(sqlx::Error::Configuration(
        format!("it stays in journal mode {mode}: another process has it open").into(),
    ))
}

/// A new database that appears in its place only when it is complete.
#[derive(Debug)]
pub struct Staged {
    store: SqliteStore,
    partial: PartialFile,
    place: PathBuf,
}

impl Staged {
    /// An empty database. The file in its place is locked, and stays until the new one replaces it.
    pub async fn new(path: &Path) -> Result<Self, OpenError> {
        let place = file::resolve(path)?;
        let lock = lock(&place).await?;
        if let Some(journal) = file::journal_of(&place) {
            // SQLite would take it for the new database's journal.
            return Err(OpenError::JournalAlone { path: place, journal });
        }
        let unusable = |error| OpenError::File { path: place.clone(), error };
        let partial = PartialFile::beside(&place).map_err(unusable)?;
        let store = SqliteStore::open_locked(partial.path(), lock).await?;
        Ok(Self { store, partial, place })
    }

    /// The store to fill.
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    /// Completes the database and moves it to its place.
    pub async fn put_in_place(self) -> Result<(), StoreError> {
        let Self { store, partial, place } = self;
        store.close_whole().await?;
        let put = partial.replace();
        put.map_err(|error| StoreError::Unavailable(format!("cannot write {}: {error}", place.display())))
    }
}

/// Updates the schema of a file, or creates the file if it is missing. An old file stays unchanged until a
/// complete new one replaces it.
pub async fn migrate(path: &Path) -> Result<(), BackupError> {
    let place = file::resolve(path)?;
    if !place.exists() {
        let staged = Staged::new(&place).await?;
        return staged.put_in_place().await.map_err(|error| write_error(&place, io::Error::other(error)));
    }
    let lock = lock(&place).await?;
    file::make(&place)?;
    let cannot_open = |error| OpenError::Open { path: place.clone(), error };
    let mut db = SqliteConnection::connect_with(&options(&place)).await.map_err(cannot_open)?;
    let old = check_schema(&mut db, &place, &migrations()).await?;
    settle(&mut db).await.map_err(cannot_open)?;
    db.close().await.map_err(cannot_open)?;
    if !old {
        return file::sync_directory(&place).map_err(|error| write_error(&place, error));
    }
    let partial = PartialFile::beside(&place).map_err(|error| write_error(&place, error))?;
    let copied = backup::write(&place, partial.path()).await;
    copied.map_err(|error| BackupError::Copy {
        database: place.clone(),
        copy: partial.path().to_owned(),
        error,
    })?;
    let store = SqliteStore::open_locked(partial.path(), lock).await?;
    store.close_whole().await.map_err(|error| write_error(&place, io::Error::other(error)))?;
    partial.replace().map_err(|error| write_error(&place, error))
}

fn write_error(path: &Path, error: io::Error) -> BackupError {
    BackupError::Write { copy: path.to_owned(), error }
}
