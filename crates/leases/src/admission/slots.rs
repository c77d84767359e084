//! Allocation of capacity for instances: slots of one size on shared hosts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::room::RoomCluster;
use super::surviving::Limits;
use super::waking::Thrift;
use super::{Refusal, Resource, Search};
use crate::failure_domain::FailureDomain;
use crate::filters::{FilterReport, HostFilter, screen};
use crate::host::Host;
use crate::host_facts::{Loss, Losses};
use crate::ids::HostId;
use crate::resources::Resources;
use crate::scarcity::Scarcity;
use crate::terms::{Affinity, SlotsTerms};
use crate::work::Budget;

/// Cost to examine a host as a place for slots, in addition to screening.
const PLACING: u64 = 50;
/// Cost to allocate slots on a host, and cost per candidate host.
const GIVING: u64 = 200;
const CHOOSING: u64 = 20;

/// Order in which hosts are used for slots; less is sooner. Unused hosts are left for leases of whole hosts
/// as long as there is room elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// The reservation already has slots there.
    Held,
    /// Other reservations have slots there in the window.
    Shared,
    Unused,
}

/// A host with room for slots.
#[derive(Clone, Debug)]
pub(super) struct Room<'a> {
    host: &'a Host,
    used: Resources,
    /// Number of slots that fit, including slots that the reservation already has there.
    slots: u32,
    /// Number of slots that fit without preempting guests.
    beside_guests: u32,
    /// The host is closed, or may not work by then.
    doubtful: bool,
    /// Rank of the host if power is saved.
    thrift: Thrift,
    scarcity: Scarcity,
}

impl Room<'_> {
    /// Maximum number of slots of the reservation on this host.
    fn at_most(&self, asked: &SlotsTerms<'_>) -> u32 {
        if asked.affinity == Affinity::DistinctHosts { self.slots.min(1) } else { self.slots }
    }
}

/// Free capacity of a host while slots are being distributed.
struct Spare {
    turn: Turn,
    /// Number of slots that can still be added.
    slots: u32,
    /// Number of slots that can still be added without preempting guests.
    beside_guests: u32,
    /// Capacity that bookings leave, for guests that could be preempted.
    left: Resources,
    /// Rarity of its properties. Among equally good hosts, common ones are used first.
    scarcity: Scarcity,
}

