//! Observations of the cloud, in the form that the traits of drivers need. This module sends no requests.

use std::collections::{BTreeMap, BTreeSet};

use fleet::Machine;
use jiff::Timestamp;
use leases::host::Health;
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::plan::{Guest, GuestOwner, GuestSize, ObservedHost, Powered, Prepared};
use leases::project::ProjectId;

use crate::closure::Closure;
use crate::fence::{Fence, OUR_TRAITS};
use crate::ids::{FLAVOR, parse_uuid};
use crate::moves::Way;
use crate::pools::{self, Membership, Pool};
use crate::ratios;
use crate::settings::Settings;
use crate::wire::{Aggregate, ComputeService, Hypervisor, Inventory, Migration, Server};

/// Zone of hosts without one: Nova's default.
const DEFAULT_ZONE: &str = "nova";

/// Trait that Nova adds to providers whose service is disabled.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";

/// Classes that the hypervisor itself reports.
const TOLD_BY_NOVA: [&str; 3] = ["VCPU", "MEMORY_MB", "DISK_GB"];

/// Names of a host. Services use the first; hypervisors and providers use the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) service: String,
    pub(crate) hypervisor: String,
}

/// Placement's data about a host. It is read once, and again when exact data is requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct Details {
    /// Generation of the provider when this was read.
    pub(crate) generation: u64,
    other_resources: BTreeMap<String, u64>,
    traits: BTreeSet<String>,
}

impl Details {
    pub(crate) fn new(
        generation: u64,
        inventories: &BTreeMap<String, Inventory>,
        mut traits: BTreeSet<String>,
    ) -> Self {
        // Handovers add and remove these.
        traits.retain(|name| name != DISABLED && !name.starts_with(OUR_TRAITS));
        let capacity = |inventory: &Inventory| {
            let usable = inventory.total.saturating_sub(inventory.reserved);
            (usable as f64 * inventory.allocation_ratio).max(0.0) as u64
        };
        let others = inventories.iter().filter(|(class, _)| !TOLD_BY_NOVA.contains(&class.as_str()));
        let other_resources = others.map(|(class, inventory)| (class.clone(), capacity(inventory))).collect();
        Self { generation, other_resources, traits }
    }
}

/// Result of a look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    pub(crate) services: BTreeMap<String, ComputeService>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// By host.
    pub(crate) servers: BTreeMap<String, Vec<Server>>,
    /// Destination host of each moving server.
    pub(crate) destinations: BTreeMap<String, String>,
}

/// The driver's settings and memory, which are needed to interpret a sight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) settings: &'a Settings,
    /// Servers that were asked to shut down, with the time of the first request.
    pub(crate) stopping: &'a BTreeMap<GuestId, Timestamp>,
    /// Hosts with compute services that have been down for long enough.
    pub(crate) failed: &'a BTreeSet<String>,
    /// Hosts by the names of their services.
    pub(crate) hosts: &'a BTreeMap<String, HostId>,
}

impl Sight {
    pub(crate) fn new(
        services: Vec<ComputeService>,
        aggregates: Vec<Aggregate>,
        servers: Vec<Server>,
        migrations: Vec<Migration>,
    ) -> Self {
        let mut by_host: BTreeMap<String, Vec<Server>> = BTreeMap::new();
        for server in servers {
            if let Some(host) = server.host.clone() {
                by_host.entry(host).or_default().push(server);
            }
        }
        let moving = |migration: Migration| Some((migration.instance_uuid, migration.dest_compute?));
        Self {
            services: services.into_iter().map(|service| (service.host.clone(), service)).collect(),
            aggregates,
            servers: by_host,
            destinations: migrations.into_iter().filter_map(moving).collect(),
        }
    }

    pub(crate) fn on(&self, host: &str) -> &[Server] {
        self.servers.get(host).map_or(&[], Vec::as_slice)
    }

    /// State of reservations as a whole, for that fence.
    pub(crate) fn reservations(&self, fence: &Fence) -> BTreeMap<ReservationId, Prepared> {
        self.aggregates.iter().filter_map(|aggregate| pools::prepared(aggregate, fence)).collect()
    }

