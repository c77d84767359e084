//! `cargo xtask soak`: the differential comparison and feasibility with the fixed seeds that continuous integration has no
//! time for, then for hours with fresh seeds the verification of plans and the comparison.

use std::time::{Duration, Instant};

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places;
use chores::tally::Tally;

use crate::seeds::{self, Plan};
use crate::{feasibility, plans, stages};

/// Fixed seeds up to here are run, each with all programs.
const SEEDS: u64 = 640;
/// And clusters that are filled.
const FILLINGS: u64 = 400;
/// Share of the time in which plans are verified.
const PLANS: f64 = 0.25;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    let hours: f64 = arguments.value("--hours", 1.0)?;
    let mut plan = Plan::from_arguments(&mut arguments, 0)?;
    arguments.finish()?;
    let duration = Duration::from_secs_f64(hours * 3600.0);
    let until = Instant::now() + duration;
    plan.until = Some(until);
    let mut tally = Tally::default();
    if plan.seeds.is_empty() {
        println!("fixed seeds {}..{SEEDS}, and fillings {}..{FILLINGS}", stages::SEEDS, stages::FILLINGS);
        plan.seeds = stages::SEEDS..SEEDS;
        tally += seeds::run(&plan);
        tally += feasibility::run(&plan.pair.ours, stages::FILLINGS..FILLINGS);
        println!("verifying plans");
        tally += plans::run((Instant::now() + duration.mul_f64(PLANS)).min(until));
        plan.seeds = places::fresh_seed()..u64::MAX / 4;
    }
    println!("seeds from {} on, for {hours} hours", plan.seeds.start);
    tally += seeds::run(&plan);
    tally.conclude("soak")
}
