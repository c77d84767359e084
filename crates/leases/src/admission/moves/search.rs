//! Search for the fewest moves that make room.
//!
//! A state consists of the hosts that claims have taken over so far. Claims that left these hosts need
//! others: free hosts, or hosts that they take over in turn. So moves form chains, and a lease that displaces
//! two shorter ones starts two chains. The search tries all states with one move, then all with two, and so
//! on (iterative deepening).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::super::assignment::{Flow, Way};
use super::board::{Board, Choice, ClaimId, REQUEST};
use super::effort::Effort;
use super::narrowing::Narrowed;
use crate::ids::HostId;

/// Cost of a state, and of a look at a choice.
const STATE: u64 = 100;
pub(super) const CHOICE: u64 = 3;

/// A claim and one of its hosts.
pub(super) type Place = (ClaimId, HostId);

/// Moves that make room.
#[derive(Clone, Debug, Default)]
pub(super) struct Moves {
    /// Places that claims give up. Each is one move.
    pub left: BTreeSet<Place>,
    /// New places of the claims that gave some up.
    pub placed: Vec<Place>,
}

/// The hosts that were taken over so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    left: BTreeSet<Place>,
    taken: BTreeSet<(HostId, ClaimId)>,
    /// Number of hosts that each displaced claim still needs.
    needs: BTreeMap<ClaimId, usize>,
}

/// A host that a claim could take over. The next state is built only when the takeover is tried: there are
/// many takeovers, and a state is large.
#[derive(Clone, Copy, Debug)]
struct Takeover {
    by: ClaimId,
    /// Index of the host in the claim's choices.
    index: usize,
    /// Number of moves that it takes.
    moves: usize,
    /// Whether its blockers also give up the hosts that depend on this one.
    together: bool,
}

/// The search for one combination of ways to serve the request.
pub(super) struct Mover<'b, 'a> {
    pub board: &'b mut Board<'a>,
    pub ways: &'b [&'b Way],
    pub effort: &'b mut Effort<'a>,
    narrowed: Option<&'b Narrowed>,
    tried: BTreeSet<State>,
}

