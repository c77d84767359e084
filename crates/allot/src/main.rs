//! The `allot` command: finds out which program it is to be, and runs it. No logic lives here.

mod client;
mod config;
mod database;
mod demo;
mod duration;
mod links;
mod manual;
mod questions;
mod serve;
mod shown;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use htools::options::Program;

const USAGE_TEXT: &str = "\
Usage: allot COMMAND [ARGUMENT...]

Decides where virtual machines go, and who holds which hosts when.

Ganeti's programs:
  hail              answer a placement request of Ganeti (an iallocator)
  hbal              balance a node group of a Ganeti cluster
  hcheck            say what is wrong, and whether balancing mends it
  hinfo             describe a cluster
  hspace            say how many instances fit
  hroller           group nodes that may be rebooted together
  hsqueeze          find nodes that may be switched off
  hscan             save clusters, with a line of figures for each
  harep             repair what is broken, as far as tags allow

Leasing hosts:
  demo              show the service with leases past, present and coming
  serve             run the service
  database          copy the service's database
  lease             list, show, create, update, delete leases, or wait for one
  host              list, show, take on, update, give back hosts
  freepool          the same for the pools that hosts are in while nobody leases them
  leasepool         list, show, make, grow the pools of hosts of leases that run
  floatingip        the same for addresses
  flavor            the same for sizes of instances
  instance          list, show, start, destroy instances, where there is no cloud
  calendar          draw who has which host when
  events            say what happened, and go on with what happens
  audit             say who did what
  doctor            say where store and fleet differ, and set it right
  database          bring a database up to date, check it, copy it to another one

Questions about a Ganeti cluster:
  drain NODE...     say whether nodes can be emptied, and how
  whatif            say what a cluster would be like after changes
  fit SHAPE         say how many instances of a shape fit, and what stops the next

Setting up:
  completions SHELL print completions for a shell
  man DIR           write manual pages
  hash              make hashes of tokens and passwords
  install-links DIR lay links to this binary under the programs' names
  help              show this text
  version           show the version

Each of Ganeti's programs also runs under its own name (a link to this binary),
or under the name in the environment variable HTOOLS. `allot hail --help` shows
its options, and so for all others.
";

fn main() -> ExitCode {
    let mut arguments = env::args_os();
    let invoked = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.map(|argument| text(&argument)).collect();
    ExitCode::from(with_streams(|io| dispatch(&invoked, &arguments, io)))
}

/// An argument as text; what is not UTF-8 denotes no file or name that the programs could know.
fn text(argument: &OsStr) -> String {
    argument.to_string_lossy().into_owned()
}

fn with_streams(run: impl FnOnce(&mut Io<'_>) -> u8) -> u8 {
    let mut stdin = io::stdin().lock();
    let mut out = BufWriter::new(io::stdout().lock());
    // Not locked: a service logs from many threads.
    let mut err = io::stderr();
    let status = run(&mut Io { stdin: &mut stdin, out: &mut out, err: &mut err });
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && status == SUCCESS => FAILURE,
        _ => status,
    }
}

/// The role: `HTOOLS` if it is set at all, else the name of the command; `allot` takes it from its first
/// argument.
fn dispatch(invoked: &OsString, arguments: &[String], io: &mut Io<'_>) -> u8 {
    if let Some(role) = env::var_os("HTOOLS") {
        return by_name(&text(&role).to_lowercase(), arguments, io);
    }
    let name = Path::new(invoked).file_name().map(text).unwrap_or_default().to_lowercase();
    if Program::from_name(&name).is_some() {
        return by_name(&name, arguments, io);
    }
    match arguments.split_first() {
        None => {
            let _ = write!(io.err, "{USAGE_TEXT}");
            USAGE
        }
        Some((command, rest)) => match command.as_str() {
            "help" | "--help" | "-h" => answer(USAGE_TEXT, io),
            "version" | "--version" | "-V" => answer(&format!("allot {}\n", env!("CARGO_PKG_VERSION")), io),
            "serve" => serve::run(arguments, io),
            "database" => database::run(arguments, io),
            "demo" => demo::run(arguments, io),
            name if manual::NAMES.contains(&name) => manual::run(arguments, io),
            "install-links" => links::install(rest, &Program::ALL, io),
            name if client::NAMES.contains(&name) => client::run(arguments, io),
            name if questions::NAMES.contains(&name) => questions::run(arguments, io),
            _ if Program::from_name(command).is_some() => by_name(command, rest, io),
            _ => {
                let _ = write!(io.err, "Error: there is no command `{command}`\n\n{USAGE_TEXT}");
                USAGE
            }
        },
    }
}

fn answer(text: &str, io: &mut Io<'_>) -> u8 {
    if io.out.write_all(text.as_bytes()).is_ok() { SUCCESS } else { FAILURE }
}

/// Says what is wrong with a command line, or prints the help that was asked for; returns the exit status.
fn usage(error: &clap::Error, io: &mut Io<'_>) -> u8 {
    let stream: &mut dyn Write = if error.use_stderr() { io.err } else { io.out };
    let printed = write!(stream, "{}", error.render());
    if error.use_stderr() || printed.is_err() { USAGE } else { SUCCESS }
}

fn by_name(name: &str, arguments: &[String], io: &mut Io<'_>) -> u8 {
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
