//! Operator settings for hunts.

use jiff::SignedDuration;
use placement::clear::CostWeights;

use super::record::Cost;

/// Operator settings for hunts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunting {
    pub enabled: bool,
    /// Whether there must be capacity for the guests of any one host that fails, before and after every move.
    pub n_plus_one: bool,
    /// Copying speed for estimates of a hunt's duration, MiB per second, at least 1.
    pub mib_per_second: u32,
    /// Maximum duration. Hunts with a longer estimate aren't begun.
    pub longest: SignedDuration,
    /// Weights of the costs of a hunt, including waiting.
    pub weights: CostWeights,
}

impl Default for Hunting {
    /// Enabled, with N+1, 1,000 MiB per second, at most one hour.
    fn default() -> Self {
        Self {
            enabled: true,
            n_plus_one: true,
            mib_per_second: 1000,
            longest: SignedDuration::from_hours(1),
            weights: CostWeights::default(),
        }
    }
}

impl Hunting {
    /// Time allowed for a hunt of this cost: twice the duration of copying everything sequentially, rounded
    /// up to whole minutes, plus one minute. At least 2 minutes.
    pub(crate) fn allowance(&self, cost: &Cost) -> SignedDuration {
        let mib = cost.memory_mib.saturating_add(cost.disk_gib.saturating_mul(1024));
        let seconds = mib.saturating_mul(2) / u64::from(self.mib_per_second.max(1));
        let minutes = i64::try_from(seconds.div_ceil(60)).unwrap_or(i64::MAX).clamp(1, i64::MAX / 60 - 1);
        SignedDuration::from_mins(minutes + 1)
    }
}
