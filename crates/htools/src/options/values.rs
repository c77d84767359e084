//! Values of options, and errors in them.

use std::time::Duration;

use cluster::{DiskTemplate, InitialN1};
use placement::Search;
use placement::deep::CopyLimit;
use thiserror::Error;

use crate::data::bounded;
use crate::number::{NumberError, read_float, read_int};
use crate::units::{self, UnitError};

/// Columns of a table of nodes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum FieldSelection {
    /// The default columns.
    #[default]
    Default,
    /// The default columns, then these (`+a,b`).
    DefaultAnd(Vec<String>),
    /// Only these columns.
    Only(Vec<String>),
}

impl FieldSelection {
    /// Parses the argument of `--print-nodes`. A missing or empty argument selects the default columns.
    pub fn from_argument(argument: Option<&str>) -> Self {
        match argument {
            None | Some("") => Self::Default,
            Some(text) => match text.strip_prefix('+') {
                Some(more) => Self::DefaultAnd(list(more)),
                None => Self::Only(list(text)),
            },
        }
    }
}

/// Destination of commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintCommands {
    /// Standard output, after the results.
    Stdout,
    /// A file, by path.
    File(String),
}

/// Socket of the master daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LuxiSocket {
    /// The path that Ganeti uses by default.
    Default,
    /// A given path.
    Path(String),
}

/// Priority of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Runs after jobs with other priorities.
    Low,
    Normal,
    /// Runs before jobs with other priorities.
    High,
}

/// Shape of instances to allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocSpec {
    /// MiB.
    pub disk: i64,
    /// MiB.
    pub memory: i64,
    /// Virtual CPUs.
    pub cpus: i64,
    /// 1 if omitted.
    pub spindles: i64,
}

/// Error in an option's value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    #[error(transparent)]
    Number(#[from] NumberError),
    #[error("Invalid value of the max-cpu ratio, expected >0")]
    MaxCpu,
    #[error("Invalid value of the spindle-use (expected >= 0)")]
    SpindleUse,
    /// Neither yes nor no.
    #[error("Invalid choice '{0}', pass one of 'yes' or 'no'")]
    Choice(String),
    #[error("Unknown priority '{0}', pass one of 'low', 'normal' or 'high'")]
    Priority(String),
    #[error("Invalid string value for type DiskTemplate: {0:?}, pass one of {known}", known = DiskTemplate::names())]
    DiskTemplate(String),
    /// A shape has too few or too many elements.
    #[error("Invalid {kind} specification: '{text}', expected disk,ram,cpu")]
    SpecElements {
        /// `standard` or `tiered`.
        kind: &'static str,
        text: String,
    },
    /// Invalid size in a shape.
    #[error("{what}: {error}")]
    SpecSize {
        /// Name of the size.
        what: String,
        error: UnitError,
    },
    #[error("Unknown rule for --n1-initial '{0}', pass one of 'reported' or 'recorded'")]
    InitialN1(String),
    #[error("Unknown search '{0}', pass one of 'exact' or 'deep'")]
    Search(String),
    /// Not a positive number of seconds.
    #[error("search time: expected seconds above 0, not '{0}'")]
    SearchTime(String),
    /// Not a number of rounds, which is at least 1.
    #[error("rounds of the search: expected 1 or more, not '{0}'")]
    SearchRounds(String),
    #[error("seed of the search: expected 0 or more, not '{0}'")]
    SearchSeed(String),
    #[error("number of copies: expected 0 or more, or usual, not '{0}'")]
    MaxCopies(String),
    #[error("number of threads: expected 0 or more, not '{0}'")]
    Threads(String),
    #[error("port of monitoring daemons: expected 1 to 65535, not '{0}'")]
    Port(String),
}

pub(super) type Done = Result<(), ValueError>;

/// Splits a comma-separated list. An empty text is an empty list.
pub(super) fn list(text: &str) -> Vec<String> {
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::to_owned).collect() }
}

pub(super) fn choice(argument: Option<&str>) -> Result<bool, ValueError> {
    match argument {
        None | Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(other) => Err(ValueError::Choice(other.to_owned())),
    }
}

