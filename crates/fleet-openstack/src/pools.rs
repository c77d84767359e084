//! Places of hosts, read from the cloud's aggregates and compute services, and the metadata that the driver
//! writes there.
//!
//! | place of a host | its aggregates | its compute service |
//! | --- | --- | --- |
//! | in the free pool | the free pool's | as set by the operator |
//! | fenced | the free pool's | disabled, [`Closure::Changing`] or [`Closure::EmptyFor`] |
//! | fenced, about to be held | the reservation's gate, in the reservation's zone and open to no project | as set by the operator |
//! | held | one named after the reservation, with the zone `blazar_<reservation>` | as set by the operator |
//! | releasing | either or both | disabled, [`Closure::TakingBack`] |
//! | in the free pool, with servers kept after a lease | the free pool's, and a [`Kept`] aggregate in the lease's zone | as set by the operator |
//! | fenced: those servers are gone, but it is still in that zone | both | as set by the operator |
//! | not adopted | none of these | as set by the operator |
//!
//! Nova doesn't let a host with servers leave its availability zone. So a host whose servers stay at the end
//! of a lease joins an aggregate in the same zone that is open to no project, in addition to the free pool's.
//! `BlazarFilter` admits no project to a host with two pools.
//!
//! `BlazarFilter`, like Nova's own tenant isolation, admits every project to a host without a pool. So an
//! adopted host is in a pool at every moment: it joins the next one before it leaves the last.

use std::collections::BTreeMap;

use leases::ids::{LeaseId, ReservationId};
use leases::lease_pool::LEASE_KEY;
use leases::plan::{GuestSize, Place, Prepared, Recipe};
use leases::terms::Affinity;

use crate::closure::Closure;
use crate::fence::{Fence, TENANT, Whole};
use crate::ids::parse_uuid;
use crate::wire::{Aggregate, ComputeService};

/// Prefix of the zones of held hosts, by which `BlazarFilter` recognizes a pool.
const ZONE: &str = "blazar_";

/// Metadata keys of reservations' aggregates. The first two are Blazar's, and filters read them.
const OWNER: &str = "blazar:owner";
const RESERVATION: &str = "reservation";
pub(crate) const LEASE: &str = "allot:lease";
const SLOTS: &str = "allot:slots:";
const PREPARED: &str = "allot:prepared";
const LEFT: &str = "allot:left:";
const FLAVORS: &str = "allot:flavor:";
/// The server group. The key is Blazar's.
pub(crate) const GROUP: &str = "affinity_id";

/// Metadata key of the free pool's aggregate: the store whose services change the cloud.
pub(crate) const STORE: &str = "allot:store";

/// An aggregate of a reservation.
#[derive(Clone, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) reservation: ReservationId,
    pub(crate) lease: Option<LeaseId>,
    /// Project of the lease's servers.
    pub(crate) project: &'a str,
    /// Whether the reservation has whole hosts.
    pub(crate) whole: bool,
    pub(crate) aggregate: &'a Aggregate,
}

impl<'a> Pool<'a> {
    /// `None` if the driver didn't make the aggregate.
    pub(crate) fn of(aggregate: &'a Aggregate) -> Option<Self> {
        let reservation = parse_uuid(&aggregate.name).map(ReservationId)?;
        let lease = aggregate.metadata.get(LEASE)?;
        Some(Self {
            reservation,
            lease: parse_uuid(lease).map(LeaseId),
            project: aggregate.metadata.get(OWNER).map_or("", String::as_str),
            whole: aggregate.availability_zone.as_deref().is_some_and(|zone| zone.starts_with(ZONE)),
            aggregate,
        })
    }

    /// Recipe that the reservation was prepared for as a whole. `None` unless preparation is complete and the
    /// fence's metadata is there.
    pub(crate) fn complete(&self, fence: &Fence) -> Option<Recipe> {
        let whole = if self.whole { Whole::Hosts } else { Whole::Slots };
        let keys = fence.of_reservation(self.aggregate, self.reservation, whole, self.project);
        let fenced = keys.iter().all(|(key, value)| self.aggregate.metadata.get(key) == Some(value));
        self.aggregate.metadata.get(PREPARED).filter(|_| fenced).and_then(|text| read_recipe(text))
    }

