//! Decisions about a Ganeti cluster: the decisions of htools, and Allotment's own searches.
//!
//! This crate is pure. A decision is a function of a [`cluster::Cluster`] and options. It performs no input
//! or output and reads no clock. Results are values: moves ([`balance::Step`]), placements, or the reason for
//! a refusal.
//!
//! ```text
//! Cluster ──► Board (score) ──┐
//!         ──► Redundancy ─────┴─► Allocator, Balancer, ... ──► Outcome, Step ──► job_sets
//! ```
//!
//! - [`score`] defines the components of the score and their weights. A [`board::Board`] keeps the score of a
//!   set of nodes and bounds it after a tentative change in constant time.
//! - [`redundancy`] decides global N+1: whether every node could be evacuated if it were lost.
//! - [`allocate`], [`groups`], [`dedicated`], [`evacuate`] and [`change_group`] make `hail`'s decisions.
//! - [`balance`] and [`jobs`] make `hbal`'s, [`capacity`] `hspace`'s, [`health`] `hcheck`'s, [`reboot`]
//!   `hroller`'s and [`squeeze`] `hsqueeze`'s.
//! - [`deep`], [`repair`], [`drain`], [`whatif`], [`fit`] and [`clear`] are Allotment's own. [`explain`],
//!   [`objection`] and [`idle`] give reasons for refusals, and [`watch`] compares the health of nodes before
//!   and after a change.
//!
//! Balancing, for example: [`balance::Balancer::new`] takes a cluster, nodes, instances and options. Each
//! call of [`balance::Balancer::step`] applies the best move to the cluster and returns it, or `None` if no
//! move is worth making. [`jobs::job_sets`] splits the steps into sets that can run at the same time.
//!
//! In [`Search::Exact`], decisions equal the reference's, including tie-breaks and the last bits of scores
//! (specification `htools-algorithms.md`). So sums keep the reference's order. Speed comes from rigorous
//! bounds that leave few candidates to score with the canonical formula.
//!
//! [`deep::verify`], [`reboot::verify`] and [`clear::check`] judge plans without the code that made them.
//!
//! Start reading at [`score`], then [`board`] and [`balance`]. Names such as HT-score are requirements in
//! `docs/reference/features.md`.

pub mod allocate;
pub mod balance;
pub mod board;
pub mod capacity;
mod cells;
pub mod change_group;
mod chord;
mod classes;
pub mod clear;
pub mod dedicated;
pub mod deep;
mod dice;
mod displaced;
pub mod drain;
pub mod evacuate;
mod evacuation;
pub mod explain;
pub mod fit;
#[cfg(test)]
#[path = "../../cluster/tests/properties/generate.rs"]
mod generate;
pub mod groups;
pub mod health;
pub mod idle;
pub mod jobs;
mod located;
mod minorant;
pub mod objection;
mod order;
mod pair;
pub mod reboot;
pub mod redundancy;
pub mod repair;
mod role;
pub mod score;
mod search;
mod slots;
pub mod squeeze;
mod survey;
mod terms;
pub mod watch;
pub mod whatif;

/// Effort spent on finding a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// Decide as the reference does.
    #[default]
    Exact,
    /// Search further under the same rules. The result is never worse, and it is the same on every machine.
    Deep,
}

/// Limits the number of threads for searches; 0 means one per processor. Decisions don't depend on it.
///
/// Only the first call in a process has an effect, and only before the first search.
pub fn limit_threads(threads: usize) {
    if threads == 0 {
        return;
    }
    // A second call fails and leaves the first limit in force, as documented.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
}
