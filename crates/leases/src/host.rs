//! Inventory of leasable resources: hosts and floating IPs.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use crate::attributes::Attributes;
use crate::energy::record::Power;
use crate::ids::{FloatingIpId, FreePoolId, HostId};
use crate::resources::{ResourceClass, Resources};
use crate::scarcity::{Property, Scarcity, scarcities};

/// Capability that restricts a host to certain projects: their identifiers, separated by commas.
pub const TENANTS: &str = "filter_tenant_id";

/// Property with the name of a host's free pool.
pub const POOL_PROPERTY: &str = "free_pool";

/// Capability with the computing power of a host whose CPUs are all busy, in MFLOPS.
pub const MFLOPS: &str = "mflops";

/// Prefix of capabilities with a host's power draw.
const POWER_PREFIX: &str = "power_";

/// Health of a host, as last observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Health {
    /// The host responds and is enabled.
    #[default]
    Up,
    /// The host is down, or its compute service is disabled.
    Failed,
    /// The host hasn't been heard of for long. It gets no new leases, but nothing is moved away from it.
    Unknown,
}

/// A leasable host (API-hosts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub id: HostId,
    /// Free pool of the host while it isn't leased.
    pub pool: FreePoolId,
    /// The `hypervisor_hostname`.
    pub name: String,
    /// Name of the host's compute service.
    pub service_name: String,
    /// Virtual CPUs available to instances.
    pub vcpus: u32,
    /// Memory available to instances, MiB.
    pub memory_mib: u32,
    /// Disk available to instances, GiB.
    pub disk_gib: u32,
    /// Further resources that flavors can request, after reserve and allocation ratio.
    pub other_resources: BTreeMap<ResourceClass, u64>,
    /// Traits by Placement's names.
    pub traits: BTreeSet<String>,
    /// Description of the CPU, usually JSON text.
    pub cpu_info: String,
    /// Type of hypervisor, such as `QEMU`.
    pub hypervisor_type: String,
    /// Version of the hypervisor as a number, such as `2010001`.
    pub hypervisor_version: u64,
    /// Empty if unknown.
    pub availability_zone: String,
    /// Extra capabilities by name.
    pub capabilities: BTreeMap<String, String>,
    /// Structured values parsed from the texts above, if they could be parsed.
    pub attributes: Attributes,
    /// Whether the operator allows reservations of the host.
    pub reservable: bool,
    pub health: Health,
    pub power: Power,
}

impl Host {
    /// A healthy, reservable host of this size. The caller fills in the rest.
    pub fn new(id: HostId, name: impl Into<String>, vcpus: u32, memory_mib: u32, disk_gib: u32) -> Self {
        let name = name.into();
        Self {
            id,
            pool: FreePoolId::DEFAULT,
            service_name: name.clone(),
            name,
            vcpus,
            memory_mib,
            disk_gib,
            other_resources: BTreeMap::new(),
            traits: BTreeSet::new(),
            cpu_info: String::new(),
            hypervisor_type: String::new(),
            hypervisor_version: 0,
            availability_zone: String::new(),
            capabilities: BTreeMap::new(),
            attributes: Attributes::default(),
            reservable: true,
            health: Health::Up,
            power: Power::default(),
        }
    }

    /// Properties that every host has. All others are extra capabilities.
    pub const FIELDS: [&'static str; 11] = [
        "id",
        "hypervisor_hostname",
        "service_name",
        "vcpus",
        "memory_mb",
        "local_gb",
        "cpu_info",
        "hypervisor_type",
        "hypervisor_version",
        "availability_zone",
        "reservable",
    ];

