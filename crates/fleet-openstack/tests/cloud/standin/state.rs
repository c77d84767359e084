//! State of the cloud, and changes that tests make to it.

use std::collections::{BTreeMap, BTreeSet};

use super::glance::Image;
use super::migrations::{Confirmations, Migration};
use super::neutron::FloatingIp;

/// The free pool's aggregate. It doesn't exist at the start.
pub const FREE_POOL: &str = "freepool";

/// A trait of every host, added by Nova.
pub const COMPUTE_NODE: &str = "COMPUTE_NODE";

#[derive(Clone, Debug)]
pub struct Host {
    pub number: u64,
    pub enabled: bool,
    pub reason: Option<String>,
    pub up: bool,
    /// Whether an operator has declared it down.
    pub forced_down: bool,
}

#[derive(Clone, Debug)]
pub struct Aggregate {
    pub name: String,
    pub zone: Option<String>,
    pub hosts: BTreeSet<String>,
    pub metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub host: String,
    pub project: String,
    pub status: &'static str,
    /// Nova's current task for it.
    pub task: Option<&'static str>,
    pub flavor: String,
    pub specs: BTreeMap<String, String>,
    pub preemptible: bool,
    /// The scheduler hint about that, if any.
    pub hinted: Option<bool>,
    /// Whether Nova reports its host. Until then, only Placement knows it.
    pub listed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Provider {
    pub name: String,
    pub generation: u64,
    /// Total of each class.
    pub inventories: BTreeMap<String, u64>,
    /// Allocation ratios of classes. A class that isn't here has a ratio of 1.
    pub ratios: BTreeMap<String, f64>,
    /// UUIDs of the aggregates that it is in.
    pub aggregates: BTreeSet<String>,
    pub traits: BTreeSet<String>,
    pub root: bool,
}

/// The whole state.
#[derive(Debug)]
pub struct State {
    pub hosts: BTreeMap<String, Host>,
    pub aggregates: BTreeMap<u64, Aggregate>,
    /// Hosts that were switched, with the direction.
    pub switched: Vec<String>,
    /// Hosts of aggregates, as known to schedulers.
    told: BTreeMap<u64, BTreeSet<String>>,
    pub servers: BTreeMap<String, Server>,
    /// Migrations, oldest first. Live ones are included only while `live_migrations_hang`.
    pub migrations: Vec<Migration>,
    /// Whether cold migrations fail.
    pub migrations_fail: bool,
    /// Effect of confirmations of moves.
    pub confirmations: Confirmations,
    /// Whether migrations that have begun are missing in lists and make no progress.
    pub migrations_late: bool,
    /// Whether live migrations never end.
    pub live_migrations_hang: bool,
    /// By UUID.
    pub providers: BTreeMap<String, Provider>,
    pub classes: BTreeSet<String>,
    pub traits: BTreeSet<String>,
    /// Projects that may use each flavor.
    pub flavors: BTreeMap<String, BTreeSet<String>>,
    /// The requests that created the flavors.
    pub sizes: BTreeMap<String, serde_json::Value>,
    /// Extra specs of the flavors.
    pub specs: BTreeMap<String, BTreeMap<String, String>>,
    /// Names of server groups, by identifier.
    pub server_groups: BTreeMap<String, String>,
    pub floating_ips: BTreeMap<String, FloatingIp>,
    pub images: BTreeMap<String, Image>,
    /// Number of looks after which an image is ready. `None`: never.
    pub image_looks: Option<usize>,
    /// Whether the service is forbidden to give images away.
    pub images_stay: bool,
    /// Number of looks for which deleted servers stay.
    pub slow_deletion: usize,
    pub next: u64,
    /// Hosts that were in a pool and were later seen without a pool.
    pub left_open: BTreeSet<String>,
    /// Project with a server on its way to the next host that enters an aggregate. The server arrives there
    /// at once.
    pub arrives: Option<&'static str>,
    /// Whether Nova fails to tell Placement that a host has entered an aggregate.
    pub forgets_placement: bool,
    /// Projects that look for a host after every request, and all hosts that each project could ever use, by
    /// Nova's options.
    pub watched: Vec<&'static str>,
    pub let_in: BTreeSet<(Isolation, String, &'static str)>,
    /// Whether a host in an isolated aggregate has ever admitted a server without required traits.
    pub plain_let_in: bool,
}

/// Nova's mechanisms for tenant isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// `limit_tenants_to_placement_aggregate` with `placement_aggregate_required_for_tenants`.
    Options,
    /// The scheduler's filter `AggregateMultiTenancyIsolation`.
    Filter,
}

pub fn uuid(number: u64) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

impl State {
    pub fn new(hosts: u64) -> Self {
        let host = |number| Host { number, enabled: true, reason: None, up: true, forced_down: false };
        let provider = |number: u64| Provider {
            name: format!("host{number}"),
            generation: 1,
            inventories: BTreeMap::from([
                ("VCPU".to_owned(), 10),
                ("MEMORY_MB".to_owned(), 8192),
                ("CUSTOM_FPGA".to_owned(), 2),
            ]),
            ratios: BTreeMap::from([("VCPU".to_owned(), 4.0)]),
            aggregates: BTreeSet::new(),
            traits: BTreeSet::from([COMPUTE_NODE.to_owned()]),
            root: true,
        };
        Self {
            hosts: (1..=hosts).map(|number| (format!("host{number}"), host(number))).collect(),
            aggregates: BTreeMap::new(),
            switched: Vec::new(),
            told: BTreeMap::new(),
            servers: BTreeMap::new(),
            migrations: Vec::new(),
            migrations_fail: false,
            confirmations: Confirmations::AtOnce,
            migrations_late: false,
            live_migrations_hang: false,
            providers: (1..=hosts).map(|number| (uuid(number), provider(number))).collect(),
            classes: BTreeSet::new(),
            traits: BTreeSet::from([COMPUTE_NODE.to_owned()]),
            flavors: BTreeMap::new(),
            sizes: BTreeMap::new(),
            specs: BTreeMap::new(),
            server_groups: BTreeMap::new(),
            floating_ips: BTreeMap::new(),
            images: BTreeMap::new(),
            image_looks: Some(1),
            images_stay: false,
            slow_deletion: 0,
            next: 1_000_000,
            left_open: BTreeSet::new(),
            arrives: None,
            forgets_placement: false,
            watched: Vec::new(),
            let_in: BTreeSet::new(),
            plain_let_in: false,
        }
    }

