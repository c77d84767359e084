//! Reservations that Blazar has made, for this driver to continue. Blazar's aggregates, flavors, server
//! groups and data in Placement are the same as the driver's own, except for the metadata keys by which the
//! driver recognizes aggregates. Only these keys are changed, so servers aren't affected, and without the
//! keys the reservations are Blazar's again. Aggregates made by an older version get the keys that it didn't
//! write.

use std::collections::{BTreeMap, BTreeSet};

use fleet::FleetError;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use leases::ids::{HostId, LeaseId, ReservationId};
use leases::lease_pool::LEASE_KEY;
use leases::plan::Recipe;
use leases::project::ProjectId;

use crate::OpenStackFleet;
use crate::ids::{parse_uuid, resource_class, slots_provider};
use crate::pools::{self, Pool};
use crate::sight::Names;
use crate::wire::Aggregate;

/// Number of providers read, or aggregates changed, concurrently.
const AT_ONCE: usize = 8;

/// A reservation of an unfinished lease in Blazar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlazarReservation {
    /// Identifier of the reservation. Its aggregate and its flavor have the same.
    pub id: ReservationId,
    pub lease: LeaseId,
    pub project: ProjectId,
    /// The recipe that it was prepared for as a whole.
    pub recipe: Recipe,
    /// Number of slots on each of its hosts; 1 for a whole host.
    pub hosts: BTreeMap<HostId, u32>,
    /// Whether its hosts were handed over.
    pub started: bool,
}

impl BlazarReservation {
    fn is_of_whole_hosts(&self) -> bool {
        self.recipe == Recipe::default()
    }
}

/// Objects of Blazar's reservations in the cloud.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BlazarTraces {
    /// Descriptions of the differences between the cloud and the reservations.
    pub differences: Vec<String>,
    /// The keys by which the driver recognizes aggregates, by number of the aggregate.
    marks: BTreeMap<u64, BTreeMap<String, Option<String>>>,
}

/// Objects of instance reservations other than aggregates.
#[derive(Debug, Default)]
struct Rooms {
    /// Identifiers of all flavors.
    flavors: BTreeSet<String>,
    /// Total of each resource class, by host.
    slots: BTreeMap<HostId, BTreeMap<String, u64>>,
}

impl OpenStackFleet {
    /// Compares the cloud with all of Blazar's reservations, which are on these hosts. Changes nothing.
    ///
    /// # Errors
    /// If a request to Nova or Placement fails.
    pub async fn compare_with_blazar(
        &self,
        reservations: &[BlazarReservation],
        hosts: &BTreeMap<HostId, String>,
    ) -> Result<BlazarTraces, FleetError> {
        self.hypervisors().await?;
        let mut traces = BlazarTraces::default();
        let mut named = BTreeMap::new();
        for (id, name) in hosts {
            let known = self.memory().names(*id);
            match known {
                Some(names) if names.hypervisor == *name => _ = named.insert(*id, names),
                Some(other) => traces.differs(format!(
                    "host {name} is number {id} in Blazar, and in Nova that is {}",
                    other.hypervisor
                )),
                None => {
                    traces
                        .differs(format!("host {name} has number {id} in Blazar, but Nova has no such host"));
                }
            }
        }
        let aggregates = self.cloud.aggregates().await?;
        traces.compare(reservations, &named, &aggregates, &self.settings.free_pool);
        traces.compare_rooms(reservations, &named, &self.rooms(reservations, &named).await?);
        Ok(traces)
    }

    /// Reads the objects of instance reservations other than aggregates.
    async fn rooms(
        &self,
        reservations: &[BlazarReservation],
        hosts: &BTreeMap<HostId, Names>,
    ) -> Result<Rooms, FleetError> {
        let of_room = || reservations.iter().filter(|reservation| !reservation.is_of_whole_hosts());
        if of_room().next().is_none() {
            return Ok(Rooms::default());
        }
        let flavors = self.cloud.flavors().await?.into_iter().map(|flavor| flavor.id).collect();
        let started: BTreeSet<HostId> =
            of_room().filter(|of| of.started).flat_map(|of| of.hosts.keys().copied()).collect();
        let providers = self.cloud.provider_ids().await?;
        let provider = |id| providers.get(&slots_provider(&hosts.get(&id)?.hypervisor));
        let asked = started.into_iter().filter_map(|id| Some((id, provider(id)?)));
        let slots = stream::iter(asked.map(async |(id, provider)| {
            let inventories = self.cloud.inventories(provider).await?;
            let totals = inventories.into_iter().map(|(class, inventory)| (class, inventory.total)).collect();
            Ok::<_, FleetError>((id, totals))
        }));
        Ok(Rooms { flavors, slots: slots.buffer_unordered(AT_ONCE).try_collect().await? })
    }

