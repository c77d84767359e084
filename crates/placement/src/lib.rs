//! Decisions on a cluster: the score, allocation, relocation, evacuation, balancing, repair, capacity, reboots,
//! switching nodes off, redundancy, and what would be if things were different.
//!
//! Everything here is pure: a decision is a function of a [`cluster::Cluster`] and options. In *exact* mode the
//! decisions are the reference's, tie-breaks and last bits included (`spec/htools-algorithms.md`); speed comes
//! from rigorous bounds that leave few candidates to score with the canonical formula.

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

/// How hard to look for a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    /// Decide what the reference decides.
    #[default]
    Exact,
    /// Look further under the same rules; the result is never worse, and the same on every machine.
    Deep,
}

/// Limits the threads that searches run on; 0 means one per processor. Decisions do not depend on it.
///
/// Only the first call of a process has an effect, and only before the first search.
pub fn limit_threads(threads: usize) {
    if threads == 0 {
        return;
    }
    // A second call would fail, and leave the first one's choice in force, as documented.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
}
