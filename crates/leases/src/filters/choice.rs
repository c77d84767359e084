//! Which filters the operator has chosen (CLS-07).

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

            /// Its name.
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
    /// The host works. Left out, hosts of which nothing was heard for long are given as well; those that have failed
    /// are not, since they would be exchanged at once.
    Compute: "ComputeFilter", "not working";
    /// The operator keeps the host from leases by its name.
    IsolatedHosts: "IsolatedHostsFilter", "kept from leases";
    /// The host is there for all projects, or for that of the lease (capability `filter_tenant_id`).
    MultiTenancy: "AggregateMultiTenancyIsolation", "for other projects";
    /// It lies in the zone.
    AvailabilityZone: "AvailabilityZoneFilter", "in other availability zones";
    /// It has so many virtual CPUs.
    Core: "CoreFilter", "with too few virtual CPUs";
    /// It has so much memory.
    Ram: "RamFilter", "with too little memory";
    /// It has so much disk.
    Disk: "DiskFilter", "with too little disk";
    /// It matches the expressions.
    Json: "JsonFilter", "not matching the expression";
    /// It matches extra specs with the scope `capabilities`, and those without a scope.
    ComputeCapabilities: "ComputeCapabilitiesFilter", "not matching extra_specs";
    /// It matches extra specs with the scope `aggregate_instance_extra_specs`, and those without a scope.
    AggregateExtraSpecs: "AggregateInstanceExtraSpecsFilter", "without the capabilities of extra_specs";
    /// It has the traits and the resources of extra specs. Nova leaves that to Placement.
    Placement: "PlacementFilter", "without the traits or resources of extra_specs";
    /// It is trusted as far as extra specs want (capability `trusted_host`).
    Trusted: "TrustedFilter", "not trusted so";
    /// It has as many NUMA nodes as extra specs want.
    NumaTopology: "NUMATopologyFilter", "with too few NUMA nodes";
    /// It has the PCI devices that extra specs want.
    PciPassthrough: "PciPassthroughFilter", "without the PCI devices of extra_specs";
    /// It can run the image.
    ImageProperties: "ImagePropertiesFilter", "unable to run the image";
    /// It is there for all images, or for those with that property.
    AggregateImageProperties: "AggregateImagePropertiesIsolation", "for other images";
    /// It is like the other hosts of the reservation. Not in Nova.
    Homogeneous: "HomogeneousHostsFilter", "without a property of alike";
}

impl Filter {
    /// The filter of that name. Nova's variants that look at aggregates are the same here, where the capabilities of
    /// a host say what those of its aggregate do.
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

/// A filter that the operator has written: hosts have to match its expression, whatever a lease asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomFilter {
    /// What it is called where hosts are counted that it removed.
    pub name: Arc<str>,
    /// What hosts must be like.
    pub requirement: Requirement,
}

/// What the operator has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filters {
    /// These are applied; all, by default.
    pub enabled: BTreeSet<Filter>,
    /// Names of hosts that nobody may lease.
    pub isolated_hosts: BTreeSet<String>,
    /// The operator's own, in the order of application.
    pub custom: Vec<CustomFilter>,
}

impl Default for Filters {
    fn default() -> Self {
        let enabled = Filter::ALL.iter().copied().collect();
        Self { enabled, isolated_hosts: BTreeSet::new(), custom: Vec::new() }
    }
}

impl Filters {
    /// Whether it is applied.
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
