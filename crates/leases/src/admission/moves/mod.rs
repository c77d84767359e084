//! Making room by giving other hosts to leases that have not started (CLS-10). They keep their dates and what they asked
//! for, and a lease that has started keeps everything.
//!
//! A move takes one host from a lease and gives it another one. Moves form chains: the first lease goes to a host of the
//! second lease, and the second lease to a free host. Only complete chains count, so each lease keeps its number of hosts.

mod board;
mod instants;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;

use self::board::{Board, Choice};
use self::search::{Effort, Mover, Moves};
use super::assignment::{Way, combinations};
use super::replanning::may_move;
use super::{Admission, Changes, Refusal, Replanned, Resource, Search};
use crate::hints::Hints;
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::project::ProjectId;
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::window::Window;

/// Maximum number of moves for each host that is asked for.
pub const MOVES_PER_HOST: usize = 4;
/// Maximum cost of a search for moves. It is also limited to half of the budget that the decision has left.
const EFFORT: u64 = 6_000_000;
/// Ways to serve the reservations that are tried at most.
const COMBINATIONS: usize = 16;

/// A request for whole hosts, by a new lease or a changed one.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The lease that is changed.
    own: Option<LeaseId>,
    window: Window,
    project: ProjectId,
    hints: Arc<Hints>,
    /// The type of a new lease, which says whether guests on hosts matter.
    lease_type: Option<LeaseType>,
    /// Reservations of whole hosts, and the hosts that each has.
    parts: Vec<(HostsTerms, BTreeSet<HostId>)>,
    /// All hosts that the lease has.
    held: BTreeSet<HostId>,
    /// The lease has started, so it keeps its hosts.
    started: bool,
    /// It also reserves instances or addresses.
    mixed: bool,
}

impl Wanted {
    /// The hosts for a new lease.
    pub fn for_new(project: &ProjectId, terms: &Terms) -> Self {
        let nothing = Allocation::Hosts(BTreeSet::new());
        let reservations = terms.reservations.iter().map(|terms| (terms, &nothing));
        let of_new = Self::new(project, &terms.hints, terms.window(), reservations);
        Self { lease_type: Some(terms.lease_type), ..of_new }
    }

    /// The hosts for a lease with its window and its terms, instead of those that it has.
    pub fn for_lease(lease: &Lease) -> Self {
        let reservations = lease.reservations.iter().map(|r| (&r.terms, &r.allocation));
        let of_lease = Self::new(&lease.owner.project, &lease.hints, lease.window, reservations);
        Self { own: Some(lease.id), started: lease.status != LeaseStatus::Pending, ..of_lease }
    }

    fn new<'a>(
        project: &ProjectId,
        hints: &Arc<Hints>,
        window: Window,
        reservations: impl Iterator<Item = (&'a ReservationTerms, &'a Allocation)>,
    ) -> Self {
        let (mut parts, mut mixed) = (Vec::new(), false);
        for reservation in reservations {
            match reservation {
                (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) => {
                    parts.push((terms.clone(), held.clone()));
                }
                _ => mixed = true,
            }
        }
        let held = parts.iter().flat_map(|(_, held)| held.iter().copied()).collect();
        Self {
            own: None,
            window,
            project: project.clone(),
            hints: hints.clone(),
            lease_type: None,
            parts,
            held,
            started: false,
            mixed,
        }
    }

    /// Terms that ask for as many whole hosts as are allocated.
    pub(super) fn as_many(terms: &ReservationTerms, held: &Allocation) -> ReservationTerms {
        let ReservationTerms::Hosts(asked) = terms else { return terms.clone() };
        if asked.properties.survives.is_some() {
            return terms.clone();
        }
        let count = u32::try_from(held.amount()).unwrap_or(u32::MAX).max(asked.min());
        asked.clone().with_range(count, count).map_or_else(|_| terms.clone(), ReservationTerms::Hosts)
    }

    /// The time for which hosts are wanted.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The lease that is changed, if it exists already.
    pub fn own(&self) -> Option<LeaseId> {
        self.own
    }

    /// Whether the lease also reserves instances or addresses.
    pub(super) fn is_mixed(&self) -> bool {
        self.mixed
    }

    fn admission<'a>(&'a self, admission: Admission<'a>) -> Admission<'a> {
        let suited = self.lease_type.map_or(admission, |lease_type| admission.suited_to(lease_type));
        suited.asked_by(&self.project).hinted(&self.hints)
    }

    /// The ways to serve each reservation.
    fn ways(&self, admission: Admission<'_>) -> Vec<Vec<Way>> {
        let search = Search::new(self.admission(admission), self.window, self.own);
        let mut ways = Vec::new();
        for (terms, held) in &self.parts {
            let kept = if self.started { held.len() } else { 0 };
            if kept > 0 {
                let hosts = held.iter().map(|host| (*host, 0)).collect();
                ways.push(vec![Way { hosts, in_one: usize::MAX, need: kept }]);
            }
            let need = (terms.min() as usize).saturating_sub(kept);
            if need == 0 {
                continue;
            }
            let (matching, _) = search.matching(admission.inventory.hosts(), terms, self.window.start());
            let hosts = matching.into_iter().map(|host| host.id);
            let hosts =
                hosts.filter(|host| search.can_be_on(*host) && !(self.started && held.contains(host)));
            if kept > 0 {
                let hosts = hosts.map(|host| (host, 0)).collect();
                ways.push(vec![Way { hosts, in_one: usize::MAX, need }]);
            } else {
                ways.push(search.ways(hosts, terms, held));
            }
        }
        ways
    }
}

