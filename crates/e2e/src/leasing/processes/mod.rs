//! The service as a process: it is killed, runs out of disk space, and its clock is set. It also preempts
//! instances.
//!
//! Within a round, the moment of a kill is random, as with power cuts. Acknowledged changes must survive in
//! every run.

mod clock;
mod full_disk;
mod kills;
mod preemptible;

use anyhow::Result;
use chores::cases::Cases;
use chores::run::Executable;
use chores::tally::Tally;

pub fn run(ours: &Executable) -> Result<Tally> {
    let mut cases = Cases::new("processes");
    kills::run(&mut cases, ours)?;
    full_disk::run(&mut cases, ours)?;
    clock::run(&mut cases, ours)?;
    preemptible::run(&mut cases, ours)?;
    Ok(cases.tally())
}
