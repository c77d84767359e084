//! `cargo xtask bench`: what the programs cost.

mod calendar;
mod fill;
mod hostile;
mod hunts;
pub mod instructions;
mod leases;
mod measure;
mod placement;
mod quality;
mod scaling;
mod workload;

use anyhow::{Result, bail};

use crate::arguments::Arguments;

/// Runs the chore.
pub fn main(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("calendar") => calendar::main(arguments),
        Some("fill") => fill::main(arguments),
        Some("hostile") => hostile::main(arguments),
        Some("hunts") => hunts::main(arguments),
        Some("leases") => leases::main(arguments),
        Some("placement") => placement::main(arguments),
        Some("quality") => quality::main(arguments),
        Some("scaling") => scaling::main(arguments),
        Some("instructions") => instructions::main(arguments),
        Some("workload") => workload::main(arguments),
        _ => bail!(
            "bench what? calendar, fill, hostile, hunts, leases, placement, quality, scaling, instructions or workload"
        ),
    }
}
