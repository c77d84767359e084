//! Commands that talk to a running service: `lease`, `host`, `freepool`, `leasepool`, `floatingip`, `flavor`,
//! `instance`, `preemptible`, `maintenance`, `availability`, `calendar`, `events`, `audit`, `usage`,
//! `capacity`, `energy`, `settings`, `doctor`, `whoami`.
//!
//! The client makes no decisions. A command turns its arguments into one or a few requests, and the responses
//! into a table. With `-o json`, it prints the responses unchanged.

mod ask;
mod audit;
mod availability;
mod calendar;
mod capacity;
mod confirm;
mod connecting;
mod connection;
mod dates;
mod doctor;
mod energy;
mod events;
#[cfg(test)]
mod every_table;
mod failure;
mod flavor;
mod floating_ip;
mod free_pool;
mod host;
mod identify;
mod instance;
mod lease;
mod lease_pool;
mod login;
mod maintenance;
mod name_value;
mod named;
pub(crate) mod names;
mod options;
mod period;
mod policy;
mod preemptible;
mod requirement;
mod settings;
mod sizes;
pub(crate) mod table;
mod usage;
mod whoami;
mod wire;

use std::io::{self, Read, Write};

use ambient::{Clock, SystemClock};
use clap::builder::{FalseyValueParser, Resettable};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use htools::io::{Io, SUCCESS};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

pub(crate) use connecting::topic as connecting;
use connection::segment;
pub(crate) use connection::{Connection, Target};
use dates::{of_answer, show, show_brief, zone_name};
pub(crate) use failure::ClientError;
pub(crate) use login::{Arguments as LoginArguments, Login};
pub(crate) use named::{Named, names};
pub(crate) use names::NAMES;
pub(crate) use table::Format;
use table::{Rendered, Style, Table};

use crate::screen::screen;
use crate::shown;

/// Note about a login at a service without authentication.
const LOGIN_IGNORED: &str =
    "Note: your login is ignored: this service has no authentication, and every client is the administrator";

/// A command line.
#[derive(Debug, Parser)]
#[command(name = "allot", about = "Talk to a leasing service", disable_help_subcommand = true)]
pub(crate) struct Line {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Clone, Debug)]
struct Common {
    #[command(flatten)]
    output: Output,
    /// Never prompt on the terminal; by default, it prompts for offers, confirmations and passwords
    #[arg(
        long,
        global = true,
        env = "ALLOT_NO_INPUT",
        value_parser = FalseyValueParser::new(),
        help_heading = "Output"
    )]
    no_input: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    login: login::Arguments,
}

/// Format of results.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
struct Output {
    /// Print the service's JSON; the same as -o json
    #[arg(long, global = true)]
    json: bool,
    /// Format of results
    #[arg(
        short = 'o',
        long = "output",
        id = "output",
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    format: Format,
    /// Columns of tables, in this order, by heading: NAME,STATUS,ID
    #[arg(long, global = true, value_name = "NAME,...", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Print tables without headings
    #[arg(long, global = true)]
    no_header: bool,
    /// Read and show times in UTC instead of local time
    #[arg(long, global = true)]
    utc: bool,
}

