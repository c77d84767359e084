//! What is in the cloud, and what tests do to it.

use std::collections::{BTreeMap, BTreeSet};

use super::glance::Image;
use super::migrations::{Confirmations, Migration};
use super::neutron::FloatingIp;

/// The free pool's aggregate, which nobody has made.
pub const FREE_POOL: &str = "freepool";

/// A trait of every host, which Nova has made.
pub const COMPUTE_NODE: &str = "COMPUTE_NODE";

#[derive(Clone, Debug)]
pub struct Host {
    pub number: u64,
    pub enabled: bool,
    pub reason: Option<String>,
    pub up: bool,
    /// An operator says that it is down.
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
    /// What Nova is doing with it.
    pub task: Option<&'static str>,
    pub flavor: String,
    /// The extra specs of its flavor.
    pub specs: BTreeMap<String, String>,
    pub preemptible: bool,
    /// What a hint said about that.
    pub hinted: Option<bool>,
    /// Nova says where it is; until then only Placement knows.
    pub listed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Provider {
    pub name: String,
    pub generation: u64,
    /// How much there is of each class.
    pub inventories: BTreeMap<String, u64>,
    /// How far classes are over-committed; those that are not here are not.
    pub ratios: BTreeMap<String, f64>,
    /// UUIDs of the aggregates that it is a member of.
    pub aggregates: BTreeSet<String>,
    pub traits: BTreeSet<String>,
    pub root: bool,
}

/// Everything.
#[derive(Debug)]
pub struct State {
    pub hosts: BTreeMap<String, Host>,
    pub aggregates: BTreeMap<u64, Aggregate>,
    /// Which hosts were switched, and how.
    pub switched: Vec<String>,
    /// Which hosts schedulers take to be in aggregates.
    told: BTreeMap<u64, BTreeSet<String>>,
    pub servers: BTreeMap<String, Server>,
    /// Migrations, the oldest first. Of those of servers that run there are none, unless they take their time.
    pub migrations: Vec<Migration>,
    /// They fail.
    pub migrations_fail: bool,
    /// What comes of confirmations of moves.
    pub confirmations: Confirmations,
    /// Those that have begun are in no list yet, and do not get on.
    pub migrations_late: bool,
    /// Servers that run arrive nowhere.
    pub live_migrations_hang: bool,
    /// By UUID.
    pub providers: BTreeMap<String, Provider>,
    pub classes: BTreeSet<String>,
    pub traits: BTreeSet<String>,
    /// With the projects that may use each.
    pub flavors: BTreeMap<String, BTreeSet<String>>,
    /// What these were made of.
    pub sizes: BTreeMap<String, serde_json::Value>,
    /// The extra specs of these.
    pub specs: BTreeMap<String, BTreeMap<String, String>>,
    /// Server groups, with their names.
    pub server_groups: BTreeMap<String, String>,
    /// Floating IPs by identifier.
    pub floating_ips: BTreeMap<String, FloatingIp>,
    /// Images by identifier.
    pub images: BTreeMap<String, Image>,
    /// After how many looks an image is ready; never if none.
    pub image_looks: Option<usize>,
    /// The service may not give images away.
    pub images_stay: bool,
    /// Deleted servers stay for so many looks.
    pub slow_deletion: usize,
    pub next: u64,
    /// Hosts that were once in a pool and were then seen in none.
    pub left_open: BTreeSet<String>,
    /// A server of that project is on its way to the next host that enters an aggregate, and lands there at once.
    pub arrives: Option<&'static str>,
    /// Nova does not tell Placement when a host enters an aggregate.
    pub forgets_placement: bool,
    /// Projects that look for a host after every request, and what each of Nova's options has ever let each of them use.
    pub watched: Vec<&'static str>,
    pub let_in: BTreeSet<(Isolation, String, &'static str)>,
    /// Whether isolated aggregates have ever let a server that requires no trait on a host that is in some.
    pub plain_let_in: bool,
}

/// Nova's ways to isolate tenants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// `limit_tenants_to_placement_aggregate` with `placement_aggregate_required_for_tenants`.
    Options,
    /// The scheduler's filter `AggregateMultiTenancyIsolation`.
    Filter,
}

/// A UUID.
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

    /// A host is switched, as a hook asks for it.
    pub fn switch(&mut self, on: bool, asked: &serde_json::Value) -> super::Reply {
        let name = asked["host_name"].as_str().expect("a host");
        self.switched.push(format!("{name} {}", if on { "on" } else { "off" }));
        self.host(name).up = on;
        (200, serde_json::Value::Null)
    }

    /// The hosts of an aggregate, as a request that is to change it finds them.
    pub fn as_found(&self, id: &str) -> Option<(u64, BTreeSet<String>)> {
        let id = id.parse().ok()?;
        Some((id, self.aggregates.get(&id)?.hosts.clone()))
    }

    /// A request that has found these hosts in an aggregate has changed it: schedulers are told what it makes of that.
    pub fn tell(&mut self, id: u64, mut hosts: BTreeSet<String>, body: &serde_json::Value) {
        if let Some(host) = body["add_host"]["host"].as_str() {
            hosts.insert(host.to_owned());
        } else if let Some(host) = body["remove_host"]["host"].as_str() {
            hosts.remove(host);
        }
        self.told.insert(id, hosts);
    }

    /// Aggregates of which schedulers know other hosts than there are in them.
    pub fn wrongly_told(&self) -> Vec<String> {
        let wrong = |id: &u64, pool: &Aggregate| self.told.get(id).is_some_and(|told| *told != pool.hosts);
        self.aggregates
            .iter()
            .filter(|(id, pool)| wrong(id, pool))
            .map(|(_, pool)| pool.name.clone())
            .collect()
    }

    /// An operator makes an aggregate.
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

    /// A server runs on that host, past any scheduler.
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

    /// The names of the aggregates that a host is in.
    pub fn pools(&self, host: &str) -> Vec<String> {
        let pools = self.aggregates.values().filter(|pool| pool.hosts.contains(host));
        pools.map(|pool| pool.name.clone()).collect()
    }

    /// How far a host's CPUs and memory are over-committed.
    pub fn ratios(&mut self, host: &str) -> [f64; 2] {
        let provider = self.provider_of(host);
        ["VCPU", "MEMORY_MB"].map(|class| provider.ratios.get(class).copied().unwrap_or(1.0))
    }

    /// The provider of a host.
    pub fn provider_of(&mut self, host: &str) -> &mut Provider {
        let mut providers = self.providers.values_mut();
        providers.find(|provider| provider.name == host && provider.root).expect("a provider")
    }

    /// Whether one of Nova's ways to isolate tenants lets a project's servers on a host.
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
                // Nova takes any value of an aggregate that has any such key.
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

    /// Whether isolated aggregates let a server on a host that requires these traits.
    pub fn admits(&self, host: &str, required: &[&str]) -> bool {
        let provider = self.providers.values().find(|provider| provider.name == host).expect("a provider");
        let of = self.aggregates.iter().filter(|(id, _)| provider.aggregates.contains(&uuid(**id)));
        let keys = of.flat_map(|(_, pool)| pool.metadata.keys());
        let mut isolating = keys.filter_map(|key| key.strip_prefix("trait:"));
        self.hosts[host].enabled
            && required.iter().all(|name| provider.traits.contains(*name))
            && isolating.all(|name| required.contains(&name))
    }

    /// Notes who is let in where.
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
