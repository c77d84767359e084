//! Commands that talk to a running service: `lease`, `host`, `freepool`, `leasepool`, `floatingip`, `flavor`, `instance`,
//! `preemptible`, `maintenance`, `calendar`, `events`, `audit`, `usage`, `energy`, `doctor`.
//!
//! Nothing is decided here. A command turns arguments into one request or a few, and answers into a table, or
//! with `--json` passes them on as they are.

mod audit;
mod calendar;
mod connection;
mod dates;
mod doctor;
mod energy;
mod events;
mod flavor;
mod floating_ip;
mod free_pool;
mod host;
mod instance;
mod lease;
mod lease_pool;
mod login;
mod maintenance;
mod period;
mod preemptible;
mod requirement;
mod table;
mod usage;
mod wire;

use std::io::{self, Write};

use ambient::{Clock, SystemClock};
use clap::{Args, Parser, Subcommand};
use htools::io::{Io, SUCCESS};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use thiserror::Error;

use connection::{Connection, Target};
use login::Login;
use table::Style;

use crate::shown;

/// Exit status: the service says no.
const REFUSED: u8 = 1;
/// Exit status: the command line is wrong.
const USAGE: u8 = 2;
/// Exit status: the service cannot be reached, or what it answers makes no sense.
const UNREACHABLE: u8 = 3;

/// The words that begin such a command.
pub(crate) const NAMES: [&str; 15] = [
    "lease",
    "host",
    "freepool",
    "leasepool",
    "floatingip",
    "flavor",
    "instance",
    "preemptible",
    "maintenance",
    "calendar",
    "events",
    "audit",
    "usage",
    "energy",
    "doctor",
];

/// A command line.
#[derive(Debug, Parser)]
#[command(name = "allot", about = "Talks to a leasing service", disable_help_subcommand = true)]
pub(crate) struct Line {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Clone, Debug)]
struct Common {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    login: login::Arguments,
    /// Print the service's JSON
    #[arg(long, global = true)]
    json: bool,
    /// Read and show times in UTC instead of local time
    #[arg(long, global = true)]
    utc: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Leases: who has what from when to when
    #[command(subcommand)]
    Lease(lease::Command),
    /// Hosts that may be leased
    #[command(subcommand)]
    Host(host::Command),
    /// Where hosts are that nobody leases; for administrators
    #[command(subcommand, name = "freepool")]
    FreePool(free_pool::Command),
    /// Hosts of leases that run, as pools
    #[command(subcommand, name = "leasepool")]
    LeasePool(lease_pool::Command),
    /// Addresses that may be leased
    #[command(subcommand, name = "floatingip")]
    FloatingIp(floating_ip::Command),
    /// Sizes of instances that leases may name
    #[command(subcommand)]
    Flavor(flavor::Command),
    /// Instances that run in leases, or beside them, where there is no cloud
    #[command(subcommand)]
    Instance(instance::Command),
    /// Times for maintenance of hosts; for administrators
    #[command(subcommand)]
    Maintenance(maintenance::Command),
    /// Instances that make way for leases: when they do, and what they came to
    #[command(subcommand)]
    Preemptible(preemptible::Command),
    /// Who has which host when, drawn as a chart
    Calendar(calendar::Arguments),
    /// What happened
    Events(events::Arguments),
    /// Who did what; for administrators
    Audit(audit::Arguments),
    /// What was reserved and used, and what it costs
    Usage(usage::Arguments),
    /// Which hosts may be off when, and what that saves; for administrators
    #[command(subcommand)]
    Energy(energy::Command),
    /// Where what is stored and what the fleet shows differ; exit status 1 if they do
    Doctor(doctor::Arguments),
}

/// Why a command has no result.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// The service says no.
    #[error("{message}")]
    Refused { status: u16, message: String, hint: Option<String> },
    /// The service says no, and what could be had instead.
    #[error("{message}")]
    Offered { message: String, hint: Option<String>, offers: Vec<Value> },
    /// Nothing was done, and that is known.
    #[error("cannot reach the service at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// Whether something was done is not known.
    #[error("the answer of the service at {url} was lost, so look whether it was done: {reason}")]
    Lost { url: String, reason: String },
    /// Whatever answers there is no leasing service.
    #[error("the answer from {url} makes no sense: {reason}")]
    Nonsense { url: String, reason: String },
    /// An argument cannot be.
    #[error("{0}")]
    Usage(String),
    /// Waiting was in vain.
    #[error("{0}")]
    InVain(String),
    /// The results cannot be written.
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

