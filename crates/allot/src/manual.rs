//! Completions for shells, manual pages, and hashes for files of tokens and users: what is needed to set `allot` up.

use std::fs;
use std::path::{Path, PathBuf};

use ambient::RandomIds;
use clap::{Args, Command, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use htools::io::{FAILURE, Io, SUCCESS};
use htools::options::Program;
use secrecy::ExposeSecret;

use crate::{help, links, secret};

/// The words that begin such a command.
pub(crate) const NAMES: [&str; 4] = ["completions", "man", "hash", "install-links"];

#[derive(Debug, Parser)]
#[command(name = "allot", about = "Set up this command", disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print completions for a shell
    Completions(Completions),
    /// Write a manual page for every command
    Man(Man),
    /// Hash a token or a password, typed or from standard input
    #[command(subcommand)]
    Hash(Hash),
    /// Make links to this binary under the names of Ganeti's programs
    InstallLinks(Links),
}

#[derive(Args, Debug)]
struct Links {
    /// Where; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Args, Debug)]
struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args, Debug)]
struct Man {
    /// Where; made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Hash {
    /// SHA-256 of a token: `sha256` in a file of tokens
    Token,
    /// argon2id of a password: `password_hash` in a file of users
    Password,
}

/// Runs such a command (its name first); returns the exit status.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> u8 {
    let words = std::iter::once("allot").chain(arguments.iter().map(String::as_str));
    let line = match Line::try_parse_from(words) {
        Ok(line) => line,
        Err(error) => return crate::help::refuse(&error, arguments, io),
    };
    let done = match line.command {
        // That it cannot be written is told by whoever made the stream.
        What::Completions(Completions { shell }) => {
            return if completions(shell, io).is_ok() { SUCCESS } else { FAILURE };
        }
        What::Man(Man { directory }) => {
            man(&directory).map_err(|error| format!("{}: {error}", directory.display()))
        }
        What::Hash(which) => hash(&which, io),
        What::InstallLinks(Links { directory }) => return links::install(&directory, &Program::ALL, io),
    };
    match done {
        Ok(()) => SUCCESS,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            FAILURE
        }
    }
}

fn completions(shell: Shell, io: &mut Io<'_>) -> std::io::Result<()> {
    match io.out.write_all(crate::completions::script(shell).as_bytes()) {
        // Whoever reads only the beginning has what they want.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn man(directory: &Path) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(help::tree(), directory)
}

fn hash(which: &Hash, io: &mut Io<'_>) -> Result<(), String> {
    let secret = match which {
        Hash::Token => secret::read("Token", false, io)?,
        Hash::Password => secret::read("Password", true, io)?,
    };
    if secret.expose_secret().is_empty() {
        return Err("what is to be hashed is empty: write the token or password to standard input".to_owned());
    }
    let hash = match which {
        Hash::Token => server::hash_token(&secret),
        Hash::Password => server::hash_password(&secret, &RandomIds).map_err(|error| error.to_string())?,
    };
    writeln!(io.out, "{hash}").map_err(|error| error.to_string())
}

/// The commands that are run here, for what is generated from them.
pub(crate) fn command() -> Command {
    Line::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_commands_has_no_contradiction() {
        help::tree().debug_assert();
    }
}
