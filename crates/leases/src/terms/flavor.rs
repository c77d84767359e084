//! Flavors: named instance sizes with additional requirements on hosts (API-flavors).

use std::collections::{BTreeMap, BTreeSet};

use super::error::TermsError;
use super::size::InstanceSize;
use crate::host::Host;
use crate::resources::{ResourceClass, Resources, is_resource_class};

/// Sizes of a flavor, as in Nova.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlavorSize {
    /// Size of an instance. Its disk is the root disk.
    pub instance: InstanceSize,
    /// Second disk, in GiB.
    pub ephemeral_gib: u32,
}

/// Snapshot of a flavor's requirements on a host (API-flavors).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flavor {
    pub id: String,
    resources: Resources,
    traits: FlavorTraits,
}

/// Traits that a flavor requires or forbids.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FlavorTraits {
    pub required: BTreeSet<String>,
    pub forbidden: BTreeSet<String>,
}

impl FlavorTraits {
    /// Whether the host has all required traits and no forbidden ones.
    pub(crate) fn admit(&self, host: &Host) -> bool {
        self.required.is_subset(&host.traits) && self.forbidden.is_disjoint(&host.traits)
    }
}

impl Flavor {
    /// Derives a flavor's requirements on hosts from its sizes and extra specs.
    ///
    /// Extra specs that concern only the guest are ignored. Extra specs that ask for resources or traits in
    /// an unsupported way are rejected: ignoring them would promise capacity that isn't there.
    pub fn new(
        id: impl Into<String>,
        size: FlavorSize,
        extra_specs: &BTreeMap<String, String>,
    ) -> Result<Self, TermsError> {
        let id: String = id.into();
        let demand = SpecsDemand::new(&id, extra_specs)?;
        let mut resources = size.instance.resources();
        resources.disk_gib += u64::from(size.ephemeral_gib);
        Self::from_parts(id, demand.applied_to(resources), demand.traits)
    }

    /// Restores a snapshot from its stored parts.
    pub fn from_parts(
        id: impl Into<String>,
        resources: Resources,
        traits: FlavorTraits,
    ) -> Result<Self, TermsError> {
        if resources.is_nothing() {
            return Err(TermsError::EmptySize("the flavor's resources"));
        }
        Ok(Self { id: id.into(), resources, traits })
    }

    /// Resources that one instance uses on its host.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    pub fn traits(&self) -> &FlavorTraits {
        &self.traits
    }
}

/// Demands of extra specs on a host.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct SpecsDemand {
    /// Whether each virtual CPU is a dedicated CPU of the host.
    dedicated: bool,
    /// Amounts by resource class. Each replaces the amount derived from the size.
    amounts: BTreeMap<String, u64>,
    traits: FlavorTraits,
}

impl SpecsDemand {
    /// Parses extra specs. Errors name the flavor. [`Flavor::new`] documents which ones are rejected.
    pub(super) fn new(flavor: &str, extra_specs: &BTreeMap<String, String>) -> Result<Self, TermsError> {
        let dedicated = extra_specs.get("hw:cpu_policy").is_some_and(|policy| policy == "dedicated");
        let mut demand = Self { dedicated, ..Self::default() };
        for (key, value) in extra_specs {
            demand.read_extra_spec(flavor, key, value)?;
        }
        Ok(demand)
    }

    /// Resources of an instance, given those derived from its size.
    pub(super) fn applied_to(&self, mut resources: Resources) -> Resources {
        // Apply the CPU policy first, so that an explicit `resources:VCPU` overrides it.
        if self.dedicated {
            let vcpus = std::mem::take(&mut resources.vcpus);
            resources.other.insert(ResourceClass("PCPU".to_owned()), vcpus);
        }
        for (class, amount) in &self.amounts {
            resources.set(class, *amount);
        }
        resources
    }

    pub(super) fn traits(&self) -> &FlavorTraits {
        &self.traits
    }

    fn read_extra_spec(&mut self, flavor: &str, key: &str, value: &str) -> Result<(), TermsError> {
        let unsupported = || TermsError::UnsupportedExtraSpec {
            flavor: flavor.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        };
        if let Some(class) = key.strip_prefix("resources:") {
            if !is_resource_class(class) {
                return Err(unsupported());
            }
            let amount: u64 = value.parse().map_err(|_| unsupported())?;
            self.amounts.insert(class.to_owned(), amount);
        } else if let Some(name) = key.strip_prefix("trait:") {
            let list = match value {
                "required" => &mut self.traits.required,
                "forbidden" => &mut self.traits.forbidden,
                _ => return Err(unsupported()),
            };
            list.insert(name.to_owned());
        } else if key.starts_with("resources") || key.starts_with("trait") {
            // Numbered groups, which different providers can serve.
            return Err(unsupported());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flavor(specs: &[(&str, &str)]) -> Result<Flavor, TermsError> {
        let specs = specs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let instance = InstanceSize::new(4, 2048, 10).expect("a size");
        Flavor::new("f1", FlavorSize { instance, ephemeral_gib: 5 }, &specs)
    }

    #[test]
    fn a_flavor_asks_for_root_and_ephemeral_disk() {
        assert_eq!(flavor(&[("hw:boot_menu", "true")]).map(|f| f.resources().disk_gib), Ok(15));
    }

    #[test]
    fn dedicated_cpus_are_a_resource_of_their_own() {
        let flavor =
            flavor(&[("hw:cpu_policy", "dedicated"), ("resources:CUSTOM_FPGA", "1")]).expect("known");
        assert_eq!(flavor.resources().vcpus, 0);
        let others: Vec<_> = flavor.resources().other.iter().map(|(c, n)| (c.0.as_str(), *n)).collect();
        assert_eq!(others, [("CUSTOM_FPGA", 1), ("PCPU", 4)]);
    }

    #[test]
    fn what_a_flavor_asks_and_nobody_understands_is_refused() {
        assert!(flavor(&[("resources1:CUSTOM_FPGA", "1")]).is_err());
        assert!(flavor(&[("trait:HW_CPU", "preferred")]).is_err());
        assert!(flavor(&[("resources:VCPU", "many")]).is_err());
        assert!(flavor(&[("resources:custom fpga", "1")]).is_err());
        assert!(flavor(&[(&format!("resources:CUSTOM_{}", "A".repeat(255)), "1")]).is_err());
        let nothing = [("resources:VCPU", "0"), ("resources:MEMORY_MB", "0"), ("resources:DISK_GB", "0")];
        assert!(flavor(&nothing).is_err());
        let traits = flavor(&[("trait:A", "required"), ("trait:B", "forbidden")]).expect("known");
        assert!(traits.traits().required.contains("A") && traits.traits().forbidden.contains("B"));
    }
}
