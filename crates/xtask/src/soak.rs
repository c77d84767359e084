//! `cargo xtask soak`: the differential comparison and feasibility, first with the fixed seeds that continuous
//! integration has no time for, then with fresh ones for hours; `cargo xtask soak leases`: the leasing service.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::arguments::Arguments;
use crate::differential::{self, Plan};
use crate::tally::Tally;
use crate::{feasibility, leasing, places, test};

/// Fixed seeds up to here are run, each with all programs.
const SEEDS: u64 = 640;
/// And clusters that are filled.
const FILLINGS: u64 = 400;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    if arguments.switch("leases") {
        return leasing::soak::main(arguments);
    }
    let hours: f64 = arguments.value("--hours", 1.0)?;
    let mut plan = Plan::from_arguments(&mut arguments, 0)?;
    arguments.finish()?;
    plan.until = Some(Instant::now() + Duration::from_secs_f64(hours * 3600.0));
    let mut tally = Tally::default();
    if plan.seeds.is_empty() {
        println!("fixed seeds {}..{SEEDS}, and fillings {}..{FILLINGS}", test::SEEDS, test::FILLINGS);
        plan.seeds = test::SEEDS..SEEDS;
        tally += differential::run(&plan);
        tally += feasibility::run(&plan.pair.ours, test::FILLINGS..FILLINGS);
        plan.seeds = places::fresh_seed()..u64::MAX / 4;
    }
    println!("seeds from {} on, for {hours} hours", plan.seeds.start);
    tally += differential::run(&plan);
    tally.conclude("soak")
}
