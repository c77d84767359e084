//! Where hosts are, read from the cloud's aggregates and compute services; what the driver writes there.
//!
//! | a host is | its aggregates | its compute service |
//! | --- | --- | --- |
//! | in the free pool | the free pool's | as the operator has it |
//! | fenced | the free pool's | disabled, [`Closure::Changing`] or [`Closure::EmptyFor`] |
//! | fenced, about to be held | the reservation's gate, in the same zone and nobody's | as the operator has it |
//! | held | one named by the reservation, with the zone `blazar_<reservation>` | as the operator has it |
//! | on its way back | either or both | disabled, [`Closure::TakingBack`] |
//! | in the free pool, with servers that stayed after a lease | the free pool's, and one of [`Kept`] in the lease's zone | as the operator has it |
//! | the same, once they are gone: fenced, until it has left that zone | both | as the operator has it |
//! | not adopted | none of these | as the operator has it |
//!
//! Nova lets no host with servers leave its availability zone. So a host whose servers stay at the end of a lease goes to an
//! aggregate in the same zone that is nobody's, beside the free pool's: `BlazarFilter` lets nobody use a host with two pools.
//!
//! Since `BlazarFilter`, as Nova's own isolation of tenants, lets everybody use a host without a pool, a host that was adopted
//! is in one at every moment: it enters the next before it leaves the last.

use std::collections::BTreeMap;

use leases::ids::{LeaseId, ReservationId};
use leases::lease_pool::LEASE_KEY;
use leases::plan::{GuestSize, Place, Prepared, Recipe};
use leases::terms::Affinity;

use crate::closure::Closure;
use crate::fence::{Fence, TENANT, Whole};
use crate::ids::parse_uuid;
use crate::wire::{Aggregate, ComputeService};

/// How the zones of held hosts begin: what makes an aggregate a pool for `BlazarFilter`.
const ZONE: &str = "blazar_";

/// Keys of the metadata of reservations' aggregates. The first two are Blazar's, and filters read them.
const OWNER: &str = "blazar:owner";
const RESERVATION: &str = "reservation";
pub(crate) const LEASE: &str = "allot:lease";
const SLOTS: &str = "allot:slots:";
const PREPARED: &str = "allot:prepared";
const LEFT: &str = "allot:left:";
const FLAVORS: &str = "allot:flavor:";
/// The server group: Blazar's key.
pub(crate) const GROUP: &str = "affinity_id";

/// Keys of the metadata of the free pool's aggregate: for which store the cloud is changed.
pub(crate) const STORE: &str = "allot:store";

/// An aggregate of a reservation.
#[derive(Clone, Debug)]
pub(crate) struct Pool<'a> {
    pub(crate) reservation: ReservationId,
    pub(crate) lease: Option<LeaseId>,
    /// The project whose servers are the lease's.
    pub(crate) project: &'a str,
    /// Whether its hosts are the reservation's as a whole.
    pub(crate) whole: bool,
    pub(crate) aggregate: &'a Aggregate,
}

impl<'a> Pool<'a> {
    /// None if the aggregate is not one that the driver has made.
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

    /// For what everything was made that the reservation needs as a whole, once it is there with what the fence reads.
    pub(crate) fn complete(&self, fence: &Fence) -> Option<Recipe> {
        let whole = if self.whole { Whole::Hosts } else { Whole::Slots };
        let keys = fence.of_reservation(self.aggregate, self.reservation, whole, self.project);
        let fenced = keys.iter().all(|(key, value)| self.aggregate.metadata.get(key) == Some(value));
        self.aggregate.metadata.get(PREPARED).filter(|_| fenced).and_then(|text| read_recipe(text))
    }

    /// How many slots of a host it has; none if it has nothing to do with the host.
    pub(crate) fn slots(&self, host: &str) -> Option<u32> {
        let noted = self.aggregate.metadata.get(&slots_key(host)).map(|count| count.parse().unwrap_or(0));
        // A host whose number is not noted yet has room that is not certain: it is granted again, or withdrawn.
        noted.or_else(|| (!self.whole && self.aggregate.hosts.contains(host)).then_some(0))
    }

    /// The hosts that it has something of.
    pub(crate) fn slot_hosts(&self) -> impl Iterator<Item = &'a str> {
        let noted = self.aggregate.metadata.keys().filter_map(|key| key.strip_prefix(SLOTS));
        let members = self.aggregate.hosts.iter().filter(|_| !self.whole).map(String::as_str);
        noted.chain(members)
    }
}

/// What there is of the reservation that an aggregate is named after, if it is.
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

/// The project that an aggregate's hosts are for, if it says so.
pub(crate) fn owner(aggregate: &Aggregate) -> Option<&str> {
    aggregate.metadata.get(OWNER).map(String::as_str)
}

/// Whether an aggregate was made for a reservation, by Blazar or by the driver: its name is a UUID besides.
pub(crate) fn is_of_reservation(aggregate: &Aggregate) -> bool {
    owner(aggregate).is_some() || aggregate.metadata.contains_key(RESERVATION)
}

