//! `allot database`: migrates and checks databases, backs one up, and copies one into another, for example a
//! file into PostgreSQL. No service may be running on the databases, except during a backup.

use std::env;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use store::archive::{Archive, ImportError};
use store::{Store, StoreError};
use store_postgres::PostgresStore;
use store_sqlite::{BackupError, Checked, Copied, SqliteStore, Staged};
use thiserror::Error;

use crate::config::{self, ConfigError, DatabaseChoice};
use crate::screen::screen;
use crate::shown;

/// Settings that a backup reads, from the same sources as `allot serve`.
const SETTINGS: [&str; 1] = ["database"];

#[derive(Debug, Parser)]
#[command(name = "allot database", bin_name = "allot database", about = "Manage the databases of leases")]
#[command(disable_help_subcommand = true, subcommand_required = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create or upgrade the schema, as a service does when it starts
    Migrate {
        /// `sqlite://FILE` or `postgres://USER@HOST/DATABASE`
        #[arg(env = "ALLOT_DATABASE", hide_env_values = true)]
        database: String,
    },
    /// Read all records, compare the schema and count records, without changing anything
    Check {
        /// `sqlite://FILE` or `postgres://USER@HOST/DATABASE`
        #[arg(env = "ALLOT_DATABASE", hide_env_values = true)]
        database: String,
    },
    /// Copy the database file of a running service, as of one instant
    #[command(after_help = "docs/how-to/operations.md describes how to restore a copy.")]
    Backup {
        /// File for the copy; it must not exist
        #[arg(value_name = "FILE")]
        copy: PathBuf,
    },
    /// Copy everything from one database to another one, which must be empty; all or nothing
    Copy {
        /// Database to copy from
        from: String,
        /// Database to copy to
        to: String,
    },
}

/// Failure of a database command.
#[derive(Debug, Error)]
pub(crate) enum DatabaseError {
    #[error("{0}")]
    Address(String),
    #[error("there is no file {0}")]
    Missing(PathBuf),
    #[error("a database in memory is empty: name sqlite://FILE or postgres://USER@HOST/DATABASE")]
    Memory,
    #[error("the two are the same database")]
    Same,
    #[error("PostgreSQL has its own means of backup, such as pg_dump; or use `allot database copy`")]
    NotAFile,
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error(transparent)]
    Sqlite(#[from] store_sqlite::OpenError),
    #[error(transparent)]
    Check(#[from] store_sqlite::CheckError),
    #[error(transparent)]
    Postgres(#[from] store_postgres::OpenError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the copy failed: {target}: {error}")]
    Import { target: String, error: ImportError },
    #[error("the copy is incomplete: {0} differs from the source; remove it and try again")]
    Different(String),
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    let with_settings = |backup: clap::Command| config::flags_of(backup, &SETTINGS);
    Line::command().name("database").mut_subcommand("backup", with_settings)
}

/// Runs a database command, named by the first argument. Returns the exit status, or an error in the command
/// line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let matches = screen(command(), "database").try_get_matches_from(arguments);
    let (line, matches) = matches.and_then(|matches| Ok((Line::from_arg_matches(&matches)?, matches)))?;
    // Remove temporary copies of databases that killed commands left. A failure doesn't affect this command.
    let _ = ambient::remove_abandoned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.map_err(DatabaseError::from).and_then(|runtime| {
        runtime.block_on(async {
            match line.command {
                Command::Migrate { database } => migrate(&database).await,
                Command::Check { database } => check(&database).await,
                Command::Backup { copy } => backup(matches.subcommand(), &copy).await,
                Command::Copy { from, to } => copy(&from, &to).await,
            }
        })
    });
    Ok(match done {
        Ok(text) if io.out.write_all(shown::message(&text).as_bytes()).is_ok() => SUCCESS,
        Ok(_) => FAILURE,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {}", shown::message(&error.to_string()));
            let misused = matches!(error, DatabaseError::Config(_) | DatabaseError::NotAFile);
            if misused || matches!(error, DatabaseError::Memory) { USAGE } else { FAILURE }
        }
    })
}

async fn backup(settings: Option<(&str, &ArgMatches)>, copy: &Path) -> Result<String, DatabaseError> {
    let Some((_, settings)) = settings else { return Err(DatabaseError::NotAFile) };
    let choice = config::load(settings, &|name| env::var_os(name))?.database;
    match &choice {
        DatabaseChoice::Sqlite(database) => {
            let Copied { leases, hosts, bytes } = store_sqlite::backup(database, copy).await?;
            let kib = bytes.div_ceil(1024);
            let counts = format!("{leases:>9} leases\n{hosts:>9} hosts\n{kib:>9} KiB\n");
            Ok(format!("Copied from {} to {}:\n{counts}", name(&choice), copy.display()))
        }
        DatabaseChoice::Postgres(_) => Err(DatabaseError::NotAFile),
        DatabaseChoice::Memory => Err(DatabaseError::Memory),
    }
}

fn choice(text: &str) -> Result<DatabaseChoice, DatabaseError> {
    crate::config::database(text).map_err(DatabaseError::Address)
}