impl Admission<'_> {
    /// The hosts that a changed lease wants.
    pub fn wanted_by(&self, lease: &Lease, changes: &Changes) -> Result<Wanted, Refusal> {
        Ok(Wanted::for_lease(&self.on_changed_terms(lease, changes)?))
    }

    /// Decides again after other leases have moved. None if no moves within [`MOVES_PER_HOST`] help.
    pub(super) fn replan_by_moves<T>(
        &self,
        others: &[&Lease],
        settled: Timestamp,
        (wanted, lack): (&Wanted, &Refusal),
        decide: impl Fn(&Admission<'_>) -> Result<T, Refusal>,
        lease: impl Fn(&T) -> &Lease,
    ) -> Option<Replanned<T>> {
        let of_hosts = match lack.cause() {
            Refusal::NotEnough { resource, .. } => matches!(resource, Resource::Hosts(_)),
            Refusal::WouldLoseHosts(_) => true,
            _ => false,
        };
        if !of_hosts {
            return None;
        }
        let movable: BTreeMap<LeaseId, &Lease> =
            others.iter().filter(|other| may_move(other, settled)).map(|other| (other.id, *other)).collect();
        if movable.is_empty() {
            return None;
        }
        let moved = self.moves(&movable, wanted)?;
        let mut calendar = self.calendar.clone();
        calendar.remove_all(&moved.iter().map(|lease| lease.id).collect());
        for lease in &moved {
            calendar.put(lease, self.now).ok()?;
        }
        let decided = decide(&Admission { calendar: &calendar, ..*self }).ok()?;
        calendar.put(lease(&decided), self.now).ok()?;
        Some(Replanned { decided, moved })
    }

    /// The leases that make room with fewest moves, with the hosts that they have then.
    fn moves(&self, movable: &BTreeMap<LeaseId, &Lease>, wanted: &Wanted) -> Option<Vec<Lease>> {
        let ways = wanted.ways(*self);
        let mut effort = Effort::new(self.budget, EFFORT);
        let mut board = Board::new(*self, movable, wanted);
        let mut attempts: Vec<(Vec<&Way>, Rc<[Choice]>)> = Vec::new();
        for ways in combinations(&ways).take(COMBINATIONS) {
            let choices = board.choices_of_request(&ways);
            board.request(&choices);
            if !instants::too_few_hosts(&mut board, &ways, &mut effort) {
                attempts.push((ways, choices));
            }
        }
        let asked = |ways: &[&Way]| ways.iter().map(|way| way.need).sum::<usize>();
        let most = MOVES_PER_HOST * attempts.iter().map(|(ways, _)| asked(ways)).max()?;
        for count in 1..=most {
            for (ways, choices) in &attempts {
                board.request(choices);
                let found = Mover::new(&mut board, ways, &mut effort).with(count);
                if let Some(Moves { left, placed }) = found {
                    return Some(board.moved(&left, &placed));
                }
                if effort.ended() {
                    return None;
                }
            }
        }
        None
    }
}