impl Output {
    fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List, create, change and delete leases
    #[command(subcommand)]
    Lease(lease::Command),
    /// List, add, change and remove hosts for leases
    #[command(subcommand)]
    Host(host::Command),
    /// Manage pools of hosts that aren't leased
    #[command(subcommand, name = "freepool")]
    FreePool(free_pool::Command),
    /// Manage the hosts of running leases as pools
    #[command(subcommand, name = "leasepool")]
    LeasePool(lease_pool::Command),
    /// List, add and remove floating IPs for leases
    #[command(subcommand, name = "floatingip")]
    FloatingIp(floating_ip::Command),
    /// List, create and delete sizes of instances
    #[command(subcommand)]
    Flavor(flavor::Command),
    /// Start, list and delete instances without a cloud
    #[command(subcommand)]
    Instance(instance::Command),
    /// Find and book times for maintenance of hosts
    #[command(subcommand)]
    Maintenance(maintenance::Command),
    /// Show instances that leases preempt, and their work
    #[command(subcommand)]
    Preemptible(preemptible::Command),
    /// Show free capacity over time
    Availability(availability::Arguments),
    /// Draw a calendar of host reservations
    Calendar(calendar::Arguments),
    /// Show past events, and follow new ones
    Events(events::Arguments),
    /// Show the audit log
    Audit(audit::Arguments),
    /// Show reserved and used capacity, and its cost
    Usage(usage::Arguments),
    /// Show refused requests that more capacity would have met
    Capacity(capacity::Arguments),
    /// Show when hosts can be off, and the energy saved
    #[command(subcommand)]
    Energy(energy::Command),
    /// Show the settings of the service
    Settings(settings::Arguments),
    /// Compare the database with the machines
    ///
    /// The exit status is 1 if they differ.
    Doctor(doctor::Arguments),
    /// Show your user, project and roles, and the service
    Whoami,
}

/// Connection, streams and settings of a running command.
pub(crate) struct Session<'a> {
    connection: Connection,
    /// Time zone for reading and showing times.
    zone: TimeZone,
    style: Style,
    /// Whether a person can answer prompts.
    may_ask: bool,
    stdin: &'a mut dyn Read,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Session<'_> {
    /// Current time by the service's clock, which runs faster than ours in a demo.
    async fn now(&self) -> Timestamp {
        self.connection.time().await.unwrap_or_else(|| SystemClock.now())
    }

    /// Prints a response: unchanged for programs that read documents, otherwise as a table.
    fn print_answer(
        &mut self,
        answer: &Value,
        table: impl FnOnce() -> Result<Table, ClientError>,
    ) -> Result<(), ClientError> {
        if self.wants_document() { self.print_json(answer) } else { self.print_table(&table()?) }
    }

    /// Time of the last response, by the service's clock.
    fn answered(&self) -> Timestamp {
        self.connection.answered().unwrap_or_else(|| SystemClock.now())
    }

    fn print_table(&mut self, table: &Table) -> Result<(), ClientError> {
        let notes = self.print_rows(table)?;
        for note in &notes {
            self.note(note);
        }
        Ok(())
    }

    /// Prints a table, and returns its notes.
    fn print_rows(&mut self, table: &Table) -> Result<Vec<String>, ClientError> {
        let Rendered { text, notes } = table.render(&self.style, &self.zone, self.answered())?;
        if !text.is_empty() {
            self.print(&text)?;
        }
        Ok(notes)
    }

    /// Prints a document as JSON or YAML.
    fn print_json(&mut self, document: &Value) -> Result<(), ClientError> {
        if self.style.format == Format::Yaml {
            return Ok(write!(self.out, "{}", serde_yaml_ng::to_string(document).unwrap_or_default())?);
        }
        let text = serde_json::to_string_pretty(document).unwrap_or_default();
        Ok(writeln!(self.out, "{}", shown::json(&text))?)
    }

    fn print(&mut self, text: &str) -> Result<(), ClientError> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// Prints a message about success. Programs rely on the exit status instead.
    fn done(&mut self, text: &str) -> Result<(), ClientError> {
        if self.is_for_people() { self.print(text) } else { Ok(()) }
    }

    /// Whether results are JSON or YAML documents rather than tables.
    fn wants_document(&self) -> bool {
        matches!(self.style.format, Format::Json | Format::Yaml)
    }

    fn is_for_people(&self) -> bool {
        matches!(self.style.format, Format::Table | Format::Wide)
    }

    fn note_to_people(&mut self, text: &str) {
        if self.is_for_people() {
            self.note(text);
        }
    }

    /// Formats a date in a response like tables do.
    fn brief(&self, date: &str) -> String {
        let now = self.answered();
        let is_brief = self.style.is_brief();
        let shown = |at| if is_brief { show_brief(at, now, &self.zone, false) } else { show(at, &self.zone) };
        of_answer(date).map_or_else(|| date.to_owned(), shown)
    }

    fn note_zone(&mut self) {
        self.note_to_people(&format!("Times are {}.", zone_name(&self.zone)));
    }

    /// Streams for a prompt.
    fn io(&mut self) -> Io<'_> {
        Io { stdin: &mut *self.stdin, out: &mut *self.out, err: &mut *self.err }
    }

    /// Reports an error that doesn't end the command.
    fn report(&mut self, error: ClientError) {
        let error = error.with_texts(&|text| dates::with_local_dates(&text, &self.zone));
        let _ = self.out.flush();
        report(&error.to_string(), error.hint(), &mut self.io());
    }

    /// Prints a note to standard error, apart from the results.
    fn note(&mut self, text: &str) {
        let _ = self.out.flush();
        let _ = writeln!(self.err, "{}", shown::message(text));
    }
}

