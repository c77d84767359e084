//! Options of connections, and the migrations of the schema.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};

/// Migrations of the schema, run when a store is opened. Unknown later migrations aren't an error here:
/// [`Schema::check`](store::schema::Schema::check) decides whether this version works with them.
pub(crate) fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
}

/// Time to wait for the lock of another program, such as a backup.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of connections that write.
pub(crate) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
}
