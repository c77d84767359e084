//! `allot import`: what another service was told, as settings of ours. Nothing is changed by it.

mod blazar_conf;
mod document;
mod ini;
mod options;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand};
use htools::io::{FAILURE, Io, SUCCESS};
use thiserror::Error;

/// The longest file that is read, bytes: Blazar's own example has a hundredth of it.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Debug, Parser)]
#[command(
    name = "allot import",
    bin_name = "allot import",
    about = "Take over what another service was told"
)]
#[command(disable_help_subcommand = true, subcommand_required = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print settings that have `allot serve` do what Blazar did with this configuration
    #[command(
        after_help = "What has no counterpart stands in comments at the end; docs/from-blazar.md has all options."
    )]
    BlazarConf {
        /// Its configuration, as /etc/blazar/blazar.conf
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Why nothing is printed.
#[derive(Debug, Error)]
enum ImportError {
    #[error("cannot read {path}: {error}")]
    Unreadable { path: PathBuf, error: std::io::Error },
    #[error("{path} has more than {} MiB", MOST_BYTES >> 20)]
    Long { path: PathBuf },
    #[error("{path}, {refused}")]
    Refused { path: PathBuf, refused: blazar_conf::Refused },
}

/// The command line.
pub(crate) fn command() -> clap::Command {
    Line::command().name("import")
}

/// Runs such a command (its name first); returns the exit status.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> u8 {
    let line = match Line::try_parse_from(arguments) {
        Ok(line) => line,
        Err(error) => return crate::help::refuse(&error, arguments, io),
    };
    let Command::BlazarConf { file } = line.command;
    match blazar_conf(&file) {
        Ok(translation) => {
            let done = io.out.write_all(translation.toml().as_bytes());
            for unknown in &translation.unknown {
                let _ = writeln!(io.err, "{}, {}", file.display(), unknown.told());
            }
            let _ = writeln!(io.err, "{}", translation.summary());
            if done.is_ok() { SUCCESS } else { FAILURE }
        }
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            FAILURE
        }
    }
}

fn blazar_conf(path: &Path) -> Result<blazar_conf::Translation, ImportError> {
    let unreadable = |error| ImportError::Unreadable { path: path.to_owned(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(ImportError::Long { path: path.to_owned() });
    }
    blazar_conf::translate(&text).map_err(|refused| ImportError::Refused { path: path.to_owned(), refused })
}
