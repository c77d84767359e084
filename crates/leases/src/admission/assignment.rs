//! Assigns hosts to all reservations of a lease at once, so that no reservation takes a host that another one
//! needs.
//!
//! Reservations are first served [one after another](super::order), which nearly always works. If that fails,
//! whole hosts are assigned by maximum flow, which finds an assignment if one exists. Among several
//! assignments it prefers to leave hosts with the most room to the lease's reservations of instances.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Search, Taken};
use crate::hints::Location;
use crate::ids::HostId;
use crate::lease::Allocation;
use crate::terms::{Affinity, HostsTerms, ReservationTerms, SlotsTerms};

/// Cost of one step of the flow's search.
const STEP: u64 = 10;
/// Maximum number of combinations of [`Way`]s to try.
const COMBINATIONS: usize = 256;
/// Maximum number of orders of instance reservations to try.
const ORDERS: usize = 24;

/// A reservation and its current allocation, if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub terms: &'a ReservationTerms,
    pub held: Option<&'a Allocation>,
}

impl Part<'_> {
    fn held_hosts(&self) -> BTreeSet<HostId> {
        self.held.map(Allocation::hosts).unwrap_or_default()
    }
}

/// One way to serve a reservation of whole hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The hosts to choose from, each with its failure domain or place.
    pub hosts: BTreeMap<HostId, usize>,
    /// Maximum number of hosts in one domain or place.
    pub in_one: usize,
    /// Number of hosts needed.
    pub need: usize,
}

