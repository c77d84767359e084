//! `cargo xtask bench`: cost of the programs, and quality of their answers.

mod calendar;
mod exact;
mod fill;
mod hostile;
mod instructions;
mod leases;
mod measure;
mod placement;
mod quality;
mod scaling;
mod workload;

use std::process::ExitCode;

use anyhow::{Result, bail};
use chores::arguments::Arguments;
use chores::program;
use chores::stages::{self, Stage};
use chores::tally::Tally;

const HELP: &str = "\
Benchmarks of the programs' cost and of the quality of their answers.

Usage: bench BENCHMARK [OPTIONS]

cargo xtask --help lists all benchmarks. cargo xtask builds this program before it runs it.
";

/// Benches that are stages of `cargo xtask test`.
const STAGES: [Stage<Tally>; 1] = [("instructions", instructions::check)];

fn main() -> ExitCode {
    program::main(HELP, dispatch)
}

fn dispatch(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("calendar") => calendar::main(arguments),
        Some("fill") => fill::main(arguments),
        Some("hostile") => hostile::main(arguments),
        Some("hunts") => exact::hunts(arguments),
        Some("leases") => leases::main(arguments),
        Some("placement") => placement::main(arguments),
        Some("quality") => quality::main(arguments),
        Some("refusals") => exact::refusals(arguments),
        Some("scaling") => scaling::main(arguments),
        Some("instructions") => instructions::main(arguments),
        Some("workload") => workload::main(arguments),
        Some("test") => stages::main(arguments, &STAGES),
        _ => bail!(
            "bench what? calendar, fill, hostile, hunts, leases, placement, quality, refusals, scaling, instructions or workload"
        ),
    }
}