    /// Switches a host, as requested by a hook.
    pub fn switch(&mut self, on: bool, asked: &serde_json::Value) -> super::Reply {
        let name = asked["host_name"].as_str().expect("a host");
        self.switched.push(format!("{name} {}", if on { "on" } else { "off" }));
        self.host(name).up = on;
        (200, serde_json::Value::Null)
    }

    /// The hosts of an aggregate, as seen by a request that will change it.
    pub fn as_found(&self, id: &str) -> Option<(u64, BTreeSet<String>)> {
        let id = id.parse().ok()?;
        Some((id, self.aggregates.get(&id)?.hosts.clone()))
    }

    /// Tells schedulers the result of a request that has found these hosts in an aggregate and has changed
    /// it.
    pub fn tell(&mut self, id: u64, mut hosts: BTreeSet<String>, body: &serde_json::Value) {
        if let Some(host) = body["add_host"]["host"].as_str() {
            hosts.insert(host.to_owned());
        } else if let Some(host) = body["remove_host"]["host"].as_str() {
            hosts.remove(host);
        }
        self.told.insert(id, hosts);
    }

    /// Names of the aggregates with hosts that schedulers don't know yet.
    pub fn wrongly_told(&self) -> Vec<String> {
        let wrong = |id: &u64, pool: &Aggregate| self.told.get(id).is_some_and(|told| *told != pool.hosts);
        self.aggregates
            .iter()
            .filter(|(id, pool)| wrong(id, pool))
            .map(|(_, pool)| pool.name.clone())
            .collect()
    }

