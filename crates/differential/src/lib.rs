//! The reference and ours on generated and on recorded input.
//!
//! It runs both as programs and knows the code of neither, so that a fault of the engine cannot hide itself from the
//! comparison. What is `pub` is for chores of other crates: to measure on generated clusters, to compare at a real cluster.

mod captures;
pub mod compare;
mod execution;
mod feasibility;
pub mod generate;
mod json;
mod kinds;
pub mod known;
mod live;
mod luxi_server;
pub mod outcome;
mod plans;
mod seeds;
mod shrink;
mod soak;
mod stages;
mod vectors;
mod write_case;
mod write_cluster;

use std::process::ExitCode;

use anyhow::{Result, bail};
use chores::arguments::Arguments;

pub use execution::mask;
pub use stages::STAGES;

const HELP: &str = "\
The reference and ours on generated and on recorded input.

Usage: differential differential|soak|vectors|captures|execution|feasibility|case|serve|cluster [OPTIONS]

cargo xtask --help has the options, and cargo xtask builds this program before it runs it.
";

/// Runs the chore that the command line names.
pub fn main() -> ExitCode {
    chores::program::main(HELP, dispatch)
}

fn dispatch(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("differential") => seeds::main(arguments),
        Some("soak") => soak::main(arguments),
        Some("vectors") => vectors::main(arguments),
        Some("captures") => captures::main(arguments),
        Some("execution") => execution::main(arguments),
        Some("feasibility") => feasibility::main(arguments),
        Some("case") => write_case::main(arguments),
        Some("serve") => live::main(arguments),
        Some("cluster") => write_cluster::main(arguments),
        Some("test") => chores::stages::main(arguments, &STAGES),
        _ => bail!(
            "differential what? differential, soak, vectors, captures, execution, feasibility, case, serve or cluster"
        ),
    }
}