    /// Makes the reservations the driver's. Repeating this changes nothing.
    ///
    /// # Errors
    /// If a request to Nova fails. Some reservations can be the driver's by then.
    pub async fn take_over(&self, traces: &BlazarTraces) -> Result<(), FleetError> {
        self.set_keys(traces, Clone::clone).await
    }

    /// Makes the reservations Blazar's again.
    ///
    /// # Errors
    /// If a request to Nova fails. Some reservations can still be the driver's then.
    pub async fn give_back(&self, traces: &BlazarTraces) -> Result<(), FleetError> {
        self.set_keys(traces, |_| None).await?;
        let aggregates = self.cloud.aggregates().await?;
        let free = aggregates.iter().find(|aggregate| aggregate.name == self.settings.free_pool);
        match free.filter(|free| free.metadata.contains_key(pools::STORE)) {
            Some(free) => {
                self.cloud.set_metadata(free.id, &BTreeMap::from([(pools::STORE.to_owned(), None)])).await
            }
            None => Ok(()),
        }
    }

    /// Adds the lease pool key to the aggregates of leases that an older version made without it. Otherwise
    /// the key would be a difference from the store, and each of these leases would be reported as degraded.
    pub(crate) async fn add_lease_keys(&self, aggregates: &[Aggregate]) {
        let mut missing = Vec::new();
        for pool in aggregates.iter().filter_map(Pool::of) {
            if let Some(lease) = pool.lease
                && !pool.aggregate.metadata.contains_key(LEASE_KEY)
            {
                let key = BTreeMap::from([(LEASE_KEY.to_owned(), Some(lease.to_string()))]);
                missing.push((pool.aggregate.id, key));
            }
        }
        let set = stream::iter(missing).for_each_concurrent(AT_ONCE, async |(aggregate, key)| {
            if let Err(error) = self.cloud.set_metadata(aggregate, &key).await {
                tracing::warn!(aggregate, %error, "key {LEASE_KEY} not added");
            }
        });
        set.await;
    }

    async fn set_keys(
        &self,
        traces: &BlazarTraces,
        value_of: impl Fn(&Option<String>) -> Option<String>,
    ) -> Result<(), FleetError> {
        for (aggregate, keys) in &traces.marks {
            let keys = keys.iter().map(|(key, value)| (key.clone(), value_of(value))).collect();
            self.cloud.set_metadata(*aggregate, &keys).await?;
        }
        Ok(())
    }
}

impl BlazarTraces {
    fn differs(&mut self, difference: String) {
        self.differences.push(difference);
    }

