//! Filters that evaluate extra specs.

/// A filter that evaluates specs. Operators can disable each (CLS-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judge {
    /// Nova's `ComputeCapabilitiesFilter`.
    Capabilities,
    /// Nova's `AggregateInstanceExtraSpecsFilter`.
    Aggregates,
    /// Placement, which evaluates traits and amounts.
    Placement,
    /// Nova's `TrustedFilter`.
    Trust,
    /// Nova's `NUMATopologyFilter`.
    Numa,
    /// Nova's `PciPassthroughFilter`.
    Pci,
}

impl Judge {
    pub const ALL: [Self; 6] =
        [Self::Capabilities, Self::Aggregates, Self::Placement, Self::Trust, Self::Numa, Self::Pci];
}