impl ClientError {
    fn status(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Offered { .. } | Self::InVain(_) | Self::Output(_) => REFUSED,
            Self::Usage(_) => USAGE,
            Self::Unreachable { .. } | Self::Lost { .. } | Self::Nonsense { .. } => UNREACHABLE,
        }
    }

    /// What may help, where something is known to.
    fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint: Some(hint), .. } | Self::Offered { hint: Some(hint), .. } => Some(hint),
            Self::Refused { status: 401, .. } => {
                Some("log in with --token, with --user and --password, or at Keystone with --os-auth-url")
            }
            Self::Unreachable { .. } => Some("start one with `allot serve`, or name another with --url"),
            _ => None,
        }
    }
}

/// What every command needs.
pub(crate) struct Session<'a> {
    connection: Connection,
    json: bool,
    /// What times are read and shown in.
    zone: TimeZone,
    style: Style,
    out: &'a mut dyn Write,
}

impl Session<'_> {
    /// The present, by the service's clock: that of a demonstration runs faster than ours.
    async fn now(&self) -> Timestamp {
        self.connection.time().await.unwrap_or_else(|| SystemClock.now())
    }

    /// Prints a document as it came.
    fn print_json(&mut self, document: &Value) -> Result<(), ClientError> {
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        Ok(writeln!(self.out, "{}", shown::json(&text))?)
    }

    fn print(&mut self, text: &str) -> Result<(), ClientError> {
        Ok(writeln!(self.out, "{text}")?)
    }
}

/// A name as a part of an address.
fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(escaped).collect()
}

/// Carries out a command (its name first); returns the exit status.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> u8 {
    let words = std::iter::once("allot").chain(arguments.iter().map(String::as_str));
    let line = match Line::try_parse_from(words) {
        Ok(line) => line,
        Err(error) => return crate::usage(&error, io),
    };
    let outcome = perform(line, io.out);
    match outcome {
        Ok(()) => SUCCESS,
        // The reader went away: nobody is left to tell.
        Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => SUCCESS,
        Err(error) => {
            let _ = writeln!(io.err, "Error: {}", shown::message(&error.to_string()));
            if let Some(hint) = error.hint() {
                let _ = writeln!(io.err, "Hint: {}", shown::message(hint));
            }
            error.status()
        }
    }
}

fn perform(line: Line, out: &mut dyn Write) -> Result<(), ClientError> {
    let Common { target, login, json, utc } = line.common;
    let zone = if utc { TimeZone::UTC } else { TimeZone::system() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let connection = Connection::open(target, Login::new(login)?, json).await?;
        let mut session = Session { connection, json, zone, style: Style::of_output(), out };
        match line.command {
            Command::Lease(command) => lease::run(command, &mut session).await,
            Command::Host(command) => host::run(command, &mut session).await,
            Command::FloatingIp(command) => floating_ip::run(command, &mut session).await,
            Command::Flavor(command) => flavor::run(command, &mut session).await,
            Command::FreePool(command) => free_pool::run(command, &mut session).await,
            Command::LeasePool(command) => lease_pool::run(command, &mut session).await,
            Command::Instance(command) => instance::run(command, &mut session).await,
            Command::Maintenance(command) => maintenance::run(command, &mut session).await,
            Command::Calendar(arguments) => calendar::run(&arguments, &mut session).await,
            Command::Events(arguments) => events::run(&arguments, &mut session).await,
            Command::Audit(arguments) => audit::run(&arguments, &mut session).await,
            Command::Usage(arguments) => usage::run(&arguments, &mut session).await,
            Command::Preemptible(command) => preemptible::run(command, &mut session).await,
            Command::Energy(command) => energy::run(command, &mut session).await,
            Command::Doctor(arguments) => doctor::run(&arguments, &mut session).await,
        }
    })
}

/// A name and a value.
fn pair(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    if name.is_empty() { Err("write NAME=VALUE") } else { Ok((name.to_owned(), value.to_owned())) }
}

/// Such pairs as an object.
fn object(pairs: Vec<(String, String)>) -> serde_json::Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name, Value::String(value))).collect()
}
