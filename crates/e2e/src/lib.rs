//! End-to-end tests: the leasing service as a process, and all programs with real peers.
//!
//! This is a program of its own. `cargo xtask` builds it, runs it, and documents the options of its chores:
//!
//! - `leasing` tests `allot serve` through its API, without a cloud. See [`leasing`].
//! - `lab` runs real peers on this machine: a Ganeti cluster, an OpenStack cloud, a highly available
//!   PostgreSQL, and clients with many dependencies.
//! - `soak leases` repeats the randomized parts of `leasing` for hours, with fresh seeds.
//! - `test` runs the stages of `leasing` as part of `cargo xtask test`.
//!
//! A test starts a service with [`leasing::server::Launch`], which returns a [`leasing::server::Server`] once
//! it is ready. It sends requests with [`leasing::http::Caller`], counts its checks with
//! `chores::cases::Cases`, and returns their `chores::tally::Tally`. Dropping the server kills it. Tests that
//! lose answers on purpose, with kills and faults, use [`leasing::acknowledged::Acknowledged`] to track which
//! changes must survive. [`leasing::hooks::Hooks`] logs every handover of a host.
//!
//! No test uses the code of the program it tests. Requests and answers are plain JSON instead of the server's
//! types, so that a fault in those can't hide.
//!
//! To start reading, see [`leasing::STAGES`] and one of the shorter stages, such as `leasing/gabbi.rs`.

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
