//! Machines and networks of a simulated fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use leases::host::{Health, NetworkId};
use leases::ids::HostId;

use crate::{Machine, Network, Subnet};

/// A hardware model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Virtual CPUs available to instances.
    pub vcpus: u32,
    /// Memory available to instances, MiB.
    pub memory_mib: u32,
    /// Disk available to instances, GiB.
    pub disk_gib: u32,
    /// Other resources by Placement's resource class.
    pub other_resources: BTreeMap<String, u64>,
    /// Placement's trait names.
    pub traits: BTreeSet<String>,
    /// CPU model, as in `cpu_info`.
    pub cpu_model: String,
    /// Extra capabilities that an operator would set, except for the rack.
    pub capabilities: BTreeMap<String, String>,
}

impl Model {
    /// A model of this size without special features.
    pub fn of_size(vcpus: u32, memory_mib: u32, disk_gib: u32) -> Self {
        Self {
            vcpus,
            memory_mib,
            disk_gib,
            other_resources: BTreeMap::new(),
            traits: BTreeSet::new(),
            cpu_model: "Icelake-Server".to_owned(),
            capabilities: BTreeMap::new(),
        }
    }

    fn with_gpus(mut self, gpu: &str, number: u64) -> Self {
        self.other_resources.insert("PGPU".to_owned(), number);
        self.traits.insert(format!("CUSTOM_GPU_{}", gpu.to_uppercase()));
        self.capabilities.insert("gpu".to_owned(), gpu.to_owned());
        self
    }

    fn with_cpu(mut self, model: &str) -> Self {
        model.clone_into(&mut self.cpu_model);
        self.capabilities.insert("cpu".to_owned(), model.to_lowercase());
        self
    }
}

impl Default for Model {
    /// 32 CPUs, 128 GiB of memory, 1000 GiB of disk.
    fn default() -> Self {
        Self::of_size(32, 131_072, 1000)
    }
}

/// A rack of identical machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rack {
    /// For example `r1`. Prefix of the machines' names.
    pub name: String,
    /// Number of machines.
    pub machines: u32,
    pub model: Model,
}

/// Machines and networks. Machines are numbered from 1, rack by rack, so a layout always has the same
/// identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub racks: Vec<Rack>,
    /// Networks that can provide floating IPs.
    pub networks: Vec<Network>,
}

impl Layout {
    /// Racks `r1`, `r2`, ... of identical machines, and one network.
    pub fn uniform(racks: u32, machines_per_rack: u32, model: &Model) -> Self {
        let rack =
            |number| Rack { name: format!("r{number}"), machines: machines_per_rack, model: model.clone() };
        Self { racks: (1..=racks).map(rack).collect(), networks: vec![Self::public_network()] }
    }

    /// One rack of default machines, and one network.
    pub fn of_machines(machines: u32) -> Self {
        Self::uniform(1, machines, &Model::default())
    }

    /// Different racks for demonstrations: in turn, ordinary machines, machines with much memory, and
    /// machines with GPUs.
    pub fn varied(racks: u32, machines_per_rack: u32) -> Self {
        let kinds = [
            Model::of_size(64, 262_144, 2000).with_cpu("EPYC-Milan"),
            Model::of_size(64, 1_048_576, 4000).with_cpu("EPYC-Genoa"),
            Model::of_size(32, 524_288, 4000).with_cpu("SapphireRapids").with_gpus("a100", 4),
        ];
        let mut layout = Self::uniform(racks, machines_per_rack, &kinds[0]);
        for (rack, model) in layout.racks.iter_mut().zip(kinds.iter().cycle()) {
            rack.model = model.clone();
        }
        layout
    }

    /// Network `public`: 203.0.113.0/24. Its first hundred addresses are allocated outside the service.
    pub fn public_network() -> Network {
        let address = |last| IpAddr::V4(Ipv4Addr::new(203, 0, 113, last));
        Network {
            id: NetworkId("public".to_owned()),
            subnets: vec![Subnet {
                id: "public-v4".to_owned(),
                cidr: (address(0), 24),
                gateway: Some(address(1)),
                allocation_pools: vec![(address(2), address(101))],
            }],
        }
    }

    /// All machines, without guests.
    pub(super) fn machines(&self) -> BTreeMap<HostId, Machine> {
        let places = self.racks.iter().flat_map(|rack| (1..=rack.machines).map(move |number| (rack, number)));
        let numbered = (1..).map(HostId).zip(places);
        numbered.map(|(id, (rack, number))| (id, machine(id, rack, number))).collect()
    }

    /// Extra capabilities that an operator would set for the machine: its rack, and the capabilities of its
    /// model.
    pub fn capabilities(&self, host: HostId) -> BTreeMap<String, String> {
        let mut before = 0;
        for rack in &self.racks {
            before += u64::from(rack.machines);
            if 1 <= host.0 && host.0 <= before {
                let mut capabilities = rack.model.capabilities.clone();
                capabilities.insert("rack".to_owned(), rack.name.clone());
                return capabilities;
            }
        }
        BTreeMap::new()
    }
}

fn machine(id: HostId, rack: &Rack, number: u32) -> Machine {
    let model = &rack.model;
    let name = format!("{}-h{number:02}", rack.name);
    Machine {
        id,
        service_name: name.clone(),
        name,
        vcpus: model.vcpus,
        memory_mib: model.memory_mib,
        disk_gib: model.disk_gib,
        other_resources: model.other_resources.clone(),
        traits: model.traits.clone(),
        cpu_info: serde_json::json!({"arch": "x86_64", "model": model.cpu_model}).to_string(),
        hypervisor_type: "QEMU".to_owned(),
        hypervisor_version: 8_002_002,
        availability_zone: rack.name.clone(),
        health: Health::Up,
        guests: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_numbered_rack_by_rack_and_know_their_rack() {
        let layout = Layout::varied(2, 3);
        let machines = layout.machines();
        let names: Vec<_> = machines.values().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["r1-h01", "r1-h02", "r1-h03", "r2-h01", "r2-h02", "r2-h03"]);
        assert_eq!(layout.capabilities(HostId(3))["rack"], "r1");
        assert_eq!(layout.capabilities(HostId(4))["rack"], "r2");
        assert!(layout.capabilities(HostId(7)).is_empty());
        assert!(layout.capabilities(HostId(0)).is_empty());
    }
}
