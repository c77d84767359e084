//! Room for instances: slots of one size on shared hosts.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::room::RoomCluster;
use super::surviving::Limits;
use super::waking::Thrift;
use super::{Refusal, Resource, Search};
use crate::failure_domain::FailureDomain;
use crate::filters::{FilterReport, HostFilter, screen};
use crate::host::Host;
use crate::ids::HostId;
use crate::requirement::Requirement;
use crate::resources::Resources;
use crate::terms::{Affinity, SlotsTerms};

/// How soon a host is used for more slots; less is sooner. Hosts that nobody uses stay whole for leases of
/// whole hosts as long as there is room elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// The reservation has slots there already.
    Held,
    /// Others have slots there in that time.
    Shared,
    /// Nobody has.
    Unused,
}

/// A host with room.
#[derive(Clone, Debug)]
pub(super) struct Room<'a> {
    host: &'a Host,
    used: Resources,
    /// How many slots fit, those that the reservation has there already among them.
    slots: u32,
    /// How soon it is had where power is saved.
    thrift: Thrift,
}

impl Room<'_> {
    /// How many of the reservation's slots may be there.
    fn at_most(&self, asked: &SlotsTerms<'_>) -> u32 {
        if asked.affinity == Affinity::DistinctHosts { self.slots.min(1) } else { self.slots }
    }
}

impl Search<'_> {
    /// Slots for a reservation, on hosts of `held` first: as many there as it has already, then more there,
    /// then elsewhere.
    ///
    /// A host is filled before the next one is begun, and the placement core chooses among the hosts that can
    /// take all that is wanted. All slots are alike, so this finds room whenever there is some.
    pub(super) fn slots(
        &self,
        position: usize,
        asked: &SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
    ) -> Result<BTreeMap<HostId, u32>, Refusal> {
        let (rooms, report) = self.rooms(asked);
        let found = self.could_have(&rooms, asked);
        let refusal = Refusal::NotEnough {
            position,
            resource: Resource::Slots(report),
            needed: asked.amount.into(),
            found,
        };
        if found < asked.amount.into() {
            return Err(refusal);
        }
        let mut filling = Filling::new(&rooms, asked, held).ok_or_else(|| refusal.clone())?;
        if let Some(domain) = asked.survives {
            let kept =
                |room: &Room<'_>| held.get(&room.host.id).map_or(0, |count| room.at_most(asked).min(*count));
            let supply =
                rooms.iter().map(|room| (room.host.id, kept(room), room.at_most(asked) - kept(room)));
            filling.limit(self.limits(supply, asked.amount, domain));
        }
        filling.keep(held);
        filling.fill().ok_or(refusal)
    }

    /// How many slots there could be, or could be left whichever failure is to be survived.
    fn could_have(&self, rooms: &[Room<'_>], asked: &SlotsTerms<'_>) -> u64 {
        let in_each = rooms.iter().map(|room| (room.host.id, room.at_most(asked)));
        match (asked.affinity, asked.survives) {
            // Nothing is left of what is on one host.
            (Affinity::OneHost, Some(_)) => 0,
            (Affinity::OneHost, None) => in_each.map(|(_, slots)| slots.into()).max().unwrap_or(0),
            (_, None) => in_each.map(|(_, slots)| u64::from(slots)).sum(),
            (_, Some(domain)) => self.left_of(in_each, domain),
        }
    }

    /// Beside the slots that a reservation keeps, so many that enough are left whichever domain fails, or as many as can
    /// be. What it keeps is noted as taken.
    pub(super) fn slots_beside(
        &self,
        kept: &BTreeMap<HostId, u32>,
        asked: &SlotsTerms<'_>,
        domain: &FailureDomain,
    ) -> BTreeMap<HostId, u32> {
        let (rooms, _) = self.rooms(asked);
        let free = rooms.iter().map(|room| (room.host.id, 0, room.at_most(asked)));
        let held = kept.iter().map(|(host, count)| (*host, *count, 0));
        let Some(mut filling) = Filling::new(&rooms, asked, &BTreeMap::new()) else { return BTreeMap::new() };
        filling.limit(self.limits(held.chain(free), asked.amount, domain));
        for (host, count) in kept {
            filling.count(*host, *count);
        }
        filling.fill().unwrap_or_default()
    }

    /// Hosts with room for at least one slot, and what became of the others.
    pub(super) fn rooms(&self, asked: &SlotsTerms<'_>) -> (Vec<Room<'_>>, FilterReport) {
        let (open, mut report) = screen(
            self.admission.inventory.hosts(),
            self.admission.cost_of_screening(asked.requirement.map_or(0, Requirement::values)),
            &|host| self.admission.barred(host).or_else(|| self.admission.against_hints(host)),
            &[
                (HostFilter::ResourceProperties, &|host| {
                    asked.requirement.is_none_or(|requirement| requirement.matches(host))
                }),
                (HostFilter::Traits, &|host| {
                    asked.traits.is_none_or(|traits| {
                        traits.required.is_subset(&host.traits) && traits.forbidden.is_disjoint(&host.traits)
                    })
                }),
                (HostFilter::Calendar, &|host| self.host_open_to_slots(host.id)),
                (HostFilter::Power, &|host| self.can_be_on(host.id)),
            ],
        );
        let open_hosts = open.len();
        let rooms: Vec<Room<'_>> = open.into_iter().filter_map(|host| self.room(host, asked)).collect();
        if rooms.len() < open_hosts {
            report.removed.insert(HostFilter::Room, open_hosts - rooms.len());
        }
        (rooms, report)
    }

    /// Whether the host can serve so many slots, whatever its health: for those that have slots there.
    pub(super) fn still_fits(&self, host: HostId, count: u32, asked: &SlotsTerms<'_>) -> bool {
        let room = self.admission.inventory.host(host).and_then(|host| self.room(host, asked));
        self.host_open_to_slots(host) && room.is_some_and(|room| room.slots >= count)
    }

    fn room<'h>(&self, host: &'h Host, asked: &SlotsTerms<'_>) -> Option<Room<'h>> {
        let used = self.peak_use(host.id);
        let slots = host.capacity().slots(&used, &asked.size);
        (slots > 0).then_some(Room { host, used, slots, thrift: self.thrift(host.id) })
    }
}