    fn compare(
        &mut self,
        reservations: &[BlazarReservation],
        hosts: &BTreeMap<HostId, Names>,
        aggregates: &[Aggregate],
        free_pool: &str,
    ) {
        let known: BTreeSet<ReservationId> = reservations.iter().map(|reservation| reservation.id).collect();
        let mut of_reservations: BTreeMap<ReservationId, &Aggregate> = BTreeMap::new();
        for aggregate in aggregates {
            let Some(id) = parse_uuid(&aggregate.name).map(ReservationId) else { continue };
            if !pools::is_of_reservation(aggregate) {
                continue;
            }
            if !known.contains(&id) {
                self.differs(format!(
                    "aggregate {id} belongs to a reservation that was not read: it was made later, or its \
                     lease failed or is over"
                ));
            }
            of_reservations.insert(id, aggregate);
        }
        // Hosts that are held as a whole, by service name.
        let mut held: BTreeSet<&str> = BTreeSet::new();
        for reservation in reservations {
            let id = reservation.id;
            let Some(aggregate) = of_reservations.get(&id) else {
                self.differs(format!("reservation {id} has no aggregate of its name any more"));
                continue;
            };
            let names = |id: &HostId| hosts.get(id).map(|names| names.service.as_str());
            let given: BTreeSet<&str> = reservation.hosts.keys().filter_map(names).collect();
            let wanted = if reservation.started { given.clone() } else { BTreeSet::new() };
            let members: BTreeSet<&str> = aggregate.hosts.iter().map(String::as_str).collect();
            for host in wanted.difference(&members) {
                self.differs(format!("host {host} is not in the aggregate of its reservation {id}"));
            }
            for host in members.difference(&wanted) {
                self.differs(format!(
                    "host {host} is in the aggregate of reservation {id}, which does not have it now"
                ));
            }
            let whole = reservation.is_of_whole_hosts();
            if whole && aggregate.availability_zone != Some(pools::zone_of(id)) {
                let zone = pools::zone_of(id);
                self.differs(format!(
                    "the aggregate of reservation {id} has another availability zone than {zone}"
                ));
            }
            if pools::owner(aggregate) != Some(reservation.project.0.as_str()) {
                self.differs(format!(
                    "the aggregate of reservation {id} is not of project {}",
                    reservation.project.0
                ));
            }
            if whole && reservation.started {
                held.extend(&given);
            }
            let slots = reservation.hosts.iter().filter(|_| !whole && reservation.started);
            let slots = slots.filter_map(|(id, slots)| Some((names(id)?, *slots)));
            let mut keys = pools::completion(reservation.recipe, pools::server_group(aggregate));
            // This key is Blazar's own.
            keys.remove(pools::GROUP);
            for key in [pools::LEASE, LEASE_KEY] {
                keys.insert(key.to_owned(), Some(reservation.lease.to_string()));
            }
            keys.extend(slots.map(|(host, slots)| (pools::slots_key(host), Some(slots.to_string()))));
            self.marks.insert(aggregate.id, keys);
        }
        let free = aggregates.iter().find(|aggregate| aggregate.name == free_pool);
        for names in hosts.values().filter(|names| !held.contains(names.service.as_str())) {
            if free.is_none_or(|free| !free.hosts.contains(&names.service)) {
                let host = &names.service;
                self.differs(format!(
                    "host {host} is not leased now, and not in the aggregate {free_pool} either"
                ));
            }
        }
    }

