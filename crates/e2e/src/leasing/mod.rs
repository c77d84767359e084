//! `cargo xtask leasing`: tests of the leasing service as a process. It is driven by stock clients, by other
//! projects' test programs and by concurrent requests, through power cuts, and as several services on one
//! database.
//!
//! These tests don't use the service's code. They rely on the specification of Blazar's API and on the
//! service's documented extensions.

pub mod acknowledged;
pub(crate) mod clients;
pub mod date;
pub(crate) mod fleet;
mod gabbi;
pub mod hooks;
pub mod http;
mod message_bus;
pub(crate) mod overlap;
mod processes;
mod race;
pub(crate) mod replicas;
mod schemathesis;
pub mod server;
pub(crate) mod soak;
pub(crate) mod span;

use anyhow::{Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use chores::stages::Stage;
use chores::tally::Tally;

/// Rounds of each race in continuous integration.
const RACES: usize = 10;
/// Rounds of faults with several services in continuous integration.
const REPLICA_ROUNDS: usize = 1;
/// Seed in continuous integration. The soak uses other seeds.
const SEED: u64 = 1;

/// All stages, the cheapest first.
pub const STAGES: [Stage<Tally>; 7] = [
    ("races", |ours| race::run(ours, SEED, RACES)),
    ("gabbi", gabbi::run),
    ("schemathesis", schemathesis::run),
    ("processes", processes::run),
    ("message bus", message_bus::run),
    ("replicas", |ours| replicas::run(ours, SEED, REPLICA_ROUNDS)),
    ("clients", clients::run),
];

pub(crate) fn main(mut arguments: Arguments) -> Result<()> {
    let ours = arguments.text("--ours")?.map(Executable::new);
    let word = arguments.word();
    arguments.finish()?;
    let wanted: Vec<Stage<Tally>> =
        STAGES.into_iter().filter(|(name, _)| word.as_deref().is_none_or(|word| word == *name)).collect();
    if wanted.is_empty() {
        let names: Vec<&str> = STAGES.iter().map(|(name, _)| *name).collect();
        bail!("leasing what? {} or nothing for all", names.join(", "));
    }
    let ours = ours.map_or_else(places::ours, Ok)?;
    let mut tally = Tally::default();
    for (name, stage) in wanted {
        let of_stage = stage(&ours)?;
        println!("{name}: {of_stage}");
        tally += of_stage;
    }
    tally.conclude("leasing")
}
