//! The leasing service as a process, seen from outside, and real peers of all programs: end to end.
//!
//! Nothing here knows the code of what it tests. It is a program of its own: `cargo xtask` has the options of its chores.

mod lab;
pub mod leasing;

use std::process::ExitCode;

use anyhow::{Result, bail};
use chores::arguments::Arguments;
use chores::stages;

const HELP: &str = "\
The leasing service as a process, and real peers of all programs.

Usage: e2e leasing|lab|soak leases [OPTIONS]

cargo xtask --help has the options, and cargo xtask builds this program before it runs it.
";

/// Runs the chore that the command line names.
pub fn main() -> ExitCode {
    chores::program::main(HELP, dispatch)
}

fn dispatch(mut arguments: Arguments) -> Result<()> {
    match arguments.word().as_deref() {
        Some("leasing") => leasing::main(arguments),
        Some("lab") => lab::main(arguments),
        Some("soak") if arguments.switch("leases") => leasing::soak::main(arguments),
        Some("test") => stages::main(arguments, &leasing::STAGES),
        _ => bail!("e2e what? leasing, lab or soak leases"),
    }
}
