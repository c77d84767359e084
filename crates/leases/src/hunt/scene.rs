//! Input for the placement core: hosts as nodes, with their guests.

use std::collections::{BTreeMap, BTreeSet};

use placement::clear::{self, ExclusionGroup, Label, NPlusOne, Node, NodeId, Request, Role};

use super::hunting::Hunting;
use super::record::{Cost, Move};
use super::surroundings::{Surroundings, is_foreign, receives};
use crate::host::{Health, Host, Inventory};
use crate::ids::{GuestId, HostId, LeaseId};
use crate::plan::{Guest, GuestOwner, GuestSize};
use crate::project::ProjectId;
use crate::work::Budget;

/// Number of failed destinations after which a guest isn't moved any more.
pub(crate) const DESTINATIONS: usize = 3;
/// Maximum effort of a search, in looks, whatever the size of the fleet.
const MOST_LOOKS: u64 = 20_000_000;
/// Looks per unit of [`Budget`]. A look takes less time than other operations that the budget counts.
const LOOKS_PER_UNIT: u64 = 2;
/// Cost of copying one host or guest, in units of [`Budget`].
const COPYING: u64 = 100;

/// Index of virtual CPUs in the dimensions of a request: virtual CPUs, MiB of memory, GiB of disk.
pub(super) const VCPUS: usize = 0;
/// Index of memory.
pub(super) const MEMORY: usize = 1;

/// State of all hosts and guests while the reservations of a lease are planned one after another.
#[derive(Clone)]
pub(crate) struct Scene<'a> {
    hosts: BTreeMap<HostId, Spot<'a>>,
    guests: BTreeMap<GuestId, clear::Guest>,
    hunting: &'a Hunting,
    moves: Vec<Move>,
    cost: Cost,
}

#[derive(Clone)]
struct Spot<'a> {
    host: &'a Host,
    labels: BTreeSet<Label>,
    /// Capacity without the part used by preemptible guests.
    capacity: [u64; 3],
    /// The host can receive guests of other tenants.
    receives: bool,
    /// Allocated to the lease.
    taken: bool,
    /// A guest moves there.
    entered: bool,
}

/// Hosts to prefer when the hunt of a lease is replanned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preferred {
    /// All hosts of the lease. They are chosen over others of the same cost.
    pub own: BTreeSet<HostId>,
    /// Hosts whose preemptible guests have been asked to leave for this lease. They are chosen whatever the
    /// cost, because their guests are leaving anyway.
    pub stopping: BTreeSet<HostId>,
}

/// Exceeds the cost of all moves of a hunt together.
const ASKED_IN_VAIN: u64 = 1 << 40;

impl Preferred {
    fn surcharge(&self, host: HostId) -> u64 {
        let asks_others = !self.stopping.is_empty() && !self.stopping.contains(&host);
        u64::from(!self.own.contains(&host)) + if asks_others { ASKED_IN_VAIN } else { 0 }
    }
}

/// Guests to move, and the lease they are moved for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moving<'a> {
    /// Guests of other tenants, which must leave for a lease.
    Others {
        /// Project of the lease. Its own guests aren't moved.
        project: &'a ProjectId,
        /// The lease, if it exists already and its plan no longer works.
        lease: Option<LeaseId>,
    },
    /// Guests of this lease, which has ended.
    Own(LeaseId),
}

impl Moving<'_> {
    /// The lease, if it exists already.
    fn lease(&self) -> Option<LeaseId> {
        match self {
            Self::Others { lease, .. } => *lease,
            Self::Own(lease) => Some(*lease),
        }
    }

    /// Whether the guest occupies capacity in the plan. Preemptible guests don't, and neither do guests of
    /// the lease that hunts.
    fn counts(&self, guest: &Guest) -> bool {
        match self {
            Self::Others { lease: Some(lease), .. } => is_foreign(guest, *lease),
            Self::Others { lease: None, .. } | Self::Own(_) => guest.owner != GuestOwner::Preemptible,
        }
    }

    /// Whether the plan is allowed to move the guest, if it can be moved at all.
    fn includes(&self, guest: &Guest) -> bool {
        match self {
            Self::Others { project, .. } => guest.project.as_ref() != Some(*project),
            Self::Own(lease) => guest.owner == GuestOwner::Lease(*lease),
        }
    }
}