    /// Number of slots on a host. `None` if the pool has no slots there.
    pub(crate) fn slots(&self, host: &str) -> Option<u32> {
        let noted = self.aggregate.metadata.get(&slots_key(host)).map(|count| count.parse().unwrap_or(0));
        // The host has joined, but its number of slots isn't noted yet and so isn't certain. They will be
        // granted again or withdrawn.
        noted.or_else(|| (!self.whole && self.aggregate.hosts.contains(host)).then_some(0))
    }

    /// Hosts on which the pool has slots, certain or not.
    pub(crate) fn slot_hosts(&self) -> impl Iterator<Item = &'a str> {
        let noted = self.aggregate.metadata.keys().filter_map(|key| key.strip_prefix(SLOTS));
        let members = self.aggregate.hosts.iter().filter(|_| !self.whole).map(String::as_str);
        noted.chain(members)
    }
}

/// State of the reservation that an aggregate is named after.
pub(crate) fn prepared(aggregate: &Aggregate, fence: &Fence) -> Option<(ReservationId, Prepared)> {
    let reservation = parse_uuid(&aggregate.name).map(ReservationId)?;
    let pool = Pool::of(aggregate);
    let prepared = Prepared {
        marked: pool.is_some(),
        complete: pool.and_then(|pool| pool.complete(fence)),
        aggregate: u32::try_from(aggregate.id).ok(),
        server_group: server_group(aggregate).map(str::to_owned),
        flavors: flavors(aggregate).map(str::to_owned).collect(),
    };
    Some((reservation, prepared))
}

/// Project that may use the aggregate's hosts.
pub(crate) fn owner(aggregate: &Aggregate) -> Option<&str> {
    aggregate.metadata.get(OWNER).map(String::as_str)
}

/// Whether an aggregate has metadata of a reservation, from Blazar or from the driver. The name of such an
/// aggregate is also a UUID, which isn't checked here.
pub(crate) fn is_of_reservation(aggregate: &Aggregate) -> bool {
    owner(aggregate).is_some() || aggregate.metadata.contains_key(RESERVATION)
}

/// ID of the server group of a reservation's instances, as noted.
pub(crate) fn server_group(aggregate: &Aggregate) -> Option<&str> {
    aggregate.metadata.get(GROUP).map(String::as_str)
}

/// Identifiers of the flavors made for servers on a reservation's hosts, as noted.
pub(crate) fn flavors(aggregate: &Aggregate) -> impl Iterator<Item = &str> {
    let noted = aggregate.metadata.iter().filter(|(key, _)| key.starts_with(FLAVORS));
    noted.map(|(_, id)| id.as_str())
}

/// Metadata that notes flavors before they are created, and removes all other notes of flavors.
pub(crate) fn note_flavors(aggregate: &Aggregate, ids: &[String]) -> BTreeMap<String, Option<String>> {
    let noted = aggregate.metadata.keys().filter(|key| key.starts_with(FLAVORS));
    let none = noted.map(|key| (key.clone(), None));
    let wanted = ids.iter().enumerate().map(|(at, id)| (format!("{FLAVORS}{at:03}"), Some(id.clone())));
    none.chain(wanted).collect()
}

/// Metadata that notes the end of preparation: the recipe and the server group.
pub(crate) fn completion(recipe: Recipe, group: Option<&str>) -> BTreeMap<String, Option<String>> {
    let Recipe { size: GuestSize { vcpus, memory_mib, disk_gib }, affinity } = recipe;
    let spread = AFFINITIES.iter().find(|(_, known)| *known == affinity).map_or("any", |(word, _)| word);
    let noted = Some(format!("{vcpus} {memory_mib} {disk_gib} {spread}"));
    BTreeMap::from([(PREPARED.to_owned(), noted), (GROUP.to_owned(), group.map(str::to_owned))])
}

/// Metadata that notes that a reservation must be prepared again.
pub(crate) fn incompletion() -> BTreeMap<String, Option<String>> {
    BTreeMap::from([(PREPARED.to_owned(), None)])
}

const AFFINITIES: [(&str, Affinity); 3] =
    [("any", Affinity::Any), ("together", Affinity::OneHost), ("apart", Affinity::DistinctHosts)];

