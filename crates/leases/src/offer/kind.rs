//! Kinds of offers.

/// Difference between an offer and the request. Variants are in the order in which offers are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OfferKind {
    /// Same length, but starts later: as soon as everything requested is available.
    LaterStart,
    /// Shorter, but as long as possible.
    ShorterDuration,
    /// Fewer hosts or instances: as many as are available.
    FewerHosts,
    /// Hosts from another free pool.
    OtherPool,
    /// Longer timeout for the start, so that guests of other tenants can be moved out of the way.
    LongerTimeout,
}

impl OfferKind {
    pub const ALL: [Self; 5] =
        [Self::LaterStart, Self::ShorterDuration, Self::FewerHosts, Self::OtherPool, Self::LongerTimeout];

    /// Name in requests, responses and stores.
    pub fn name(self) -> &'static str {
        match self {
            Self::LaterStart => "later_start",
            Self::ShorterDuration => "shorter_duration",
            Self::FewerHosts => "fewer_hosts",
            Self::OtherPool => "other_pool",
            Self::LongerTimeout => "longer_timeout",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
