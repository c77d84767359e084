//! Removes hosts that a claim can't have in any arrangement of all claims, before the search tries them.
//!
//! At one instant, claims and hosts form a bipartite graph, and an arrangement is a matching in it that gives
//! each claim its number of hosts. A claim has the same hosts during its whole window. So if no matching at
//! some instant gives a host to a claim, the claim loses the host at all instants, which can remove more
//! edges from their graphs. In the end claims have fewer choices, or an instant has no matching and no moves
//! make room, however many. Most requests on which the search would spend all its effort without success are
//! of this kind. Constraint solvers filter "all different" in the same way (Régin 1994).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use jiff::Timestamp;

use super::super::assignment::Way;
use super::board::{Board, Choice, ClaimId, REQUEST};
use super::effort::Effort;
use crate::ids::HostId;
use crate::window::Window;

/// Cost of a choice, including finding the choices of its claim.
const CHOICE: u64 = 20;

/// Remaining choices of claims.
#[derive(Debug, Default)]
pub(super) struct Narrowed(BTreeMap<ClaimId, Rc<[Choice]>>);

impl Narrowed {
    /// `None` if the claim was not examined.
    pub fn choices(&self, id: ClaimId) -> Option<Rc<[Choice]>> {
        self.0.get(&id).cloned()
    }
}

/// Narrows the choices for a request that is served in these ways. `None` if no moves can make room. If the
/// effort runs out, some impossible choices can remain.
pub(super) fn narrow(board: &mut Board<'_>, ways: &[&Way], effort: &mut Effort<'_>) -> Option<Narrowed> {
    let Some((mut members, hosts)) = members(board, ways, effort) else {
        return Some(Narrowed::default());
    };
    let mut instants = instants(&members, hosts.len());
    let mut pending: BTreeSet<usize> = (0..instants.len()).collect();
    while let Some(number) = pending.pop_first() {
        let count = instants[number].present.len() as u64;
        if !effort.spend(count * (count + hosts.len() as u64)) {
            break;
        }
        for changed in instants[number].filter(&mut members)? {
            let others = (0..instants.len()).filter(|other| *other != number);
            pending.extend(others.filter(|other| instants[*other].present.contains(&changed)));
        }
    }
    let mut allowed: BTreeMap<ClaimId, BTreeSet<HostId>> = BTreeMap::new();
    for member in &members {
        allowed.entry(member.claim).or_default().extend(member.hosts.iter().map(|host| hosts[host]));
    }
    let narrowed = allowed.into_iter().map(|(id, allowed)| {
        let choices = board.choices(id);
        (id, choices.iter().filter(|choice| allowed.contains(&choice.host)).cloned().collect())
    });
    Some(Narrowed(narrowed.collect()))
}

/// A claim, or one reservation of the request.
struct Member {
    claim: ClaimId,
    /// Time in which no other claim can use its hosts.
    window: Window,
    need: usize,
    /// Positions of the hosts that it can get or keep.
    hosts: Bits,
}

/// All claims that moves can involve, and all hosts in order. `None` if the effort runs out.
fn members(
    board: &mut Board<'_>,
    ways: &[&Way],
    effort: &mut Effort<'_>,
) -> Option<(Vec<Member>, Vec<HostId>)> {
    let mut reached = BTreeSet::from([REQUEST]);
    let mut queue = vec![REQUEST];
    let mut parts: Vec<(ClaimId, usize, BTreeSet<HostId>)> = Vec::new();
    while let Some(id) = queue.pop() {
        let choices = board.choices(id);
        if !effort.spend(CHOICE * choices.len() as u64) {
            return None;
        }
        let blockers = choices.iter().flat_map(|choice| choice.blockers.iter().copied());
        queue.extend(blockers.filter(|blocker| reached.insert(*blocker)));
        let hosts = choices.iter().map(|choice| choice.host);
        match board.held(id) {
            Some(held) => parts.push((id, held.len(), hosts.chain(held.iter().copied()).collect())),
            None => parts.extend(ways.iter().map(|way| {
                (id, way.need, hosts.clone().filter(|host| way.hosts.contains_key(host)).collect())
            })),
        }
    }
    let all: BTreeSet<HostId> = parts.iter().flat_map(|(.., hosts)| hosts.iter().copied()).collect();
    let all: Vec<HostId> = all.into_iter().collect();
    let members = parts.into_iter().map(|(claim, need, of_part)| {
        let mut hosts = Bits::new(all.len());
        for position in of_part.iter().filter_map(|host| all.binary_search(host).ok()) {
            hosts.insert(position);
        }
        Member { claim, window: board.occupied(claim), need, hosts }
    });
    let members = members.collect();
    Some((members, all))
}

/// A matching at one instant.
struct Instant {
    /// Members whose windows contain the instant.
    present: Vec<usize>,
    /// For each host, the position of its owner in `present`.
    owners: Vec<Option<usize>>,
}

