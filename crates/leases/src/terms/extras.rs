//! Second disk and extra specs of instances (API-lease), which become part of their reservation's flavor.
//! Only forks of Blazar have them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::TermsError;
use super::flavor::{FlavorTraits, SpecsDemand};
use super::size::InstanceSize;
use crate::resources::Resources;

/// Second disk and extra specs of instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceExtras {
    ephemeral_gib: u32,
    extra_specs: BTreeMap<String, String>,
    demand: SpecsDemand,
}

impl InstanceExtras {
    /// `None` if instances have neither a second disk nor extra specs.
    ///
    /// # Errors
    /// As for a flavor with these extra specs.
    pub fn new(
        size: &InstanceSize,
        ephemeral_gib: u32,
        extra_specs: BTreeMap<String, String>,
    ) -> Result<Option<Arc<Self>>, TermsError> {
        if ephemeral_gib == 0 && extra_specs.is_empty() {
            return Ok(None);
        }
        let demand = SpecsDemand::new("of the reservation", &extra_specs)?;
        let extras = Self { ephemeral_gib, extra_specs, demand };
        extras.check_size(size)?;
        Ok(Some(Arc::new(extras)))
    }

    /// Second disk, in GiB.
    pub fn ephemeral_gib(&self) -> u32 {
        self.ephemeral_gib
    }

    /// Extra specs of the reservation's flavor.
    pub fn extra_specs(&self) -> &BTreeMap<String, String> {
        &self.extra_specs
    }

    /// Rejects a size with which instances would use nothing of their host.
    pub(crate) fn check_size(&self, size: &InstanceSize) -> Result<(), TermsError> {
        if self.resources(size).is_nothing() {
            return Err(TermsError::EmptySize("the flavor's resources"));
        }
        Ok(())
    }

    /// Resources that an instance of this size uses on its host.
    pub(super) fn resources(&self, size: &InstanceSize) -> Resources {
        let mut resources = size.resources();
        resources.disk_gib += u64::from(self.ephemeral_gib);
        self.demand.applied_to(resources)
    }

    pub(super) fn traits(&self) -> &FlavorTraits {
        self.demand.traits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extras(ephemeral_gib: u32, specs: &[(&str, &str)]) -> Result<Option<Arc<InstanceExtras>>, TermsError> {
        let specs = specs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        InstanceExtras::new(&size(4, 10), ephemeral_gib, specs)
    }

    fn size(vcpus: u32, disk_gib: u32) -> InstanceSize {
        InstanceSize::new(vcpus, 2048, disk_gib).expect("a size")
    }

    #[test]
    fn the_second_disk_and_extra_specs_are_asked_of_hosts_for_every_size() {
        assert_eq!(extras(0, &[]), Ok(None));
        let specs =
            [("hw:cpu_policy", "dedicated"), ("resources:VGPU", "1"), ("trait:CUSTOM_FAST", "required")];
        let extras = extras(5, &specs).expect("known").expect("some");
        let resources = extras.resources(&size(4, 10));
        assert_eq!((resources.vcpus, resources.memory_mib, resources.disk_gib), (0, 2048, 15));
        let other: Vec<_> =
            resources.other.iter().map(|(class, amount)| (class.0.as_str(), *amount)).collect();
        assert_eq!(other, [("PCPU", 4), ("VGPU", 1)]);
        assert!(extras.traits().required.contains("CUSTOM_FAST"));
        assert_eq!(extras.resources(&size(8, 10)).other.values().max(), Some(&8));
    }

    #[test]
    fn instances_that_would_use_nothing_are_refused() {
        let nothing = [("resources:VCPU", "0"), ("resources:MEMORY_MB", "0")];
        let kept = extras(0, &nothing).expect("some disk").expect("some");
        assert_eq!(kept.check_size(&size(4, 0)), Err(TermsError::EmptySize("the flavor's resources")));
        let refused = extras(0, &[("resources1:VGPU", "1")]).expect_err("not supported");
        assert_eq!(
            refused.to_string(),
            "flavor of the reservation has the extra spec resources1:VGPU=1, which reservations do not support"
        );
    }
}