    /// Leases and projects, by reservation.
    fn leases(&self) -> BTreeMap<ReservationId, (LeaseId, &str)> {
        let pools = self.aggregates.iter().filter_map(Pool::of);
        pools.filter_map(|pool| Some((pool.reservation, (pool.lease?, pool.project)))).collect()
    }

    /// Owner of a server, which depends on its flavor and on its host.
    pub(crate) fn owner(&self, server: &Server, settings: &Settings) -> GuestOwner {
        let host = server.host.as_deref();
        let membership = host.map(|host| Membership::of(&self.aggregates, &settings.free_pool, host));
        Self::owner_among(server, &membership.unwrap_or_default(), &self.leases(), &settings.fence)
    }

    fn owner_among(
        server: &Server,
        membership: &Membership<'_>,
        leases: &BTreeMap<ReservationId, (LeaseId, &str)>,
        fence: &Fence,
    ) -> GuestOwner {
        let reservation = server.flavor.original_name.strip_prefix(FLAVOR).and_then(parse_uuid);
        // Another project might have been given access to the flavor.
        if let Some((lease, project)) = reservation.and_then(|id| leases.get(&ReservationId(id)))
            && (*project == server.tenant_id || project.is_empty())
        {
            return GuestOwner::Lease(*lease);
        }
        // On a held host, the project's own servers belong to the lease regardless of their flavor, and end
        // with it. Servers that stay after the lease are still recognized as such.
        let holder = membership.holder.as_ref().map(|pool| (pool.project, pool.lease));
        let whose = holder.or_else(|| membership.kept.map(|kept| (kept.project, kept.lease)));
        if let Some((_, Some(lease))) = whose.filter(|(project, _)| *project == server.tenant_id) {
            return GuestOwner::Lease(lease);
        }
        // Servers with a reservation's flavor never become preemptible: not after their lease, in another
        // project, or in a pool that marks by place.
        let of_lease = server.flavor.original_name.starts_with(FLAVOR);
        let in_free_pool = membership.free && membership.holder.is_none() && membership.kept.is_none();
        let is_marked = fence.is_preemptible(server) || (fence.marks_by_place() && in_free_pool);
        if is_marked && !of_lease { GuestOwner::Preemptible } else { GuestOwner::Other }
    }

    /// The adopted hosts among these, as observed.
    pub(crate) fn observed<'n>(
        &self,
        hosts: impl Iterator<Item = (HostId, &'n Names)>,
        known: Known<'_>,
    ) -> BTreeMap<HostId, ObservedHost> {
        let leases = self.leases();
        let mut slots: BTreeMap<&str, BTreeMap<ReservationId, u32>> = BTreeMap::new();
        let mut memberships: BTreeMap<&str, Membership<'_>> = BTreeMap::new();
        for aggregate in &self.aggregates {
            for host in &aggregate.hosts {
                memberships.entry(host).or_default().join(aggregate, &known.settings.free_pool);
            }
            let Some(pool) = Pool::of(aggregate) else { continue };
            for host in pool.slot_hosts() {
                let count = pool.slots(host).unwrap_or_default();
                slots.entry(host).or_default().insert(pool.reservation, count);
            }
        }
        let (mut observed, none) = (BTreeMap::new(), Membership::default());
        for (id, names) in hosts {
            let Some(service) = self.services.get(&names.service) else { continue };
            let membership = memberships.get(names.service.as_str()).unwrap_or(&none);
            let servers = self.on(&names.service);
            let Some(place) = membership.place(service, servers.is_empty()) else { continue };
            let fence = &known.settings.fence;
            let owner = |server| Self::owner_among(server, membership, &leases, fence);
            let guests = servers.iter().filter_map(|server| self.guest(server, owner(server), known));
            let host = ObservedHost {
                place,
                health: health(service, known.failed),
                guests: guests.collect(),
                reports_guests: true,
                slots: slots.get(names.service.as_str()).cloned().unwrap_or_default(),
                powered: if is_off(service) { Powered::Off } else { Powered::On },
                overcommit: Some(ratios::told(membership, &names.service)),
            };
            observed.insert(id, host);
        }
        observed
    }