    /// Compares the objects of instance reservations other than aggregates.
    fn compare_rooms(
        &mut self,
        reservations: &[BlazarReservation],
        hosts: &BTreeMap<HostId, Names>,
        rooms: &Rooms,
    ) {
        for reservation in reservations.iter().filter(|reservation| !reservation.is_of_whole_hosts()) {
            let (id, class) = (reservation.id, resource_class(reservation.id));
            if !rooms.flavors.contains(&id.to_string()) {
                self.differs(format!("reservation {id} has no flavor of its name any more"));
            }
            let started = reservation.hosts.iter().filter(|_| reservation.started);
            for (host, slots) in started {
                let Some(Names { hypervisor, .. }) = hosts.get(host) else { continue };
                let there = rooms.slots.get(host).and_then(|totals| totals.get(&class)).copied().unwrap_or(0);
                if there != u64::from(*slots) {
                    let provider = slots_provider(hypervisor);
                    self.differs(format!(
                        "reservation {id} has {slots} slots on host {hypervisor}, and in Placement {provider} has {there} of {class}"
                    ));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leases::plan::GuestSize;

    use super::*;

    const ROOM: ReservationId = ReservationId(0xb2);
    const WHOLE: ReservationId = ReservationId(0xb1);

    fn aggregate(id: u64, name: &str, zone: Option<&str>, hosts: &[&str], owner: Option<&str>) -> Aggregate {
        let owner = owner.map(|owner| ("blazar:owner".to_owned(), owner.to_owned()));
        Aggregate {
            id,
            uuid: String::new(),
            name: name.to_owned(),
            availability_zone: zone.map(str::to_owned),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            metadata: owner.into_iter().collect(),
        }
    }

    fn reservations() -> Vec<BlazarReservation> {
        let size = GuestSize { vcpus: 1, memory_mib: 512, disk_gib: 1 };
        let whole = BlazarReservation {
            id: WHOLE,
            lease: LeaseId(0xa1),
            project: ProjectId("p".to_owned()),
            recipe: Recipe::default(),
            hosts: BTreeMap::from([(HostId(1), 1)]),
            started: true,
        };
        let recipe = Recipe { size, ..Recipe::default() };
        let room =
            BlazarReservation { id: ROOM, recipe, hosts: BTreeMap::from([(HostId(2), 3)]), ..whole.clone() };
        vec![whole, room]
    }

    fn hosts() -> BTreeMap<HostId, Names> {
        let names = |number: u64| {
            let name = format!("host{number}");
            (HostId(number), Names { service: name.clone(), hypervisor: name })
        };
        (1..=3).map(names).collect()
    }

    fn cloud() -> Vec<Aggregate> {
        let (whole, room) = (WHOLE.to_string(), ROOM.to_string());
        vec![
            aggregate(1, "freepool", None, &["host2", "host3"], None),
            aggregate(2, &whole, Some(&pools::zone_of(WHOLE)), &["host1"], Some("p")),
            aggregate(3, &room, None, &["host2"], Some("p")),
            aggregate(4, "racks", Some("nova"), &["host1", "host2"], None),
        ]
    }

    fn compared(aggregates: &[Aggregate]) -> BlazarTraces {
        let mut traces = BlazarTraces::default();
        traces.compare(&reservations(), &hosts(), aggregates, "freepool");
        traces
    }

    #[test]
    fn what_is_as_blazar_made_it_only_gets_our_keys() {
        let traces = compared(&cloud());
        assert_eq!(traces.differences, [""; 0]);
        let keys =
            |of: u64| traces.marks[&of].iter().map(|(k, v)| (k.as_str(), v.as_deref())).collect::<Vec<_>>();
        let lease = LeaseId(0xa1).to_string();
        assert_eq!(traces.marks.keys().collect::<Vec<_>>(), [&2, &3]);
        assert_eq!(
            keys(2),
            [
                ("allot:lease", Some(lease.as_str())),
                ("allot:prepared", Some("0 0 0 any")),
                ("filter_lease_id", Some(lease.as_str()))
            ]
        );
        assert_eq!(
            keys(3),
            [
                ("allot:lease", Some(lease.as_str())),
                ("allot:prepared", Some("1 512 1 any")),
                ("allot:slots:host2", Some("3")),
                ("filter_lease_id", Some(lease.as_str()))
            ]
        );
    }

    #[test]
    fn each_difference_is_named() {
        let differs = |change: &dyn Fn(&mut Vec<Aggregate>)| {
            let mut changed = cloud();
            change(&mut changed);
            compared(&changed).differences.join("; ")
        };
        let said = differs(&|all| all[0].hosts.clear());
        assert!(said.contains("host host2 is not leased now") && said.contains("host3"), "{said}");
        let said = differs(&|all| drop(all.remove(1)));
        assert!(said.contains(&format!("reservation {WHOLE} has no aggregate")), "{said}");
        let said = differs(&|all| all[1].hosts.clear());
        assert!(said.contains("host host1 is not in the aggregate"), "{said}");
        let said = differs(&|all| all[2].hosts.extend(["host3".to_owned()]));
        assert!(said.contains("host host3 is in the aggregate of reservation"), "{said}");
        let said = differs(&|all| all[1].availability_zone = None);
        assert!(said.contains("another availability zone"), "{said}");
        let said = differs(&|all| _ = all[1].metadata.insert("blazar:owner".to_owned(), "q".to_owned()));
        assert!(said.contains("is not of project p"), "{said}");
        let new = ReservationId(0xb3).to_string();
        let said = differs(&|all| all.push(aggregate(9, &new, None, &[], Some("q"))));
        assert!(
            said.contains(&format!("aggregate {new} belongs to a reservation that was not read")),
            "{said}"
        );
        // An aggregate with such a name but without Blazar's keys isn't Blazar's.
        assert_eq!(differs(&|all| all.push(aggregate(9, &new, None, &[], None))), "");
    }
}
