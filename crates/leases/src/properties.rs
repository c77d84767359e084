//! Requirements of a reservation of whole hosts that aren't expressions (CLS-05): on each host, and on all
//! hosts together.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::attributes::Attribute;
use crate::extra_specs::{ExtraSpecs, MAX_LENGTH, MAX_SPECS};
use crate::failure_domain::FailureDomain;
use crate::host::Host;
use crate::text::as_written;

/// Maximum number of properties in [`HostProperties::alike`].
pub const MAX_ALIKE: usize = 8;

/// Required properties of hosts. An absent property isn't required.
///
/// Minimum sizes refer to currently free capacity for leases that start at once or as soon as possible,
/// provided that usage is known. For leases with a date, they refer to the whole capacity.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostProperties {
    /// Region, which must be the service's own.
    pub region: Option<String>,
    /// Availability zone of each host.
    pub availability_zone: Option<String>,
    /// Minimum number of virtual CPUs per host.
    pub vcpus: Option<u32>,
    /// Minimum memory per host, in MiB.
    pub memory_mib: Option<u32>,
    /// Minimum disk per host, in GiB.
    pub disk_gib: Option<u32>,
    /// Whether all hosts of the reservation must have the same `cpu_info` and hypervisor (CLS-05).
    pub homogeneous: bool,
    /// Properties that must have equal values on all hosts of the reservation. A host without one of them isn't
    /// allocated, since an unknown value equals no other. At most [`MAX_ALIKE`].
    pub alike: BTreeSet<String>,
    /// The failure after which the reservation must still have as many hosts as it asks for.
    pub survives: Option<FailureDomain>,
    /// Capabilities, traits and resources of each host, in Nova's extra specs (CLS-06).
    pub extra_specs: ExtraSpecs,
    /// Properties of the image that guests will run.
    pub image: ImageProperties,
}

/// A changed property. An empty value removes the requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyChange {
    Region(Option<String>),
    AvailabilityZone(Option<String>),
    Vcpus(Option<u32>),
    /// In MiB.
    MemoryMib(Option<u32>),
    /// In GiB.
    DiskGib(Option<u32>),
    Homogeneous(bool),
    /// Replaces the whole set of properties that must have equal values.
    Alike(BTreeSet<String>),
    Survives(Option<FailureDomain>),
    /// Replaces all extra specs.
    ExtraSpecs(ExtraSpecs),
    /// Replaces all image properties.
    Image(ImageProperties),
}

/// Capability with a host's overcommit ratio for virtual CPUs. The number of virtual CPUs is multiplied by
/// it.
pub const CPU_RATIO: &str = "cpu_allocation_ratio";
/// Capability with a host's overcommit ratio for memory.
pub const RAM_RATIO: &str = "ram_allocation_ratio";
/// Capability with a host's overcommit ratio for disk.
pub const DISK_RATIO: &str = "disk_allocation_ratio";

impl HostProperties {
    pub fn apply(&mut self, change: PropertyChange) {
        match change {
            PropertyChange::Region(region) => self.region = region,
            PropertyChange::AvailabilityZone(zone) => self.availability_zone = zone,
            PropertyChange::Vcpus(vcpus) => self.vcpus = vcpus,
            PropertyChange::MemoryMib(memory) => self.memory_mib = memory,
            PropertyChange::DiskGib(disk) => self.disk_gib = disk,
            PropertyChange::Homogeneous(homogeneous) => self.homogeneous = homogeneous,
            PropertyChange::Alike(names) => self.alike = names,
            PropertyChange::Survives(domain) => self.survives = domain,
            PropertyChange::ExtraSpecs(specs) => self.extra_specs = specs,
            PropertyChange::Image(image) => self.image = image,
        }
    }

    /// Extra capabilities that these properties refer to. A capability in use isn't changed while a lease
    /// refers to it.
    pub fn names(&self) -> BTreeSet<&str> {
        let ratios = [
            (self.vcpus.is_some(), CPU_RATIO),
            (self.memory_mib.is_some(), RAM_RATIO),
            (self.disk_gib.is_some(), DISK_RATIO),
        ];
        let mut names = self.extra_specs.names();
        names.extend(ratios.into_iter().filter(|(asked, _)| *asked).map(|(_, name)| name));
        names.extend(self.alike.iter().map(String::as_str));
        names.extend(self.survives.as_ref().and_then(FailureDomain::property));
        names.extend(self.image.iter().map(|(name, _)| name));
        names
    }

    /// Number of extra specs and of properties in `alike`. Looking each up on every host takes time.
    pub(crate) fn specs(&self) -> usize {
        self.extra_specs.iter().count() + self.alike.len()
    }

    /// Whether a host's suitability depends on the rest of the reservation's hosts.
    pub(crate) fn compares_hosts(&self) -> bool {
        self.homogeneous || !self.alike.is_empty()
    }

