//! Reservations that compete for hosts, and the possible hosts of each reservation.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::super::assignment::Way;
use super::super::{Admission, Search};
use super::wanted::Wanted;
use crate::calendar::Fit;
use crate::ids::{HostId, LeaseId, ReservationId};
use crate::lease::{Allocation, Lease};
use crate::terms::{HostsTerms, ReservationTerms};
use crate::window::Window;
use crate::work::Budget;

/// Cost of a look at a booking.
const BOOKING: u64 = 10;

/// A reservation on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimId(usize);

/// All reservations of the lease that needs room.
pub(super) const REQUEST: ClaimId = ClaimId(0);

/// A host that a claim can use once its blockers have left it.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub host: HostId,
    /// Movable claims on the host in the same window.
    pub blockers: Vec<ClaimId>,
}

/// A reservation of whole hosts in a lease that can be moved.
struct Claim<'a> {
    lease: &'a Lease,
    position: usize,
    terms: &'a HostsTerms,
    held: &'a BTreeSet<HostId>,
}

/// The claims that compete for hosts. The search adds the claim of another lease when it first meets it.
pub(super) struct Board<'a> {
    admission: Admission<'a>,
    movable: &'a BTreeMap<LeaseId, &'a Lease>,
    wanted: &'a Wanted,
    claims: Vec<Claim<'a>>,
    numbers: BTreeMap<ReservationId, ClaimId>,
    choices: BTreeMap<ClaimId, Rc<[Choice]>>,
}

impl<'a> Board<'a> {
    pub fn new(
        admission: Admission<'a>,
        movable: &'a BTreeMap<LeaseId, &'a Lease>,
        wanted: &'a Wanted,
    ) -> Self {
        let (claims, numbers, choices) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { admission, movable, wanted, claims, numbers, choices }
    }

