//! Reads a database without changing it or creating files in its directory.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ambient::{Purpose, TemporaryDirectory};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{Connection, Row as _};

use crate::connection::{BUSY_TIMEOUT, migrations, options};
use crate::file::{self, Lock};
use crate::open_error::OpenError;

/// Maximum number of tables in an error.
const NAMED: usize = 3;

/// A connection that doesn't change its database.
pub(crate) struct View {
    pub(crate) db: SqliteConnection,
    /// Directory of the copy that is read instead, if any.
    _copy: Option<TemporaryDirectory>,
    /// Keeps services from starting while the view exists.
    _lock: Option<File>,
}

impl View {
    /// Opens a file that another process can have open.
    pub(crate) async fn open(database: &Path) -> Result<Self, OpenError> {
        match file::find_lock(database)? {
            Lock::Held => {
                let options = SqliteConnectOptions::new().filename(database).read_only(true);
                let db = connect(&options.busy_timeout(BUSY_TIMEOUT), database).await?;
                Ok(Self { db, _copy: None, _lock: None })
            }
            Lock::Free(lock) => Self::unused(database, Some(lock)).await,
            Lock::Missing => Self::unused(database, None).await,
        }
    }

    /// A view of a file that no service has open. SQLite would recover a journal in place, so a database with
    /// a journal is copied first. Without one, SQLite would create files to read the database, so it is
    /// opened as immutable.
    pub(crate) async fn unused(database: &Path, lock: Option<File>) -> Result<Self, OpenError> {
        if file::journal_of(database).is_none() {
            let db = connect(&immutable(database), database).await?;
            return Ok(Self { db, _copy: None, _lock: lock });
        }
        let failed = |error| OpenError::Temporary { path: database.to_owned(), error };
        let directory = TemporaryDirectory::new(Purpose::Database).map_err(failed)?;
        let copy = directory.path().join("copy.db");
        for end in ["", "-wal", "-journal"] {
            let (from, to) = (file::beside(database, end), file::beside(&copy, end));
            copy_if_there(&from, &to).map_err(failed)?;
        }
        let db = connect(&options(&copy), database).await?;
        Ok(Self { db, _copy: Some(directory), _lock: lock })
    }
}

fn immutable(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(database).read_only(true).immutable(true)
}

fn copy_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::copy(from, to) {
        Ok(_) => fs::set_permissions(to, Permissions::from_mode(0o600)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

async fn connect(options: &SqliteConnectOptions, database: &Path) -> Result<SqliteConnection, OpenError> {
    let connected = SqliteConnection::connect_with(options).await;
    connected.map_err(|error| OpenError::Open { path: database.to_owned(), error })
}

/// Owner of a database file.
pub(crate) enum Contents {
    /// There are no tables.
    Empty,
    Ours,
    Foreign {
        tables: String,
    },
}

impl Contents {
    /// Fails unless it is a database of this program.
    pub(crate) fn require(self, database: &Path) -> Result<(), OpenError> {
        match self {
            Self::Ours => Ok(()),
            Self::Empty => Err(OpenError::Empty(database.to_owned())),
            Self::Foreign { tables } => Err(OpenError::Foreign { path: database.to_owned(), tables }),
        }
    }
}

/// Recognizes databases of this program by their first migration.
pub(crate) async fn contents(db: &mut SqliteConnection) -> Result<Contents, sqlx::Error> {
    // The compiler can't check queries of an unknown schema.
    let names = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name",
    );
    let names: Vec<String> = names.fetch_all(&mut *db).await?;
    let foreign = || Contents::Foreign {
        tables: names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", "),
    };
    if names.is_empty() {
        return Ok(Contents::Empty);
    }
    if !names.iter().any(|name| name == "_sqlx_migrations") {
        return Ok(foreign());
    }
    let first = sqlx::query("SELECT checksum FROM _sqlx_migrations ORDER BY version LIMIT 1");
    let Some(first) = first.fetch_optional(db).await? else {
        // The first migration was interrupted.
        return Ok(if names.len() == 1 { Contents::Empty } else { foreign() });
    };
    let checksum: Vec<u8> = first.try_get(0)?;
    let is_ours = migrations().iter().next().is_some_and(|migration| *migration.checksum == *checksum);
    Ok(if is_ours { Contents::Ours } else { foreign() })
}

/// Maximum number of reads of a file. Reads are repeated when a journal appears or disappears.
const READS: usize = 10;

/// Rejects a file of another program, which this program must not write to. An empty or missing file is
/// accepted. The caller ensures that no service has it open.
pub(crate) async fn refuse_foreign(database: &Path) -> Result<(), OpenError> {
    if file::is_empty(database)? {
        return Ok(());
    }
    let mut found = Ok(Contents::Empty);
    for _ in 0..READS {
        let journal = file::journal_of(database);
        found = unlocked_contents(database).await;
        if journal.is_some() && !matches!(found, Ok(Contents::Ours)) {
            // The log could contain all tables.
            found = unused_contents(database).await;
        }
        // A store that is about to close writes its log back, and anything read during that time is
        // inconsistent.
        if matches!(found, Ok(Contents::Ours)) || journal == file::journal_of(database) {
            break;
        }
    }
    match found? {
        Contents::Empty => Ok(()),
        found => found.require(database),
    }
}

async fn unlocked_contents(database: &Path) -> Result<Contents, OpenError> {
    let open = |error| OpenError::Open { path: database.to_owned(), error };
    let mut db = connect(&immutable(database), database).await?;
    let found = contents(&mut db).await;
    db.close().await.map_err(open)?;
    found.map_err(open)
}

async fn unused_contents(database: &Path) -> Result<Contents, OpenError> {
    let found = contents(&mut View::unused(database, None).await?.db).await;
    found.map_err(|error| OpenError::Open { path: database.to_owned(), error })
}