impl Search<'_> {
    /// One allocation per reservation of a lease. `None` if no assignment was found, or if the lease has a
    /// single reservation.
    pub(super) fn give_together(&mut self, parts: &[Part<'_>]) -> Option<Vec<Allocation>> {
        if parts.len() < 2 {
            return None;
        }
        self.taken = Taken::default();
        let mut ways = Vec::new();
        for part in parts {
            if let ReservationTerms::Hosts(asked) = part.terms {
                let (free, _) = self.free_hosts(asked);
                ways.push(self.ways(free.into_iter().map(|fit| fit.host), asked, &part.held_hosts()));
            }
        }
        let hosts = self.in_order(&ways, parts);
        for chosen in combinations(&ways).take(COMBINATIONS) {
            let Some(assigned) = self.assign(&hosts, &chosen) else { continue };
            for order in orders(parts).take(ORDERS) {
                self.taken = Taken::default();
                if let Some(given) = self.give_assigned(parts, &assigned, &order) {
                    return Some(given);
                }
            }
        }
        None
    }

    /// Hosts for each growing reservation, for each combination of its [ways](Self::ways_to_grow). Hosts with
    /// the least room for instance reservations are used first.
    pub(super) fn assignments<'w>(
        &'w self,
        ways: &'w [Vec<Way>],
        parts: &[Part<'_>],
    ) -> impl Iterator<Item = Vec<BTreeSet<HostId>>> + 'w {
        let mut hosts = self.in_order(ways, parts);
        let held: BTreeSet<HostId> = parts.iter().flat_map(Part::held_hosts).collect();
        // Held hosts come first. Only their own reservation can use them, so they stay with it.
        hosts.sort_by_key(|host| !held.contains(host));
        combinations(ways).take(COMBINATIONS).filter_map(move |chosen| self.assign(&hosts, &chosen))
    }

    /// Ways to serve a started reservation with its own hosts and `hosts`. If it must survive a failure, the
    /// ways include its own hosts, because they count in their failure domains.
    pub(super) fn ways_to_grow(
        &self,
        hosts: impl IntoIterator<Item = HostId>,
        asked: &HostsTerms,
        held: &BTreeSet<HostId>,
    ) -> Vec<Way> {
        let min = asked.min() as usize;
        let Some(domain) = &asked.properties.survives else {
            let hosts = numbered(hosts, |_| ());
            return vec![Way { hosts, in_one: usize::MAX, need: min.saturating_sub(held.len()) }];
        };
        let hosts = numbered(held.iter().copied().chain(hosts), |host| self.domain(host, domain));
        let held_with = |host| held.iter().filter(|other| hosts.get(other) == hosts.get(host)).count();
        let most = held.iter().map(held_with).max().unwrap_or(0);
        let limits = most.max(1)..=min.max(most);
        let way = |in_one| Way { hosts: hosts.clone(), in_one, need: held.len().max(min + in_one) };
        limits.map(way).filter(|way| way.need <= way.hosts.len()).collect()
    }

    /// Ways to serve a reservation with `hosts`: one per kind if all hosts must be alike, and one per limit
    /// on hosts in the same failure domain if the reservation must survive a failure.
    pub(super) fn ways(
        &self,
        hosts: impl IntoIterator<Item = HostId>,
        asked: &HostsTerms,
        held: &BTreeSet<HostId>,
    ) -> Vec<Way> {
        let min = asked.min() as usize;
        let mut kinds = self.kinds(hosts, asked);
        // Kinds with hosts that the reservation already holds come first.
        kinds.sort_by_key(|hosts| std::cmp::Reverse(hosts.intersection(held).count()));
        let mut ways = Vec::new();
        for hosts in kinds {
            let apart = self.location() == Some(Location::Different);
            let (hosts, limits) = match &asked.properties.survives {
                _ if apart => (numbered(hosts, |host| self.place(host)), vec![1]),
                None => (numbered(hosts, |_| ()), vec![usize::MAX]),
                Some(domain) => (numbered(hosts, |host| self.domain(host, domain)), (1..=min).collect()),
            };
            for in_one in limits {
                let reserve = if asked.properties.survives.is_some() { in_one } else { 0 };
                let need = min + reserve;
                if hosts.len() >= need {
                    ways.push(Way { hosts: hosts.clone(), in_one, need });
                }
            }
        }
        ways
    }

    /// All hosts named in any way: least room for the lease's instance reservations first, then by the usual
    /// ranking.
    fn in_order(&self, ways: &[Vec<Way>], parts: &[Part<'_>]) -> Vec<HostId> {
        let named: BTreeSet<HostId> =
            ways.iter().flatten().flat_map(|way| way.hosts.keys().copied()).collect();
        let held: BTreeSet<HostId> = parts.iter().flat_map(Part::held_hosts).collect();
        let future = self.future();
        let fit = |host: HostId| self.admission.calendar.fit(host, &self.window, &future, self.own);
        let fits: Vec<_> = named.into_iter().filter_map(fit).collect();
        let mut hosts: Vec<HostId> = self.ranked(&fits, &held).collect();
        let asked: Vec<SlotsTerms<'_>> = parts.iter().filter_map(|part| part.terms.slots()).collect();
        let mut room: BTreeMap<HostId, u128> = BTreeMap::new();
        for slots in &asked {
            for (host, count) in self.slots_by_host(slots) {
                let amount = u128::from(slots.amount.max(1));
                let count = u128::from(count);
                let worth = match slots.affinity {
                    Affinity::OneHost => u128::from(count >= amount) * amount,
                    Affinity::Any | Affinity::DistinctHosts => count,
                };
                // Relative to the amount, so that room for several reservations adds up.
                let scale = if asked.len() == 1 { amount } else { 1 << 32 };
                *room.entry(host).or_insert(0) += worth * scale / amount;
            }
        }
        hosts.sort_by_key(|host| room.get(host).copied().unwrap_or(0));
        hosts
    }

    /// Hosts for each reservation of whole hosts, in the given ways. `None` if there are too few hosts or the
    /// budget is used up.
    ///
    /// A host that is assigned stays assigned, so hosts early in the list are used before later ones.
    fn assign(&self, hosts: &[HostId], ways: &[&Way]) -> Option<Vec<BTreeSet<HostId>>> {
        let mut flow = Flow::new(ways);
        for host in hosts {
            if flow.lacks() == 0 {
                break;
            }
            let steps = flow.add(*host);
            if !self.admission.budget.spend(STEP * steps) {
                return None;
            }
        }
        (flow.lacks() == 0).then(|| flow.parts())
    }

    /// Completes the allocations after whole hosts were assigned: instance reservations in the given order,
    /// then addresses. Then reservations of whole hosts are filled up to their maximum.
    fn give_assigned(
        &mut self,
        parts: &[Part<'_>],
        assigned: &[BTreeSet<HostId>],
        order: &[usize],
    ) -> Option<Vec<Allocation>> {
        let mut given: Vec<Option<Allocation>> = vec![None; parts.len()];
        self.taken.whole.extend(assigned.iter().flatten());
        for (rank, position) in order.iter().enumerate() {
            let asked = parts[*position].terms.slots()?;
            let held = match parts[*position].held {
                Some(Allocation::Slots(held)) => held.clone(),
                _ => BTreeMap::new(),
            };
            // Try first without the hosts that later reservations could use.
            let others = order[rank + 1..].iter().filter_map(|other| parts[*other].terms.slots());
            let mut hidden: BTreeSet<HostId> =
                others.flat_map(|other| self.slots_by_host(&other).into_keys()).collect();
            hidden.retain(|host| !self.taken(*host));
            self.taken.whole.extend(&hidden);
            let apart = self.slots(*position, &asked, &held, false);
            self.taken.whole.retain(|host| !hidden.contains(host));
            let slots = apart.or_else(|_| self.slots(*position, &asked, &held, false)).ok()?;
            let allocation = Allocation::Slots(slots);
            self.take(parts[*position].terms, &allocation);
            given[*position] = Some(allocation);
        }
        for (position, part) in parts.iter().enumerate() {
            if let ReservationTerms::FloatingIps(asked) = part.terms {
                let held = match part.held {
                    Some(Allocation::FloatingIps(held)) => held.clone(),
                    _ => BTreeSet::new(),
                };
                let allocation = Allocation::FloatingIps(self.floating_ips(position, asked, &held).ok()?);
                self.take(part.terms, &allocation);
                given[position] = Some(allocation);
            }
        }
        let mut assigned = assigned.iter();
        for (position, part) in parts.iter().enumerate() {
            if let ReservationTerms::Hosts(asked) = part.terms {
                let hosts = self.filled_up(asked, assigned.next()?, &part.held_hosts());
                (self.counting(hosts.iter().copied(), asked) >= asked.min() as usize).then_some(())?;
                let allocation = Allocation::Hosts(hosts);
                self.take(part.terms, &allocation);
                given[position] = Some(allocation);
            }
        }
        given.into_iter().collect()
    }

    /// Adds free hosts to `hosts` up to the reservation's maximum.
    fn filled_up(
        &self,
        asked: &HostsTerms,
        hosts: &BTreeSet<HostId>,
        held: &BTreeSet<HostId>,
    ) -> BTreeSet<HostId> {
        let (mut free, _) = self.free_hosts(asked);
        // Avoided and doubtful hosts only count toward the minimum: having more hosts is not worth waiting
        // for.
        free.retain(|fit| held.contains(&fit.host) || !self.avoids(fit.host));
        let free = self.like(free, asked, hosts);
        self.joined(hosts, &free, asked.max() as usize, asked, held)
    }
}

/// Assignment of hosts to reservations, built one host at a time by augmenting paths.
pub(super) struct Flow<'a> {
    ways: &'a [&'a Way],
    part_of: BTreeMap<HostId, usize>,
}

