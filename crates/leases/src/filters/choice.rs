//! Filters chosen by the operator (CLS-07).

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::requirement::Requirement;

macro_rules! filters {
    ($( $(#[doc = $doc:literal])+ $variant:ident: $name:literal, $complaint:literal; )+) => {
        /// A filter that the operator can leave out, by Nova's name where Nova has it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Filter {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl Filter {
            /// All of them.
            pub const ALL: &[Self] = &[ $( Self::$variant, )+ ];

            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// What is wrong with a host that it removes.
            pub(super) fn complaint(self) -> &'static str {
                match self { $( Self::$variant => $complaint, )+ }
            }
        }
    };
}

filters! {
    /// Removes nothing.
    AllHosts: "AllHostsFilter", "not there";
    /// The host works. Without this filter, hosts that haven't been heard of for long are allocated as well.
    /// Failed hosts never are, since they would be replaced at once.
    Compute: "ComputeFilter", "not working";
    /// The host's name isn't on the operator's list of isolated hosts.
    IsolatedHosts: "IsolatedHostsFilter", "kept from leases";
    /// The host is for all projects, or for the lease's project (capability `filter_tenant_id`).
    MultiTenancy: "AggregateMultiTenancyIsolation", "for other projects";
    /// The host is in the requested availability zone.
    AvailabilityZone: "AvailabilityZoneFilter", "in other availability zones";
    /// The host has enough virtual CPUs.
    Core: "CoreFilter", "with too few virtual CPUs";
    /// The host has enough memory.
    Ram: "RamFilter", "with too little memory";
    /// The host has enough disk.
    Disk: "DiskFilter", "with too little disk";
    /// The host matches the lease's expressions.
    Json: "JsonFilter", "not matching the expression";
    /// The host matches extra specs with the scope `capabilities` and those without a scope.
    ComputeCapabilities: "ComputeCapabilitiesFilter", "not matching extra_specs";
    /// The host matches extra specs with the scope `aggregate_instance_extra_specs` and those without a
    /// scope.
    AggregateExtraSpecs: "AggregateInstanceExtraSpecsFilter", "without the capabilities of extra_specs";
    /// The host has the traits and resources of the extra specs. Nova leaves this check to Placement.
    Placement: "PlacementFilter", "without the traits or resources of extra_specs";
    /// The host has the level of trust in the extra specs (capability `trusted_host`).
    Trusted: "TrustedFilter", "not trusted so";
    /// The host has at least the NUMA nodes in the extra specs.
    NumaTopology: "NUMATopologyFilter", "with too few NUMA nodes";
    /// The host has the PCI devices in the extra specs.
    PciPassthrough: "PciPassthroughFilter", "without the PCI devices of extra_specs";
    /// The host can run the image.
    ImageProperties: "ImagePropertiesFilter", "unable to run the image";
    /// The host is for all images, or for images with its property.
    AggregateImageProperties: "AggregateImagePropertiesIsolation", "for other images";
    /// The host is like the other hosts of the reservation. Not in Nova.
    Homogeneous: "HomogeneousHostsFilter", "without a property of alike";
}

impl Filter {
    /// Looks a filter up by name. Nova's `Aggregate…` variants are aliases, because a host's capabilities
    /// include its aggregates' capabilities.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = match name {
            "AggregateCoreFilter" => "CoreFilter",
            "AggregateRamFilter" => "RamFilter",
            "AggregateDiskFilter" => "DiskFilter",
            other => other,
        };
        Self::ALL.iter().copied().find(|filter| filter.name() == name)
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A filter written by the operator. Hosts must match its expression, whatever the lease requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomFilter {
    /// Name in the counts of removed hosts.
    pub name: Arc<str>,
    pub requirement: Requirement,
}

/// Filter settings of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filters {
    /// Filters to apply; all by default.
    pub enabled: BTreeSet<Filter>,
    /// Names of hosts excluded from all leases.
    pub isolated_hosts: BTreeSet<String>,
    /// The operator's own filters, in the order they are applied.
    pub custom: Vec<CustomFilter>,
}

impl Default for Filters {
    fn default() -> Self {
        let enabled = Filter::ALL.iter().copied().collect();
        Self { enabled, isolated_hosts: BTreeSet::new(), custom: Vec::new() }
    }
}

impl Filters {
    pub fn applies(&self, filter: Filter) -> bool {
        self.enabled.contains(&filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cls_07_filters_are_found_by_their_names() {
        for filter in Filter::ALL {
            assert_eq!(Filter::from_name(filter.name()), Some(*filter));
        }
        assert_eq!(Filter::from_name("AggregateRamFilter"), Some(Filter::Ram));
        assert_eq!(Filter::from_name("RamfFilter"), None);
        assert!(Filter::ALL.iter().all(|filter| Filters::default().applies(*filter)));
    }
}
