//! What owners say of lease pools, as it is kept with the terms of reservations.

/// How much more instances may have than there is, in thousandths; from 0.001 to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    const MOST: u32 = 1_000_000;

    /// Just what there is.
    pub const ONE: Self = Self(1000);

    /// So many thousandths; none if it is out of range.
    pub fn from_thousandths(thousandths: u32) -> Option<Self> {
        (1..=Self::MOST).contains(&thousandths).then_some(Self(thousandths))
    }

    /// The nearest; none if it is out of range, or no number.
    pub fn new(ratio: f64) -> Option<Self> {
        let thousandths = (ratio * 1000.0).round();
        let known = (1.0..=f64::from(Self::MOST)).contains(&thousandths);
        known.then_some(thousandths as u32).and_then(Self::from_thousandths)
    }

    /// The nearest that is in range.
    pub fn nearest(ratio: f64) -> Self {
        // A cast of floats keeps to the range of integers, and makes 0 of what is no number.
        Self(((ratio * 1000.0).round() as u32).clamp(1, Self::MOST))
    }

    /// In thousandths.
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// As a number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// So much of what there is that much of.
    pub(super) fn of(self, capacity: u32) -> u32 {
        let much = u64::from(capacity) * u64::from(self.0) / 1000;
        u32::try_from(much).unwrap_or(u32::MAX)
    }
}

/// How far hosts are over-committed, by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratios {
    /// CPUs; as hosts say if absent.
    pub cpu: Option<Ratio>,
    /// The same of memory.
    pub ram: Option<Ratio>,
}

/// What the owner of a reservation of whole hosts says of the pool of its hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePool {
    /// What it is called; its reservation's identifier if absent. Not unique.
    pub name: Option<String>,
    /// How far its hosts are over-committed.
    pub ratios: Ratios,
}
