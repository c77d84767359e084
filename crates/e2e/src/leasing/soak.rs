//! `cargo xtask soak leases`: tests the leasing service for hours, with fresh seeds.
//!
//! Runs simulations of months of leases with faults and crashes, of one service and of several on one store,
//! in simulated time. Between them, it runs races through the API, and services on one database with faults.
//! A failing seed is printed with the command that replays it.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::places::{self, cargo};
use chores::run::{Executable, must_run};
use chores::tally::Tally;

use super::{race, replicas};

/// Number of simulations between two checks of the time.
const SIMULATIONS: u64 = 200;
/// Rounds of each race after the simulations.
const RACES: usize = 20;
/// Rounds of faults after the races.
const REPLICA_ROUNDS: usize = 3;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let hours: f64 = arguments.value("--hours", 1.0)?;
    let mut seed = arguments.value("--seed", places::fresh_seed())?;
    let rounds: Option<usize> = arguments.text("--rounds")?.map(|rounds| rounds.parse()).transpose()?;
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    places::need_postgres()?;
    let ours = ours.map_or_else(places::ours, Ok)?;
    if let Some(rounds) = rounds {
        println!("{rounds} rounds of each race, seed {seed}");
        return race::run(&ours, seed, rounds)?.conclude("soak leases");
    }
    must_run(cargo().args(["build", "--quiet", "--package", "simulation"]))?;
    let until = Instant::now() + Duration::from_secs_f64(hours * 3600.0);
    println!("seeds from {seed} on, for {hours} hours");
    let (mut tally, mut failing) = (Tally::default(), Vec::new());
    while Instant::now() < until {
        let seeds = format!("{seed}..{}", seed + SIMULATIONS);
        for options in [&["--seeds", &seeds][..], &["--seeds", &seeds, "--several"]] {
            let held = simulate(options)?;
            tally.count(held);
            if !held {
                failing.push(format!("simulation {}", options.join(" ")));
            }
        }
        let races = race::run(&ours, seed, RACES)?;
        if races.failed > 0 {
            failing.push(format!("races of seed {seed}"));
        }
        tally += races;
        let faults = replicas::run(&ours, seed, REPLICA_ROUNDS)?;
        if faults.failed > 0 {
            failing.push(format!("replicas of seed {seed}"));
        }
        tally += faults;
        seed += SIMULATIONS;
    }
    for seeds in &failing {
        println!("failed: {seeds}");
    }
    tally.conclude("soak leases")
}

/// Runs simulations, which print their own failures. Returns whether all passed.
fn simulate(options: &[&str]) -> Result<bool> {
    let mut simulation = Command::new(places::target().join("debug/simulation"));
    let status = simulation.args(options).status().context("cannot run the simulation")?;
    if !status.success() {
        println!("to replay: cargo run --package simulation -- {}", options.join(" "));
    }
    Ok(status.success())
}
