//! Owners' settings of lease pools, stored with the terms of reservations.

/// Overcommit ratio in thousandths, from 0.001 to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    const MOST: u32 = 1_000_000;

    /// No overcommit.
    pub const ONE: Self = Self(1000);

    /// `None` if the ratio is out of range.
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (1..=Self::MOST).contains(&thousandths).then_some(Self(thousandths))
    }

    /// Rounds to thousandths. `None` if the ratio is out of range or not a number.
    pub fn new(ratio: f64) -> Option<Self> {
        let thousandths = (ratio * 1000.0).round();
        let known = (1.0..=f64::from(Self::MOST)).contains(&thousandths);
        known.then_some(thousandths as u32).and_then(Self::from_thousandths)
    }

    /// Rounds to thousandths and clamps to the valid range.
    pub fn nearest(ratio: f64) -> Self {
        // Casts from float saturate at the integer's range, and turn NaN into 0.
        Self(((ratio * 1000.0).round() as u32).clamp(1, Self::MOST))
    }

    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// The ratio as a floating-point number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// Capacity multiplied by the ratio.
    pub(super) fn of(self, capacity: u32) -> u32 {
        let much = u64::from(capacity) * u64::from(self.0) / 1000;
        u32::try_from(much).unwrap_or(u32::MAX)
    }
}

/// Overcommit ratios by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratios {
    /// Ratio for CPUs; `None` uses the hosts' own.
    pub cpu: Option<Ratio>,
    /// Ratio for memory; `None` uses the hosts' own.
    pub ram: Option<Ratio>,
}

/// Pool settings of a reservation of whole hosts, as given by its owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePool {
    /// Name of the pool; `None` uses the reservation's identifier. Not unique.
    pub name: Option<String>,
    pub ratios: Ratios,
}
