//! Stages of `cargo xtask test` that compare, and how much of each runs on every change.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chores::places;
use chores::run::Executable;
use chores::stages::{Outcome, Stage};
use chores::tally::Tally;

use crate::compare::Pair;
use crate::generate::model::Program;
use crate::generate::wide::Space;
use crate::seeds::{self, Plan};
use crate::{captures, execution, feasibility, vectors};

/// Number of seeds of the differential comparison, each with all programs. [`crate::soak`] continues from
/// there.
pub const SEEDS: u64 = 120;
/// Number of clusters that feasibility fills. [`crate::soak`] continues from there.
pub const FILLINGS: u64 = 100;
/// Time limit of a case. The reference exceeds it now and then.
const CASE_SECONDS: u64 = 4;

pub const STAGES: [Stage<Outcome>; 6] = [
    ("execution", |ours| {
        execution::run(&places::reference()?, ours, 0..execution::SEEDS).map(Outcome::Counted)
    }),
    ("differential", |ours| differential(ours).map(Outcome::Counted)),
    ("feasibility", |ours| Ok(Outcome::Counted(feasibility::run(ours, 0..FILLINGS)))),
    ("recorded jobs", |ours| with_shared(|shared| execution::replay(ours, shared))),
    ("vectors", |ours| with_shared(|shared| vectors::run(ours, shared))),
    ("captures", |ours| with_shared(|shared| captures::run(ours, &places::reference()?, shared))),
];

fn differential(ours: &Executable) -> Result<Tally> {
    let limit = Duration::from_secs(CASE_SECONDS);
    let pair = Pair { reference: places::reference()?, ours: ours.clone(), limit };
    Ok(seeds::run(&Plan {
        pair,
        seeds: 0..SEEDS,
        space: Space::Small,
        programs: Program::ALL.to_vec(),
        until: None,
    }))
}

fn with_shared(check: impl FnOnce(&Path) -> Result<Tally>) -> Result<Outcome> {
    match places::shared() {
        Some(shared) => check(&shared).map(Outcome::Counted),
        None => Ok(Outcome::Skipped("../shared (or $ALLOT_SHARED) is not there")),
    }
}