    /// Numeric ones among [`Self::FIELDS`].
    pub const NUMBERS: [&'static str; 5] = ["id", "vcpus", "memory_mb", "local_gb", "hypervisor_version"];

    /// Resources available to instances.
    pub fn capacity(&self) -> Resources {
        Resources {
            vcpus: self.vcpus.into(),
            memory_mib: self.memory_mib.into(),
            disk_gib: self.disk_gib.into(),
            other: self.other_resources.clone(),
        }
    }

    /// Value of a property that requirements can name: a column of Blazar's host table, or else an extra
    /// capability (API-expressions). Columns take precedence, as in Blazar.
    pub fn property(&self, name: &str) -> Option<Cow<'_, str>> {
        let number = |number: u64| Cow::Owned(number.to_string());
        Some(match name {
            "id" => number(self.id.0),
            "hypervisor_hostname" => Cow::Borrowed(self.name.as_str()),
            "service_name" => Cow::Borrowed(self.service_name.as_str()),
            "vcpus" => number(self.vcpus.into()),
            "memory_mb" => number(self.memory_mib.into()),
            "local_gb" => number(self.disk_gib.into()),
            "cpu_info" => Cow::Borrowed(self.cpu_info.as_str()),
            "hypervisor_type" => Cow::Borrowed(self.hypervisor_type.as_str()),
            "hypervisor_version" => number(self.hypervisor_version),
            "availability_zone" => Cow::Borrowed(self.availability_zone.as_str()),
            "reservable" => Cow::Borrowed(if self.reservable { "True" } else { "False" }),
            capability => Cow::Borrowed(self.capabilities.get(capability)?.as_str()),
        })
    }
}

impl Host {
    /// Properties that other hosts may lack: traits, resources and capabilities. Capabilities for administration, power and
    /// efficiency aren't included.
    fn distinctions(&self) -> impl Iterator<Item = Property<'_>> {
        let of_host = |(name, _): &(&String, &String)| {
            ![TENANTS, POOL_PROPERTY, MFLOPS].contains(&name.as_str()) && !name.starts_with(POWER_PREFIX)
        };
        let capabilities = self.capabilities.iter().filter(of_host);
        let resources = self.other_resources.iter().filter(|(_, amount)| **amount > 0);
        capabilities
            .map(|(name, value)| Property::Capability(name, value))
            .chain(self.traits.iter().map(|name| Property::Trait(name)))
            .chain(resources.map(|(class, _)| Property::Resource(&class.0)))
    }
}

/// Network that floating IPs belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetworkId(pub String);

/// A leasable floating IP (API-hosts).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatingIp {
    pub id: FloatingIpId,
    pub network: NetworkId,
    pub address: std::net::IpAddr,
    /// Whether the operator allows reservations of the address.
    pub reservable: bool,
}

/// All leasable resources. Clones share the hosts.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    hosts: BTreeMap<HostId, Arc<Host>>,
    /// Hosts that might be restricted to certain projects. Decisions check every host, and looking into its
    /// capabilities takes longer.
    exclusive: BTreeSet<HostId>,
    /// Computed on first use. Clones share it until properties of a host change.
    scarcities: Arc<OnceLock<HashMap<HostId, Scarcity>>>,
    floating_ips: BTreeMap<FloatingIpId, FloatingIp>,
}

