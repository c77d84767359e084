//! `cargo xtask soak`: runs the differential comparison and feasibility with the fixed seeds that continuous
//! integration has no time for. After that, it verifies plans and compares with fresh seeds for hours.

use std::time::{Duration, Instant};

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places;
use chores::tally::Tally;

use crate::seeds::{self, Plan};
use crate::{feasibility, plans, stages};

/// End of the fixed seeds of the comparison. Each seed runs with all programs.
const SEEDS: u64 = 640;
/// End of the fixed seeds of feasibility.
const FILLINGS: u64 = 400;
/// Fraction of the time for verifying plans.
const PLANS: f64 = 0.25;

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