impl Search<'_> {
    /// Slots for a reservation. First it keeps its slots on hosts of `held`, then gets more there, then
    /// elsewhere. With `keeps` it can have more than it needs to survive a failure, so that it loses none of
    /// its slots.
    ///
    /// A host is filled before the next one is used, and the placement core chooses among the hosts that can
    /// take all remaining slots. All slots are alike, so this finds room whenever there is some.
    pub(super) fn slots(
        &self,
        position: usize,
        asked: &SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
        keeps: bool,
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
        let mut filling = self.filling(&rooms, asked, held).ok_or_else(|| refusal.clone())?;
        if let Some(domain) = asked.survives {
            let kept = |room: &Room<'_>| {
                let held = held.get(&room.host.id).filter(|_| keeps);
                held.map_or(0, |count| room.at_most(asked).min(*count))
            };
            let supply =
                rooms.iter().map(|room| (room.host.id, kept(room), room.at_most(asked) - kept(room)));
            filling.limit(self.limits(supply, asked.amount, domain));
        }
        filling.keep(held);
        filling.fill().ok_or(refusal)
    }

    /// Number of slots that could be allocated, or that could be left after any failure that must be
    /// survived.
    fn could_have(&self, rooms: &[Room<'_>], asked: &SlotsTerms<'_>) -> u64 {
        let in_each = rooms.iter().map(|room| (room.host.id, room.at_most(asked)));
        match (asked.affinity, asked.survives) {
            // If one host has all slots, its failure takes all of them.
            (Affinity::OneHost, Some(_)) => 0,
            (Affinity::OneHost, None) => in_each.map(|(_, slots)| slots.into()).max().unwrap_or(0),
            (_, None) => in_each.map(|(_, slots)| u64::from(slots)).sum(),
            (_, Some(domain)) => self.left_of(in_each, domain),
        }
    }

    /// Slots to add to `kept`, so that enough are left after the failure of any domain, or as many as
    /// possible. The kept slots are already marked as taken.
    pub(super) fn slots_beside(
        &self,
        kept: &BTreeMap<HostId, u32>,
        asked: &SlotsTerms<'_>,
        domain: &FailureDomain,
    ) -> BTreeMap<HostId, u32> {
        let (rooms, _) = self.rooms(asked);
        let free = rooms.iter().map(|room| (room.host.id, 0, room.at_most(asked)));
        let held = kept.iter().map(|(host, count)| (*host, *count, 0));
        let none = BTreeMap::new();
        let Some(mut filling) = self.filling(&rooms, asked, &none) else { return none };
        filling.limit(self.limits(held.chain(free), asked.amount, domain));
        for (host, count) in kept {
            filling.count(*host, *count);
        }
        filling.fill().unwrap_or_default()
    }

    fn filling<'f>(
        &'f self,
        rooms: &[Room<'_>],
        asked: &'f SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
    ) -> Option<Filling<'f>> {
        Filling::new(rooms, asked, held, (&self.admission.facts.losses, self.admission.budget))
    }

    /// Hosts with room for at least one slot, and the number of hosts removed by each filter.
    pub(super) fn rooms(&self, asked: &SlotsTerms<'_>) -> (Vec<Room<'_>>, FilterReport) {
        let unsuited = |host: &Host| match (asked.requirement, asked.traits) {
            (Some(requirement), _) if !self.admission.meets(requirement, host) => {
                Some(HostFilter::ResourceProperties)
            }
            (_, Some(traits)) if !traits.admit(host) => Some(HostFilter::Traits),
            _ => None,
        };
        let (open, mut report) = screen(
            self.admission.inventory.hosts(),
            self.admission.screening(0),
            &|host| {
                let unsuited = self.objection(host, self.window.start()).or_else(|| unsuited(host));
                unsuited.or_else(|| self.admission.too_long(host, asked.flavor))
            },
            &[
                (HostFilter::OwnPart, &|host| !self.taken.whole.contains(&host.id)),
                (HostFilter::Calendar, &|host| self.host_open_to_slots(host.id)),
                (HostFilter::Power, &|host| self.can_be_on(host.id)),
            ],
        );
        let mut rooms = Vec::with_capacity(open.len());
        for host in open {
            match self.room(host, asked) {
                Some(room) => rooms.push(room),
                None => *report.removed.entry(self.lacks_room(host, asked)).or_insert(0) += 1,
            }
        }
        (rooms, report)
    }

    /// Whether the host lacks room because of other leases, or because of this lease's own reservations.
    fn lacks_room(&self, host: &Host, asked: &SlotsTerms<'_>) -> HostFilter {
        let fits = || {
            let of_others = self.admission.calendar.peak_use(host.id, &self.window, self.own);
            host.capacity().slots(&of_others, &asked.size) > 0
        };
        if self.taken.shared.contains_key(&host.id) && fits() {
            HostFilter::OwnPart
        } else {
            HostFilter::Room
        }
    }

    /// Number of slots that each host has room for.
    pub(super) fn slots_by_host(&self, asked: &SlotsTerms<'_>) -> BTreeMap<HostId, u32> {
        let (rooms, _) = self.rooms(asked);
        rooms.iter().map(|room| (room.host.id, room.at_most(asked))).collect()
    }

    /// Whether the host can keep this number of slots, regardless of its health.
    pub(super) fn still_fits(&self, host: HostId, count: u32, asked: &SlotsTerms<'_>) -> bool {
        let room = self.admission.inventory.host(host).and_then(|host| self.room(host, asked));
        self.host_open_to_slots(host) && room.is_some_and(|room| room.slots >= count)
    }

    fn room<'h>(&self, host: &'h Host, asked: &SlotsTerms<'_>) -> Option<Room<'h>> {
        self.charge_for_bookings(host.id);
        let used = self.peak_use(host.id);
        let slots = host.capacity().slots(&used, &asked.size);
        let guests = self.admission.facts.losses.used(host.id);
        let beside_guests = guests.map_or(slots, |mut guests| {
            guests.add(1, &used);
            host.capacity().slots(&guests, &asked.size)
        });
        let (doubtful, thrift) = (self.admission.is_doubtful(host), self.thrift(host.id));
        let scarcity = self.admission.inventory.scarcity(host.id);
        (slots > 0).then_some(Room { host, used, slots, beside_guests, doubtful, thrift, scarcity })
    }
}

