//! Differences between the cloud and the store in the objects of leases. This module sends no requests: it
//! compares the stored reservations with observations and assigns each difference a remedy.

use std::collections::{BTreeMap, BTreeSet};

use fleet::{Difference, Wanted, WantedReservation};
use leases::ids::{HostId, ReservationId};
use leases::plan::Recipe;
use leases::preemption::PROPERTY;
use leases::terms::{Affinity, ReservationTerms};

use crate::fence::{Fence, Whole, required, trait_of};
use crate::ids::{FLAVOR, parse_uuid, resource_class, slots_provider};
use crate::pools;
use crate::sight::Names;
use crate::wire::{Aggregate, Flavor};

/// The remedy for a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Remedy {
    /// Prepare the reservation again.
    Prepare(ReservationId),
    /// Grant the reservation's slots on the host again. The number is the count that exists now.
    Grant(HostId, ReservationId, u32),
    /// Set the keys of the free pool's aggregate again.
    FreePool,
    /// An operator must decide.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    pub(crate) difference: Difference,
    pub(crate) remedy: Remedy,
}

/// Observations of the cloud. Objects that were not read are not compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) aggregates: &'a [Aggregate],
    pub(crate) free_pool: &'a str,
    pub(crate) fence: &'a Fence,
    pub(crate) names: &'a BTreeMap<HostId, Names>,
    /// By identifier.
    pub(crate) flavors: &'a BTreeMap<String, Flavor>,
    /// Projects with access, by identifier of the flavor.
    pub(crate) access: &'a BTreeMap<String, BTreeSet<String>>,
    /// Names of server groups, by identifier.
    pub(crate) groups: &'a BTreeMap<String, String>,
    /// Total of each class, by name of the slots' provider.
    pub(crate) slots: &'a BTreeMap<String, BTreeMap<String, u64>>,
}

pub(crate) fn compare(wanted: &Wanted, seen: Seen<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (reservation, want, aggregate) in prepared(wanted, seen.aggregates) {
        let mut of_reservation = OfReservation { reservation, want, aggregate, seen, found: &mut found };
        of_reservation.compare_aggregate();
        of_reservation.compare_flavors();
        of_reservation.compare_group();
        of_reservation.compare_slots();
    }
    found.extend(compare_free_pool(wanted, seen));
    found
}

/// Reservations with an aggregate that is marked as complete. The planner prepares missing and incomplete
/// ones anyway.
pub(crate) fn prepared<'a>(
    wanted: &'a Wanted,
    aggregates: &'a [Aggregate],
) -> impl Iterator<Item = (ReservationId, &'a WantedReservation, &'a Aggregate)> {
    aggregates.iter().filter_map(|aggregate| {
        let reservation = parse_uuid(&aggregate.name).map(ReservationId)?;
        let want = wanted.reservations.get(&reservation).filter(|want| want.is_kept)?;
        pools::is_prepared(aggregate).then_some((reservation, want, aggregate))
    })
}

/// Identifiers of the flavors that a reservation must have.
pub(crate) fn flavors_of(want: &WantedReservation, aggregate: &Aggregate) -> Vec<String> {
    match want.terms {
        ReservationTerms::Hosts(_) => pools::flavors(aggregate).map(str::to_owned).collect(),
        ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => vec![aggregate.name.clone()],
        ReservationTerms::FloatingIps(_) => Vec::new(),
    }
}

/// Whether a reservation must have a server group.
pub(crate) fn has_group(want: &WantedReservation) -> bool {
    Recipe::of(&want.terms).is_some_and(|recipe| recipe.affinity != Affinity::Any)
}

struct OfReservation<'a, 'f> {
    reservation: ReservationId,
    want: &'a WantedReservation,
    aggregate: &'a Aggregate,
    seen: Seen<'a>,
    found: &'f mut Vec<Found>,
}

impl OfReservation<'_, '_> {
    fn whole(&self) -> Whole {
        match self.want.terms {
            ReservationTerms::Hosts(_) => Whole::Hosts,
            _ => Whole::Slots,
        }
    }

    fn differs(&mut self, what: String, for_owner: &'static str, host: Option<HostId>, remedy: Remedy) {
        let reservation = Some(self.reservation);
        let difference = Difference { reservation, host, what, for_owner, is_undone: true };
        self.found.push(Found { difference, remedy });
    }

    fn unprepared(&mut self, what: String, for_owner: &'static str) {
        self.differs(what, for_owner, None, Remedy::Prepare(self.reservation));
    }