/// Slots being distributed.
struct Filling<'a> {
    size: &'a Resources,
    affinity: Affinity,
    remaining: u32,
    /// How many more there may be in each failure domain, if one is to be survived.
    limits: Option<Limits>,
    /// Hosts with what is free there, and how soon each is used.
    spare: BTreeMap<HostId, ((Tier, Thrift), u32)>,
    cluster: RoomCluster,
    given: BTreeMap<HostId, u32>,
}

impl<'a> Filling<'a> {
    fn new(rooms: &[Room<'_>], asked: &'a SlotsTerms<'_>, held: &BTreeMap<HostId, u32>) -> Option<Self> {
        let cluster = RoomCluster::new(rooms.iter().map(|room| (room.host, &room.used)))?;
        let spare = rooms.iter().map(|room| {
            let tier = match held.contains_key(&room.host.id) {
                true => Tier::Held,
                false if room.used.is_nothing() => Tier::Unused,
                false => Tier::Shared,
            };
            (room.host.id, ((tier, room.thrift), room.at_most(asked)))
        });
        Some(Self {
            size: &asked.size,
            affinity: asked.affinity,
            remaining: asked.amount,
            limits: None,
            spare: spare.collect(),
            cluster,
            given: BTreeMap::new(),
        })
    }

    /// So many in all, and in each domain.
    fn limit(&mut self, limits: Limits) {
        self.remaining = limits.total;
        self.limits = Some(limits);
        self.heed_limits();
    }

    /// No more is taken of a host than may be in its domain.
    fn heed_limits(&mut self) {
        let Some(limits) = &self.limits else { return };
        for (host, (_, spare)) in &mut self.spare {
            *spare = limits.more_on(*host).min(*spare);
        }
    }

    /// Counts slots there as given, which are to be kept in any case.
    fn count(&mut self, host: HostId, count: u32) {
        self.remaining -= count.min(self.remaining);
        if let Some(limits) = &mut self.limits {
            limits.use_up(host, count);
            self.heed_limits();
        }
    }

    /// Leaves what the reservation has where it is, as far as it still fits and is still wanted.
    fn keep(&mut self, held: &BTreeMap<HostId, u32>) {
        if self.affinity == Affinity::OneHost {
            // All or none of it can stay; the host comes first in any case.
            return;
        }
        for (&host, &count) in held {
            let stays = count.min(self.spare_on(host)).min(self.remaining);
            if stays > 0 {
                self.give(stays, &[host]);
            }
        }
    }

    /// Distributes the rest: a tier is used up before the next is begun.
    fn fill(mut self) -> Option<BTreeMap<HostId, u32>> {
        while self.remaining > 0 {
            let chunk = if self.affinity == Affinity::DistinctHosts { 1 } else { self.remaining };
            let least = if self.affinity == Affinity::OneHost { chunk } else { 1 };
            let usable = || self.spare.iter().filter(|(_, (_, spare))| *spare >= least);
            let first_tier = usable().map(|(_, (tier, _))| *tier).min()?;
            let in_tier: Vec<(HostId, u32)> = usable()
                .filter(|(_, (tier, _))| *tier == first_tier)
                .map(|(host, (_, spare))| (*host, *spare))
                .collect();
            let enough: Vec<HostId> =
                in_tier.iter().filter(|(_, spare)| *spare >= chunk).map(|(host, _)| *host).collect();
            if enough.is_empty() {
                let (host, spare) =
                    in_tier.into_iter().max_by_key(|(host, spare)| (*spare, Reverse(*host)))?;
                self.give(spare, &[host])?;
            } else {
                self.give(chunk, &enough)?;
            }
        }
        Some(self.given)
    }

    fn spare_on(&self, host: HostId) -> u32 {
        self.spare.get(&host).map_or(0, |(_, spare)| *spare)
    }

    /// Gives slots on the best of these hosts, each of which has room for all of them.
    fn give(&mut self, count: u32, on: &[HostId]) -> Option<()> {
        let host = self.cluster.place(self.size, count, on)?;
        let (_, spare) = self.spare.get_mut(&host)?;
        *spare -= count.min(*spare);
        *self.given.entry(host).or_insert(0) += count;
        self.count(host, count);
        Some(())
    }
}
