//! Early detection of requests that no moves can serve, because some instant has too few hosts for all
//! leases.
//!
//! At any instant, leases and hosts form a bipartite graph, and the current allocations are a matching in it.
//! If the matching can't be augmented for the request, no moves make room, however many. This check is much
//! cheaper than trying moves, and where hosts are scarce it detects most refusals.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::super::assignment::Way;
use super::board::{Board, Choice, ClaimId, REQUEST};
use super::effort::Effort;
use super::search::CHOICE;
use crate::ids::HostId;

/// Whether at some instant a reservation of the request can't have its hosts, however leases move.
pub(super) fn too_few_hosts(board: &mut Board<'_>, ways: &[&Way], effort: &mut Effort<'_>) -> bool {
    let blockers: BTreeSet<ClaimId> =
        board.choices(REQUEST).iter().flat_map(|choice| choice.blockers.iter().copied()).collect();
    let mut instants: BTreeSet<Timestamp> =
        blockers.into_iter().map(|id| board.occupied(id).start()).collect();
    instants.insert(board.occupied(REQUEST).start());
    instants.retain(|at| board.occupied(REQUEST).contains(*at));
    instants.into_iter().any(|at| ways.iter().any(|way| !Instant::new(at).serves(board, way, effort)))
}

/// The owners of hosts at one instant.
struct Instant {
    at: Timestamp,
    /// New owners of hosts that changed hands during the search.
    taken: BTreeMap<HostId, ClaimId>,
}

impl Instant {
    fn new(at: Timestamp) -> Self {
        Self { at, taken: BTreeMap::new() }
    }

    /// Whether the request can have as many hosts as it needs. Also true if the effort runs out.
    fn serves(mut self, board: &mut Board<'_>, way: &Way, effort: &mut Effort<'_>) -> bool {
        let choices = board.choices(REQUEST);
        if !effort.spend(CHOICE * choices.len() as u64) {
            return true;
        }
        let is_free = |choice: &&Choice| {
            let is_there = |id: &ClaimId| board.occupied(*id).contains(self.at);
            way.hosts.contains_key(&choice.host) && !choice.blockers.iter().any(is_there)
        };
        let free = choices.iter().filter(is_free).take(way.need).map(|choice| (choice.host, REQUEST));
        self.taken = free.collect();
        (self.taken.len()..way.need).all(|_| self.augment(board, way, effort))
    }

    /// Gives the request one more host, if possible. Also true if the effort runs out.
    fn augment(&mut self, board: &mut Board<'_>, way: &Way, effort: &mut Effort<'_>) -> bool {
        // The claim that would take each host, and the host that each claim would lose.
        let mut takers: BTreeMap<HostId, ClaimId> = BTreeMap::new();
        let mut lost: BTreeMap<ClaimId, HostId> = BTreeMap::new();
        let mut queue = VecDeque::from([REQUEST]);
        while let Some(claim) = queue.pop_front() {
            let choices = board.choices(claim);
            if !effort.spend(CHOICE * choices.len() as u64) {
                return true;
            }
            let is_there = |id: &&ClaimId| board.occupied(**id).contains(self.at);
            // A claim can also return to a host that another claim has taken over.
            let held = board.held(claim).into_iter().flatten().filter(|host| self.taken.contains_key(host));
            let choices = choices.iter().map(|choice| (choice.host, choice.blockers.as_slice()));
            for (host, blockers) in choices.chain(held.map(|host| (*host, [].as_slice()))) {
                let is_wanted = claim != REQUEST || way.hosts.contains_key(&host);
                if !is_wanted || takers.contains_key(&host) {
                    continue;
                }
                let owner = self.taken.get(&host).or_else(|| blockers.iter().find(is_there));
                if owner == Some(&claim) {
                    continue;
                }
                takers.insert(host, claim);
                let Some(owner) = owner else {
                    self.shift(host, &takers, &lost);
                    return true;
                };
                if *owner != REQUEST && !lost.contains_key(owner) {
                    lost.insert(*owner, host);
                    queue.push_back(*owner);
                }
            }
        }
        false
    }

    /// Executes the chain of takeovers, from the free host back to the first host that the request takes.
    fn shift(&mut self, free: HostId, takers: &BTreeMap<HostId, ClaimId>, lost: &BTreeMap<ClaimId, HostId>) {
        let mut next = Some(free);
        while let Some(host) = next
            && let Some(taker) = takers.get(&host)
        {
            self.taken.insert(host, *taker);
            next = lost.get(taker).copied();
        }
    }
}
