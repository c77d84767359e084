//! How connections are made, and the migrations of what they open.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

/// The schema's history; it is brought up to date when a store is opened. Whether later migrations than these are
/// bearable is not for the migrator to say ([`Schema::check`](store::schema::Schema::check)).
pub(crate) fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
}

/// How long to wait for others that have the file open, such as a backup.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// How connections that write are made.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}
