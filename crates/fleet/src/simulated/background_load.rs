//! How much goes on in a simulated fleet.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::timing::Between;

/// How much goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundLoad {
    /// A preemptible guest starts somewhere in the free pool, about that often.
    pub preemptible_every: Option<SignedDuration>,
    /// How long it runs.
    pub preemptible_runs_for: Between,
    /// A project starts a guest on what a lease has given it, about that often.
    pub project_every: Option<SignedDuration>,
    /// How long it runs.
    pub project_runs_for: Between,
    /// Somebody starts a guest in the free pool that nobody may stop, about that often.
    pub others_every: Option<SignedDuration>,
    /// How long it runs.
    pub others_run_for: Between,
    /// No more guests than that on one host.
    pub most_per_host: usize,
}

impl BackgroundLoad {
    /// Nothing goes on.
    pub const SILENCE: Self = Self {
        preemptible_every: None,
        preemptible_runs_for: Between::ZERO,
        project_every: None,
        project_runs_for: Between::ZERO,
        others_every: None,
        others_run_for: Between::ZERO,
        most_per_host: 0,
    };

    /// Enough to see something on a few racks.
    pub const LIVELY: Self = Self {
        preemptible_every: Some(SignedDuration::from_secs(20)),
        preemptible_runs_for: Between::secs(60, 1800),
        project_every: Some(SignedDuration::from_secs(30)),
        project_runs_for: Between::secs(300, 3600),
        others_every: None,
        others_run_for: Between::ZERO,
        most_per_host: 8,
    };

    pub(super) fn every(&self, talker: Talker) -> Option<SignedDuration> {
        match talker {
            Talker::Preemptibles => self.preemptible_every,
            Talker::Projects => self.project_every,
            Talker::Others => self.others_every,
        }
    }
}

/// Who starts guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Talker {
    Preemptibles,
    Projects,
    Others,
}