    fn guest(&self, server: &Server, owner: GuestOwner, known: Known<'_>) -> Option<Guest> {
        let id = parse_uuid(&server.id).map(GuestId)?;
        let moves = server.is_moving() || server.is_resizing();
        let moving_to = moves.then(|| self.destinations.get(&server.id)).flatten();
        // Guests are moved to hosts of the free pool, where the fence can reject servers that aren't
        // preemptible.
        let goes = owner == GuestOwner::Preemptible || known.settings.fence.moves_all();
        let way = Way::of(server).filter(|_| goes);
        Some(Guest {
            owner,
            stopping_since: known.stopping.get(&id).copied(),
            has_shut_down: server.is_shut_off(),
            project: Some(ProjectId(server.tenant_id.clone())),
            size: size(server),
            launched_at: server.created,
            moving_to: moving_to.and_then(|host| known.hosts.get(host)).copied(),
            copied_percent: server
                .progress
                .filter(|_| server.is_moving())
                .map(|percent| percent.min(100) as u8),
            mobility: way.map(Way::mobility),
            ..Guest::new(id, owner)
        })
    }

    /// A hypervisor as a machine. `None` if its compute service doesn't exist.
    pub(crate) fn machine(
        &self,
        hypervisor: &Hypervisor,
        details: Option<&Details>,
        zones: &BTreeMap<&str, &str>,
        failed: &BTreeSet<String>,
    ) -> Option<Machine> {
        let service = self.services.get(&hypervisor.service.host)?;
        let guest = |server: &Server| Some((parse_uuid(&server.id).map(GuestId)?, server.name.clone()));
        let details = details.cloned().unwrap_or_default();
        Some(Machine {
            id: HostId(hypervisor.id),
            name: hypervisor.hostname.clone(),
            service_name: service.host.clone(),
            vcpus: hypervisor.vcpus,
            memory_mib: hypervisor.memory_mb,
            disk_gib: hypervisor.local_gb,
            other_resources: details.other_resources,
            traits: details.traits,
            cpu_info: match &hypervisor.cpu_info {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Null => String::new(),
                other => other.to_string(),
            },
            hypervisor_type: hypervisor.kind.clone(),
            hypervisor_version: hypervisor.version,
            availability_zone: zones.get(service.host.as_str()).map_or(DEFAULT_ZONE, |zone| zone).to_owned(),
            health: health(service, failed),
            guests: self.on(&service.host).iter().filter_map(guest).collect(),
        })
    }

    /// Zones of hosts, by host, except for zones of reservations.
    pub(crate) fn zones(&self) -> BTreeMap<&str, &str> {
        let others = pools::foreign(&self.aggregates);
        let zoned = others.filter_map(|other| Some((other, other.availability_zone.as_deref()?)));
        zoned.flat_map(|(other, zone)| other.hosts.iter().map(move |host| (host.as_str(), zone))).collect()
    }
}

/// Health of a host. `failed` has the hosts whose services have been down for long enough. The driver's own
/// fence isn't a failure, and neither is a service that has just stopped reporting.
fn health(service: &ComputeService, failed: &BTreeSet<String>) -> Health {
    let said = service.forced_down || is_off(service) || failed.contains(&service.host);
    match (pools::is_in_use(service), service.is_up()) {
        (true, true) => Health::Up,
        (true, false) if !said => Health::Unknown,
        _ => Health::Failed,
    }
}

/// Whether the driver has switched off the host.
pub(crate) fn is_off(service: &ComputeService) -> bool {
    pools::closure(service) == Some(Closure::Saving) && !service.is_up()
}

fn size(server: &Server) -> GuestSize {
    let flavor = &server.flavor;
    GuestSize {
        vcpus: flavor.vcpus,
        memory_mib: flavor.ram,
        disk_gib: flavor.disk.saturating_add(flavor.ephemeral),
    }
}