    pub fn budget(&self) -> &'a Budget {
        self.admission.budget
    }

    /// The hosts that the request can use in these ways.
    pub fn choices_of_request(&mut self, ways: &[&Way]) -> Rc<[Choice]> {
        let hosts: BTreeSet<HostId> = ways.iter().flat_map(|way| way.hosts.keys().copied()).collect();
        let search = Search::new(self.wanted.admission(self.admission), self.wanted.window, self.wanted.own);
        self.choices_among(&search, hosts, None)
    }

    /// Sets the choices of the request.
    pub fn request(&mut self, choices: &Rc<[Choice]>) {
        self.choices.insert(REQUEST, choices.clone());
    }

    /// The hosts that a claim can use, free ones first.
    pub fn choices(&mut self, id: ClaimId) -> Rc<[Choice]> {
        if let Some(known) = self.choices.get(&id) {
            return known.clone();
        }
        let choices = match self.claim(id) {
            None => Rc::from([]),
            Some(&Claim { lease, position, terms, held }) => {
                let admission = self.admission.suited_to(lease.lease_type).on_behalf_of(lease);
                let search = Search::new(admission.without_guests(), lease.window, Some(lease.id));
                // Leases aren't moved to hosts that don't work now.
                let (matching, _) =
                    search.matching(self.admission.inventory.hosts(), terms, self.admission.now);
                let hosts = matching.into_iter().map(|host| host.id);
                let hosts = hosts.filter(|host| !admission.occupied(*host, lease.window.start()));
                let hosts = hosts.filter(|host| !held.contains(host) && search.can_be_on(*host)).collect();
                self.choices_among(&search, hosts, Some((lease, position)))
            }
        };
        self.choices.insert(id, choices.clone());
        choices
    }

    fn choices_among(
        &mut self,
        search: &Search<'_>,
        hosts: BTreeSet<HostId>,
        own: Option<(&'a Lease, usize)>,
    ) -> Rc<[Choice]> {
        let (mut free, mut taken): (Vec<Fit>, Vec<Choice>) = (Vec::new(), Vec::new());
        let (cleaned, future) = (search.cleaned(), search.future());
        for host in hosts {
            let near = self.admission.calendar.near(host, &cleaned) as u64;
            if !self.admission.budget.spend(BOOKING * (1 + near)) {
                break;
            }
            let Some(blockers) = self.blockers(host, &cleaned, search.own, own) else { continue };
            let fit = || self.admission.calendar.fit(host, &search.window, &future, search.own);
            match blockers.is_empty().then(fit).flatten() {
                Some(fit) => free.push(fit),
                None => taken.push(Choice { host, blockers }),
            }
        }
        taken.sort_by_cached_key(|choice| (choice.blockers.len(), search.avoids(choice.host), choice.host));
        let free = search.ranked(&free, &self.wanted.held);
        free.map(|host| Choice { host, blockers: Vec::new() }).chain(taken).collect()
    }

    /// The claims on a host in this window. `None` if a lease that can't be moved has booked it.
    fn blockers(
        &mut self,
        host: HostId,
        cleaned: &Window,
        without: Option<LeaseId>,
        own: Option<(&'a Lease, usize)>,
    ) -> Option<Vec<ClaimId>> {
        let calendar = self.admission.calendar;
        let mut blockers = Vec::new();
        for (window, booking) in calendar.bookings_in(host, *cleaned) {
            if !window.overlaps(cleaned) || Some(booking.lease) == without {
                continue;
            }
            let lease = self.movable.get(&booking.lease).filter(|_| booking.used.is_none())?;
            let position = lease.reservations.iter().position(|r| r.id == booking.reservation)?;
            blockers.push(self.enter(lease, position)?);
        }
        // Other reservations of the same lease.
        if let Some((lease, position)) = own {
            let has = |other: &usize| lease.reservations[*other].allocation.hosts().contains(&host);
            let others = (0..lease.reservations.len()).filter(|other| *other != position);
            for other in others.filter(has) {
                self.movable.get(&lease.id)?;
                blockers.push(self.enter(lease, other)?);
            }
        }
        blockers.sort_unstable();
        blockers.dedup();
        Some(blockers)
    }

    /// The number of a claim. `None` if the reservation isn't for whole hosts.
    fn enter(&mut self, lease: &'a Lease, position: usize) -> Option<ClaimId> {
        let reservation = &lease.reservations[position];
        if let Some(known) = self.numbers.get(&reservation.id) {
            return Some(*known);
        }
        let (ReservationTerms::Hosts(terms), Allocation::Hosts(held)) =
            (&reservation.terms, &reservation.allocation)
        else {
            return None;
        };
        self.claims.push(Claim { lease, position, terms, held });
        let id = ClaimId(self.claims.len());
        self.numbers.insert(reservation.id, id);
        Some(id)
    }

    fn claim(&self, id: ClaimId) -> Option<&Claim<'a>> {
        self.claims.get(id.0.checked_sub(1)?)
    }

    /// The hosts of a claim before any moves. `None` for the request.
    pub fn held(&self, id: ClaimId) -> Option<&'a BTreeSet<HostId>> {
        self.claim(id).map(|claim| claim.held)
    }

    /// Time in which a claim keeps other claims from its hosts, cleaning included.
    pub fn occupied(&self, id: ClaimId) -> Window {
        let window = self.claim(id).map_or(self.wanted.window, |claim| claim.lease.window);
        let since = window.since(self.admission.now);
        Window::starting(since.start(), since.length() + self.admission.calendar.cleaning_time())
    }

    /// Whether two claims can't use the same host.
    pub fn exclude_each_other(&self, one: ClaimId, other: ClaimId) -> bool {
        let lease = |id| self.claim(id).map(|claim| claim.lease);
        let window = |id| lease(id).map_or(self.wanted.window, |lease| lease.window);
        let same = lease(one).map(|lease| lease.id) == lease(other).map(|lease| lease.id);
        same || window(one).widened(self.admission.calendar.cleaning_time()).overlaps(&window(other))
    }

    /// All hosts of a claim, if they depend on each other. Then it can help to move the whole claim.
    pub fn together(&self, id: ClaimId) -> Option<&'a BTreeSet<HostId>> {
        let claim = self.claim(id)?;
        let depend = claim.terms.properties.compares_hosts()
            || claim.terms.properties.survives.is_some()
            || claim.lease.hints.location.is_some();
        (depend && claim.held.len() > 1).then_some(claim.held)
    }

    /// Whether a claim can use these hosts together.
    pub fn suit(&self, id: ClaimId, hosts: &BTreeSet<HostId>) -> bool {
        let Some(claim) = self.claim(id) else { return true };
        let admission = self.admission.without_guests().on_behalf_of(claim.lease);
        let search = Search::new(admission, claim.lease.window, Some(claim.lease.id));
        let counting = |hosts: &BTreeSet<HostId>| search.counting(hosts.iter().copied(), claim.terms);
        search.unlike(hosts, claim.terms).is_empty()
            && search.are_apart(hosts)
            && counting(hosts) >= counting(claim.held).min(claim.terms.min() as usize)
    }

    /// The hosts of a claim after these moves.
    pub fn hosts_after(
        &self,
        id: ClaimId,
        left: &BTreeSet<(ClaimId, HostId)>,
        placed: &[(ClaimId, HostId)],
    ) -> BTreeSet<HostId> {
        let held = self.claim(id).map(|claim| claim.held.iter().copied()).into_iter().flatten();
        let stays = held.filter(|host| !left.contains(&(id, *host)));
        stays.chain(placed.iter().filter(|(claim, _)| *claim == id).map(|(_, host)| *host)).collect()
    }

    /// The leases of the moved claims, with their hosts after these moves.
    pub fn moved(&self, left: &BTreeSet<(ClaimId, HostId)>, placed: &[(ClaimId, HostId)]) -> Vec<Lease> {
        let mut moved: BTreeMap<LeaseId, Lease> = BTreeMap::new();
        let claims: BTreeSet<ClaimId> = left.iter().map(|(claim, _)| *claim).collect();
        for id in claims {
            let Some(claim) = self.claim(id) else { continue };
            let lease = moved.entry(claim.lease.id).or_insert_with(|| claim.lease.clone());
            let hosts = self.hosts_after(id, left, placed);
            lease.reservations[claim.position].allocation = Allocation::Hosts(hosts);
        }
        moved.into_values().collect()
    }
}