/// A distribution of slots in progress.
struct Filling<'a> {
    size: &'a Resources,
    affinity: Affinity,
    remaining: u32,
    /// Limits per failure domain, if a failure must be survived.
    limits: Option<Limits>,
    /// Free capacity of each host.
    spare: BTreeMap<HostId, Spare>,
    /// Only uses capacity that is free without preempting guests.
    sparing: bool,
    losses: &'a Losses,
    cluster: RoomCluster,
    given: BTreeMap<HostId, u32>,
    budget: &'a Budget,
}

/// Order in which hosts are used; less is sooner.
type Turn = (bool, Tier, Thrift);

impl<'a> Filling<'a> {
    fn new(
        rooms: &[Room<'_>],
        asked: &'a SlotsTerms<'_>,
        held: &BTreeMap<HostId, u32>,
        (losses, budget): (&'a Losses, &'a Budget),
    ) -> Option<Self> {
        if !budget.spend(PLACING * rooms.len() as u64) {
            return None;
        }
        // Among equally good hosts the placement core chooses the last one.
        let mut ordered: Vec<&Room<'_>> = rooms.iter().collect();
        ordered.sort_unstable_by_key(|room| (Reverse(room.scarcity), room.host.id));
        let cluster = RoomCluster::new(ordered.into_iter().map(|room| (room.host, &room.used)))?;
        let spare = rooms.iter().map(|room| {
            let tier = match held.contains_key(&room.host.id) {
                true => Tier::Held,
                false if room.used.is_nothing() => Tier::Unused,
                false => Tier::Shared,
            };
            let mut left = room.host.capacity();
            left.subtract(1, &room.used);
            let doubtful = room.doubtful && tier != Tier::Held;
            let (turn, slots) = ((doubtful, tier, room.thrift), room.at_most(asked));
            let (beside_guests, scarcity) = (room.beside_guests.min(slots), room.scarcity);
            (room.host.id, Spare { turn, slots, beside_guests, left, scarcity })
        });
        Some(Self {
            size: &asked.size,
            affinity: asked.affinity,
            remaining: asked.amount,
            limits: None,
            spare: spare.collect(),
            sparing: false,
            losses,
            cluster,
            given: BTreeMap::new(),
            budget,
        })
    }

    /// Sets limits in total and per domain.
    fn limit(&mut self, limits: Limits) {
        self.remaining = limits.total;
        self.limits = Some(limits);
    }

    /// Counts slots on a host toward the total and the limits.
    fn count(&mut self, host: HostId, count: u32) {
        self.remaining -= count.min(self.remaining);
        if let Some(limits) = &mut self.limits {
            limits.use_up(host, count);
        }
    }

    /// Leaves slots of the reservation where they are, as far as they still fit and are still needed.
    fn keep(&mut self, held: &BTreeMap<HostId, u32>) {
        if self.affinity == Affinity::OneHost {
            // The slots stay together or move together, and their host comes first anyway.
            return;
        }
        for (&host, &count) in held {
            let stays = count.min(self.spare_on(host)).min(self.remaining);
            if stays > 0 {
                self.give(stays, &[host]);
            }
        }
    }

    /// Distributes the remaining slots: first without preempting guests, then with as few losses as possible.
    fn fill(mut self) -> Option<BTreeMap<HostId, u32>> {
        // Using idle hosts is better than losing guests.
        if self.spare.values().any(|spare| spare.beside_guests < spare.slots) {
            self.sparing = true;
            let turn = |spare: &Spare| (Loss::default(), spare.turn);
            let all = self.spare.iter().filter(|(_, spare)| spare.beside_guests > 0);
            let all: Vec<_> = all.map(|(host, spare)| (turn(spare), *host)).collect();
            self.fill_in_turns(all)?;
            self.sparing = false;
        }
        if self.remaining > 0 {
            let all = self.spare.iter().filter(|(_, spare)| spare.slots > 0);
            let all = all.map(|(host, spare)| ((self.loss(*host, spare), spare.turn), *host)).collect();
            self.fill_in_turns(all)?;
        }
        (self.remaining == 0).then_some(self.given)
    }

    /// The loss if the host gets as many of the remaining slots as fit.
    fn loss(&self, host: HostId, spare: &Spare) -> Loss {
        let count = match self.affinity {
            Affinity::DistinctHosts => 1,
            Affinity::OneHost | Affinity::Any => spare.slots.min(self.remaining),
        };
        let mut left = spare.left.clone();
        left.subtract(count, self.size);
        self.losses.with_left(host, &left, self.budget)
    }

    /// Uses up the hosts of each turn before the next turn. Hosts are ranked once, so the work grows no
    /// faster than the numbers of hosts and slots.
    fn fill_in_turns(&mut self, hosts: Vec<((Loss, Turn), HostId)>) -> Option<()> {
        let mut tiers: BTreeMap<(Loss, Turn), Vec<HostId>> = BTreeMap::new();
        for (turn, host) in hosts {
            tiers.entry(turn).or_default().push(host);
        }
        for hosts in tiers.into_values() {
            match self.affinity {
                _ if self.remaining == 0 => break,
                Affinity::OneHost => self.all_on_one_of(&hosts)?,
                Affinity::DistinctHosts => self.one_on_each_of(&hosts)?,
                Affinity::Any => self.as_many_as_fit_on(&hosts)?,
            }
        }
        Some(())
    }

    /// Puts all slots on the best host that has room for them, if there is one.
    fn all_on_one_of(&mut self, hosts: &[HostId]) -> Option<()> {
        let enough: Vec<HostId> =
            hosts.iter().copied().filter(|host| self.spare_on(*host) >= self.remaining).collect();
        if enough.is_empty() { Some(()) } else { self.give(self.remaining, &enough) }
    }

    /// Puts one slot on each host, best hosts first.
    fn one_on_each_of(&mut self, hosts: &[HostId]) -> Option<()> {
        // If all hosts are needed, their order doesn't matter.
        let all = self.limits.is_none() && hosts.len() <= self.remaining as usize;
        let ranked = if all { hosts.to_vec() } else { self.cluster.ranked(self.size, hosts) };
        for host in ranked {
            if self.remaining == 0 {
                break;
            }
            if self.spare_on(host) > 0 {
                self.give(1, &[host])?;
            }
        }
        Some(())
    }

    /// Fills hosts, starting with the most room. The last slots go to the best host on which all of them fit.
    fn as_many_as_fit_on(&mut self, hosts: &[HostId]) -> Option<()> {
        let scarcity = |host| self.spare.get(host).map(|spare| spare.scarcity).unwrap_or_default();
        let mut largest: BinaryHeap<(u32, Reverse<(Scarcity, HostId)>)> =
            hosts.iter().map(|host| (self.spare_on(*host), Reverse((scarcity(host), *host)))).collect();
        while self.remaining > 0 {
            let Some((known, Reverse((scarcity, host)))) = largest.pop() else { break };
            let spare = self.spare_on(host);
            if spare < known {
                // Other hosts have used up the limit of its domain.
                largest.push((spare, Reverse((scarcity, host))));
            } else if spare == 0 {
                break;
            } else if spare < self.remaining {
                self.give(spare, &[host])?;
            } else {
                let others = largest.into_iter().map(|(_, Reverse((_, other)))| other);
                let enough: Vec<HostId> =
                    others.filter(|other| self.spare_on(*other) >= self.remaining).chain([host]).collect();
                return self.give(self.remaining, &enough);
            }
        }
        Some(())
    }

    /// Number of slots that can still be added to the host, limited by its room and its domain.
    fn spare_on(&self, host: HostId) -> u32 {
        let free = |spare: &Spare| if self.sparing { spare.beside_guests } else { spare.slots };
        let spare = self.spare.get(&host).map_or(0, free);
        self.limits.as_ref().map_or(spare, |limits| limits.more_on(host).min(spare))
    }

    /// Allocates slots on the best of these hosts. All slots must fit on each host.
    fn give(&mut self, count: u32, on: &[HostId]) -> Option<()> {
        if !self.budget.spend(GIVING + CHOOSING * on.len() as u64) {
            return None;
        }
        let host = self.cluster.place(self.size, count, on)?;
        let spare = self.spare.get_mut(&host)?;
        spare.slots = spare.slots.saturating_sub(count);
        spare.beside_guests = spare.beside_guests.saturating_sub(count);
        spare.left.subtract(count, self.size);
        *self.given.entry(host).or_insert(0) += count;
        self.count(host, count);
        Some(())
    }
}