    /// Creates an aggregate as an operator would.
    pub fn add_aggregate(&mut self, name: &str, zone: Option<&str>) -> u64 {
        let id = self.number();
        let made = Aggregate {
            name: name.to_owned(),
            zone: zone.map(str::to_owned),
            hosts: BTreeSet::new(),
            metadata: BTreeMap::new(),
        };
        self.aggregates.insert(id, made);
        id
    }

    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Starts a server on that host, bypassing the scheduler.
    pub fn boot(&mut self, host: &str, project: &str, preemptible: bool) -> String {
        let id = uuid(self.number());
        let flavor = if preemptible { "preempt" } else { "small" }.to_owned();
        let server = Server {
            host: host.to_owned(),
            project: project.to_owned(),
            status: "ACTIVE",
            task: None,
            flavor,
            specs: BTreeMap::new(),
            preemptible,
            hinted: None,
            listed: true,
        };
        self.servers.insert(id.clone(), server);
        id
    }

    pub fn host(&mut self, name: &str) -> &mut Host {
        self.hosts.get_mut(name).expect("a host")
    }

    /// Names of the aggregates that a host is in.
    pub fn pools(&self, host: &str) -> Vec<String> {
        let pools = self.aggregates.values().filter(|pool| pool.hosts.contains(host));
        pools.map(|pool| pool.name.clone()).collect()
    }

    /// Allocation ratios of a host's CPUs and memory.
    pub fn ratios(&mut self, host: &str) -> [f64; 2] {
        let provider = self.provider_of(host);
        ["VCPU", "MEMORY_MB"].map(|class| provider.ratios.get(class).copied().unwrap_or(1.0))
    }

    /// The root provider of a host.
    pub fn provider_of(&mut self, host: &str) -> &mut Provider {
        let mut providers = self.providers.values_mut();
        providers.find(|provider| provider.name == host && provider.root).expect("a provider")
    }

    /// Whether a mechanism for tenant isolation lets a project's servers on a host.
    pub fn lets_in(&self, by: Isolation, host: &str, project: &str) -> bool {
        let tenants = |pool: &Aggregate| {
            let isolating = pool.metadata.iter().filter(|(key, _)| key.starts_with("filter_tenant_id"));
            isolating.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        if !self.hosts[host].enabled {
            return false;
        }
        match by {
            Isolation::Options => {
                // Nova accepts any value in an aggregate that has any such key.
                let own = self.aggregates.iter().filter(|(_, pool)| {
                    pool.metadata.values().any(|value| value == project) && !tenants(pool).is_empty()
                });
                let own: Vec<String> = own.map(|(id, _)| uuid(*id)).collect();
                let provider = self.providers.values().find(|provider| provider.name == host);
                provider.is_some_and(|provider| own.iter().any(|id| provider.aggregates.contains(id)))
            }
            Isolation::Filter => {
                let pools = self.aggregates.values().filter(|pool| pool.hosts.contains(host));
                let tenants: Vec<String> = pools.flat_map(tenants).collect();
                tenants.is_empty() || tenants.iter().any(|tenant| tenant == project)
            }
        }
    }

    /// Whether isolated aggregates admit a server that requires these traits to a host.
    pub fn admits(&self, host: &str, required: &[&str]) -> bool {
        let provider = self.providers.values().find(|provider| provider.name == host).expect("a provider");
        let of = self.aggregates.iter().filter(|(id, _)| provider.aggregates.contains(&uuid(**id)));
        let keys = of.flat_map(|(_, pool)| pool.metadata.keys());
        let mut isolating = keys.filter_map(|key| key.strip_prefix("trait:"));
        self.hosts[host].enabled
            && required.iter().all(|name| provider.traits.contains(*name))
            && isolating.all(|name| required.contains(&name))
    }

    /// Records the projects that are admitted to each host.
    pub fn watch(&mut self) {
        let mut pooled = self.aggregates.values().flat_map(|pool| &pool.hosts);
        self.plain_let_in |= pooled.any(|host| self.admits(host, &[]));
        for &project in &self.watched {
            for host in self.hosts.keys() {
                for by in [Isolation::Options, Isolation::Filter] {
                    if self.lets_in(by, host, project) {
                        self.let_in.insert((by, host.clone(), project));
                    }
                }
            }
        }
    }
}
