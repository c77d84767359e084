//! Values of options, and what may be wrong with them.

use std::time::Duration;

use cluster::{DiskTemplate, InitialN1};
use placement::Search;
use placement::deep::CopyLimit;
use thiserror::Error;

use crate::number::{NumberError, read_float, read_int};
use crate::units::{self, UnitError};

/// Which columns a table of nodes has.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum FieldSelection {
    /// The usual ones.
    #[default]
    Default,
    /// The usual ones, then these (`+a,b`).
    DefaultAnd(Vec<String>),
    /// These.
    Only(Vec<String>),
}

impl FieldSelection {
    /// Reads the argument of `--print-nodes`; none, or an empty one, means the usual columns.
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

/// Where commands go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintCommands {
    /// To standard output, after the results.
    Stdout,
    /// To a file.
    File(String),
}

/// The socket of the master daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LuxiSocket {
    /// Where it usually is.
    Default,
    /// Somewhere else.
    Path(String),
}

/// Priority of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// After others.
    Low,
    /// As usual.
    Normal,
    /// Before others.
    High,
}

/// The shape of instances to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocSpec {
    /// Disk, MiB.
    pub disk: i64,
    /// Memory, MiB.
    pub memory: i64,
    /// Virtual CPUs.
    pub cpus: i64,
    /// Spindles.
    pub spindles: i64,
}

/// What is wrong with an option's value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Not a number.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Not a positive ratio.
    #[error("Invalid value of the max-cpu ratio, expected >0")]
    MaxCpu,
    /// A negative number.
    #[error("Invalid value of the spindle-use (expected >= 0)")]
    SpindleUse,
    /// Neither yes nor no.
    #[error("Invalid choice '{0}', pass one of 'yes' or 'no'")]
    Choice(String),
    /// No such priority.
    #[error("Unknown priority '{0}'")]
    Priority(String),
    /// No such template.
    #[error("Invalid string value for type DiskTemplate: {0:?}")]
    DiskTemplate(String),
    /// A shape with too few or too many elements.
    #[error("Invalid {kind} specification: '{text}', expected disk,ram,cpu")]
    SpecElements {
        /// Which shape.
        kind: &'static str,
        /// The text.
        text: String,
    },
    /// A size in a shape.
    #[error("{what}: {error}")]
    SpecSize {
        /// Which size.
        what: String,
        /// Why.
        error: UnitError,
    },
    /// No such rule.
    #[error("Unknown rule for --n1-initial '{0}', pass one of 'reported' or 'recorded'")]
    InitialN1(String),
    /// Not a way to search.
    #[error("Unknown search '{0}', pass one of 'exact' or 'deep'")]
    Search(String),
    /// Not a time that a search can take.
    #[error("search time: expected seconds above 0, not '{0}'")]
    SearchTime(String),
    /// Not a number of rounds.
    #[error("rounds of the search: expected 1 or more, not '{0}'")]
    SearchRounds(String),
    /// Not a seed.
    #[error("seed of the search: expected 0 or more, not '{0}'")]
    SearchSeed(String),
    /// Not a number of copies.
    #[error("number of copies: expected 0 or more, or usual, not '{0}'")]
    MaxCopies(String),
    /// Not a number of threads.
    #[error("number of threads: expected 0 or more, not '{0}'")]
    Threads(String),
    /// Not a port.
    #[error("port of monitoring daemons: expected 1 to 65535, not '{0}'")]
    Port(String),
}

pub(super) type Done = Result<(), ValueError>;

/// A comma-separated list; an empty text is an empty list.
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
    if number < 0 { Err(ValueError::SpindleUse) } else { Ok(number) }
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
        disk: size("disk", disk)?,
        memory: size("memory", memory)?,
        cpus: read_int(&what("cpus"), cpus)?,
        spindles: read_int(&what("spindles"), spindles)?,
    })
}
