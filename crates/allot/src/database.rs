//! `allot database`: what is done to the file of a service from beside it.

use std::env;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use store_sqlite::BackupError;
use thiserror::Error;

use crate::config::{self, ConfigError, DatabaseChoice};

/// Settings that these commands read, as `allot serve` does.
const SETTINGS: [&str; 1] = ["database"];

/// Why nothing was done.
#[derive(Debug, Error)]
enum DatabaseError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("leases in memory cannot be copied: name a database with --database sqlite://FILE")]
    Memory,
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("cannot run: {0}")]
    System(#[from] std::io::Error),
}

/// The command line.
pub(crate) fn command() -> Command {
    let copy = Arg::new("copy").value_name("FILE").required(true).value_parser(value_parser!(PathBuf));
    let backup = Command::new("backup")
        .about("Copy the database as of one instant, while the service goes on")
        .arg(copy.help("Where to; it must not be there yet"))
        .after_help("docs/operations.md says how a copy takes the database's place.");
    Command::new("database")
        .about("Look after the database of a service")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .subcommand(config::flags_of(backup, &SETTINGS))
}

/// Runs such a command; returns the exit status.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> u8 {
    let command = command().name("allot database").bin_name("allot database");
    let matches = match command.try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return crate::usage(&error, io),
    };
    // It is the only one, and required.
    let Some(("backup", matches)) = matches.subcommand() else { return USAGE };
    match backup(matches) {
        Ok(()) => SUCCESS,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            if matches!(error, DatabaseError::Config(_) | DatabaseError::Memory) { USAGE } else { FAILURE }
        }
    }
}

fn backup(matches: &ArgMatches) -> Result<(), DatabaseError> {
    let configuration = config::load(matches, &|name| env::var_os(name))?;
    let DatabaseChoice::Sqlite(database) = &configuration.database else { return Err(DatabaseError::Memory) };
    let copy: &PathBuf = matches.get_one("copy").ok_or(DatabaseError::Memory)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(store_sqlite::backup(database, copy))?)
}
