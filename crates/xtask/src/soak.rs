//! `cargo xtask soak`: the differential comparison with fresh seeds for hours; `cargo xtask soak leases`: the
//! leasing service.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::arguments::Arguments;
use crate::differential::{self, Plan};
use crate::{leasing, places};

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    if arguments.switch("leases") {
        return leasing::soak::main(arguments);
    }
    let hours: f64 = arguments.value("--hours", 1.0)?;
    let mut plan = Plan::from_arguments(&mut arguments, 0)?;
    arguments.finish()?;
    if plan.seeds.is_empty() {
        plan.seeds = places::fresh_seed()..u64::MAX / 4;
    }
    plan.until = Some(Instant::now() + Duration::from_secs_f64(hours * 3600.0));
    println!("seeds from {} on, for {hours} hours", plan.seeds.start);
    differential::run(&plan).conclude("soak")
}
