//! Existing objects, for requests that refer to them.

use jiff::{SignedDuration, Timestamp};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};
use service::{LeaseFilter, Service};

/// A reservation with its lease and its type.
#[derive(Debug)]
struct Reservation {
    lease: String,
    id: String,
    kind: &'static str,
}

/// Identifiers and names of existing objects.
#[derive(Debug)]
pub struct Known {
    now: Timestamp,
    leases: Vec<String>,
    reservations: Vec<Reservation>,
    hosts: Vec<String>,
    floating_ips: Vec<String>,
    flavors: Vec<String>,
    free_pools: Vec<String>,
    instances: Vec<String>,
    offers: Vec<String>,
    waiting: Vec<String>,
    series: Vec<String>,
    properties: Vec<String>,
}

impl Known {
    pub fn of(service: &Service) -> Self {
        let mut known = Self {
            now: service.now(),
            leases: Vec::new(),
            reservations: Vec::new(),
            hosts: service.hosts().all().iter().map(|record| record.host.id.to_string()).collect(),
            floating_ips: service
                .floating_ips()
                .all()
                .iter()
                .map(|ip| ip.floating_ip.id.to_string())
                .collect(),
            free_pools: service.free_pools().all().iter().map(|record| record.pool.name.clone()).collect(),
            flavors: service.flavors().all().iter().map(|flavor| flavor.id.clone()).collect(),
            instances: service
                .instances()
                .all(None, None)
                .iter()
                .map(|one| one.instance.id.to_string())
                .collect(),
            offers: service.offers().all(None).iter().map(|record| record.lease.id.to_string()).collect(),
            waiting: service
                .waitlist()
                .all(None)
                .iter()
                .map(|(_, record)| record.lease.id.to_string())
                .collect(),
            series: Vec::new(),
            properties: service.hosts().properties().into_iter().map(|property| property.name).collect(),
        };
        for record in service.leases().all(&LeaseFilter::default()) {
            let lease = record.lease.id.to_string();
            known.reservations.extend(record.lease.reservations.iter().map(|own| Reservation {
                lease: lease.clone(),
                id: own.id.to_string(),
                kind: own.terms.resource_type(),
            }));
            known.series.extend(record.lease.series.map(|series| series.to_string()));
            known.leases.push(lease);
        }
        known
    }

    /// An existing object that fits a field or parameter of this name, if any.
    pub fn named(&self, name: &str, rng: &mut SmallRng) -> Option<String> {
        match name {
            "lease_id" | "marker" | "object_id" => self.leases.choose(rng).cloned(),
            "reservation_id" | "leasepool_id" => self.reservations.choose(rng).map(|one| one.id.clone()),
            "host_id" => self.hosts.choose(rng).cloned(),
            "floatingip_id" => self.floating_ips.choose(rng).cloned(),
            "instance_id" => self.instances.choose(rng).cloned(),
            "offer_id" => self.offers.choose(rng).cloned(),
            "series_id" => self.series.choose(rng).cloned(),
            "waitlist_entry_id" => self.waiting.choose(rng).cloned(),
            "freepool" => self.free_pools.choose(rng).cloned(),
            "flavor_id" => self.flavors.choose(rng).cloned(),
            "name" => self.properties.choose(rng).cloned(),
            _ => None,
        }
    }

    /// A date `hours` hours from now, or up to two hours later.
    pub fn date(&self, hours: i64, rng: &mut SmallRng) -> String {
        let minutes = hours * 60 + rng.random_range(0..120);
        (self.now + SignedDuration::from_mins(minutes)).strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// A change of a reservation, of `lease` if that has any, with fields of its type.
    pub fn change_of_reservation(&self, lease: Option<&str>, rng: &mut SmallRng) -> Value {
        let own: Vec<_> = self.reservations.iter().filter(|one| lease == Some(&one.lease)).collect();
        let Some(one) = own.choose(rng).copied().or_else(|| self.reservations.choose(rng)) else {
            return json!({"id": "nosuch"});
        };
        let number = rng.random_range(0..4);
        let mut change = json!({"id": one.id});
        match one.kind {
            "physical:host" if rng.random_bool(0.5) => {
                change["min"] = json!(number);
                change["max"] = json!(number + rng.random_range(0..2));
            }
            "physical:host" if rng.random_bool(0.3) => change["vcpus"] = json!(number * 8),
            "physical:host" => change["resource_properties"] = json!("[\"==\", \"$rack\", \"r1\"]"),
            _ => change["amount"] = json!(number),
        }
        change
    }
}