impl Inventory {
    /// If an identifier occurs more than once, the last entry counts.
    pub fn new(
        hosts: impl IntoIterator<Item = Host>,
        floating_ips: impl IntoIterator<Item = FloatingIp>,
    ) -> Self {
        let mut inventory = Self {
            floating_ips: floating_ips.into_iter().map(|ip| (ip.id, ip)).collect(),
            ..Self::default()
        };
        hosts.into_iter().for_each(|host| inventory.put_host(host));
        inventory
    }

    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(&id).map(AsRef::as_ref)
    }

    /// Mutable access to a host. Assumes that its capabilities change.
    pub fn host_mut(&mut self, id: HostId) -> Option<&mut Host> {
        let host = self.hosts.get_mut(&id)?;
        self.exclusive.insert(id);
        self.scarcities = Arc::default();
        Some(Arc::make_mut(host))
    }

    /// Rarity of the host's properties among all hosts.
    pub fn scarcity(&self, id: HostId) -> Scarcity {
        let known = self
            .scarcities
            .get_or_init(|| scarcities(self.hosts().map(|host| (host.id, host.distinctions()))));
        known.get(&id).copied().unwrap_or_default()
    }

    /// Whether [`TENANTS`] might restrict the host to certain projects.
    pub(crate) fn may_be_exclusive(&self, id: HostId) -> bool {
        self.exclusive.contains(&id)
    }

    /// All hosts, ordered by identifier.
    pub fn hosts(&self) -> impl ExactSizeIterator<Item = &Host> + Clone {
        self.hosts.values().map(AsRef::as_ref)
    }

    /// Adds a host, or replaces the one with the same identifier.
    pub fn put_host(&mut self, host: Host) {
        if host.capabilities.contains_key(TENANTS) {
            self.exclusive.insert(host.id);
        } else {
            self.exclusive.remove(&host.id);
        }
        // Health and power change often, properties rarely.
        if self.hosts.get(&host.id).is_none_or(|known| !known.distinctions().eq(host.distinctions())) {
            self.scarcities = Arc::default();
        }
        self.hosts.insert(host.id, Arc::new(host));
    }

    pub fn remove_host(&mut self, id: HostId) -> Option<Arc<Host>> {
        self.exclusive.remove(&id);
        self.scarcities = Arc::default();
        self.hosts.remove(&id)
    }

    pub fn floating_ip(&self, id: FloatingIpId) -> Option<&FloatingIp> {
        self.floating_ips.get(&id)
    }

    /// All floating IPs, ordered by identifier.
    pub fn floating_ips(&self) -> impl ExactSizeIterator<Item = &FloatingIp> {
        self.floating_ips.values()
    }

    /// Adds a floating IP, or replaces the one with the same identifier.
    pub fn put_floating_ip(&mut self, ip: FloatingIp) {
        self.floating_ips.insert(ip.id, ip);
    }

    pub fn remove_floating_ip(&mut self, id: FloatingIpId) -> Option<FloatingIp> {
        self.floating_ips.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_the_fields_and_nothing_else_by_itself() {
        let host = Host::new(HostId(1), "n", 1, 1, 1);
        assert!(Host::FIELDS.into_iter().all(|field| host.property(field).is_some()));
        assert_eq!(host.property("rack"), None);
    }

    #[test]
    fn the_scarcity_of_hosts_follows_their_properties_and_is_worked_out_once() {
        let host = |id, gpu: Option<&str>| {
            let mut host = Host::new(HostId(id), format!("node{id}"), 1, 1, 1);
            host.capabilities.extend(gpu.map(|gpu| ("gpu".to_owned(), gpu.to_owned())));
            host
        };
        let mut inventory = Inventory::new([host(1, Some("a")), host(2, None)], []);
        let copy = inventory.clone();
        let only = inventory.scarcity(HostId(1));
        assert!(only > inventory.scarcity(HostId(2)));
        assert!(copy.scarcities.get().is_some(), "copies share it");
        inventory.put_host(Host { health: Health::Failed, ..host(1, Some("a")) });
        assert!(inventory.scarcities.get().is_some(), "health is no property");
        inventory.put_host(host(2, Some("a")));
        assert!(inventory.scarcity(HostId(1)) < only);
        assert_eq!(inventory.scarcity(HostId(1)), inventory.scarcity(HostId(2)));
        inventory.remove_host(HostId(2));
        assert_eq!(inventory.scarcity(HostId(1)), only);
        inventory.host_mut(HostId(1)).expect("there").capabilities.clear();
        assert!(inventory.scarcity(HostId(1)) < only);
        assert_eq!(copy.scarcity(HostId(1)), only, "a copy has hosts of its own");
        let administrative = [TENANTS, POOL_PROPERTY, MFLOPS, "power_busy_watts"]
            .map(|name| (name.to_owned(), "a".to_owned()));
        inventory.put_host(Host { capabilities: administrative.into(), ..host(1, None) });
        assert_eq!(inventory.scarcity(HostId(1)), Scarcity::default());
    }
}
