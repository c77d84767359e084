//! The service as a process that is killed, has no room to write, and whose clock is set; and that has preemptible
//! instances leave.
//!
//! When a process is killed is left to chance within a round, as power cuts are. What was acknowledged is there
//! afterwards in every run.

mod clock;
mod full_disk;
mod kills;
mod preemptible;

use anyhow::Result;
use chores::cases::Cases;
use chores::run::Executable;
use chores::tally::Tally;

/// Runs the stage.
pub fn run(ours: &Executable) -> Result<Tally> {
    let mut cases = Cases::new("processes");
    kills::run(&mut cases, ours)?;
    full_disk::run(&mut cases, ours)?;
    clock::run(&mut cases, ours)?;
    preemptible::run(&mut cases, ours)?;
    Ok(cases.tally())
}