    /// Properties that must have equal values on all hosts.
    pub(crate) fn compared(&self) -> impl Iterator<Item = &str> {
        let of_homogeneous: &[&str] = if self.homogeneous { &["cpu_info", "hypervisor_type"] } else { &[] };
        of_homogeneous.iter().copied().chain(self.alike.iter().map(String::as_str))
    }

    /// Whether the host has a value of each property in `alike`.
    pub(crate) fn is_comparable(&self, host: &Host) -> bool {
        self.alike.iter().all(|name| host.property(name).is_some_and(|value| !value.is_empty()))
    }
}

/// Reason why image properties are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// Too many properties, or a name or value that is too long.
    #[error("an image may have {MAX_SPECS} properties of {MAX_LENGTH} characters each, not more")]
    TooLarge,
}

/// Properties of an image, by their names in Glance.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImageProperties(BTreeMap<String, String>);

impl ImageProperties {
    /// Properties about the host's ability to run the image, unlike all other properties.
    pub const OF_HOSTS: [&'static str; 3] = ["hw_architecture", "img_hv_type", "hw_vm_mode"];

    /// If a name occurs more than once, its last value counts.
    pub fn new(properties: impl IntoIterator<Item = (String, String)>) -> Result<Self, ImageError> {
        let mut read = BTreeMap::new();
        for (name, value) in properties {
            let longest = as_written(&name).chars().count().max(value.chars().count());
            read.insert(name, value);
            if longest > MAX_LENGTH || read.len() > MAX_SPECS {
                return Err(ImageError::TooLarge);
            }
        }
        Ok(Self(read))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Copy with properties renamed, in keys too.
    #[must_use]
    pub fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Self {
        Self(self.0.iter().map(|(name, value)| (rename(name), value.clone())).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether the host can run the image: its architecture, hypervisor and virtual machine mode must match.
    /// A capability with the property's name decides. Without one, `arch` in `cpu_info` and the hypervisor
    /// type do. Case is ignored.
    pub fn supported_by(&self, host: &Host) -> bool {
        let known = self.iter().filter(|(name, _)| Self::OF_HOSTS.contains(name));
        known.into_iter().all(|(name, wanted)| match (capability(host, name, wanted), name) {
            (Some(same), _) => same,
            (None, "img_hv_type") => host.hypervisor_type.eq_ignore_ascii_case(wanted),
            (None, "hw_architecture") => {
                let arch = host.attributes.part("cpu_info", &["arch".to_owned()]);
                matches!(arch, Some(Attribute::Text(arch)) if arch.eq_ignore_ascii_case(wanted))
            }
            (None, _) => false,
        })
    }

    /// Whether the host accepts the image: if it has a capability with the name of an image property, the
    /// values must be equal.
    pub fn welcome_on(&self, host: &Host) -> bool {
        self.iter().all(|(name, wanted)| capability(host, name, wanted).unwrap_or(true))
    }
}

/// Whether the capability has the value, or has it in a list. `None` if the host doesn't have the capability.
fn capability(host: &Host, name: &str, wanted: &str) -> Option<bool> {
    let text = host.capabilities.get(name)?;
    Some(match host.attributes.of(name) {
        Some(Attribute::List(values)) => values
            .iter()
            .any(|value| matches!(value, Attribute::Text(value) if value.eq_ignore_ascii_case(wanted))),
        _ => text.eq_ignore_ascii_case(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;
    use crate::testing::host;

    fn image(properties: &[(&str, &str)]) -> ImageProperties {
        let properties = properties.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ImageProperties::new(properties).expect("not too many")
    }

    #[test]
    fn cls_07_an_image_runs_where_its_architecture_hypervisor_and_mode_are() {
        let mut host = host(1);
        host.hypervisor_type = "QEMU".into();
        let arch = Attribute::Parts([("arch".to_owned(), Attribute::Text("x86_64".into()))].into());
        host.attributes = Attributes::new([("cpu_info".to_owned(), arch)]);
        assert!(image(&[("hw_architecture", "x86_64"), ("img_hv_type", "qemu")]).supported_by(&host));
        assert!(!image(&[("hw_architecture", "aarch64")]).supported_by(&host));
        assert!(!image(&[("img_hv_type", "xen")]).supported_by(&host));
        assert!(!image(&[("hw_vm_mode", "hvm")]).supported_by(&host), "nobody knows");
        host.capabilities.insert("hw_vm_mode".into(), "hvm".into());
        assert!(image(&[("hw_vm_mode", "hvm"), ("os_distro", "any")]).supported_by(&host));
    }

    #[test]
    fn cls_07_a_host_with_an_images_property_is_there_for_such_images() {
        let mut host = host(1);
        assert!(image(&[("os_type", "windows")]).welcome_on(&host));
        host.capabilities.insert("os_type".into(), "linux".into());
        assert!(!image(&[("os_type", "windows")]).welcome_on(&host));
        assert!(image(&[("os_type", "linux"), ("other", "x")]).welcome_on(&host));
        assert!(image(&[]).welcome_on(&host));
        assert!(ImageProperties::new([("a".to_owned(), "x".repeat(256))]).is_err());
    }
}
