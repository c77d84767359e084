//! The `allot` command: determines which program to run, and runs it. No logic lives here.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod client;
mod complete;
mod completions;
mod config;
mod database;
mod demo;
mod duration;
mod examples;
mod foreign;
mod help;
mod helper;
mod import;
mod links;
mod manual;
mod output;
mod pages;
mod questions;
mod screen;
mod secret;
mod serve;
mod shown;
mod user;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use htools::options::Program;

use output::Output;

/// Returns memory to the system that many threads used for a while.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let invoked = arguments.next().unwrap_or_default();
    if invoked == ambient::HELPER {
        return helper::run(arguments);
    }
    let arguments: Vec<String> = arguments.map(|argument| text(&argument)).collect();
    ExitCode::from(with_streams(|io| dispatch(&invoked, &arguments, io)))
}

/// An argument as text. If it isn't UTF-8, it can't be a file or name that the programs know.
fn text(argument: &OsStr) -> String {
    argument.to_string_lossy().into_owned()
}

fn with_streams(run: impl FnOnce(&mut Io<'_>) -> u8) -> u8 {
    let mut stdin = io::stdin().lock();
    let mut out = Output::new(BufWriter::new(io::stdout().lock()));
    // Not locked: a service logs from many threads.
    let mut err = io::stderr();
    let status = run(&mut Io { stdin: &mut stdin, out: &mut out, err: &mut err });
    let _ = out.flush();
    let Some(error) = out.failed else { return status };
    let _ = writeln!(err, "Error: standard output: {}", output::reason(&error));
    if status == SUCCESS { FAILURE } else { status }
}

/// Selects the program by `HTOOLS`, if it's set at all, or else by the name of the command. `allot` takes it
/// from its first argument.
fn dispatch(invoked: &OsString, arguments: &[String], io: &mut Io<'_>) -> u8 {
    if let Some(role) = env::var_os("HTOOLS") {
        return by_name(&text(&role).to_lowercase(), arguments, io);
    }
    let name = Path::new(invoked).file_name().map(text).unwrap_or_default().to_lowercase();
    if Program::from_name(&name).is_some() {
        return by_name(&name, arguments, io);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            let _ = write!(io.err, "{}", help::general());
            USAGE
        }
        ["help" | "--help" | "-h"] | ["help", "--help" | "-h"] => answer(&help::general(), io),
        ["help", ..] => help_of(&arguments[1..], invoked, io),
        // `allot lease help create`
        [command, "help", ..] if help::has_subcommands(command) => {
            let mut asked = arguments.to_vec();
            asked.remove(1);
            help_of(&asked, invoked, io)
        }
        ["version" | "--version" | "-V", ..] => answer(&format!("allot {}\n", env!("CARGO_PKG_VERSION")), io),
        [complete::NAME, ..] => complete::run(arguments, help::tree(), io),
        [command, ..] => {
            run(command, arguments, io).unwrap_or_else(|error| help::refuse(&error, arguments, io))
        }
    }
}

/// Runs a command, named by the first argument. Returns the exit status, or an error in the command line.
fn run(command: &str, arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    match command {
        "serve" => serve::run(arguments, io),
        "database" => database::run(arguments, io),
        "import" => import::run(arguments, io),
        "demo" => demo::run(arguments, io),
        "user" => user::run(arguments, io),
        name if manual::NAMES.contains(&name) => manual::run(arguments, help::tree, io),
        name if client::NAMES.contains(&name) => client::run(arguments, io),
        // `allot --user ann whoami`
        option if option.starts_with('-') && client::is_option(option) => client::run(arguments, io),
        name if questions::NAMES.contains(&name) => questions::run(arguments, io),
        _ if Program::from_name(command).is_some() => Ok(by_name(command, &arguments[1..], io)),
        _ => {
            let _ = write!(io.err, "{}", help::unknown(command));
            Ok(USAGE)
        }
    }
}

/// Prints the full help of a command. Programs of Ganeti's print their own.
fn help_of(command: &[String], invoked: &OsString, io: &mut Io<'_>) -> u8 {
    if let Some(text) = help::whole(command) {
        return answer(&text, io);
    }
    let mut arguments = command.to_vec();
    arguments.push("--help".to_owned());
    dispatch(invoked, &arguments, io)
}

fn answer(text: &str, io: &mut Io<'_>) -> u8 {
    if io.out.write_all(text.as_bytes()).is_ok() { SUCCESS } else { FAILURE }
}

fn by_name(name: &str, arguments: &[String], io: &mut Io<'_>) -> u8 {
    let terminals = (io::stdout().is_terminal(), io::stderr().is_terminal());
    shown::on_terminals(terminals, io, |io| personality(name, arguments, io))
}

fn personality(name: &str, arguments: &[String], io: &mut Io<'_>) -> u8 {
    match Program::from_name(name) {
        Some(Program::Hail) => htools::hail::run(arguments, io),
        Some(Program::Hbal) => htools::hbal::run(arguments, io),
        Some(Program::Harep) => htools::harep::run(arguments, io),
        Some(Program::Hcheck) => htools::hcheck::run(arguments, io),
        Some(Program::Hinfo) => htools::hinfo::run(arguments, io),
        Some(Program::Hroller) => htools::hroller::run(arguments, io),
        Some(Program::Hscan) => htools::hscan::run(arguments, io),
        Some(Program::Hspace) => htools::hspace::run(arguments, io),
        Some(Program::Hsqueeze) => htools::hsqueeze::run(arguments, io),
        None => {
            let _ = writeln!(io.err, "Unrecognised personality '{name}'.");
            let _ = writeln!(io.err, "Supported personalities are:");
            for program in Program::ALL {
                let _ = writeln!(io.err, "  {}", program.name());
            }
            let _ = writeln!(
                io.err,
                "Error: name a link to this binary after one of them, or set the environment variable HTOOLS"
            );
            FAILURE
        }
    }
}
