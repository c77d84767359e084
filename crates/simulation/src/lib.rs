//! The leasing service in simulated time, with faults, and independent checks of what must always hold.
//!
//! [`simulate`] runs some days of traffic: projects create, change and delete leases, hosts fail and recover,
//! preemptible guests land where they are allowed to, calls to the fleet and the store get lost before or
//! after they took effect, replies come late or twice, and the process dies after any step. After every
//! commit, a checker compares the store, the machines and the answers that clients got. It shares no code
//! with what it judges. At the end faults stop, and every lease has to end.
//!
//! ```text
//! seed ──► Ways (machines, settings, faults) ──► World: service + store + fleet + clock
//!                                                  │
//! requests, mishaps, crashes ──────────────────────┤
//!                                                  ▼
//!                               next event ──► checker ──► Report, or Failure with the seed
//! ```
//!
//! - A [`World`] is a service with a store, a fleet and a clock, all driven by hand. Other crates' tests use
//!   it for anything that takes time or goes wrong. Several services can share one store, with clocks that
//!   differ, and each can be cut off from the store.
//! - A [`FaultyStore`] is a store in memory whose calls fail as planned or at random.
//! - A [`Report`] counts what happened in a simulation, so that a test can require that every kind of event
//!   occurs. A [`Failure`] has the command that repeats the run.
//! - [`interleavings`] plays one short scene of two services in all orders of events.
//! - [`workload`] replays jobs of a real machine without faults, to measure how well the service does.
//!
//! The same seed always gives the same run: time and random numbers come only from the clock and the seed of
//! the simulation. `cargo run -p simulation -- --seeds 17..18 [--several]` runs one seed.
//!
//! Start reading at `run.rs` for one simulation and at `checker.rs` for the invariants.

mod checker;
mod faulty_store;
pub mod interleavings;
mod pools;
mod power;
mod run;
mod schedule;
#[cfg(test)]
mod testing;
mod traffic;
mod verdict;
pub mod workload;
mod world;

use std::fmt;
use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

pub use faulty_store::{FaultyStore, StoreFault};
pub use run::{Failure, Report, simulate};
pub use world::{Happened, Setup, World, caller, operator};

/// Sums over many simulations.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Counters of the simulations without failures.
    pub report: Report,
    /// Number of simulations, failed ones included.
    pub simulations: u64,
    /// Simulations in which an invariant was violated.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { made, started, refused, uncertain, moved, instances, woken, .. } = self.report;
        let Report { backfilled, cleared, .. } = self.report;
        let Report {
            steps,
            failed_steps,
            crashes,
            host_failures,
            accepted,
            served,
            pool_changes,
            rehearsed,
            ..
        } = self.report;
        write!(
            f,
            "{} simulations, {} failed: {made} leases made, {started} started, {refused} requests refused, \
             {uncertain} with unknown outcome, {accepted} offers accepted, {served} served after they waited; \
             {steps} steps, {failed_steps} failed; {moved} guests moved; {instances} instances, \
             {backfilled} on hosts of leases, {cleared} of these asked to leave for the lease; {woken} hosts woken; \
             {pool_changes} changes of pools; {crashes} crashes, {host_failures} host failures; \
             {rehearsed} cycles decided in three ways",
            self.simulations,
            self.failures.len()
        )
    }
}

impl Total {
    pub fn add(&mut self, other: Self) {
        self.report.add(&other.report);
        self.simulations += other.simulations;
        self.failures.extend(other.failures);
    }
}

/// Runs one simulation per seed on all cores, each with one service or with several.
pub fn simulate_all(seeds: Range<u64>, several: bool) -> Total {
    let outcomes: Vec<_> = seeds.into_par_iter().map(|seed| simulate(seed, several)).collect();
    let mut total = Total { simulations: outcomes.len() as u64, ..Total::default() };
    for outcome in outcomes {
        match outcome {
            Ok(report) => total.report.add(&report),
            Err(failure) => total.failures.push(failure),
        }
    }
    total
}

/// Parses a range of seeds such as `0..500`; the end isn't included.
pub fn seeds(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.trim().parse().ok()?..to.trim().parse().ok()?)
}

impl Report {
    /// All counters by name.
    pub fn counters(&self) -> [(&'static str, u64); 18] {
        [
            ("leases made", self.made),
            ("requests refused", self.refused),
            ("requests with unknown outcome", self.uncertain),
            ("steps", self.steps),
            ("failed steps", self.failed_steps),
            ("crashes", self.crashes),
            ("host failures", self.host_failures),
            ("leases started", self.started),
            ("guests moved", self.moved),
            ("instances", self.instances),
            ("instances on hosts of leases", self.backfilled),
            ("instances asked to leave for the lease", self.cleared),
            ("offers accepted", self.accepted),
            ("requests served after they waited", self.served),
            ("hosts woken", self.woken),
            ("changes of pools", self.pool_changes),
            ("cycles decided in three ways", self.rehearsed),
            ("leases forgotten after their end", self.forgotten),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.made += other.made;
        self.refused += other.refused;
        self.uncertain += other.uncertain;
        self.steps += other.steps;
        self.failed_steps += other.failed_steps;
        self.crashes += other.crashes;
        self.host_failures += other.host_failures;
        self.started += other.started;
        self.moved += other.moved;
        self.instances += other.instances;
        self.backfilled += other.backfilled;
        self.cleared += other.cleared;
        self.accepted += other.accepted;
        self.served += other.served;
        self.woken += other.woken;
        self.pool_changes += other.pool_changes;
        self.rehearsed += other.rehearsed;
        self.forgotten += other.forgotten;
    }
}