/// The instants that matter: those at which a member is present that has ended by the next instant. Other
/// instants only have a part of the next one's members.
fn instants(members: &[Member], hosts: usize) -> Vec<Instant> {
    let starts: BTreeSet<Timestamp> = members.iter().map(|member| member.window.start()).collect();
    let starts: Vec<Timestamp> = starts.into_iter().collect();
    let mut instants = Vec::new();
    for (number, at) in starts.iter().enumerate() {
        let present = (0..members.len()).filter(|member| members[*member].window.contains(*at));
        let present: Vec<usize> = present.collect();
        let next = starts.get(number + 1);
        let ends = |next: &Timestamp| present.iter().any(|member| members[*member].window.end() <= *next);
        if next.is_none_or(ends) {
            instants.push(Instant { present, owners: vec![None; hosts] });
        }
    }
    instants
}

impl Instant {
    /// Removes hosts that no matching gives to a member, and returns the members that lost any. `None` if
    /// there is no matching.
    fn filter(&mut self, members: &mut [Member]) -> Option<Vec<usize>> {
        let mut hosts: Vec<Bits> = self.present.iter().map(|member| members[*member].hosts.clone()).collect();
        let needs: Vec<usize> = self.present.iter().map(|member| members[*member].need).collect();
        if !self.complete(&hosts, needs) {
            return None;
        }
        let mut free = Bits::new(self.owners.len());
        let mut owned = vec![Bits::new(self.owners.len()); hosts.len()];
        for (host, owner) in self.owners.iter().enumerate() {
            match owner {
                None => free.insert(host),
                Some(owner) => owned[*owner].insert(host),
            }
        }
        // The members that each member can displace, directly or indirectly.
        let mut displaced = vec![Bits::new(hosts.len()); hosts.len()];
        for (displaced, hosts) in displaced.iter_mut().zip(&hosts) {
            for other in (0..owned.len()).filter(|other| hosts.meets(&owned[*other])) {
                displaced.insert(other);
            }
        }
        for through in 0..displaced.len() {
            let further = displaced[through].clone();
            for displaced in displaced.iter_mut().filter(|displaced| displaced.contains(through)) {
                displaced.add(&further);
            }
        }
        // A member can have a host whose owner gets another one in turn: a free one, or one of this member.
        let finds_free = |member: &usize| displaced[*member].iter().any(|other| hosts[other].meets(&free));
        let yields: Vec<usize> = (0..hosts.len()).filter(finds_free).collect();
        let allowed: Vec<Bits> = (0..hosts.len())
            .map(|member| {
                let mut allowed = free.clone();
                let exchange = (0..hosts.len()).filter(|other| displaced[*other].contains(member));
                for other in exchange.chain([member]).chain(yields.iter().copied()) {
                    allowed.add(&owned[other]);
                }
                allowed
            })
            .collect();
        let mut changed = Vec::new();
        for (number, hosts) in hosts.iter_mut().enumerate() {
            if hosts.retain(&allowed[number]) {
                let member = self.present[number];
                members[member].hosts = hosts.clone();
                changed.push(member);
            }
        }
        Some(changed)
    }

    /// Completes the matching of the previous call. False if that is impossible.
    fn complete(&mut self, hosts: &[Bits], mut needs: Vec<usize>) -> bool {
        for (host, owner) in self.owners.iter_mut().enumerate() {
            *owner = owner.filter(|owner| hosts[*owner].contains(host));
            if let Some(owner) = owner {
                needs[*owner] -= 1;
            }
        }
        (0..needs.len()).all(|member| (0..needs[member]).all(|_| self.augment(hosts, member)))
    }

    /// Gives a member one more host, if possible.
    fn augment(&mut self, hosts: &[Bits], member: usize) -> bool {
        // The member that would take each host, and the host that each member would lose.
        let mut takers: Vec<Option<usize>> = vec![None; self.owners.len()];
        let mut lost: Vec<Option<usize>> = vec![None; hosts.len()];
        let mut queue = vec![member];
        while let Some(taker) = queue.pop() {
            for host in hosts[taker].iter() {
                if takers[host].is_some() || self.owners[host] == Some(taker) {
                    continue;
                }
                takers[host] = Some(taker);
                match self.owners[host] {
                    None => {
                        self.shift(host, &takers, &lost);
                        return true;
                    }
                    Some(owner) if owner != member && lost[owner].is_none() => {
                        lost[owner] = Some(host);
                        queue.push(owner);
                    }
                    Some(_) => {}
                }
            }
        }
        false
    }

    /// Executes the chain of takeovers, from the free host back to the first one.
    fn shift(&mut self, free: usize, takers: &[Option<usize>], lost: &[Option<usize>]) {
        let mut next = Some(free);
        while let Some(host) = next
            && let Some(taker) = takers[host]
        {
            self.owners[host] = Some(taker);
            next = lost[taker];
        }
    }
}

/// A bit set of small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] & (1 << (number % 64)) != 0
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    fn add(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// Keeps only numbers that are also in `other`. True if any were removed.
    fn retain(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= other;
        }
        *self != before
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..64 * self.0.len()).filter(|number| self.contains(*number))
    }
}