    fn compare_aggregate(&mut self) {
        const CHANGED: &str = "the aggregate of the reservation was changed in the cloud";
        let (project, lease) = (&self.want.project.0, Some(self.want.lease));
        let fixed = match self.whole() {
            Whole::Hosts => pools::whole_hosts(project, lease),
            Whole::Slots => pools::instances(self.reservation, project, lease),
        };
        let fixed = fixed.into_iter().filter_map(|(key, value)| Some((key, value?)));
        let of_fence =
            self.seen.fence.of_reservation(self.aggregate, self.reservation, self.whole(), project);
        for (key, value) in fixed.chain(of_fence) {
            if let Some(what) = key_differs(self.aggregate, &key, &value) {
                self.unprepared(what, CHANGED);
            }
        }
        let zone = pools::wanted_zone(self.reservation, self.whole());
        if self.aggregate.availability_zone != zone {
            let shown = |zone: &Option<String>| zone.clone().unwrap_or_else(|| "none".to_owned());
            let what = format!(
                "the availability zone of aggregate {} is {}, expected {}",
                self.aggregate.name,
                shown(&self.aggregate.availability_zone),
                shown(&zone)
            );
            self.unprepared(what, CHANGED);
        }
    }

    fn compare_flavors(&mut self) {
        const CHANGED: &str = "a flavor of the reservation was changed or deleted in the cloud";
        for id in flavors_of(self.want, self.aggregate) {
            let Some(flavor) = self.seen.flavors.get(&id) else {
                self.unprepared(format!("flavor {id} was deleted"), CHANGED);
                continue;
            };
            let specs = match self.whole() {
                Whole::Hosts => BTreeMap::from([required(&trait_of(self.aggregate))]),
                Whole::Slots => self.specs(),
            };
            for (key, value) in specs {
                match flavor.extra_specs.get(&key) {
                    Some(seen) if *seen == value => {}
                    Some(seen) => self.unprepared(
                        format!("extra spec {key} of flavor {id} is {seen}, expected {value}"),
                        CHANGED,
                    ),
                    None => self.unprepared(
                        format!("extra spec {key} of flavor {id} is missing, expected {value}"),
                        CHANGED,
                    ),
                }
            }
            let size = (flavor.vcpus, flavor.ram, flavor.disk, flavor.ephemeral);
            if self.size().is_some_and(|wanted| wanted != size) {
                self.unprepared(format!("flavor {id} has another size"), CHANGED);
            }
            if flavor.public {
                self.unprepared(format!("flavor {id} is public"), CHANGED);
            }
            if let Some(projects) = self.seen.access.get(&id)
                && *projects != BTreeSet::from([self.want.project.0.clone()])
            {
                let shown: Vec<&str> = projects.iter().map(String::as_str).collect();
                let what = format!(
                    "projects with access to flavor {id}: {}, expected {}",
                    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") },
                    self.want.project
                );
                self.unprepared(what, "access to a flavor of the reservation was changed in the cloud");
            }
        }
    }

    /// CPUs, memory and both disks of the flavor. `None` if they depend on a flavor of the cloud.
    fn size(&self) -> Option<(u32, u32, u32, u32)> {
        let ReservationTerms::Instances(asked) = &self.want.terms else { return None };
        let size = asked.size;
        Some((size.vcpus(), size.memory_mib(), size.disk_gib(), asked.ephemeral_gib()))
    }

    /// Extra specs of an instance reservation's flavor, except any that depend on a flavor of the cloud.
    fn specs(&self) -> BTreeMap<String, String> {
        let mut specs = match &self.want.terms {
            ReservationTerms::Instances(asked) => asked.extra_specs(),
            _ => BTreeMap::new(),
        };
        specs.remove(PROPERTY);
        specs.extend(specs_of(self.reservation, self.seen.fence));
        specs
    }

    fn compare_group(&mut self) {
        if !has_group(self.want) {
            return;
        }
        let name = format!("{FLAVOR}{}", self.aggregate.name);
        let what = match pools::server_group(self.aggregate) {
            None => format!("key {} of aggregate {} is missing", pools::GROUP, self.aggregate.name),
            Some(id) => match self.seen.groups.get(id) {
                // Blazar might have given it another name.
                Some(seen) if *seen == name || !self.seen.groups.values().any(|other| *other == name) => {
                    return;
                }
                Some(seen) => format!("server group {id} is called {seen}, expected {name}"),
                None => format!("server group {id} was deleted"),
            },
        };
        self.unprepared(what, "the server group of the reservation was changed or deleted in the cloud");
    }

