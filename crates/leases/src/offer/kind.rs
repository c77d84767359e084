//! Kinds of offers.

/// What is different from what was asked for. In the order in which offers are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OfferKind {
    /// It starts later, as soon as all of it can be had, and is as long.
    LaterStart,
    /// It is shorter: as long as it can be.
    ShorterDuration,
    /// It has fewer hosts, or room for fewer instances: as many as there are.
    FewerHosts,
    /// Its hosts are of another free pool.
    OtherPool,
    /// It may wait longer for its start, so that guests of others can be moved out of its way.
    LongerTimeout,
}

impl OfferKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::LaterStart, Self::ShorterDuration, Self::FewerHosts, Self::OtherPool, Self::LongerTimeout];

    /// As it is called in requests, answers and stores.
    pub fn name(self) -> &'static str {
        match self {
            Self::LaterStart => "later_start",
            Self::ShorterDuration => "shorter_duration",
            Self::FewerHosts => "fewer_hosts",
            Self::OtherPool => "other_pool",
            Self::LongerTimeout => "longer_timeout",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
