//! Who judges extra specs.

/// Who judges a spec. Operators can leave each of them out (CLS-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judge {
    /// Nova's `ComputeCapabilitiesFilter`.
    Capabilities,
    /// Nova's `AggregateInstanceExtraSpecsFilter`.
    Aggregates,
    /// Placement, which knows traits and amounts.
    Placement,
    /// Nova's `TrustedFilter`.
    Trust,
    /// Nova's `NUMATopologyFilter`.
    Numa,
    /// Nova's `PciPassthroughFilter`.
    Pci,
}

impl Judge {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Capabilities, Self::Aggregates, Self::Placement, Self::Trust, Self::Numa, Self::Pci];
}
