//! `cargo xtask soak`: the differential comparison and feasibility, first with the fixed seeds that continuous
//! integration has no time for, then with fresh ones for hours.

use std::time::{Duration, Instant};

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places;
use chores::tally::Tally;

use crate::seeds::{self, Plan};
use crate::{feasibility, stages};

/// Fixed seeds up to here are run, each with all programs.
const SEEDS: u64 = 640;
/// And clusters that are filled.
const FILLINGS: u64 = 400;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let hours: f64 = arguments.value("--hours", 1.0)?;
    let mut plan = Plan::from_arguments(&mut arguments, 0)?;
    arguments.finish()?;
    plan.until = Some(Instant::now() + Duration::from_secs_f64(hours * 3600.0));
    let mut tally = Tally::default();
    if plan.seeds.is_empty() {
        println!("fixed seeds {}..{SEEDS}, and fillings {}..{FILLINGS}", stages::SEEDS, stages::FILLINGS);
        plan.seeds = stages::SEEDS..SEEDS;
        tally += seeds::run(&plan);
        tally += feasibility::run(&plan.pair.ours, stages::FILLINGS..FILLINGS);
        plan.seeds = places::fresh_seed()..u64::MAX / 4;
    }
    println!("seeds from {} on, for {hours} hours", plan.seeds.start);
    tally += seeds::run(&plan);
    tally.conclude("soak")
}
