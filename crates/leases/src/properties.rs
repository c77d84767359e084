//! What a reservation of whole hosts asks of each beside expressions (CLS-05), and of all of them together.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::attributes::Attribute;
use crate::extra_specs::{ExtraSpecs, MAX_LENGTH, MAX_SPECS};
use crate::failure_domain::FailureDomain;
use crate::host::Host;
use crate::text::as_written;

/// Maximum number of properties in [`HostProperties::alike`].
pub const MAX_ALIKE: usize = 8;

/// What hosts must be like. What is absent is not asked for.
///
/// Least sizes are what is free at the moment for leases that start at once or as soon as they can, if it is known
/// what is used; and the whole capacity for leases with a date.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct HostProperties {
    /// The region that the service must be of.
    pub region: Option<String>,
    /// The availability zone of each host.
    pub availability_zone: Option<String>,
    /// Virtual CPUs of each, at least.
    pub vcpus: Option<u32>,
    /// Memory of each, at least, MiB.
    pub memory_mib: Option<u32>,
    /// Disk of each, at least, GiB.
    pub disk_gib: Option<u32>,
    /// Whether all hosts of the reservation must have the same `cpu_info` and hypervisor (CLS-05).
    pub homogeneous: bool,
    /// Properties that must have equal values on all hosts of the reservation. A host without one of them isn't
    /// allocated, since an unknown value equals no other. At most [`MAX_ALIKE`].
    pub alike: BTreeSet<String>,
    /// What may fail without the reservation having fewer hosts than it asks for.
    pub survives: Option<FailureDomain>,
    /// Capabilities, traits and resources of each, in Nova's words (CLS-06).
    pub extra_specs: ExtraSpecs,
    /// Properties of the image that guests are to run.
    pub image: ImageProperties,
}

/// A property that is to be different. Nothing in it means that it is not asked for any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropertyChange {
    /// The region.
    Region(Option<String>),
    /// The availability zone.
    AvailabilityZone(Option<String>),
    /// Virtual CPUs.
    Vcpus(Option<u32>),
    /// Memory, MiB.
    MemoryMib(Option<u32>),
    /// Disk, GiB.
    DiskGib(Option<u32>),
    /// Whether hosts must be alike.
    Homogeneous(bool),
    /// All properties that must have equal values.
    Alike(BTreeSet<String>),
    /// What may fail.
    Survives(Option<FailureDomain>),
    /// All extra specs.
    ExtraSpecs(ExtraSpecs),
    /// All properties of the image.
    Image(ImageProperties),
}

/// The capability by which a host overcommits virtual CPUs: that many times as many count.
pub const CPU_RATIO: &str = "cpu_allocation_ratio";
/// The same for memory.
pub const RAM_RATIO: &str = "ram_allocation_ratio";
/// The same for disk.
pub const DISK_RATIO: &str = "disk_allocation_ratio";

impl HostProperties {
    /// Makes a property different.
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

    /// The extra capabilities that they rely on, so that one in use is not changed under a lease.
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

    /// Number of extra specs and of properties in `alike`, which it takes time to look up on each host.
    pub(crate) fn specs(&self) -> usize {
        self.extra_specs.iter().count() + self.alike.len()
    }

    /// Whether a host suits only beside hosts that are like it.
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

/// Properties of an image that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ImageError {
    /// Too many, or too long.
    #[error("an image may have {MAX_SPECS} properties of {MAX_LENGTH} characters each, not more")]
    TooLarge,
}

/// Properties of an image, by Glance's names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ImageProperties(BTreeMap<String, String>);

impl ImageProperties {
    /// Those that say what a host has to be able to run, all others apart.
    pub const OF_HOSTS: [&'static str; 3] = ["hw_architecture", "img_hv_type", "hw_vm_mode"];

    /// Of these names and values; of several with one name the last counts.
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

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same about properties of other names.
    #[must_use]
    pub fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Self {
        Self(self.0.iter().map(|(name, value)| (rename(name), value.clone())).collect())
    }

    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether the host can run the image: it is of that architecture, and has that hypervisor and mode of virtual
    /// machines. A capability of the property's name says so; without one, `arch` in `cpu_info` and the type of the
    /// hypervisor do. Upper and lower case are the same.
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

    /// Whether the host is there for the image: where it has a capability of a property's name, that has the same
    /// value.
    pub fn welcome_on(&self, host: &Host) -> bool {
        self.iter().all(|(name, wanted)| capability(host, name, wanted).unwrap_or(true))
    }
}

/// Whether the capability of that name has that value, or that one among several; nothing if there is none.
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