impl<'a> Flow<'a> {
    pub fn new(ways: &'a [&'a Way]) -> Self {
        Self { ways, part_of: BTreeMap::new() }
    }

    /// Number of hosts still to be assigned.
    pub fn lacks(&self) -> usize {
        self.ways.iter().map(|way| way.need).sum::<usize>() - self.part_of.len()
    }

    /// Assigns one more host if possible, and moves other hosts to other reservations if that helps. Returns
    /// the number of hosts visited.
    pub fn add(&mut self, host: HostId) -> u64 {
        let mut steps = 0;
        let mut queue = VecDeque::from([host]);
        // For each displaced host, the host that takes its place.
        let mut instead: BTreeMap<HostId, HostId> = BTreeMap::new();
        while let Some(current) = queue.pop_front() {
            for (part, way) in self.ways.iter().enumerate() {
                let Some(domain) = way.hosts.get(&current) else { continue };
                if self.part_of.get(&current) == Some(&part) {
                    continue;
                }
                let members = || self.part_of.iter().filter(|(_, of)| **of == part).map(|(host, _)| *host);
                let beside = |other: &HostId| way.hosts.get(other) == Some(domain);
                let full = members().filter(beside).count() >= way.in_one;
                steps += 1 + self.part_of.len() as u64;
                if !full && members().count() < way.need {
                    self.shift(current, part, &instead);
                    return steps;
                }
                for other in members().filter(|other| !full || beside(other)) {
                    if other != host && !instead.contains_key(&other) {
                        instead.insert(other, current);
                        queue.push_back(other);
                    }
                }
            }
        }
        steps
    }

    /// Assigns `host` to `part`, and each displaced host to the place it can take instead.
    fn shift(&mut self, host: HostId, part: usize, instead: &BTreeMap<HostId, HostId>) {
        let (mut host, mut part) = (host, part);
        while let Some(left) = self.part_of.insert(host, part)
            && let Some(next) = instead.get(&host)
        {
            (host, part) = (*next, left);
        }
    }

    fn parts(&self) -> Vec<BTreeSet<HostId>> {
        let of = |part| self.part_of.iter().filter(move |(_, of)| **of == part).map(|(host, _)| *host);
        (0..self.ways.len()).map(|part| of(part).collect()).collect()
    }
}

/// Numbers the domains, equal for hosts of the same one.
fn numbered<D: Ord>(
    hosts: impl IntoIterator<Item = HostId>,
    domain: impl Fn(HostId) -> D,
) -> BTreeMap<HostId, usize> {
    let mut numbers = BTreeMap::new();
    let number = |host| {
        let next = numbers.len();
        (host, *numbers.entry(domain(host)).or_insert(next))
    };
    hosts.into_iter().map(number).collect()
}

/// All combinations of one way per reservation.
pub(super) fn combinations(ways: &[Vec<Way>]) -> impl Iterator<Item = Vec<&Way>> {
    let count = ways.iter().map(Vec::len).fold(1_usize, usize::saturating_mul);
    (0..count).map(move |mut number| {
        let mut chosen = Vec::with_capacity(ways.len());
        for ways in ways {
            chosen.push(&ways[number % ways.len()]);
            number /= ways.len();
        }
        chosen
    })
}

/// All orders of the instance reservations.
fn orders(parts: &[Part<'_>]) -> impl Iterator<Item = Vec<usize>> {
    let slots: Vec<usize> =
        (0..parts.len()).filter(|position| parts[*position].terms.slots().is_some()).collect();
    let count = (1..=slots.len()).fold(1_usize, usize::saturating_mul);
    (0..count).map(move |mut number| {
        let mut rest = slots.clone();
        let mut order = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            order.push(rest.remove(number % rest.len()));
            number /= rest.len() + 1;
        }
        order
    })
}
