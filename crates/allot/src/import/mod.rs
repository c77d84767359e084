//! `allot import`: takes over the configuration of another service as settings, and its data as records.

mod blazar;
mod blazar_conf;
mod document;
mod ini;
mod options;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use thiserror::Error;

use crate::screen::screen;
use crate::{client, config, shown};

/// Maximum size of a file in bytes. Blazar's own example is a hundredth of that.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Debug, Parser)]
#[command(name = "allot import", bin_name = "allot import", about = "Import the settings and data of Blazar")]
#[command(disable_help_subcommand = true, subcommand_required = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Import hosts and leases of a running Blazar
    ///
    /// Without --read, --take-over or --undo, FILE is compared with the cloud and the database, and nothing
    /// is changed.
    #[command(after_help = "docs/how-to/replace-blazar.md describes the migration.")]
    Blazar(Box<blazar::BlazarArguments>),
    /// Print settings for `allot serve` from a configuration of Blazar
    #[command(
        after_help = "Options without a counterpart are comments at the end; docs/how-to/replace-blazar.md lists all options."
    )]
    BlazarConf {
        /// Configuration file of Blazar, such as /etc/blazar/blazar.conf
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Failure to read the file.
#[derive(Debug, Error)]
enum ImportError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{path} has more than {} MiB", MOST_BYTES >> 20)]
    Long { path: PathBuf },
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    let with_settings = |blazar: clap::Command| config::flags_of(blazar, &blazar::SETTINGS);
    Line::command().name("import").mut_subcommand("blazar", with_settings)
}

/// Runs an import, named by the first argument. Returns the exit status, or an error in the command line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let matches =
        client::without_empty_variables(screen(command(), "import")).try_get_matches_from(arguments);
    let (line, matches) = matches.and_then(|matches| Ok((Line::from_arg_matches(&matches)?, matches)))?;
    Ok(match (line.command, matches.subcommand()) {
        (Command::BlazarConf { file }, _) => translate(&file, io),
        (Command::Blazar(arguments), Some((_, settings))) => match blazar::run(*arguments, settings) {
            // The text contains names that other people chose.
            Ok(told) => match io.out.write_all(shown::message(&told.text).as_bytes()) {
                Ok(()) if told.well => SUCCESS,
                _ => FAILURE,
            },
            Err(error) => {
                let _ = writeln!(io.err, "Error: {}", shown::message(&error.to_string()));
                if error.is_of_usage() { USAGE } else { FAILURE }
            }
        },
        (Command::Blazar(_), None) => USAGE,
    })
}

fn translate(file: &Path, io: &mut Io<'_>) -> u8 {
    match blazar_conf(file) {
        Ok(translation) => {
            let done = io.out.write_all(translation.toml().as_bytes());
            for unusual in translation.unresolved.iter().chain(&translation.unusual) {
                let _ = writeln!(io.err, "{}, {}", file.display(), unusual.told());
            }
            let _ = writeln!(io.err, "{}", translation.summary());
            if done.is_ok() { SUCCESS } else { FAILURE }
        }
        Err(error) => {
            let _ = writeln!(io.err, "Error: {}", crate::shown::message(&error.to_string()));
            FAILURE
        }
    }
}

fn blazar_conf(path: &Path) -> Result<blazar_conf::Translation, ImportError> {
    let unreadable = |error| ImportError::Unreadable { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ImportError::Long { path: path.to_owned() });
    }
    // Comments can be in any encoding.
    Ok(blazar_conf::translate(&String::from_utf8_lossy(&bytes)))
}
