//! Operator settings for hunts.

use jiff::SignedDuration;
use placement::clear::CostWeights;

use super::record::Cost;

/// Operator settings for hunts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hunting {
    /// Whether there are any.
    pub enabled: bool,
    /// Whether there must be room for the guests of any one host that is lost, before and after every move.
    pub n_plus_one: bool,
    /// How fast guests are copied, MiB per second, at least 1: how long a hunt takes is estimated with it.
    pub mib_per_second: u32,
    /// A hunt that would take longer than that is not begun.
    pub longest: SignedDuration,
    /// What counts how much, waiting included.
    pub weights: CostWeights,
}

impl Default for Hunting {
    /// Allowed, with room for one lost host, at 1,000 MiB per second, an hour at most.
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
    /// How long a hunt of that cost may take: a minute, and twice as long as copying takes one after the other; in
    /// whole minutes, and two at least.
    pub(crate) fn allowance(&self, cost: &Cost) -> SignedDuration {
        let mib = cost.memory_mib.saturating_add(cost.disk_gib.saturating_mul(1024));
        let seconds = mib.saturating_mul(2) / u64::from(self.mib_per_second.max(1));
        let minutes = i64::try_from(seconds.div_ceil(60)).unwrap_or(i64::MAX).clamp(1, i64::MAX / 60 - 1);
        SignedDuration::from_mins(minutes + 1)
    }
}