/// The server group of a reservation's instances, if it is noted.
pub(crate) fn server_group(aggregate: &Aggregate) -> Option<&str> {
    aggregate.metadata.get(GROUP).map(String::as_str)
}

/// The identifiers of the flavors that were made for servers on a reservation's hosts.
pub(crate) fn flavors(aggregate: &Aggregate) -> impl Iterator<Item = &str> {
    let noted = aggregate.metadata.iter().filter(|(key, _)| key.starts_with(FLAVORS));
    noted.map(|(_, id)| id.as_str())
}

/// The same, as it is noted before they are made. Of those that are there the others are noted no more.
pub(crate) fn note_flavors(aggregate: &Aggregate, ids: &[String]) -> BTreeMap<String, Option<String>> {
    let noted = aggregate.metadata.keys().filter(|key| key.starts_with(FLAVORS));
    let none = noted.map(|key| (key.clone(), None));
    let wanted = ids.iter().enumerate().map(|(at, id)| (format!("{FLAVORS}{at:03}"), Some(id.clone())));
    none.chain(wanted).collect()
}

/// What is noted once all is there: for what it was made, and the server group.
pub(crate) fn completion(recipe: Recipe, group: Option<&str>) -> BTreeMap<String, Option<String>> {
    let Recipe { size: GuestSize { vcpus, memory_mib, disk_gib }, affinity } = recipe;
    let spread = AFFINITIES.iter().find(|(_, known)| *known == affinity).map_or("any", |(word, _)| word);
    let noted = Some(format!("{vcpus} {memory_mib} {disk_gib} {spread}"));
    BTreeMap::from([(PREPARED.to_owned(), noted), (GROUP.to_owned(), group.map(str::to_owned))])
}

/// What is there is not what is wanted, and about to be made again.
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

/// Whether all that a reservation needs as a whole was there once.
pub(crate) fn is_prepared(aggregate: &Aggregate) -> bool {
    aggregate.metadata.contains_key(PREPARED)
}

/// For what it was made.
pub(crate) fn noted_recipe(aggregate: &Aggregate) -> Option<Recipe> {
    aggregate.metadata.get(PREPARED).and_then(|text| read_recipe(text))
}

/// How many slots of a host a reservation has, once that is certain.
pub(crate) fn noted_slots(aggregate: &Aggregate, host: &str) -> Option<u32> {
    aggregate.metadata.get(&slots_key(host))?.parse().ok()
}

/// The key of how many slots of a host a reservation has.
pub(crate) fn slots_key(host: &str) -> String {
    format!("{SLOTS}{host}")
}

/// The key, in the free pool's aggregate, of a host's slots that servers have still which stayed after that reservation.
pub(crate) fn leftover_key(reservation: ReservationId, host: &str) -> String {
    format!("{LEFT}{reservation}:{host}")
}

/// The reservations that are over and of which servers on the host have slots still, as the free pool's aggregate notes.
pub(crate) fn leftovers(free: &Aggregate, host: &str) -> Vec<ReservationId> {
    let noted = free.metadata.keys().filter_map(|key| key.strip_prefix(LEFT)?.split_once(':'));
    let of_host = noted.filter(|(_, other)| *other == host);
    of_host.filter_map(|(id, _)| parse_uuid(id)).map(ReservationId).collect()
}

/// The availability zone of hosts that a reservation holds.
pub(crate) fn zone_of(reservation: ReservationId) -> String {
    format!("{ZONE}{reservation}")
}

/// The availability zone that the aggregate of a reservation must have.
pub(crate) fn wanted_zone(reservation: ReservationId, whole: Whole) -> Option<String> {
    (whole == Whole::Hosts).then(|| zone_of(reservation))
}

/// How the names of gates end.
const GATE: &str = " gate";

/// The aggregate through which hosts come to a reservation. It is a pool for `BlazarFilter`, in the reservation's zone since
/// a host can be in one zone only, but no reservation's, so that the filter lets nobody in.
pub(crate) fn gate_of(reservation: ReservationId) -> String {
    format!("{reservation}{GATE}")
}

/// The reservation to which an aggregate is the gate, if it is one.
pub(crate) fn gate_to(aggregate: &Aggregate) -> Option<ReservationId> {
    in_zone_of(aggregate, GATE)
}

/// How the names of aggregates end of hosts whose servers have stayed after a lease.
const KEPT: &str = " kept";

/// The project whose servers have stayed. It is not Blazar's key for the owner, which lets the project start servers.
const KEPT_PROJECT: &str = "allot:project";

/// An aggregate in the zone of a reservation that is over, of hosts whose servers have stayed. It is a pool for
/// `BlazarFilter`, but nobody's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    pub(crate) reservation: ReservationId,
    pub(crate) lease: Option<LeaseId>,
    /// The project whose servers were the lease's.
    pub(crate) project: &'a str,
    pub(crate) aggregate: &'a Aggregate,
}