fn read_recipe(text: &str) -> Option<Recipe> {
    let [vcpus, memory_mib, disk_gib, spread] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
    let (vcpus, memory_mib) = (vcpus.parse().ok()?, memory_mib.parse().ok()?);
    let size = GuestSize { vcpus, memory_mib, disk_gib: disk_gib.parse().ok()? };
    let affinity = AFFINITIES.iter().find(|(word, _)| *word == spread)?.1;
    Some(Recipe { size, affinity })
}

/// Whether the reservation was completely prepared once.
pub(crate) fn is_prepared(aggregate: &Aggregate) -> bool {
    aggregate.metadata.contains_key(PREPARED)
}

/// Recipe that the reservation was prepared for.
pub(crate) fn noted_recipe(aggregate: &Aggregate) -> Option<Recipe> {
    aggregate.metadata.get(PREPARED).and_then(|text| read_recipe(text))
}

/// Number of slots on a host. `None` if it isn't certain.
pub(crate) fn noted_slots(aggregate: &Aggregate, host: &str) -> Option<u32> {
    aggregate.metadata.get(&slots_key(host))?.parse().ok()
}

/// Metadata key with the number of slots on a host.
pub(crate) fn slots_key(host: &str) -> String {
    format!("{SLOTS}{host}")
}

/// Metadata key, in the free pool's aggregate, for a host's slots that are still used by servers that stayed
/// after that reservation.
pub(crate) fn leftover_key(reservation: ReservationId, host: &str) -> String {
    format!("{LEFT}{reservation}:{host}")
}

/// Reservations that are over but whose servers still use slots of the host, as noted in the free pool's
/// aggregate.
pub(crate) fn leftovers(free: &Aggregate, host: &str) -> Vec<ReservationId> {
    let noted = free.metadata.keys().filter_map(|key| key.strip_prefix(LEFT)?.split_once(':'));
    let of_host = noted.filter(|(_, other)| *other == host);
    of_host.filter_map(|(id, _)| parse_uuid(id)).map(ReservationId).collect()
}

/// Availability zone of the hosts that a reservation holds.
pub(crate) fn zone_of(reservation: ReservationId) -> String {
    format!("{ZONE}{reservation}")
}

/// Availability zone that the aggregate of a reservation must have.
pub(crate) fn wanted_zone(reservation: ReservationId, whole: Whole) -> Option<String> {
    (whole == Whole::Hosts).then(|| zone_of(reservation))
}

/// Suffix of the names of gates.
const GATE: &str = " gate";

/// Name of the aggregate through which a reservation receives hosts. It is in the reservation's zone, since a
/// host can be in only one. `BlazarFilter` considers it a pool, but one without a reservation, and so admits
/// no project.
pub(crate) fn gate_of(reservation: ReservationId) -> String {
    format!("{reservation}{GATE}")
}

/// The reservation whose gate this aggregate is.
pub(crate) fn gate_to(aggregate: &Aggregate) -> Option<ReservationId> {
    in_zone_of(aggregate, GATE)
}

/// Suffix of the names of aggregates for hosts whose servers stayed after a lease.
const KEPT: &str = " kept";

/// The project whose servers stayed. This isn't Blazar's key for the owner, which would let the project start
/// servers.
const KEPT_PROJECT: &str = "allot:project";

/// An aggregate for hosts whose servers stayed, in the zone of a reservation that is over. `BlazarFilter`
/// considers it a pool that is open to no project.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) reservation: ReservationId,
    pub(crate) lease: Option<LeaseId>,
    /// Project of the former lease's servers.
    pub(crate) project: &'a str,
    pub(crate) aggregate: &'a Aggregate,
}

impl<'a> Kept<'a> {
    /// `None` if the aggregate isn't one for kept servers.
    pub(crate) fn of(aggregate: &'a Aggregate) -> Option<Self> {
        let reservation = in_zone_of(aggregate, KEPT)?;
        Some(Self {
            reservation,
            lease: aggregate.metadata.get(LEASE).and_then(|lease| parse_uuid(lease)).map(LeaseId),
            project: aggregate.metadata.get(KEPT_PROJECT).map_or("", String::as_str),
            aggregate,
        })
    }
}

