//! Flavor requirements on the host as a whole: attestation, NUMA nodes, PCI devices (CLS-07). Hosts declare
//! them in capabilities. Devices are counted here, not assigned to guests.

use std::collections::BTreeMap;

use super::error::ExtraSpecError;
use super::judge::Judge;
use crate::attributes::Attribute;
use crate::host::Host;

/// Supported keys. Each has a filter of its own.
const TRUST: &str = "trust:trusted_host";
const NUMA: &str = "hw:numa_nodes";
const PCI: &str = "pci_passthrough:alias";

/// Capability with the host's level of trust.
const TRUSTED_HOST: &str = "trusted_host";
/// Capability with the host's number of NUMA nodes. If absent, the cells of the topology in `cpu_info` are
/// counted.
const NUMA_NODES: &str = "numa_nodes";

/// A requirement on the host as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// Level of trust: `trusted`, `untrusted`, `unknown`.
    Trust(String),
    /// Minimum number of NUMA nodes.
    Numa(u32),
    /// Minimum number of PCI devices by alias.
    Pci(BTreeMap<String, u32>),
}

impl Device {
    /// Parses a spec; `None` if its key isn't one of the supported ones.
    pub fn read(key: &str, value: &str) -> Option<Result<Self, ExtraSpecError>> {
        let wrong = || ExtraSpecError::NoAmount(key.to_owned(), value.to_owned());
        Some(match key {
            TRUST => Ok(Self::Trust(value.to_owned())),
            NUMA => value.trim().parse().map(Self::Numa).map_err(|_| wrong()),
            PCI => devices(value).map(Self::Pci).ok_or_else(wrong),
            _ => return None,
        })
    }

    pub fn judges(&self) -> &'static [Judge] {
        match self {
            Self::Trust(_) => &[Judge::Trust],
            Self::Numa(_) => &[Judge::Numa],
            Self::Pci(_) => &[Judge::Pci],
        }
    }

    /// Capability that the requirement is compared with.
    pub fn property(&self) -> &'static str {
        match self {
            Self::Trust(_) => TRUSTED_HOST,
            Self::Numa(_) => NUMA_NODES,
            Self::Pci(_) => PCI,
        }
    }

    pub fn holds(&self, host: &Host) -> bool {
        let said = host.capabilities.get(self.property()).map(|text| text.trim());
        match self {
            // A host that declares no level of trust counts as `unknown`.
            Self::Trust(wanted) => said.unwrap_or("unknown") == wanted,
            Self::Numa(wanted) => {
                let cells = || cells_of(host);
                said.map_or_else(cells, |text| text.parse().ok()).is_some_and(|nodes| nodes >= *wanted)
            }
            Self::Pci(wanted) => {
                let there = said.and_then(devices).unwrap_or_default();
                wanted.iter().all(|(alias, count)| there.get(alias).is_some_and(|own| own >= count))
            }
        }
    }
}

/// Number of cells of the topology in `cpu_info`, which holds either a number or a list of cells.
fn cells_of(host: &Host) -> Option<u32> {
    match host.attributes.part("cpu_info", &["topology".to_owned(), "cells".to_owned()])? {
        Attribute::Text(text) => text.trim().parse().ok(),
        Attribute::List(cells) => u32::try_from(cells.len()).ok(),
        Attribute::Parts(_) => None,
    }
}

/// Parses Nova's syntax: `a:2,b` means two devices with alias `a` and one with alias `b`.
fn devices(text: &str) -> Option<BTreeMap<String, u32>> {
    let mut devices = BTreeMap::new();
    for part in text.split(',') {
        let (alias, count) = part.split_once(':').unwrap_or((part, "1"));
        let (alias, count) = (alias.trim(), count.trim().parse::<u32>().ok()?);
        if alias.is_empty() {
            return None;
        }
        let all = devices.entry(alias.to_owned()).or_insert(0_u32);
        *all = all.saturating_add(count);
    }
    Some(devices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;
    use crate::testing::host;

    fn holds(key: &str, value: &str, host: &Host) -> bool {
        Device::read(key, value).expect("known").expect("well formed").holds(host)
    }

    #[test]
    fn cls_07_attestation_numa_nodes_and_pci_devices_are_capabilities() {
        let plain = host(1);
        let mut rich = host(2);
        for (name, value) in [(TRUSTED_HOST, "trusted"), (NUMA_NODES, "2"), (PCI, "gpu:4, nic")] {
            rich.capabilities.insert(name.to_owned(), value.to_owned());
        }
        for (key, value, of_plain, of_rich) in [
            (TRUST, "trusted", false, true),
            (TRUST, "unknown", true, false),
            (NUMA, "2", false, true),
            (NUMA, "3", false, false),
            (PCI, "gpu:4", false, true),
            (PCI, "gpu:5", false, false),
            (PCI, "gpu:2,gpu:2,nic:1", false, true),
            (PCI, "gpu:2,gpu:3", false, false),
            (PCI, "fpga", false, false),
            (PCI, "gpu:0", false, true),
        ] {
            assert_eq!(holds(key, value, &plain), of_plain, "{key}={value}");
            assert_eq!(holds(key, value, &rich), of_rich, "{key}={value}");
        }
        for (key, value) in [(NUMA, "many"), (PCI, ""), (PCI, "gpu:some"), (PCI, "gpu:1,,")] {
            let refused = Device::read(key, value).expect("known");
            assert!(matches!(refused, Err(ExtraSpecError::NoAmount(..))), "{key}={value}");
        }
        assert_eq!(Device::read("hw:cpu_policy", "dedicated"), None);
    }

    #[test]
    fn cls_07_numa_nodes_are_counted_in_cpu_info_where_nothing_else_is_said() {
        let mut host = host(1);
        for (cells, nodes) in [
            (Attribute::Text("2".to_owned()), 2),
            (Attribute::List(vec![Attribute::Text("a".to_owned()); 4]), 4),
        ] {
            let topology = Attribute::Parts([("cells".to_owned(), cells)].into());
            let cpu_info = Attribute::Parts([("topology".to_owned(), topology)].into());
            host.attributes = Attributes::new([("cpu_info".to_owned(), cpu_info)]);
            assert!(holds(NUMA, &nodes.to_string(), &host));
            assert!(!holds(NUMA, &(nodes + 1).to_string(), &host));
        }
    }
}
