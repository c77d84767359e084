//! What owners say of lease pools, as it is kept with the terms of reservations.

/// How much more instances may have than there is, in thousandths; from 0.001 to 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ratio(u32);

impl Ratio {
    const MOST: u32 = 1_000_000;

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

/// What the owner of a reservation of whole hosts says of the pool of its hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeasePool {
    /// What it is called; its reservation's identifier if absent. Not unique.
    pub name: Option<String>,
    /// How far CPUs are over-committed; as hosts say if absent.
    pub cpu_ratio: Option<Ratio>,
    /// The same of memory.
    pub ram_ratio: Option<Ratio>,
}
