//! `allot serve`: runs the leasing service that the configuration describes.

mod assembly;
mod check;
mod defaults;
mod error;
mod files;
mod fleet;
mod hooks_file;
mod keystone;
mod listeners;
mod log;
mod log_queue;
mod reload;

use std::env;
use std::io;
use std::sync::Arc;

use ambient::SystemClock;
use clap::{Arg, ArgAction, Command};
use htools::io::{FAILURE, Io, SUCCESS, USAGE};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::config::{self, Configuration, Values};
use crate::screen::screen;
use check::Report;

pub(crate) use assembly::Assembly;
pub(crate) use error::{AssemblyError, ServeError};
pub(crate) use fleet::{Machines, cloud, state_file_beside};
pub(crate) use log::{finish_with, start as start_log};

pub(crate) fn command() -> Command {
    let command = Command::new("serve")
        .about("Run the leasing service")
        .after_help("docs/how-to/run-the-service.md has the first steps.");
    let check = Arg::new("check").long("check").action(ArgAction::SetTrue);
    let check = check.help(
        "Report all mistakes and warnings of the configuration and exit, with status 1 if there is a mistake",
    );
    config::flags(command).arg(check)
}

/// Runs the service until it is stopped. Returns the exit status, or an error in the command line.
pub(crate) fn run(arguments: &[String], io: &mut Io<'_>) -> Result<u8, clap::Error> {
    let command = screen(command(), "serve").name("allot serve").bin_name("allot serve");
    let matches = command.try_get_matches_from(arguments)?;
    let checks = matches.get_flag("check");
    let settings: reload::Settings = Arc::new(move || config::values(&matches, &|name| env::var_os(name)));
    if checks {
        return Ok(report_mistakes(&settings(), io));
    }
    Ok(match serve(settings(), settings) {
        Ok(()) => {
            log::finish();
            SUCCESS
        }
        Err(error) => {
            finish_with(&error, io.err);
            if matches!(error, ServeError::Config(_)) { USAGE } else { FAILURE }
        }
    })
}

fn report_mistakes(values: &Values, io: &mut Io<'_>) -> u8 {
    let checked = tokio::runtime::Runtime::new().map(|runtime| runtime.block_on(check::report(values)));
    let Report { mistakes, mut warnings } = checked.unwrap_or_else(|error| Report {
        mistakes: vec![ServeError::from(error).to_string()],
        warnings: Vec::new(),
    });
    warnings.extend(unknown_variables());
    for warning in warnings {
        let _ = writeln!(io.err, "Warning: {}", crate::shown::message(&warning));
    }
    if mistakes.is_empty() {
        return if writeln!(io.out, "The configuration is valid.").is_ok() { SUCCESS } else { FAILURE };
    }
    for mistake in mistakes {
        let _ = writeln!(io.err, "Error: {}", crate::shown::message(&mistake));
    }
    FAILURE
}

/// Warnings about environment variables that look like settings but aren't.
fn unknown_variables() -> impl Iterator<Item = String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = config::unknown_variables(names).into_iter();
    unknown.map(|name| {
        format!("environment variable {name} isn't a setting; `allot help serve` lists all settings")
    })
}

fn serve(values: Values, settings: reload::Settings) -> Result<(), ServeError> {
    let configuration = &Configuration::of(&values)?;
    start_log(&configuration.log.level, configuration.log.format)?;
    for warning in unknown_variables() {
        tracing::warn!("{warning}");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        // From here on SIGHUP doesn't end the process. A signal that arrives before a reload is possible
        // waits.
        let hangups = signal(SignalKind::hangup())?;
        prepare_machine();
        files::warn_of_modes(configuration, &values);
        files::warn_of_exposure(configuration);
        let start = reload::Start::new(values, configuration);
        let assembly = Assembly::new(configuration, Arc::new(SystemClock)).await?;
        let reloads = reload::by_signal(hangups, assembly.app().clone(), Arc::new(start), settings);
        let reloads = tokio::spawn(reloads);
        let stop = stop_by_signal()?;
        assembly.announce();
        tokio::select! {
            served = assembly.run(stop) => served,
            _ = reloads => Err(ServeError::TaskLost),
        }
    })
}

/// Removes temporary directories of killed processes, and makes child processes end with this one.
pub(crate) fn prepare_machine() {
    if let Some(program) = assembly::program() {
        ambient::use_helper(program);
    }
    match ambient::remove_abandoned() {
        Ok(found) => {
            for (path, removed) in found {
                match removed {
                    Ok(()) => tracing::info!(path = %path.display(), "abandoned directory removed"),
                    Err(error) => {
                        tracing::warn!(%error, path = %path.display(), "abandoned directory not removed");
                    }
                }
            }
        }
        Err(error) => tracing::warn!(%error, "abandoned directories not found"),
    }
}

/// Becomes true on the first SIGTERM or SIGINT, which the keyboard sends. The second one ends the process at
/// once.
pub(crate) fn stop_by_signal() -> io::Result<watch::Receiver<bool>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping, finishing requests and steps");
        sender.send_replace(true);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        // Acknowledged changes are stored, and the next start repeats the steps. Helpers of child processes
        // notice that this process has ended, and kill the children.
        tracing::warn!("stopping at once");
        log::finish();
        std::process::exit(1);
    });
    Ok(receiver)
}