/// Name of the [`Kept`] aggregate of a reservation.
pub(crate) fn kept_of(reservation: ReservationId) -> String {
    format!("{reservation}{KEPT}")
}

/// Metadata of a [`Kept`] aggregate: the owner of the servers.
pub(crate) fn kept_servers(project: &str, lease: Option<LeaseId>) -> BTreeMap<String, Option<String>> {
    let lease = lease.map(|lease| lease.to_string()).unwrap_or_default();
    let pairs = [(KEPT_PROJECT, project.to_owned()), (LEASE, lease)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect()
}

/// The reservation in an aggregate's name before `ending`, if the aggregate is in the reservation's zone.
fn in_zone_of(aggregate: &Aggregate, ending: &str) -> Option<ReservationId> {
    let reservation = aggregate.name.strip_suffix(ending).and_then(parse_uuid).map(ReservationId)?;
    (aggregate.availability_zone == Some(zone_of(reservation))).then_some(reservation)
}

/// The reservation in whose zone the driver has made this aggregate: the pool of held hosts, the gate, or the
/// aggregate of kept servers.
pub(crate) fn zone_holder(aggregate: &Aggregate) -> Option<ReservationId> {
    let whole = Pool::of(aggregate).filter(|pool| pool.whole).map(|pool| pool.reservation);
    whole.or_else(|| gate_to(aggregate)).or_else(|| Kept::of(aggregate).map(|kept| kept.reservation))
}

/// Whether the driver has made an aggregate for a reservation.
pub(crate) fn is_made_here(aggregate: &Aggregate) -> bool {
    Pool::of(aggregate).is_some() || zone_holder(aggregate).is_some()
}

/// Metadata of the aggregate of a host reservation.
pub(crate) fn whole_hosts(project: &str, lease: Option<LeaseId>) -> BTreeMap<String, Option<String>> {
    let lease = lease.map(|lease| lease.to_string()).unwrap_or_default();
    let pairs = [(OWNER, project.to_owned()), (LEASE, lease.clone()), (LEASE_KEY, lease)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect()
}

/// Metadata of the aggregate of an instance reservation.
pub(crate) fn instances(
    reservation: ReservationId,
    project: &str,
    lease: Option<LeaseId>,
) -> BTreeMap<String, Option<String>> {
    let mut metadata = whole_hosts(project, lease);
    metadata.insert(RESERVATION.to_owned(), Some(reservation.to_string()));
    metadata.insert(TENANT.to_owned(), Some(project.to_owned()));
    metadata
}

/// Zone of a host from its aggregates, except for reservations' aggregates.
pub(crate) fn zone<'a>(aggregates: &'a [Aggregate], host: &str) -> Option<&'a str> {
    let mut others = foreign(aggregates).filter(|other| other.hosts.contains(host));
    others.find_map(|other| other.availability_zone.as_deref())
}

/// Aggregates that the driver has not made for reservations.
pub(crate) fn foreign(aggregates: &[Aggregate]) -> impl Iterator<Item = &Aggregate> {
    aggregates.iter().filter(|aggregate| !is_made_here(aggregate))
}

/// The driver's reason for disabling a service. `None` if the service is enabled or another client has
/// disabled it.
pub(crate) fn closure(service: &ComputeService) -> Option<Closure> {
    let reason = service.disabled_reason.as_deref().filter(|_| !service.is_enabled());
    reason.and_then(Closure::read)
}

/// Whether no operator has disabled the service: it is enabled, or the driver has disabled it.
pub(crate) fn is_in_use(service: &ComputeService) -> bool {
    service.is_enabled() || closure(service).is_some()
}

/// The aggregates that a host is in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership<'a> {
    /// Pool of the reservation that holds the whole host.
    pub(crate) holder: Option<Pool<'a>>,
    /// Reservation whose gate the host is in.
    pub(crate) awaited_by: Option<ReservationId>,
    /// Aggregate of the servers that were kept on the host.
    pub(crate) kept: Option<Kept<'a>>,
    /// Whether the host is in the free pool's aggregate.
    pub(crate) free: bool,
}