impl<'a> Scene<'a> {
    /// `booked` tells whether a host is or will be leased.
    pub fn new(
        hunting: &'a Hunting,
        inventory: &'a Inventory,
        surroundings: &Surroundings<'_>,
        whose: Moving<'_>,
        booked: impl Fn(HostId) -> bool,
    ) -> Self {
        let mut scene = Self {
            hosts: BTreeMap::new(),
            guests: BTreeMap::new(),
            hunting,
            moves: Vec::new(),
            cost: Cost::default(),
        };
        let mut names = Names::default();
        for host in inventory.hosts() {
            let Some(observed) = surroundings.observed.hosts.get(&host.id) else { continue };
            let mut capacity = amounts(host.vcpus, host.memory_mib, host.disk_gib);
            for guest in observed.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible) {
                let used = size(guest.size);
                capacity.iter_mut().zip(used).for_each(|(left, used)| *left = left.saturating_sub(used));
            }
            for guest in &observed.guests {
                if whose.counts(guest) {
                    let entered = names.guest(guest, host.id, whose);
                    scene.guests.entry(guest.id).or_insert(entered);
                }
            }
            let works = host.health == Health::Up && host.power.is_on();
            let receives = works && receives(Some(observed)) && !booked(host.id);
            let (taken, entered, labels) = (false, false, BTreeSet::new());
            scene.hosts.insert(host.id, Spot { host, labels, capacity, receives, taken, entered });
        }
        for (id, (to, guest)) in surroundings.incoming(|lease| Some(lease.id) != whose.lease()) {
            let Some(spot) = scene.hosts.get_mut(&to) else { continue };
            spot.entered = true;
            let there = clear::Guest { movable: false, ..names.guest(guest, to, whose) };
            scene.guests.insert(id, there);
        }
        scene.label_hosts(&mut names);
        scene.respect_failures(surroundings);
        scene
    }

    fn label_hosts(&mut self, names: &mut Names) {
        for spot in self.hosts.values_mut() {
            let required = spot.host.traits.iter().filter_map(|name| names.traits.get(name));
            spot.labels = required.copied().collect();
        }
    }

    /// A guest isn't sent again to a host where its move failed. After [`DESTINATIONS`] failed hosts it
    /// stays.
    fn respect_failures(&mut self, surroundings: &Surroundings<'_>) {
        for (id, guest) in &mut self.guests {
            guest.avoided = surroundings.failed_destinations(*id).map(|host| NodeId(host.0)).collect();
            guest.movable &= guest.avoided.len() < DESTINATIONS;
        }
    }

    /// Clears `wanted` of the candidates and returns them. Takes up to `most` if further candidates are
    /// empty.
    pub fn clear(
        &mut self,
        candidates: &BTreeSet<HostId>,
        (wanted, most): (usize, usize),
        preferred: &Preferred,
        budget: &Budget,
    ) -> Result<BTreeSet<HostId>, clear::Refusal> {
        if !budget.spend(self.size()) {
            return Err(clear::Refusal::SearchExhausted { wanted, found: 0 });
        }
        let request = self.request(candidates, wanted, preferred);
        let (effort, mut looks) = (clear::Effort { most: MOST_LOOKS, ..clear::Effort::default() }, 0);
        let plan = clear::plan_counting(&request, effort, &mut looks);
        budget.charge(looks / LOOKS_PER_UNIT);
        let plan = plan?;
        debug_assert_eq!(clear::check(&request, &plan), Ok(()));
        for mov in &plan.moves {
            let (guest, from, to) = (GuestId(mov.guest.0), HostId(mov.from.0), HostId(mov.to.0));
            self.moves.push(Move { guest, from, to });
            // A guest moves at most once.
            if let Some(moved) = self.guests.get_mut(&guest) {
                (moved.node, moved.movable) = (mov.to, false);
            }
            if let Some(spot) = self.hosts.get_mut(&to) {
                spot.entered = true;
            }
        }
        let cost = &mut self.cost;
        cost.memory_mib = cost.memory_mib.saturating_add(plan.cost.memory_mib);
        cost.disk_gib = cost.disk_gib.saturating_add(plan.cost.disk_gib);
        cost.downtime_ms = cost.downtime_ms.saturating_add(plan.cost.downtime_ms);
        cost.points = cost.points.saturating_add(plan.cost.weighted - plan.cost.surcharge);
        let mut taken: BTreeSet<HostId> = plan.cleared.iter().map(|node| HostId(node.0)).collect();
        let occupied: BTreeSet<HostId> = self.guests.values().map(|guest| HostId(guest.node.0)).collect();
        let idle = |id: &&HostId| {
            self.hosts.get(id).is_some_and(|spot| !spot.taken && !spot.entered) && !occupied.contains(*id)
        };
        let more: Vec<HostId> =
            candidates.iter().filter(|id| !taken.contains(id)).filter(idle).copied().collect();
        taken.extend(more.into_iter().take(most.saturating_sub(wanted)));
        for host in &taken {
            if let Some(spot) = self.hosts.get_mut(host) {
                spot.taken = true;
            }
        }
        Ok(taken)
    }

    /// Cost of visiting all hosts and guests once, in units of [`Budget`]. A copy and a request each cost
    /// this much.
    pub fn size(&self) -> u64 {
        COPYING * (self.hosts.len() + self.guests.len()) as u64
    }

    /// Points of the moves planned so far.
    pub fn cost(&self) -> u64 {
        self.cost.points
    }

    /// The moves planned so far as a hunt.
    pub fn hunt(self) -> super::Hunt {
        let allowance = self.hunting.allowance(&self.cost);
        super::Hunt { moves: self.moves, cost: self.cost, allowance }
    }

    fn request(&self, candidates: &BTreeSet<HostId>, wanted: usize, preferred: &Preferred) -> Request {
        let mut used: BTreeMap<NodeId, [u64; 3]> = BTreeMap::new();
        for guest in self.guests.values() {
            let used = used.entry(guest.node).or_default();
            used.iter_mut().zip(&guest.size).for_each(|(used, more)| *used = used.saturating_add(*more));
        }
        let node = |(id, spot): (&HostId, &Spot<'_>)| {
            let role = match (spot.taken, candidates.contains(id), spot.receives) {
                (false, true, _) => Role::Candidate,
                (false, false, true) => Role::Receiver,
                _ => Role::Closed,
            };
            let id = NodeId(id.0);
            // A candidate that can't receive guests gets no capacity beyond its current use.
            let full = || used.get(&id).copied().unwrap_or_default();
            let capacity = if spot.receives { spot.capacity } else { full() };
            let surcharge = preferred.surcharge(HostId(id.0));
            Node { labels: spot.labels.clone(), surcharge, ..Node::new(id, role, capacity.to_vec()) }
        };
        let nodes: Vec<Node> = self.hosts.iter().map(node).collect();
        let open = nodes.iter().filter(|node| node.role != Role::Closed).map(|node| node.id);
        let n_plus_one =
            self.hunting.n_plus_one.then(|| NPlusOne { nodes: open.collect(), dimensions: vec![MEMORY] });
        let guests = self.guests.values().filter(|guest| self.hosts.contains_key(&HostId(guest.node.0)));
        Request {
            guests: guests.cloned().collect(),
            nodes,
            wanted,
            n_plus_one,
            weights: self.hunting.weights,
        }
    }
}

