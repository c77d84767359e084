//! What the placement core is told: hosts as nodes, and who is on them.

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

/// A guest that so many hosts have not got in the end is left alone.
pub(crate) const DESTINATIONS: usize = 3;
/// A search ends after so many looks, however large the fleet is.
const MOST_LOOKS: u64 = 20_000_000;
/// Looks take less time than the other things that a [`Budget`] counts.
const LOOKS_PER_UNIT: u64 = 2;
/// What it costs to copy one host or guest.
const COPYING: u64 = 100;

/// Virtual CPUs, among the dimensions of a request: virtual CPUs, MiB of memory, GiB of disk.
pub(super) const VCPUS: usize = 0;
/// Memory, among them.
pub(super) const MEMORY: usize = 1;

/// All hosts and guests while the reservations of a lease are served one after the other.
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
    /// What is left beside preemptible guests.
    capacity: [u64; 3],
    /// Guests of others may come.
    receives: bool,
    /// The lease has it.
    taken: bool,
    /// A guest was moved there.
    entered: bool,
}

/// Hosts of a lease whose hunt is planned again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preferred {
    /// All of them: taken rather than others of the same cost.
    pub own: BTreeSet<HostId>,
    /// Those with preemptible guests that were asked to leave for it: taken whatever it costs, so that nobody is asked needlessly.
    pub stopping: BTreeSet<HostId>,
}

/// More than all moves of a hunt together cost.
const ASKED_IN_VAIN: u64 = 1 << 40;

impl Preferred {
    fn surcharge(&self, host: HostId) -> u64 {
        let asks_others = !self.stopping.is_empty() && !self.stopping.contains(&host);
        u64::from(!self.own.contains(&host)) + if asks_others { ASKED_IN_VAIN } else { 0 }
    }
}

/// Whose guests are moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moving<'a> {
    /// Those of others, for a lease.
    Others {
        /// Of this project, whose own guests are not moved.
        project: &'a ProjectId,
        /// It is there already, and its plan does not hold.
        lease: Option<LeaseId>,
    },
    /// Those of this lease, which is over.
    Own(LeaseId),
}

impl Moving<'_> {
    /// The lease, if it is there already.
    fn lease(&self) -> Option<LeaseId> {
        match self {
            Self::Others { lease, .. } => *lease,
            Self::Own(lease) => Some(*lease),
        }
    }

    /// Whether the guest takes any room in the end.
    fn counts(&self, guest: &Guest) -> bool {
        match self {
            Self::Others { lease: Some(lease), .. } => is_foreign(guest, *lease),
            Self::Others { lease: None, .. } | Self::Own(_) => guest.owner != GuestOwner::Preemptible,
        }
    }

    /// Whether the guest may be moved, if it can be.
    fn includes(&self, guest: &Guest) -> bool {
        match self {
            Self::Others { project, .. } => guest.project.as_ref() != Some(*project),
            Self::Own(lease) => guest.owner == GuestOwner::Lease(*lease),
        }
    }
}

impl<'a> Scene<'a> {
    /// What is there; `booked` says which hosts a lease has or will have.
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

    /// A guest that could not be moved to a host is not sent there again; one that could be moved nowhere stays.
    fn respect_failures(&mut self, surroundings: &Surroundings<'_>) {
        for (id, guest) in &mut self.guests {
            guest.avoided = surroundings.failed_destinations(*id).map(|host| NodeId(host.0)).collect();
            guest.movable &= guest.avoided.len() < DESTINATIONS;
        }
    }

    /// Clears as many of the candidates as are wanted, and says which.
    /// Up to `most` are taken if more are empty.
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
            // Whoever has moved once has moved enough.
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

    /// What it costs to go through all hosts and guests, as a copy does and a request.
    pub fn size(&self) -> u64 {
        COPYING * (self.hosts.len() + self.guests.len()) as u64
    }

    /// What was planned so far costs so many points.
    pub fn cost(&self) -> u64 {
        self.cost.points
    }

    /// What was planned so far, and how long it may take.
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
            // What is to be had, but must not receive anybody, has room for nobody else.
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

/// Names as the placement core has them: numbers.
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

    /// A guest on that host. Whoever is moved must not meet whom it excludes, whether that one is moved or not.
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