/// Calls `act` for each name. A refusal doesn't stop the remaining ones; an unreachable service does.
async fn with_each(
    names: &[String],
    session: &mut Session<'_>,
    mut act: impl AsyncFnMut(&str, &mut Session<'_>) -> Result<(), ClientError>,
) -> Result<(), ClientError> {
    let mut failed = Vec::new();
    for name in names {
        match act(name, session).await {
            Ok(()) => {}
            Err(error @ ClientError::Output(_)) => return Err(error),
            Err(error) => {
                let goes_on = error.status() == failure::REFUSED;
                failed.push((name.clone(), error));
                if !goes_on {
                    break;
                }
            }
        }
    }
    outcome(names.len(), failed)
}

/// Result of `of` operations, given the failed ones.
fn outcome(of: usize, mut failed: Vec<(String, ClientError)>) -> Result<(), ClientError> {
    match failed.len() {
        0 => Ok(()),
        1 if of == 1 => failed.pop().map_or(Ok(()), |(_, error)| Err(error)),
        _ => Err(ClientError::Several { of, failed }),
    }
}

/// Whether a word is an option that all commands have: `--url`, `--url=URL`, `-o`.
pub(crate) fn is_option(word: &str) -> bool {
    let command = Line::command();
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let short = name.strip_prefix('-').and_then(|letters| letters.chars().next());
    let is_named = |arg: &clap::Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => short.is_some() && arg.get_short() == short,
    };
    command.get_arguments().any(is_named)
}

/// Runs the command that the first argument names. Options of all commands can precede it. Returns the exit status, or an
/// error in the command line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let words = std::iter::once("allot").chain(arguments.iter().map(String::as_str));
    let matches = without_empty_variables(screen(Line::command(), "")).try_get_matches_from(words);
    let line = matches.and_then(|matches| Line::from_arg_matches(&matches))?;
    let as_json = line.common.output.format() == Format::Json;
    let outcome = perform(line, io);
    Ok(match outcome {
        Ok(()) => SUCCESS,
        Err(error @ ClientError::Declined) => error.status(),
        // The reader is gone, so the error has no recipient.
        Err(ClientError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => SUCCESS,
        Err(error) => {
            // Offers are printed before their refusal.
            let _ = io.out.flush();
            if as_json {
                let _ = writeln!(io.err, "{}", shown::json(&json!({"error": error.document()}).to_string()));
                return Ok(error.status());
            }
            let failed = match &error {
                ClientError::Several { failed, .. } => failed.as_slice(),
                _ => &[],
            };
            for (name, error) in failed {
                report(&format!("{name}: {error}"), error.hint(), io);
            }
            report(&error.to_string(), error.hint(), io);
            error.status()
        }
    })
}

