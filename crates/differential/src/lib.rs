//! Comparison of the installed reference (Ganeti's htools) with our program, on generated and on recorded
//! input.
//!
//! ```text
//! seed ──generate──► Case ──┐
//!                           ├──outcome──► two Outcomes ──compare──► equal, or the first difference
//! recorded input ───────────┘                              │
//!                                             known: intended differences
//! ```
//!
//! - [`generate`] draws a case from a seed: a cluster, a command line, and for `hail` a request. A case
//!   consists of plain values and becomes files only when it runs.
//! - [`outcome`] runs a program on files in an otherwise empty directory and collects its status, output and
//!   written files. If they are a master daemon's files, a simulated daemon serves them on a socket.
//! - [`compare`] finds the first difference between two outcomes. The chore `differential` shrinks a failing
//!   case and saves it with both answers.
//! - `execution` compares the requests that programs send to a simulated master daemon, `vectors` and
//!   `captures` replay recordings, and `feasibility` compares our `hail`, `hspace` and `hcheck` with each
//!   other.
//! - `stages` defines how much of this runs on every change, `soak` how much overnight.
//!
//! Both programs run as processes, and this crate depends on the code of neither, so a fault in our engine
//! can't hide itself from the comparison. [`known`] is the only module that forgives a difference, and it
//! gives the reason for each. The same seed always gives the same case.
//!
//! Public items are for chores of other crates, which measure on generated clusters or compare on a real
//! cluster.
//!
//! Start reading at `seeds.rs` for the flow and at `known.rs` for the intended differences.

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

/// Runs the chore named on the command line.
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