impl<'a> Kept<'a> {
    /// None if the aggregate is no such one.
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

/// The name of the aggregate of hosts whose servers stay after a reservation.
pub(crate) fn kept_of(reservation: ReservationId) -> String {
    format!("{reservation}{KEPT}")
}

/// Its metadata: whose servers they were.
pub(crate) fn kept_servers(project: &str, lease: Option<LeaseId>) -> BTreeMap<String, Option<String>> {
    let lease = lease.map(|lease| lease.to_string()).unwrap_or_default();
    let pairs = [(KEPT_PROJECT, project.to_owned()), (LEASE, lease)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect()
}

/// The reservation whose identifier the name of an aggregate in its zone has before that ending.
fn in_zone_of(aggregate: &Aggregate, ending: &str) -> Option<ReservationId> {
    let reservation = aggregate.name.strip_suffix(ending).and_then(parse_uuid).map(ReservationId)?;
    (aggregate.availability_zone == Some(zone_of(reservation))).then_some(reservation)
}

/// The reservation in whose zone the driver has made an aggregate, if it has: of hosts that it holds, its gate, or of hosts
/// whose servers have stayed.
pub(crate) fn zone_holder(aggregate: &Aggregate) -> Option<ReservationId> {
    let whole = Pool::of(aggregate).filter(|pool| pool.whole).map(|pool| pool.reservation);
    whole.or_else(|| gate_to(aggregate)).or_else(|| Kept::of(aggregate).map(|kept| kept.reservation))
}

/// Whether an aggregate was made by the driver for a reservation.
pub(crate) fn is_made_here(aggregate: &Aggregate) -> bool {
    Pool::of(aggregate).is_some() || zone_holder(aggregate).is_some()
}

/// The metadata of the aggregate of a reservation of whole hosts.
pub(crate) fn whole_hosts(project: &str, lease: Option<LeaseId>) -> BTreeMap<String, Option<String>> {
    let lease = lease.map(|lease| lease.to_string()).unwrap_or_default();
    let pairs = [(OWNER, project.to_owned()), (LEASE, lease.clone()), (LEASE_KEY, lease)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect()
}

/// The same of a reservation of instances.
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

/// The zone of a host that is in an aggregate with one, but for those of reservations.
pub(crate) fn zone<'a>(aggregates: &'a [Aggregate], host: &str) -> Option<&'a str> {
    let mut others = foreign(aggregates).filter(|other| other.hosts.contains(host));
    others.find_map(|other| other.availability_zone.as_deref())
}

/// Aggregates that the driver has not made for reservations.
pub(crate) fn foreign(aggregates: &[Aggregate]) -> impl Iterator<Item = &Aggregate> {
    aggregates.iter().filter(|aggregate| !is_made_here(aggregate))
}

/// Why the driver has disabled that service, if it has.
pub(crate) fn closure(service: &ComputeService) -> Option<Closure> {
    let reason = service.disabled_reason.as_deref().filter(|_| !service.is_enabled());
    reason.and_then(Closure::read)
}

/// Whether no operator has disabled that service: it is enabled, or the driver has disabled it.
pub(crate) fn is_in_use(service: &ComputeService) -> bool {
    service.is_enabled() || closure(service).is_some()
}

/// What a host is a member of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Membership<'a> {
    /// The reservation that holds it as a whole.
    pub(crate) holder: Option<Pool<'a>>,
    /// The reservation whose gate it is in.
    pub(crate) awaited_by: Option<ReservationId>,
    /// Whose servers have stayed on it.
    pub(crate) kept: Option<Kept<'a>>,
    /// Whether it is in the free pool's aggregate.
    pub(crate) free: bool,
}

impl<'a> Membership<'a> {
    /// What that host is in.
    pub(crate) fn of(aggregates: &'a [Aggregate], free_pool: &str, host: &str) -> Self {
        let mut membership = Self::default();
        for aggregate in aggregates.iter().filter(|aggregate| aggregate.hosts.contains(host)) {
            membership.join(aggregate, free_pool);
        }
        membership
    }

    /// It is in that aggregate as well. By mistake several reservations may hold it: the first counts.
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

    /// Where the host is, if it was adopted. `empty`: no server is there.
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
            // It can leave the zone of the lease that is over.
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
        // A crash came when it was open and had not left the gate.
        let gate = aggregate(&gate_of(MINE), Some(&zone), &["host1"], &[]);
        assert_eq!(at(&[&gate], None), verified);
        assert_eq!(at(&[&gate, &free], None), verified);
        assert_eq!(at(&[&gate, &held], None), Some(Place::Held(MINE)));
        assert_eq!(super::zone(&[gate], "host1"), None);
        // Servers have stayed after a lease; once they are gone it is brought back to the free pool.
        let stayed = aggregate(&kept_of(MINE), Some(&zone), &["host1"], &[]);
        assert_eq!(at(&[&free, &stayed], None), Some(Place::Fenced { verified_for: None }));
        let pools = [free.clone(), stayed.clone()];
        let with_servers = Membership::of(&pools, "freepool", "host1").place(&service(None), false);
        assert_eq!(with_servers, Some(Place::FreePool));
        assert_eq!(at(&[&free, &stayed, &held], None), Some(Place::Held(MINE)));
        assert_eq!(super::zone(&[stayed], "host1"), None);
        // Somebody else's aggregate with such a name is none of ours.
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
