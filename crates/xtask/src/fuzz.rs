//! `cargo xtask fuzz`: feeds random input to the parsers, with `cargo fuzz`. `cargo xtask fuzz leases`: sends
//! invalid requests to the leasing service, with fresh seeds.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::must_run;

const TARGETS: [&str; 5] = ["text", "iallocator", "rapi", "luxi", "mond"];

/// Number of seeds between two checks of the time.
const SEEDS: u64 = 100;

pub fn main(mut arguments: Arguments) -> Result<()> {
    if arguments.switch("leases") {
        return leases(arguments);
    }
    let seconds: u32 = arguments.value("--seconds", 60)?;
    arguments.finish()?;
    if !places::has_program("cargo-fuzz") {
        bail!("cargo-fuzz is missing: install it with 'cargo install cargo-fuzz' and try again");
    }
    for target in TARGETS {
        println!("{target}, {seconds} s");
        // The code has no `unsafe` for a sanitizer to check, and without one the stable compiler suffices.
        let mut command = places::cargo();
        // New inputs go to the corpus, which isn't committed; the seeds are.
        let corpus = places::root().join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus)?;
        command.args(["fuzz", "run", "--sanitizer", "none", target]);
        command.arg(corpus).arg(places::root().join("fuzz/seeds").join(target)).arg("--");
        must_run(command.arg(format!("-max_total_time={seconds}")))?;
    }
    Ok(())
}

/// Sends requests to the leasing service until one does harm, or time is up.
fn leases(mut arguments: Arguments) -> Result<()> {
    let minutes: f64 = arguments.value("--minutes", 5.0)?;
    let mut seed = arguments.value("--seed", places::fresh_seed())?;
    arguments.finish()?;
    places::need_postgres()?;
    let until = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    println!("seeds from {seed} on, for {minutes} minutes");
    while Instant::now() < until {
        let seeds = format!("{seed}..{}", seed + SEEDS);
        let mut command = places::cargo();
        command.args(["test", "--quiet", "--package", "server", "--test", "it", "fuzz::"]);
        // The test's own failure names the seed and the request.
        must_run(command.env("SEEDS", &seeds)).with_context(|| {
            format!("SEEDS=N..M cargo nextest run -p server fuzz:: repeats seeds, here among {seeds}")
        })?;
        seed += SEEDS;
    }
    println!("all seeds up to {seed} did no harm");
    Ok(())
}
