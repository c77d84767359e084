//! The leasing service in simulated time.
//!
//! [`simulate`] goes through some weeks of leases: projects make, change and delete them, hosts fail and
//! recover, preemptible guests land where they may, calls to the fleet and to the store get lost before and
//! after they had their effect, replies come late or twice, and the process dies after any step. After every
//! commit it is checked that what must always hold does, by code that shares nothing with what it
//! judges. In the end nothing goes wrong any more, and every lease has to end.
//!
//! A [`World`] is a service with a store, a fleet and a clock that are driven by hand, for tests of anything
//! that takes time or goes wrong.
//!
//! There may be several services on one store, with clocks that differ, cut off from the store one by one.
//!
//! [`interleavings`] plays one short scene of two services in all orders.
//!
//! In a [`workload`] nothing goes wrong: jobs that a real machine had are replayed, to see how the service does.
//!
//! The same seed gives the same run: `cargo run -p simulation -- --seeds 17..18 [--several]`.

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

/// What many simulations came to.
#[derive(Clone, Debug, Default)]
pub struct Total {
    /// Sums of all that held.
    pub report: Report,
    /// How many there were.
    pub simulations: u64,
    /// Those in which something did not hold.
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
    /// Adds what others came to.
    pub fn add(&mut self, other: Self) {
        self.report.add(&other.report);
        self.simulations += other.simulations;
        self.failures.extend(other.failures);
    }
}

/// Runs the simulations of those seeds, of one service or of several, on all cores.
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

/// Seeds as they are written: `0..500`, the end not included.
pub fn seeds(text: &str) -> Option<Range<u64>> {
    let (from, to) = text.split_once("..")?;
    Some(from.trim().parse().ok()?..to.trim().parse().ok()?)
}

impl Report {
    /// Everything that is counted, by name.
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
