//! Commands that set `allot` up: shell completions, manual pages, links, and hashes for files of tokens and
//! users.

use std::path::PathBuf;

use ambient::RandomIds;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::io::{FAILURE, Io, SUCCESS};
use htools::options::Program;
use secrecy::ExposeSecret;

use crate::completions::{self, Shell};
use crate::screen::screen;
use crate::{links, pages, secret};

/// Names of these commands.
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
    /// Link the names of Ganeti's programs to this binary
    InstallLinks(Links),
}

#[derive(Args, Debug)]
struct Links {
    /// Directory for the links; created if it doesn't exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

#[derive(Args, Debug)]
struct Completions {
    /// Name of the shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Args, Debug)]
struct Man {
    /// Directory for the pages; created if it doesn't exist
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

/// Runs one of these commands. `arguments` begin with its name. Returns the exit status, or the error in the
/// command line. `tree` makes the tree of all commands.
pub(crate) fn run(
    arguments: &[String],
    tree: impl Fn() -> Command,
    io: &mut Io<'_>,
) -> Result<u8, clap::Error> {
    let words = std::iter::once("allot").chain(arguments.iter().map(String::as_str));
    let matches = screen(Line::command(), "").try_get_matches_from(words)?;
    let line = Line::from_arg_matches(&matches)?;
    let done = match line.command {
        // A write error is reported by the creator of the stream.
        What::Completions(Completions { shell }) => {
            return Ok(if print(&completions::script(shell), io).is_ok() { SUCCESS } else { FAILURE });
        }
        What::Man(Man { directory }) => {
            pages::write(tree(), &directory).map_err(|error| format!("{}: {error}", directory.display()))
        }
        What::Hash(which) => hash(&which, io),
        What::InstallLinks(Links { directory }) => return Ok(links::install(&directory, &Program::ALL, io)),
    };
    Ok(match done {
        Ok(()) => SUCCESS,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {error}");
            FAILURE
        }
    })
}

fn print(script: &str, io: &mut Io<'_>) -> std::io::Result<()> {
    match io.out.write_all(script.as_bytes()) {
        // A reader that closes the pipe early has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

fn hash(which: &Hash, io: &mut Io<'_>) -> Result<(), String> {
    let secret = match which {
        Hash::Token => secret::read("Token", false, io)?,
        Hash::Password => secret::read("Password", true, io)?,
    };
    if secret.expose_secret().is_empty() {
        return Err("nothing to hash: write the token or password to standard input".to_owned());
    }
    let hash = match which {
        Hash::Token => server::hash_token(&secret),
        Hash::Password => server::hash_password(&secret, &RandomIds).map_err(|error| error.to_string())?,
    };
    writeln!(io.out, "{hash}").map_err(|error| error.to_string())
}

/// The command line, for generated pages and completions.
pub(crate) fn command() -> Command {
    Line::command()
}
