//! `cargo xtask bench hunts` and `refusals`: compares answers with an exact solver, in the crate `exact`.
//! Nothing else builds that crate: its solver takes minutes to build, and needs a C++ compiler, cmake and
//! libclang.

use std::process::Command;

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::places::{cargo, need_libclang, need_program, root};
use chores::run::{must_run, output_of};

/// Default number of refusals to check.
const REFUSALS: u64 = 2000;

/// Compares migration plans with optimal plans. The number of pools of each size and fill level can be given.
pub fn hunts(mut arguments: Arguments) -> Result<()> {
    let cases = arguments.word();
    arguments.finish()?;
    judge("hunts", cases)
}

/// Checks refused requests for whole hosts that could have been accepted if waiting leases had been moved to
/// other hosts.
pub fn refusals(mut arguments: Arguments) -> Result<()> {
    let seed = arguments.text("--seed")?.map_or_else(seed_of_commit, Ok)?;
    let count = arguments.word().unwrap_or_else(|| REFUSALS.to_string());
    arguments.finish()?;
    judge("refusals", [count, seed])
}

/// First seed, derived from the commit of the working copy.
fn seed_of_commit() -> Result<String> {
    let hash = output_of(Command::new("git").current_dir(root()).args(["rev-parse", "HEAD"]))?;
    let number = hash.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    Ok(number.context("there is no commit to choose seeds: use --seed")?.to_string())
}

fn judge(what: &str, numbers: impl IntoIterator<Item = String>) -> Result<()> {
    need_program("cmake", "cmake")?;
    need_libclang()?;
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path"]).arg(root().join("exact/Cargo.toml"));
    must_run(command.args(["--", what]).args(numbers))
}