/// Name of a database in output, always without its password.
pub(crate) fn name(choice: &DatabaseChoice) -> String {
    match choice {
        DatabaseChoice::Sqlite(path) => format!("sqlite://{}", path.display()),
        DatabaseChoice::Postgres(servers) => servers.to_string(),
        DatabaseChoice::Memory => "memory".to_owned(),
    }
}

/// An existing database.
enum Opened {
    File(Box<SqliteStore>),
    Server(PostgresStore),
}

impl Opened {
    /// Opens an existing database. The schema of a file is migrated. The schema in PostgreSQL isn't: it must
    /// be current.
    async fn new(choice: &DatabaseChoice) -> Result<Self, DatabaseError> {
        Ok(match choice {
            // Opening would create the file, so a mistyped name would look like an empty database.
            DatabaseChoice::Sqlite(path) if !path.exists() => {
                return Err(DatabaseError::Missing(path.clone()));
            }
            DatabaseChoice::Sqlite(path) => {
                store_sqlite::migrate(path).await?;
                Self::File(Box::new(SqliteStore::open(path).await?))
            }
            DatabaseChoice::Postgres(servers) => {
                Self::Server(PostgresStore::open_as_it_is(servers.clone()).await?)
            }
            DatabaseChoice::Memory => return Err(DatabaseError::Memory),
        })
    }

    /// Exports everything. Even if that fails, a file is closed so that it's complete without SQLite's
    /// journals.
    async fn export(self) -> Result<Archive, DatabaseError> {
        match self {
            Self::File(store) => {
                let archive = store.export().await;
                store.close_whole().await?;
                Ok(archive?)
            }
            Self::Server(store) => Ok(store.export().await?),
        }
    }
}

async fn migrate(database: &str) -> Result<String, DatabaseError> {
    let choice = choice(database)?;
    match &choice {
        DatabaseChoice::Sqlite(path) => store_sqlite::migrate(path).await?,
        DatabaseChoice::Postgres(servers) => PostgresStore::open(servers.clone()).await?.check().await?,
        DatabaseChoice::Memory => return Err(DatabaseError::Memory),
    }
    Ok(format!("The schema of {} is up to date.\n", name(&choice)))
}

async fn check(database: &str) -> Result<String, DatabaseError> {
    let choice = choice(database)?;
    let (archive, old) = match &choice {
        DatabaseChoice::Sqlite(path) if !path.exists() => return Err(DatabaseError::Missing(path.clone())),
        DatabaseChoice::Sqlite(path) => {
            let Checked { archive, found, known } = store_sqlite::check(path).await?;
            (archive, (found < known).then_some((found, known)))
        }
        // The transaction is read-only, and the schema must be that of this version.
        DatabaseChoice::Postgres(servers) => {
            (PostgresStore::open_as_it_is(servers.clone()).await?.export().await?, None)
        }
        DatabaseChoice::Memory => return Err(DatabaseError::Memory),
    };
    let old = old.map_or_else(String::new, |(found, known)| {
        format!(
            "Its schema is {found}, of an earlier version of allot. A service upgrades it to {known} when it starts.\n"
        )
    });
    Ok(format!("{} can be read:\n{}{old}", name(&choice), counts(&archive)))
}

async fn copy(from: &str, to: &str) -> Result<String, DatabaseError> {
    let (from, to) = (choice(from)?, choice(to)?);
    if from == to {
        return Err(DatabaseError::Same);
    }
    let archive = Opened::new(&from).await?.export().await?;
    let to = take_in(&archive, &to).await?;
    Ok(format!("Copied from {} to {to}:\n{}", name(&from), counts(&archive)))
}

/// Imports an archive into a database that is empty or doesn't exist yet. Returns the database's name. No
/// service may be running on it.
pub(crate) async fn take_in(archive: &Archive, to: &DatabaseChoice) -> Result<String, DatabaseError> {
    match to {
        DatabaseChoice::Sqlite(path) => {
            refuse_filled(to).await?;
            let staged = Staged::new(path).await?;
            fill(staged.store(), archive, to).await?;
            staged.put_in_place().await?;
        }
        DatabaseChoice::Postgres(servers) => {
            fill(&PostgresStore::open(servers.clone()).await?, archive, to).await?;
        }
        DatabaseChoice::Memory => return Err(DatabaseError::Memory),
    }
    Ok(name(to))
}

/// Fails if the database isn't empty.
pub(crate) async fn refuse_filled(choice: &DatabaseChoice) -> Result<(), DatabaseError> {
    let empty = match choice {
        DatabaseChoice::Sqlite(path) => {
            !path.exists() || Opened::new(choice).await?.export().await?.is_empty()
        }
        DatabaseChoice::Postgres(servers) => {
            PostgresStore::open(servers.clone()).await?.export().await?.is_empty()
        }
        DatabaseChoice::Memory => return Err(DatabaseError::Memory),
    };
    if empty {
        Ok(())
    } else {
        Err(DatabaseError::Import { target: name(choice), error: ImportError::NotEmpty })
    }
}

