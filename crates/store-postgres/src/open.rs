//! Opening the database, and updating its schema.

use sqlx::PgConnection;
use sqlx::migrate::{MigrateError, Migrator};
use store::schema::{Newer, Schema};
use thiserror::Error;

use crate::postgres_store::PostgresStore;
use crate::servers::{Found, NoServer, Servers};

/// Migrations of the schema. Unknown later migrations aren't an error here: [`Schema::check`] decides whether
/// this version works with them.
fn migrations() -> Migrator {
    let mut migrations = sqlx::migrate!();
    migrations.set_ignore_missing(true);
    migrations
}

fn newest(migrations: &Migrator) -> i64 {
    migrations.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Reason why a store can't be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// No server takes writes.
    #[error("{servers}: {error}")]
    NoServer {
        servers: Servers,
        #[source]
        error: NoServer,
    },
    /// The schema is of a later version.
    #[error("{servers}: {error}")]
    Newer {
        servers: Servers,
        #[source]
        error: Newer,
    },
    /// There is no schema, or an old one, and it must not be changed.
    #[error(
        "{servers}: its schema is {found}, and this version of allot needs {needed}: run `allot database migrate`"
    )]
    Older {
        servers: Servers,
        /// Newest migration that was run.
        found: i64,
        /// Newest migration of this version.
        needed: i64,
    },
    /// The database isn't one of this program, is damaged, or its owner has to do something first.
    #[error("{servers} cannot be brought up to date: {error}")]
    Migrate {
        servers: Servers,
        #[source]
        error: MigrateError,
    },
    /// A query failed.
    #[error("{servers}: {error}")]
    Open {
        servers: Servers,
        #[source]
        error: sqlx::Error,
    },
}

/// State of a database's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaState {
    /// Newest migration that was run; 0 before the first one.
    pub found: i64,
    /// Newest migration that this version knows.
    pub known: i64,
}

impl PostgresStore {
    /// Opens the store in a database, and creates or updates its schema if necessary. If several services
    /// start at the same time, the first updates the schema and the rest wait.
    pub async fn open(servers: Servers) -> Result<Self, OpenError> {
        let Found { mut connection, .. } = connect(&servers).await?;
        let migrations = migrations();
        check(&servers, &mut connection, &migrations).await?;
        let migrated = migrations.run(&mut connection).await;
        migrated.map_err(|error| OpenError::Migrate { servers: servers.clone(), error })?;
        Ok(Self::of(servers))
    }

    /// Like [`Self::open`], but doesn't change the schema. An old or missing schema is an error.
    pub async fn open_as_it_is(servers: Servers) -> Result<Self, OpenError> {
        let SchemaState { found, known } = Self::schema(&servers).await?;
        if found < known {
            return Err(OpenError::Older { servers, found, needed: known });
        }
        Ok(Self::of(servers))
    }

    /// State of the schema. Fails if this version can't work with the schema.
    pub async fn schema(servers: &Servers) -> Result<SchemaState, OpenError> {
        let Found { mut connection, .. } = connect(servers).await?;
        let migrations = migrations();
        let found = check(servers, &mut connection, &migrations).await?;
        Ok(SchemaState { found, known: newest(&migrations) })
    }
}

async fn connect(servers: &Servers) -> Result<Found, OpenError> {
    let found = servers.connect(0).await;
    found.map_err(|error| OpenError::NoServer { servers: servers.clone(), error })
}

/// Rejects a later schema that this version can't work with. Returns the newest migration that was run.
async fn check(
    servers: &Servers,
    connection: &mut PgConnection,
    migrations: &Migrator,
) -> Result<i64, OpenError> {
    let schema = schema(connection).await;
    match schema.map_err(|error| OpenError::Open { servers: servers.clone(), error })? {
        None => Ok(0),
        Some(schema) => {
            let checked = schema.check(newest(migrations));
            checked.map_err(|error| OpenError::Newer { servers: servers.clone(), error })?;
            Ok(schema.newest)
        }
    }
}

/// Schema of the database; `None` if it has no table `compatibility`, like a new database.
async fn schema(connection: &mut PgConnection) -> Result<Option<Schema>, sqlx::Error> {
    let written = sqlx::query_scalar!(r#"SELECT to_regclass('compatibility') IS NOT NULL AS "written!""#);
    if !written.fetch_one(&mut *connection).await? {
        return Ok(None);
    }
    // Not checked at compile time, because the migrator creates this table.
    let newest = sqlx::query_scalar("SELECT coalesce(max(version), 0) FROM _sqlx_migrations");
    let newest: i64 = newest.fetch_one(&mut *connection).await?;
    let oldest = sqlx::query_scalar!("SELECT oldest FROM compatibility").fetch_one(connection).await?;
    Ok(Some(Schema { newest, oldest }))
}