fn report(error: &str, hint: Option<&str>, io: &mut Io<'_>) {
    let _ = writeln!(io.err, "Error: {}", shown::message(error));
    if let Some(hint) = hint {
        let _ = writeln!(io.err, "Hint: {}", shown::message(hint));
    }
}

/// Treats an empty environment variable as unset, since some scripts can't unset variables.
pub(crate) fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        if value.is_some_and(|value| value.is_empty()) { arg.env(Resettable::Reset) } else { arg }
    })
}

/// Time zone for reading and showing times: the user's own, or UTC if `utc` is set or the user's is unknown.
fn zone(utc: bool, err: &mut dyn Write) -> TimeZone {
    if utc {
        return TimeZone::UTC;
    }
    TimeZone::try_system().unwrap_or_else(|_| {
        let named = std::env::var_os("TZ").filter(|name| !name.is_empty());
        let why = match named {
            Some(name) => format!("unknown time zone TZ={}", name.to_string_lossy()),
            None => "this machine's time zone is unknown".to_owned(),
        };
        let _ = writeln!(err, "Warning: {}; times are UTC", shown::message(&why));
        TimeZone::UTC
    })
}

fn perform(line: Line, io: &mut Io<'_>) -> Result<(), ClientError> {
    let Common { target, mut login, output, no_input } = line.common;
    let format = output.format();
    let Output { columns, no_header, utc, .. } = output;
    let draws = match &line.command {
        Command::Calendar(_) | Command::Events(_) | Command::Doctor(_) => true,
        Command::Energy(command) => matches!(command, energy::Command::Plan(_)),
        _ => false,
    };
    if draws && matches!(format, Format::Csv | Format::Name) {
        let message = "-o csv and -o name are for commands that print a table; use -o json";
        return Err(ClientError::Usage(message.to_owned()));
    }
    let zone = zone(utc, io.err);
    let style = Style::of_output(format, columns, no_header);
    if !no_input {
        login.ask_password(io)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = zone.clone();
    let with_login = login.is_given();
    let outcome = runtime.block_on(async {
        let connection = Connection::open(target, Login::new(login)?, format == Format::Json).await?;
        let may_ask = ask::may_ask(no_input);
        let (stdin, out, err) = (&mut *io.stdin, &mut *io.out, &mut *io.err);
        let mut session = Session { connection, zone, style, may_ask, stdin, out, err };
        if with_login && session.connection.is_open().await {
            session.note(LOGIN_IGNORED);
        }
        match line.command {
            Command::Lease(command) => lease::run(command, &mut session).await,
            Command::Host(command) => host::run(command, &mut session).await,
            Command::FloatingIp(command) => floating_ip::run(command, &mut session).await,
            Command::Flavor(command) => flavor::run(command, &mut session).await,
            Command::FreePool(command) => free_pool::run(command, &mut session).await,
            Command::LeasePool(command) => lease_pool::run(command, &mut session).await,
            Command::Instance(command) => instance::run(command, &mut session).await,
            Command::Maintenance(command) => maintenance::run(command, &mut session).await,
            Command::Availability(arguments) => availability::run(&arguments, &mut session).await,
            Command::Calendar(arguments) => calendar::run(&arguments, &mut session).await,
            Command::Events(arguments) => events::run(&arguments, &mut session).await,
            Command::Audit(arguments) => audit::run(&arguments, &mut session).await,
            Command::Settings(arguments) => settings::run(&arguments, &mut session).await,
            Command::Usage(arguments) => usage::run(&arguments, &mut session).await,
            Command::Capacity(arguments) => capacity::run(&arguments, &mut session).await,
            Command::Preemptible(command) => preemptible::run(command, &mut session).await,
            Command::Energy(command) => energy::run(command, &mut session).await,
            Command::Doctor(arguments) => doctor::run(&arguments, &mut session).await,
            Command::Whoami => whoami::run(&mut session).await,
        }
    });
    outcome.map_err(|error| error.with_texts(&|text| dates::with_local_dates(&text, &local)))
}