/// Fails if a service is running on the file. A service on a PostgreSQL server can't be detected.
pub(crate) async fn refuse_used(choice: &DatabaseChoice) -> Result<(), DatabaseError> {
    match choice {
        DatabaseChoice::Sqlite(path) if path.exists() => match Opened::new(choice).await? {
            Opened::File(store) => Ok(store.close_whole().await?),
            Opened::Server(_) => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Imports an archive into an empty store, then exports it again to verify the copy.
async fn fill(target: &dyn Store, archive: &Archive, to: &DatabaseChoice) -> Result<(), DatabaseError> {
    let imported = target.import(archive).await;
    imported.map_err(|error| DatabaseError::Import { target: name(to), error })?;
    let copied = target.export().await?;
    if counts(&copied) != counts(archive) || copied.snapshot.leases != archive.snapshot.leases {
        return Err(DatabaseError::Different(name(to)));
    }
    Ok(())
}

/// One line per kind of record, with its count.
fn counts(archive: &Archive) -> String {
    let snapshot = &archive.snapshot;
    [
        (snapshot.leases.len(), "leases"),
        (snapshot.hosts.len(), "hosts"),
        (snapshot.free_pools.len(), "free pools"),
        (snapshot.floating_ips.len(), "floating IPs"),
        (snapshot.flavors.len(), "flavors"),
        (snapshot.instances.len(), "instances"),
        (snapshot.properties.len(), "properties"),
        (snapshot.history.failures.len() + snapshot.history.done.len(), "steps with a history"),
        (archive.notifications.len(), "notifications"),
        (archive.audit.len(), "audit records"),
        (archive.requests.len(), "keys of requests"),
        (archive.refusals.len(), "counts of refusals"),
        (archive.tokens.keys.len(), "keys of tokens"),
        (archive.tokens.revoked.len(), "revoked tokens"),
    ]
    .map(|(count, of)| format!("{count:>9} {of}\n"))
    .concat()
}

#[cfg(test)]
mod tests {
    use scratch_postgres::ScratchPostgres;
    use store::conformance::sample::{
        add, add_hosts, audit, commit, documents, hosts, lease, notification, window,
    };
    use store::{Revision, Write};

    use super::*;

    fn filled() -> store::Commit {
        let mut writes = add_hosts([1, 2]);
        writes.push(add(&lease(1, window(0, 60), vec![hosts(&[1, 2])])));
        writes.extend(documents().into_iter().map(Write::from));
        let (audit, notifications) = (vec![audit("lease.create")], vec![notification("lease.create")]);
        store::Commit { audit, notifications, ..commit(writes) }
    }

    #[tokio::test]
    async fn a_file_is_copied_to_postgresql_and_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| format!("sqlite://{}", directory.path().join(name).display());
        let server = ScratchPostgres::start().unwrap_or_else(|error| panic!("{error}"));
        let database = server.database(None).expect("a database");
        let first = SqliteStore::open(directory.path().join("a.db")).await.expect("opens");
        first.commit(&filled()).await.expect("accepted");
        let before = first.export().await.expect("works");
        drop(first);
        let told = copy(&file("a.db"), &database).await.expect("copied");
        assert!(told.contains("        1 leases\n        2 hosts\n"), "{told}");
        let again = copy(&file("a.db"), &database).await.expect_err("it is not empty any more").to_string();
        assert!(again.contains("the copy failed") && again.contains("not empty"), "{again}");
        assert!(check(&database).await.expect("works").contains("1 audit records"));
        copy(&database, &file("b.db")).await.expect("copied");
        // Move only the database files: after a command, each must be complete on its own.
        let away = tempfile::tempdir().expect("a directory");
        for name in ["a.db", "b.db"] {
            std::fs::rename(directory.path().join(name), away.path().join(name)).expect("moved");
        }
        let left = std::fs::read_dir(directory.path()).expect("a directory");
        let mut left: Vec<_> = left.map(|entry| entry.expect("a name").file_name()).collect();
        left.sort();
        assert_eq!(left, ["a.db.lock", "b.db.lock"]);
        let second = SqliteStore::open(away.path().join("b.db")).await.expect("opens");
        let after = second.export().await.expect("works");
        assert_eq!(after.snapshot.leases, before.snapshot.leases);
        assert!(after.snapshot.documents().eq(documents()), "{:?}", after.snapshot);
        let all = |mut archive: Archive| {
            archive.snapshot.revision = Revision::default();
            format!("{archive:?}")
        };
        assert_eq!(all(after), all(before));
    }

    #[tokio::test]
    async fn what_is_not_there_is_not_made_to_be_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("none.db");
        let database = format!("sqlite://{}", path.display());
        for result in [check(&database).await, copy(&database, "sqlite://other.db").await] {
            assert!(result.expect_err("no file").to_string().contains("none.db"));
        }
        assert!(!path.exists());
        assert!(matches!(copy("memory", &database).await, Err(DatabaseError::Memory)));
        assert!(matches!(copy(&database, &database).await, Err(DatabaseError::Same)));
    }
}