    fn compare_slots(&mut self) {
        const CHANGED: &str = "places for instances of the reservation were taken away in the cloud";
        let class = resource_class(self.reservation);
        for (host, wanted) in self.want.slots.clone() {
            let Some(names) = self.seen.names.get(&host) else { continue };
            // Otherwise the slots are granted anyway.
            if pools::noted_slots(self.aggregate, &names.service) != Some(wanted) {
                continue;
            }
            if !self.aggregate.hosts.contains(&names.service) {
                let what = format!("host {} is not in aggregate {}", names.service, self.aggregate.name);
                self.differs(what, CHANGED, Some(host), Remedy::Grant(host, self.reservation, 0));
            }
            let provider = slots_provider(&names.hypervisor);
            let Some(inventories) = self.seen.slots.get(&provider) else { continue };
            let seen = inventories.get(&class).copied().unwrap_or_default();
            if seen != u64::from(wanted) {
                let what = format!("provider {provider} has {seen} of {class}, expected {wanted}");
                let seen = u32::try_from(seen).unwrap_or(u32::MAX);
                self.differs(what, CHANGED, Some(host), Remedy::Grant(host, self.reservation, seen));
            }
        }
    }
}

/// Extra specs that tie a flavor to an instance reservation.
pub(crate) fn specs_of(reservation: ReservationId, fence: &Fence) -> BTreeMap<String, String> {
    let own = [
        ("aggregate_instance_extra_specs:reservation".to_owned(), reservation.to_string()),
        (format!("resources:{}", resource_class(reservation)), "1".to_owned()),
    ];
    own.into_iter().chain(fence.of_flavor()).collect()
}

fn compare_free_pool(wanted: &Wanted, seen: Seen<'_>) -> Vec<Found> {
    let Some(free) = seen.aggregates.iter().find(|aggregate| aggregate.name == seen.free_pool) else {
        return Vec::new();
    };
    let found = |what: String, remedy: Remedy| {
        let is_undone = remedy != Remedy::None;
        let difference = Difference { reservation: None, host: None, what, for_owner: "", is_undone };
        Found { difference, remedy }
    };
    let mut all = Vec::new();
    for (key, value) in seen.fence.of_free_pool(&free.metadata) {
        let what = match value {
            Some(value) => key_differs(free, &key, &value),
            None => Some(format!("key {key} of aggregate {} is not one of the fence", free.name)),
        };
        all.extend(what.map(|what| found(what, Remedy::FreePool)));
    }
    if let Some(what) = wanted.store.as_ref().and_then(|store| key_differs(free, pools::STORE, store)) {
        // Another store has claimed the cloud. Two stores would undo each other's claims forever.
        let claimed = free.metadata.contains_key(pools::STORE);
        all.push(if claimed {
            found(
                format!("{what}; if this store is the right one: `allot doctor --accept fleet`"),
                Remedy::None,
            )
        } else {
            found(what, Remedy::FreePool)
        });
    }
    all
}

fn key_differs(aggregate: &Aggregate, key: &str, wanted: &str) -> Option<String> {
    let name = &aggregate.name;
    match aggregate.metadata.get(key) {
        Some(seen) if seen == wanted => None,
        Some(seen) => Some(format!("key {key} of aggregate {name} is {seen}, expected {wanted}")),
        None => Some(format!("key {key} of aggregate {name} is missing, expected {wanted}")),
    }
}

/// Replaces owner, lease and zone in aggregates with the values that the store has for their reservations.
/// Other fields stay as seen.
pub(crate) fn as_stored(wanted: &Wanted, mut aggregates: Vec<Aggregate>) -> Vec<Aggregate> {
    for aggregate in &mut aggregates {
        let reservation = parse_uuid(&aggregate.name).map(ReservationId);
        let want = reservation.and_then(|id| Some((id, wanted.reservations.get(&id)?)));
        let Some((reservation, want)) = want else { continue };
        let (project, lease) = (&want.project.0, Some(want.lease));
        let (keys, whole) = match want.terms {
            ReservationTerms::Hosts(_) => (pools::whole_hosts(project, lease), Whole::Hosts),
            _ => (pools::instances(reservation, project, lease), Whole::Slots),
        };
        aggregate.metadata.extend(keys.into_iter().filter_map(|(key, value)| Some((key, value?))));
        aggregate.availability_zone = pools::wanted_zone(reservation, whole);
    }
    aggregates
}
