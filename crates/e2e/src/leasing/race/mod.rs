//! Races: concurrent requests that can't all succeed (Blazar's defects W1, W2, W18), against one service on
//! SQLite and against three on PostgreSQL.
//!
//! The winners are random and differ between runs. The invariants checked afterward don't.

mod ground;
mod scramble;
mod winners;

use anyhow::Result;
use chores::cases::Cases;
use chores::random::Random;
use chores::run::Executable;
use chores::tally::Tally;
use serde_json::json;

use self::ground::Ground;
use super::fleet::MACHINES;
use super::replicas::Cluster;
use super::server::Launch;

/// Starts services and runs each race `rounds` times.
pub fn run(ours: &Executable, seed: u64, rounds: usize) -> Result<Tally> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    for machine in MACHINES {
        server.caller().post("/v1/os-hosts", &json!({"name": machine}))?.expect(201)?;
    }
    let mut tally = races("races on SQLite", &[server.url().to_owned()], seed, rounds)?;
    server.stop()?;
    let cluster = Cluster::start(ours, MACHINES.len())?;
    tally += races("races of three services on PostgreSQL", &cluster.urls(), seed, rounds)?;
    Ok(tally)
}

fn races(stage: &str, urls: &[String], seed: u64, rounds: usize) -> Result<Tally> {
    let ground = Ground::new(urls)?;
    let mut cases = Cases::new(stage);
    let mut random = Random::new(seed);
    let races = winners::all(&ground.caller)?;
    for round in 0..rounds {
        for race in &races {
            cases.check(&format!("{}, round {round}", race.sentence()), || race.run(&ground));
        }
        cases.check(
            &format!(
                "what_is_extended_is_not_leased_to_others_and_what_is_leased_is_not_removed, round {round}"
            ),
            || winners::extended_created_or_removed(&ground),
        );
        let turn = random.below(usize::MAX) as u64;
        cases.check(
            &format!("w18_changes_at_the_same_moment_leave_no_host_in_two_leases, seed {turn}"),
            || scramble::scramble(&ground, &mut Random::new(turn)),
        );
    }
    Ok(cases.tally())
}