pub(super) fn priority(text: &str) -> Result<Priority, ValueError> {
    match text {
        "low" => Ok(Priority::Low),
        "normal" => Ok(Priority::Normal),
        "high" => Ok(Priority::High),
        _ => Err(ValueError::Priority(text.to_owned())),
    }
}

pub(super) fn max_cpu(text: &str) -> Result<f64, ValueError> {
    let ratio = read_float("parsing max-cpu", text)?;
    if ratio <= 0.0 { Err(ValueError::MaxCpu) } else { Ok(ratio) }
}

pub(super) fn spindle_use(text: &str) -> Result<i64, ValueError> {
    let number = read_int("parsing spindle-use", text)?;
    if number < 0 { Err(ValueError::SpindleUse) } else { Ok(bounded(number)) }
}

pub(super) fn node_memory(text: &str) -> Result<i64, ValueError> {
    Ok(bounded(read_int("static node memory", text)?))
}

pub(super) fn disk_template(text: &str) -> Result<DiskTemplate, ValueError> {
    DiskTemplate::from_name(text).ok_or_else(|| ValueError::DiskTemplate(text.to_owned()))
}

pub(crate) fn initial_n1(text: &str) -> Result<InitialN1, ValueError> {
    match text {
        "reported" => Ok(InitialN1::Reported),
        "recorded" => Ok(InitialN1::Recorded),
        _ => Err(ValueError::InitialN1(text.to_owned())),
    }
}

pub(super) fn search(text: &str) -> Result<Search, ValueError> {
    match text {
        "exact" => Ok(Search::Exact),
        "deep" => Ok(Search::Deep),
        _ => Err(ValueError::Search(text.to_owned())),
    }
}

pub(super) fn search_time(text: &str) -> Result<Option<Duration>, ValueError> {
    let refuse = || ValueError::SearchTime(text.to_owned());
    let seconds: f64 = text.parse().map_err(|_| refuse())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(Some(time)),
        _ => Err(refuse()),
    }
}

pub(super) fn search_rounds(text: &str) -> Result<Option<usize>, ValueError> {
    let rounds = text.parse().ok().filter(|rounds| *rounds > 0);
    rounds.map(Some).ok_or_else(|| ValueError::SearchRounds(text.to_owned()))
}

pub(super) fn search_seed(text: &str) -> Result<u64, ValueError> {
    text.parse().map_err(|_| ValueError::SearchSeed(text.to_owned()))
}

pub(super) fn max_copies(text: &str) -> Result<CopyLimit, ValueError> {
    match text {
        "usual" => Ok(CopyLimit::AsUsual),
        _ => text.parse().map(CopyLimit::AtMost).map_err(|_| ValueError::MaxCopies(text.to_owned())),
    }
}

pub(super) fn threads(text: &str) -> Result<usize, ValueError> {
    text.parse().map_err(|_| ValueError::Threads(text.to_owned()))
}

pub(super) fn port(text: &str) -> Result<u16, ValueError> {
    text.parse().ok().filter(|port| *port > 0).ok_or_else(|| ValueError::Port(text.to_owned()))
}

pub(super) fn alloc_spec(kind: &'static str, text: &str) -> Result<AllocSpec, ValueError> {
    let fields: Vec<&str> = text.split(',').collect();
    let (disk, memory, cpus, spindles) = match *fields.as_slice() {
        [disk, memory, cpus] => (disk, memory, cpus, "1"),
        [disk, memory, cpus, spindles] => (disk, memory, cpus, spindles),
        _ => return Err(ValueError::SpecElements { kind, text: text.to_owned() }),
    };
    let what = |part: &str| format!("{kind} specs {part}");
    let size =
        |part, text| units::parse(text).map_err(|error| ValueError::SpecSize { what: what(part), error });
    Ok(AllocSpec {
        disk: bounded(size("disk", disk)?),
        memory: bounded(size("memory", memory)?),
        cpus: bounded(read_int(&what("cpus"), cpus)?),
        spindles: bounded(read_int(&what("spindles"), spindles)?),
    })
}
