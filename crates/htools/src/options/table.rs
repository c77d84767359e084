//! The table of all options.

use super::program::Program::{self, Hail, Hbal, Hcheck, Hinfo, Hroller, Hscan, Hspace, Hsqueeze};
use super::settings::Options;
use super::values::{self, Done};
use Argument::{None as NoArgument, Optional, Required};

/// A switch: sets a field of the options.
macro_rules! on {
    ($field:ident) => {
        |o, _| {
            o.$field = true;
            Ok(())
        }
    };
}

/// Keeps the value as it is in a field of the options.
macro_rules! keep {
    ($field:ident) => {
        |o, v| {
            o.$field = v.map(str::to_owned);
            Ok(())
        }
    };
}

/// Keeps a list of names in a field of the options.
macro_rules! names {
    ($field:ident) => {
        |o, v| {
            o.$field = values::list(v.unwrap_or_default());
            Ok(())
        }
    };
}

/// Keeps what is read from the value in a field of the options.
macro_rules! read {
    ($field:ident, $read:expr) => {
        |o, v| {
            o.$field = $read(v.unwrap_or_default())?;
            Ok(())
        }
    };
}

mod data;
mod moves;
mod others;

/// Argument of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Argument {
    /// No argument.
    None,
    /// A required value, attached or as the next word.
    Required(&'static str),
    /// An optional value, which must be attached.
    Optional(&'static str),
}

/// An option.
pub(super) struct Flag {
    pub(super) short: Option<char>,
    pub(super) long: &'static str,
    pub(super) argument: Argument,
    /// Kind of value, in the notation of `--help-completion`.
    pub(super) completion: &'static str,
    programs: &'static [Program],
    /// Whether it's Allotment's own option, which cannot be abbreviated.
    pub(super) own: bool,
    pub(super) help: &'static str,
    pub(super) effect: fn(&mut Options, Option<&str>) -> Done,
}

impl Flag {
    /// Whether only a deep search uses the option.
    pub(super) fn needs_deep_search(&self) -> bool {
        ["search-time", "search-rounds", "search-seed", "max-copies"].contains(&self.long)
    }
}

/// Options of a program, in the order of its help.
pub(super) fn flags(program: Program) -> impl Iterator<Item = &'static Flag> {
    let tables = [data::FLAGS, moves::FLAGS, others::FLAGS, STANDARD, OWN];
    tables.into_iter().flatten().filter(move |f| f.programs.contains(&program))
}

const fn option(
    short: Option<char>,
    long: &'static str,
    (argument, completion): (Argument, &'static str),
    programs: &'static [Program],
    help: &'static str,
    effect: fn(&mut Options, Option<&str>) -> Done,
) -> Flag {
    Flag { short, long, argument, completion, programs, own: false, help, effect }
}

const fn own(
    long: &'static str,
    value: (Argument, &'static str),
    programs: &'static [Program],
    help: &'static str,
    effect: fn(&mut Options, Option<&str>) -> Done,
) -> Flag {
    Flag { own: true, ..option(None, long, value, programs, help, effect) }
}

fn int(what: &'static str, text: &str) -> Result<i64, values::ValueError> {
    Ok(crate::number::read_int(what, text)?)
}

fn float(what: &'static str, text: &str) -> Result<f64, values::ValueError> {
    Ok(crate::number::read_float(what, text)?)
}

const NOTHING: (Argument, &str) = (NoArgument, "none");
const FILE: (Argument, &str) = (Required("FILE"), "file");
const INSTANCES: (Argument, &str) = (Required("INSTS"), "manyinstances");
const CHOICE: (Argument, &str) = (Optional("CHOICE"), "choices=yes,no");

const fn number(name: &'static str) -> (Argument, &'static str) {
    (Required(name), "float")
}

/// Programs that read a cluster from any source.
const READERS: &[Program] = &[Hbal, Hspace, Hcheck, Hinfo, Hroller];

/// Options of all programs.
static STANDARD: &[Flag] = &[
    option(Some('V'), "version", NOTHING, &Program::ALL, "print the version and stop", on!(version)),
    option(Some('h'), "help", NOTHING, &Program::ALL, "print this help and stop", on!(help)),
    option(
        None,
        "help-completion",
        NOTHING,
        &Program::ALL,
        "print the options for a shell to complete and stop",
        on!(help_completion),
    ),
];

/// Allotment's own options.
static OWN: &[Flag] = &[
    own("explain", NOTHING, &[Hail, Hbal], "explain the decision on standard error", on!(explain)),
    own("json", NOTHING, &[Hbal, Hcheck, Hroller], "print the result as JSON", on!(json)),
    own(
        "n1-initial",
        (Required("RULE"), "choices=reported,recorded"),
        &Program::ALL,
        "rule for nodes that fail N+1 at first: by free memory as reported (Ganeti 3.0) or as recorded (3.1); the default is \
         that of ALLOT_N1_INITIAL, or else reported",
        read!(n1_initial, values::initial_n1),
    ),
    own(
        "rapi-ca",
        FILE,
        &[Hbal, Hspace, Hcheck, Hinfo, Hroller, Hscan],
        "verify RAPI's certificate and host name, with the CA certificates in this PEM file",
        keep!(rapi_ca),
    ),
    own(
        "mond-port",
        (Required("PORT"), "integer"),
        &[Hail, Hbal, Hinfo],
        "with --mond, ask the daemons at this port instead of 1815",
        read!(mond_port, values::port),
    ),
    own(
        "repair-only",
        NOTHING,
        &[Hbal],
        "fix violations (offline nodes, N+1, tags) with as few moves as possible, without balancing",
        on!(repair_only),
    ),
    own(
        "ignore-offline",
        NOTHING,
        &[Hsqueeze],
        "require no capacity on offline nodes; without this, one that reports no memory makes every cluster too full",
        on!(ignore_offline),
    ),
    // The reference's other programs have this option. It's our own for `hcheck`, so `hcheck` doesn't accept
    // abbreviations of it.
    own(
        "static-kvm-node-memory",
        (Required("N"), "integer"),
        &[Hcheck],
        "memory used by the system of a KVM node; 0 for the value that the node reports",
        read!(static_kvm_node_memory, values::node_memory),
    ),
    own(
        "threads",
        (Required("N"), "integer"),
        &[Hail, Hbal, Hcheck, Hsqueeze],
        "use this many threads; 0 for one per core",
        read!(threads, values::threads),
    ),
    own(
        "search",
        (Required("MODE"), "choices=exact,deep"),
        &[Hbal, Hroller],
        "decide like Ganeti (exact, the default), or search longer for a better result (deep)",
        read!(search, values::search),
    ),
    own(
        "search-time",
        (Required("SECONDS"), "float"),
        &[Hbal],
        "with --search=deep, search for this time; the result depends on the machine",
        read!(search_time, values::search_time),
    ),
    own(
        "search-rounds",
        (Required("N"), "integer"),
        &[Hbal],
        "with --search=deep, search for N rounds (default 2000); the result is the same on every machine",
        read!(search_rounds, values::search_rounds),
    ),
    own(
        "search-seed",
        (Required("N"), "integer"),
        &[Hbal],
        "with --search=deep, seed of the random numbers; equal seeds give equal results",
        read!(search_seed, values::search_seed),
    ),
    own(
        "max-copies",
        (Required("N"), "string"),
        &[Hbal],
        "with --search=deep, copy the disks of instances at most N times; default: as often as without, with any number of migrations",
        read!(max_copies, values::max_copies),
    ),
];