impl<'b, 'a> Mover<'b, 'a> {
    pub fn new(
        board: &'b mut Board<'a>,
        ways: &'b [&'b Way],
        narrowed: Option<&'b Narrowed>,
        effort: &'b mut Effort<'a>,
    ) -> Self {
        Self { board, ways, effort, narrowed, tried: BTreeSet::new() }
    }

    /// Number of hosts that the request lacks before any moves, a lower bound for the number of moves. `None`
    /// if the effort runs out.
    pub fn lacks(&mut self) -> Option<usize> {
        let free = self.free(&State::default(), REQUEST)?;
        Some(self.lack(&State::default(), REQUEST, &free))
    }

    /// Finds at most this number of moves that make room.
    pub fn with(mut self, most: usize) -> Option<Moves> {
        self.go_on(&State::default(), most)
    }

    fn go_on(&mut self, state: &State, left: usize) -> Option<Moves> {
        if !self.effort.spend(STATE * (1 + state.taken.len() as u64)) || !self.tried.insert(state.clone()) {
            return None;
        }
        let mut claims: Vec<ClaimId> = vec![REQUEST];
        claims.extend(state.needs.keys());
        let mut free: BTreeMap<ClaimId, Vec<HostId>> = BTreeMap::new();
        let mut lacking = None;
        for id in claims {
            let hosts = self.free(state, id)?;
            let lack = self.lack(state, id, &hosts);
            if lack > left {
                return None;
            }
            if lack > 0 {
                lacking = lacking.or(Some(id));
            }
            free.insert(id, hosts);
        }
        if lacking.is_none()
            && let Some(placed) = self.complete(state, &free)
        {
            let taken = state.taken.iter().filter(|(_, id)| *id != REQUEST).map(|(host, id)| (*id, *host));
            return Some(Moves { left: state.left.clone(), placed: taken.chain(placed).collect() });
        }
        if left == 0 {
            return None;
        }
        // A claim with too few free hosts has to take one over. If all have enough, any claim could.
        let takers: Vec<ClaimId> = lacking.map_or_else(|| free.into_keys().collect(), |id| vec![id]);
        for Takeover { by, index, moves, together } in self.takeovers(state, &takers, left)? {
            let choices = self.choices(by);
            let choice = &choices[index];
            let leaving = self.leaving(state, choice, together);
            let Some(next) = state.after((by, choice.host), &leaving) else { continue };
            if let Some(found) = self.go_on(&next, left - moves) {
                return Some(found);
            }
            if self.effort.ended() {
                return None;
            }
        }
        None
    }

    fn choices(&mut self, id: ClaimId) -> Rc<[Choice]> {
        let narrowed = self.narrowed.and_then(|narrowed| narrowed.choices(id));
        narrowed.unwrap_or_else(|| self.board.choices(id))
    }

    /// Possible next takeovers, fewest moves first. `None` if the effort runs out.
    fn takeovers(&mut self, state: &State, takers: &[ClaimId], left: usize) -> Option<Vec<Takeover>> {
        let mut next = Vec::new();
        for id in takers {
            let choices = self.choices(*id);
            if !self.effort.spend(CHOICE * choices.len() as u64) {
                return None;
            }
            for (index, choice) in choices.iter().enumerate() {
                let stays = |blocker: &&ClaimId| !state.left.contains(&(**blocker, choice.host));
                let moves = choice.blockers.iter().filter(stays).count();
                if moves == 0 || moves > left || !self.is_open(state, *id, choice.host) {
                    continue;
                }
                let takeover = |moves, together| Takeover { by: *id, index, moves, together };
                if choice.blockers.iter().any(|blocker| self.board.together(*blocker).is_some()) {
                    let all = self.leaving(state, choice, true).len();
                    if all > moves && all <= left {
                        next.push(takeover(all, true));
                    }
                }
                next.push(takeover(moves, false));
            }
        }
        next.sort_by_key(|takeover| takeover.moves);
        Some(next)
    }

    /// The places that the blockers of a choice give up: only the chosen host, or, with `together`, also
    /// their hosts that depend on it.
    fn leaving(&self, state: &State, choice: &Choice, together: bool) -> BTreeSet<Place> {
        let blockers = choice.blockers.iter();
        let hosts = |blocker: &ClaimId| if together { self.board.together(*blocker) } else { None };
        let others = blockers
            .clone()
            .flat_map(|blocker| hosts(blocker).into_iter().flatten().map(|host| (*blocker, *host)));
        let places = blockers.map(|blocker| (*blocker, choice.host)).chain(others);
        places.filter(|place| !state.left.contains(place)).collect()
    }

    /// Whether the claim can still take the host: it has not done so before, and no conflicting claim has.
    fn is_open(&self, state: &State, id: ClaimId, host: HostId) -> bool {
        let mut there = state.taken.range((host, REQUEST)..).take_while(|(taken, _)| *taken == host);
        there.all(|(_, other)| *other != id && !self.board.exclude_each_other(*other, id))
    }

    /// Hosts that a claim can use without a move. `None` if the effort runs out.
    fn free(&mut self, state: &State, id: ClaimId) -> Option<Vec<HostId>> {
        let choices = self.choices(id);
        if !self.effort.spend(CHOICE * choices.len() as u64) {
            return None;
        }
        // Few hosts have changed so far. Searching in these is much faster than in the sets of the state.
        let taken: Vec<HostId> = state.taken.iter().map(|(host, _)| *host).collect();
        let mut left: Vec<HostId> = state.left.iter().map(|(_, host)| *host).collect();
        left.sort_unstable();
        let is_free = |choice: &&Choice| {
            let is_gone = |blocker: &ClaimId| state.left.contains(&(*blocker, choice.host));
            let are_gone = || left.binary_search(&choice.host).is_ok() && choice.blockers.iter().all(is_gone);
            let is_open =
                || taken.binary_search(&choice.host).is_err() || self.is_open(state, id, choice.host);
            (choice.blockers.is_empty() || are_gone()) && is_open()
        };
        Some(choices.iter().filter(is_free).map(|choice| choice.host).collect())
    }

    /// Number of hosts that a claim lacks beyond the free ones.
    fn lack(&mut self, state: &State, id: ClaimId, free: &[HostId]) -> usize {
        if id == REQUEST {
            let count = state.taken_by_request().count() + free.len();
            return self.request_lacks(count, state.taken_by_request().chain(free.iter().copied()));
        }
        state.needs.get(&id).copied().unwrap_or(0).saturating_sub(free.len())
    }

    /// Number of hosts that the request lacks if it gets these `count` hosts.
    fn request_lacks(&mut self, count: usize, hosts: impl Iterator<Item = HostId>) -> usize {
        if let [way] = self.ways
            && way.in_one >= way.need
        {
            return way.need.saturating_sub(count);
        }
        let mut flow = Flow::new(self.ways);
        for host in hosts {
            if flow.lacks() == 0 || !self.effort.spend(flow.add(host)) {
                break;
            }
        }
        flow.lacks()
    }

    /// Free hosts for all displaced claims that leave enough for the request.
    fn complete(&mut self, state: &State, free: &BTreeMap<ClaimId, Vec<HostId>>) -> Option<Vec<Place>> {
        let free_for_request = free.get(&REQUEST).into_iter().flatten().copied();
        let mut request: BTreeSet<HostId> = free_for_request.chain(state.taken_by_request()).collect();
        let mut seats: Vec<(ClaimId, Vec<HostId>)> = Vec::new();
        for (id, count) in &state.needs {
            let mut hosts = free.get(id)?.clone();
            // Prefer hosts that the request doesn't need.
            hosts.sort_by_key(|host| request.contains(host));
            seats.extend(std::iter::repeat_n((*id, hosts), *count));
        }
        seats.sort_by_key(|(id, hosts)| (hosts.len(), *id));
        let mut placed = Vec::new();
        self.seat(state, &seats, &mut request, &mut placed).then_some(placed)
    }

    /// Places the remaining claims. False if that is impossible.
    fn seat(
        &mut self,
        state: &State,
        seats: &[(ClaimId, Vec<HostId>)],
        request: &mut BTreeSet<HostId>,
        placed: &mut Vec<Place>,
    ) -> bool {
        let Some(((id, hosts), others)) = seats.split_first() else {
            return self.all_suit(state, placed);
        };
        if !self.effort.spend(STATE + CHOICE * hosts.len() as u64) {
            return false;
        }
        // Places of one claim are interchangeable, so each set of hosts is tried once.
        let last = placed.last().filter(|(other, _)| other == id).map(|(_, host)| *host);
        let from = last.and_then(|last| hosts.iter().position(|host| *host == last)).map_or(0, |at| at + 1);
        for host in &hosts[from..] {
            let mut there = placed.iter().filter(|(_, taken)| taken == host);
            if there.any(|(other, _)| self.board.exclude_each_other(*other, *id)) {
                continue;
            }
            let from_request = self.board.exclude_each_other(REQUEST, *id) && request.remove(host);
            let can_spare = !from_request
                || !state.taken.contains(&(*host, REQUEST))
                    && self.request_lacks(request.len(), request.iter().copied()) == 0;
            placed.push((*id, *host));
            if can_spare && self.seat(state, others, request, placed) {
                return true;
            }
            placed.pop();
            if from_request {
                request.insert(*host);
            }
        }
        false
    }

    /// Whether hosts that depend on each other still match.
    fn all_suit(&self, state: &State, placed: &[Place]) -> bool {
        let taken = state.taken.iter().map(|(host, id)| (*id, *host));
        let all: Vec<Place> = taken.chain(placed.iter().copied()).collect();
        let moved: BTreeSet<ClaimId> = state.left.iter().map(|(id, _)| *id).collect();
        let mut dependent = moved.into_iter().filter(|id| self.board.together(*id).is_some());
        dependent.all(|id| self.board.suit(id, &self.board.hosts_after(id, &state.left, &all)))
    }
}

impl State {
    fn taken_by_request(&self) -> impl Iterator<Item = HostId> {
        self.taken.iter().filter(|(_, id)| *id == REQUEST).map(|(host, _)| *host)
    }

    /// The state after a claim has taken over a host that `leaving` gives up.
    fn after(&self, taken: Place, leaving: &BTreeSet<Place>) -> Option<Self> {
        let mut next = self.clone();
        if taken.0 != REQUEST {
            let need = next.needs.get_mut(&taken.0)?;
            *need -= 1;
            if *need == 0 {
                next.needs.remove(&taken.0);
            }
        }
        for (blocker, _) in leaving {
            *next.needs.entry(*blocker).or_insert(0) += 1;
        }
        next.taken.insert((taken.1, taken.0));
        next.left.extend(leaving);
        Some(next)
    }
}
