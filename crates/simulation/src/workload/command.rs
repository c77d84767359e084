//! The command line of replays.

use std::path::PathBuf;

use serde::Serialize;
use thiserror::Error;

use super::{Arrivals, Figures, Pace, ReplayError, Trace, TraceError, Variant, replay};

pub const USAGE: &str = "simulation workload [--swf FILE]... [--lwf FILE]... [--arrivals FILE] [--every N] \
                         [--variant NAME] [--limit JOBS] [--seed N]";

/// Errors of the command.
#[derive(Debug, Error)]
pub enum CommandError {
    /// Invalid arguments.
    #[error("{0}; usage: {USAGE}")]
    Usage(String),
    /// A file can't be read.
    #[error("cannot read {}: {source}", .path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// A file isn't a valid trace.
    #[error("{}: {source}", .path.display())]
    Trace { path: PathBuf, source: TraceError },
    /// The replay failed.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The figures can't be serialized.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// The printed line of JSON.
#[derive(Serialize)]
struct Line {
    variant: &'static str,
    jobs: usize,
    cancelled: usize,
    #[serde(flatten)]
    figures: Figures,
}

/// Reads traces, replays them together, and returns the figures as a line of JSON.
pub fn command(arguments: &[String]) -> Result<String, CommandError> {
    let usage = CommandError::Usage;
    let (mut trace, mut variant, mut limit, mut seed) = (Trace::default(), Variant::ALL[0], usize::MAX, 1);
    let (mut arrivals, mut every) = (None, 1);
    let mut arguments = arguments.iter();
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| usage(format!("{flag} needs a value")))?;
        let number = || value.parse().map_err(|_| usage(format!("{flag} cannot be '{value}'")));
        match flag.as_str() {
            "--swf" => trace = trace.with(read(value, Trace::from_swf)?),
            "--lwf" => trace = trace.with(read(value, Trace::from_lwf)?),
            "--arrivals" => arrivals = Some(value),
            "--every" => every = value.parse().map_err(|_| usage(format!("{flag} cannot be '{value}'")))?,
            "--variant" => {
                let unknown = || usage(format!("no variant is called '{value}'"));
                variant = Variant::from_name(value).ok_or_else(unknown)?;
            }
            "--limit" => limit = number()?,
            "--seed" => seed = value.parse().map_err(|_| usage(format!("{flag} cannot be '{value}'")))?,
            _ => return Err(usage(format!("'{flag}' is not understood"))),
        }
    }
    let trace = trace.first(limit);
    let arrivals = match arrivals {
        Some(path) => read(path, |text| Arrivals::from_csv(text, every))?,
        None => Arrivals::default(),
    };
    let figures = replay(&trace, &arrivals, &variant, &Pace::default(), seed)?;
    let line = Line { variant: variant.name, jobs: trace.jobs.len(), cancelled: trace.cancelled, figures };
    Ok(serde_json::to_string(&line)?)
}

fn read<T>(path: &str, parse: impl Fn(&str) -> Result<T, TraceError>) -> Result<T, CommandError> {
    let path = PathBuf::from(path);
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(|source| CommandError::Trace { path, source }),
        Err(source) => Err(CommandError::File { path, source }),
    }
}