/// Maps names to the numbers that the placement core uses.
#[derive(Default)]
struct Names {
    traits: BTreeMap<String, Label>,
    groups: BTreeMap<String, ExclusionGroup>,
    labels: u32,
}

impl Names {
    fn fresh(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels)
    }

    /// The guest on host `on`. Guests that stay have exclusion groups too, because a moved guest must not
    /// join a host with a guest it excludes.
    fn guest(&mut self, guest: &Guest, on: HostId, whose: Moving<'_>) -> clear::Guest {
        let new = clear::Guest::new(clear::GuestId(guest.id.0), NodeId(on.0), size(guest.size).to_vec());
        let Some(mobility) = &guest.mobility else { return clear::Guest { movable: false, ..new } };
        clear::Guest {
            movable: whose.includes(guest) && guest.moving_to.is_none(),
            memory_mib: guest.size.memory_mib.into(),
            disk_gib: mobility.copied_disk_gib.into(),
            downtime_ms: mobility.downtime_ms.into(),
            priority: mobility.priority.into(),
            requires: mobility.requires.iter().map(|name| self.label(name)).collect(),
            exclusion: mobility.apart.iter().map(|name| self.group(name)).collect(),
            ..new
        }
    }

    fn label(&mut self, name: &str) -> Label {
        if let Some(known) = self.traits.get(name) {
            return *known;
        }
        let new = self.fresh();
        self.traits.insert(name.to_owned(), new);
        new
    }

    fn group(&mut self, name: &str) -> ExclusionGroup {
        let next = ExclusionGroup(self.groups.len() as u64);
        *self.groups.entry(name.to_owned()).or_insert(next)
    }
}

fn size(size: GuestSize) -> [u64; 3] {
    amounts(size.vcpus, size.memory_mib, size.disk_gib)
}

fn amounts(vcpus: u32, memory_mib: u32, disk_gib: u32) -> [u64; 3] {
    [vcpus.into(), memory_mib.into(), disk_gib.into()]
}
