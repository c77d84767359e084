//! Guests that start by themselves in a simulated fleet.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use super::timing::Between;

/// Rates and durations of guests that start by themselves. Intervals are averages; `None` means never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackgroundLoad {
    /// Interval between preemptible guests, which start in the free pool.
    pub preemptible_every: Option<SignedDuration>,
    pub preemptible_runs_for: Between,
    /// Interval between guests that projects start on their leases' hosts and slots.
    pub project_every: Option<SignedDuration>,
    pub project_runs_for: Between,
    /// Interval between other guests, which start in the free pool and must not be stopped.
    pub others_every: Option<SignedDuration>,
    pub others_run_for: Between,
    /// Maximum number of guests on one host.
    pub most_per_host: usize,
}

impl BackgroundLoad {
    /// No guests.
    pub const SILENCE: Self = Self {
        preemptible_every: None,
        preemptible_runs_for: Between::ZERO,
        project_every: None,
        project_runs_for: Between::ZERO,
        others_every: None,
        others_run_for: Between::ZERO,
        most_per_host: 0,
    };

    /// Enough activity to watch on a few racks.
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

/// A source of guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Talker {
    Preemptibles,
    Projects,
    Others,
}