impl<'a> Membership<'a> {
    pub(crate) fn of(aggregates: &'a [Aggregate], free_pool: &str, host: &str) -> Self {
        let mut membership = Self::default();
        for aggregate in aggregates.iter().filter(|aggregate| aggregate.hosts.contains(host)) {
            membership.join(aggregate, free_pool);
        }
        membership
    }

    /// Adds an aggregate. If several reservations hold the host by mistake, the one with the lowest
    /// identifier counts.
    pub(crate) fn join(&mut self, aggregate: &'a Aggregate, free_pool: &str) {
        self.free |= aggregate.name == free_pool;
        self.awaited_by = self.awaited_by.or_else(|| gate_to(aggregate));
        self.kept = self.kept.or_else(|| Kept::of(aggregate));
        if let Some(pool) = Pool::of(aggregate).filter(|pool| pool.whole)
            && self.holder.as_ref().is_none_or(|known| pool.reservation < known.reservation)
        {
            self.holder = Some(pool);
        }
    }

    /// Place of the host. `None` if it wasn't adopted. `empty`: it has no servers.
    pub(crate) fn place(&self, service: &ComputeService, empty: bool) -> Option<Place> {
        match (closure(service), &self.holder) {
            (Some(Closure::Changing | Closure::Saving), _) => Some(Place::Fenced { verified_for: None }),
            (Some(Closure::EmptyFor(reservation)), _) => {
                Some(Place::Fenced { verified_for: Some(reservation) })
            }
            (Some(Closure::TakingBack(reservation)), _) => Some(Place::Releasing(reservation)),
            (None, Some(pool)) => Some(Place::Held(pool.reservation)),
            (None, None) if self.awaited_by.is_some() => {
                Some(Place::Fenced { verified_for: self.awaited_by })
            }
            // The host can leave the zone of the lease that is over.
            (None, None) if self.kept.is_some() && empty => Some(Place::Fenced { verified_for: None }),
            (None, None) => (self.free || self.kept.is_some()).then_some(Place::FreePool),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FENCE: &Fence = &Fence::BlazarFilter;
    const MINE: ReservationId = ReservationId(0xb1);

    fn aggregate(name: &str, zone: Option<&str>, hosts: &[&str], metadata: &[(&str, &str)]) -> Aggregate {
        Aggregate {
            id: 1,
            uuid: String::new(),
            name: name.to_owned(),
            availability_zone: zone.map(str::to_owned),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect::<BTreeSet<_>>(),
            metadata: metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        }
    }

    fn service(disabled: Option<&str>) -> ComputeService {
        ComputeService {
            id: "1".to_owned(),
            host: "host1".to_owned(),
            state: "up".to_owned(),
            status: if disabled.is_some() { "disabled" } else { "enabled" }.to_owned(),
            disabled_reason: disabled.map(str::to_owned),
            forced_down: false,
        }
    }

    #[test]
    fn a_host_is_where_its_aggregates_and_its_service_say() {
        let free = aggregate("freepool", None, &["host1"], &[]);
        let lease = LeaseId(0xa1).to_string();
        let (name, zone) = (MINE.to_string(), zone_of(MINE));
        let held =
            aggregate(&name, Some(&zone), &["host1"], &[("blazar:owner", "p"), ("allot:lease", &lease)]);
        let at = |pools: &[&Aggregate], disabled: Option<&str>| {
            let pools: Vec<Aggregate> = pools.iter().map(|pool| (*pool).clone()).collect();
            Membership::of(&pools, "freepool", "host1").place(&service(disabled), true)
        };
        assert_eq!(at(&[], None), None);
        assert_eq!(at(&[&free], None), Some(Place::FreePool));
        assert_eq!(at(&[&free], Some("maintenance")), Some(Place::FreePool), "the operator's own");
        assert_eq!(at(&[&held], None), Some(Place::Held(MINE)));
        assert_eq!(at(&[&held, &free], None), Some(Place::Held(MINE)), "closed to others by both pools");
        let text = |closure: Closure| closure.text();
        assert_eq!(at(&[&free], Some(&text(Closure::Changing))), Some(Place::Fenced { verified_for: None }));
        // A crash between two aggregates, or before the service was enabled again.
        let verified = Some(Place::Fenced { verified_for: Some(MINE) });
        assert_eq!(at(&[&free, &held], Some(&text(Closure::EmptyFor(MINE)))), verified);
        assert_eq!(at(&[&held], Some(&text(Closure::EmptyFor(MINE)))), verified);
        assert_eq!(at(&[&free], Some(&text(Closure::TakingBack(MINE)))), Some(Place::Releasing(MINE)));
        // A crash after the service was enabled and before the host left the gate.
        let gate = aggregate(&gate_of(MINE), Some(&zone), &["host1"], &[]);
        assert_eq!(at(&[&gate], None), verified);
        assert_eq!(at(&[&gate, &free], None), verified);
        assert_eq!(at(&[&gate, &held], None), Some(Place::Held(MINE)));
        assert_eq!(super::zone(&[gate], "host1"), None);
        // Servers stayed after a lease. Once they are gone, the host is brought back to the free pool.
        let stayed = aggregate(&kept_of(MINE), Some(&zone), &["host1"], &[]);
        assert_eq!(at(&[&free, &stayed], None), Some(Place::Fenced { verified_for: None }));
        let pools = [free.clone(), stayed.clone()];
        let with_servers = Membership::of(&pools, "freepool", "host1").place(&service(None), false);
        assert_eq!(with_servers, Some(Place::FreePool));
        assert_eq!(at(&[&free, &stayed, &held], None), Some(Place::Held(MINE)));
        assert_eq!(super::zone(&[stayed], "host1"), None);
        // An aggregate with such a name that the driver didn't make is ignored.
        let foreign = aggregate(&name, Some(&zone), &["host1"], &[("blazar:owner", "p")]);
        assert_eq!(at(&[&foreign], None), None);
        assert_eq!(super::zone(&[foreign], "host1"), Some(zone.as_str()));
        assert_eq!(super::zone(&[held], "host1"), None);
    }

    #[test]
    fn for_what_a_reservation_was_prepared_is_read_as_it_was_noted() {
        let lease = LeaseId(0xa1).to_string();
        let size = GuestSize { vcpus: 2, memory_mib: 1024, disk_gib: 0 };
        for (recipe, group) in [
            (Recipe::default(), None),
            (Recipe { size, affinity: Affinity::OneHost }, Some("g1")),
            (Recipe { size, affinity: Affinity::DistinctHosts }, Some("g2")),
        ] {
            let mut shared = aggregate(&MINE.to_string(), None, &[], &[("allot:lease", &lease)]);
            let incomplete = super::prepared(&shared, FENCE).expect("a reservation's").1;
            assert_eq!((incomplete.marked, incomplete.complete), (true, None));
            let noted = completion(recipe, group).into_iter();
            shared.metadata.extend(noted.filter_map(|(key, value)| Some((key, value?))));
            let (reservation, prepared) = super::prepared(&shared, FENCE).expect("a reservation's");
            assert_eq!((reservation, prepared.complete), (MINE, Some(recipe)));
            assert_eq!((prepared.aggregate, prepared.server_group.as_deref()), (Some(1), group));
        }
        assert_eq!(read_recipe("1 2 3"), None);
        assert_eq!(super::prepared(&aggregate("freepool", None, &[], &[]), FENCE), None);
        let unmarked = super::prepared(&aggregate(&MINE.to_string(), None, &[], &[]), FENCE);
        assert!(!unmarked.expect("one").1.marked);
    }

    #[test]
    fn slots_are_certain_once_they_are_noted() {
        let lease = LeaseId(0xa1).to_string();
        let metadata =
            [("allot:lease", lease.as_str()), ("allot:slots:host1", "3"), ("allot:slots:host2", "1")];
        let shared = aggregate(&MINE.to_string(), None, &["host1", "host3"], &metadata);
        let pool = Pool::of(&shared).expect("a pool");
        assert!(!pool.whole);
        assert_eq!(
            ["host1", "host2", "host3", "host4"].map(|host| pool.slots(host)),
            [Some(3), Some(1), Some(0), None]
        );
        assert_eq!(pool.slot_hosts().collect::<BTreeSet<_>>(), BTreeSet::from(["host1", "host2", "host3"]));
    }
}
