//! Earliest start of best-effort leases, and advancing of waiting ones (CLS-03). From the moment of the
//! answer, the allocated hosts belong to the lease.

use std::collections::BTreeSet;
use std::ops::Bound;

use jiff::{SignedDuration, Timestamp};

use super::{Admission, Occupied, Refusal, Search};
use crate::host::{Health, Host};
use crate::hunt::Hunt;
use crate::ids::{HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::project::ProjectId;
use crate::status::LeaseStatus;
use crate::terms::{HostsTerms, ReservationTerms, Terms};
use crate::window::{Window, earlier, later};

/// Cost to record the end of a booking.
const BOOKING: u64 = 20;

/// The smallest difference between two instants.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// The result for a new lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The terms with the allocated window. It differs from the requested one if the lease starts as soon as
    /// it can.
    pub terms: Terms,
    pub allocations: Vec<Allocation>,
    /// Migration plan that moves guests of other projects away, if one is needed.
    pub hunt: Option<Hunt>,
}

impl Admission<'_> {
    /// Allocates hosts for a new lease.
    pub fn grant(&self, project: &ProjectId, terms: &Terms) -> Result<Grant, Refusal> {
        self.remembering(|admission| admission.granted(project, terms))
    }

    pub(super) fn granted(&self, project: &ProjectId, terms: &Terms) -> Result<Grant, Refusal> {
        if let Some(deadline) = terms.lease_type.deadline() {
            if deadline <= self.now {
                return Err(Refusal::DeadlineInPast);
            }
            if deadline <= terms.window().start() {
                return Err(Refusal::StartAfterDeadline);
            }
        }
        if let Some(within) = terms.within() {
            return self.somewhere(project, terms, within);
        }
        let LeaseType::BestEffort { deadline } = terms.lease_type else {
            let allocations = self.decide(project, terms)?;
            return Ok(Grant { terms: terms.clone(), allocations, hunt: None });
        };
        self.check_length(project, &terms.window(), &terms.reservations)?;
        self.check(project, terms)?;
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        let wish = Wish {
            asked: &asked,
            from: terms.window().start().max(self.now),
            before: deadline,
            length: terms.window().length(),
            own: None,
        };
        let hinted = self.suited_to(terms.lease_type).hinted(&terms.hints).lasting(wish.length);
        let waiting = hinted.asked_by(project).earliest(&wish);
        let patience = waiting.as_ref().ok().map(|(start, _)| *start);
        let hunted = hinted.hunt(project, &wish, patience);
        let granted = match (hunted, waiting) {
            (Some(Ok((window, allocations, hunt))), _) => {
                Ok(Grant { terms: terms.clone().during(window), allocations, hunt: Some(hunt) })
            }
            (_, Ok((start, allocations))) => {
                Ok(Grant { terms: terms.clone().starting(start), allocations, hunt: None })
            }
            // Moving guests doesn't help a lease that is too long.
            (None, Err(refusal)) | (Some(Err(_)), Err(refusal @ Refusal::Enforcement(_))) => Err(refusal),
            (Some(Err(hunt)), Err(refusal)) => Err(Refusal::NoHunt { refusal: Box::new(refusal), hunt }),
        };
        hinted.settled(&asked, granted)
    }

    /// The first time in the window `within` at which all reservations can be served.
    fn somewhere(&self, project: &ProjectId, terms: &Terms, within: Window) -> Result<Grant, Refusal> {
        self.check_length(project, &terms.window(), &terms.reservations)?;
        self.check(project, terms)?;
        let asked: Vec<&ReservationTerms> = terms.reservations.iter().collect();
        let length = terms.window().length();
        let last = earlier(within.end(), length);
        let from = within.start().max(self.now);
        if last < from {
            return Err(Refusal::StartInPast);
        }
        let wish = Wish { asked: &asked, from, before: later(last, INSTANT), length, own: None };
        let admission = self.suited_to(terms.lease_type).asked_by(project).lasting(length);
        let (start, allocations) = admission.hinted(&terms.hints).earliest(&wish)?;
        Ok(Grant { terms: terms.clone().starting(start).fixed(), allocations, hunt: None })
    }

    /// Advances a waiting best-effort lease. A lease that lacks resources can also start later, if it is
    /// complete then. `None` if that is impossible or the lease doesn't wait for hosts.
    pub fn sooner(&self, lease: &Lease) -> Option<Lease> {
        let LeaseType::BestEffort { deadline } = lease.lease_type else { return None };
        if lease.status != LeaseStatus::Pending || lease.window.start() <= self.now {
            return None;
        }
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        let before = if lease.degraded() { deadline } else { lease.window.start() };
        let wish = Wish {
            asked: &asked,
            from: self.now,
            before,
            length: lease.window.length(),
            own: Some(lease.id),
        };
        // Skips the reason for a failure: working it out takes as long as the search itself.
        let found = self.remembering(|admission| {
            admission.suited_to(lease.lease_type).on_behalf_of(lease).found(&wish).ok()
        });
        let (start, given) = self.settled_or_none(found)?;
        Some(lease.moved_to(start, given))
    }

    /// The first instant at which all reservations can be served, with their allocations.
    pub(super) fn earliest(&self, wish: &Wish<'_>) -> Result<(Timestamp, Vec<Allocation>), Refusal> {
        let found = self.found(wish).map_err(|first_refusal| {
            // The first obstacle is more useful to know than the one of the last attempt.
            let refusal = first_refusal.or_else(|| self.at(wish, wish.from).err());
            refusal.unwrap_or(Refusal::DeadlineInPast)
        });
        self.settled(wish.asked, found)
    }

    /// Like [`Self::earliest`], but fails with the refusal of the first attempt, if there was one.
    fn found(&self, wish: &Wish<'_>) -> Result<(Timestamp, Vec<Allocation>), Option<Refusal>> {
        let pools = self.pools(wish);
        let (mut start, mut first_refusal, mut changes) = (wish.from, None, None);
        while let Some(possible) = self.not_before(wish, &pools, start) {
            if self.budget.stopped().is_some() {
                break;
            }
            match self.at(wish, possible) {
                Ok(given) => return Ok((possible, given)),
                Err(refusal) => _ = first_refusal.get_or_insert(refusal),
            }
            let changes = changes.get_or_insert_with(|| self.given_back(wish));
            let Some(next) = changes.range((Bound::Excluded(possible), Bound::Unbounded)).next() else {
                break;
            };
            start = *next;
        }
        Err(first_refusal)
    }

    fn at(&self, wish: &Wish<'_>, start: Timestamp) -> Result<Vec<Allocation>, Refusal> {
        Search::new(*self, Window::starting(start, wish.length), wish.own).give_all(wish.asked)
    }

    /// A lower bound from `start` on: before it, some reservation of hosts can't be served even on its own.
    /// `None` if one can't be served in time at all. Without the bound, each instant at which anything
    /// changes would have to be tried.
    fn not_before(&self, wish: &Wish<'_>, pools: &[Pool], start: Timestamp) -> Option<Timestamp> {
        let within = Window::new(start, later(wish.before, wish.length)).ok()?;
        let mut possible = start;
        for Pool { hosts, wanted } in pools {
            let slot =
                self.calendar.earliest_slot(hosts, *wanted, wish.length, &within, wish.own, self.budget)?;
            possible = possible.max(slot.window.start());
        }
        // The whole window must end before the end of time.
        (possible < wish.before.min(earlier(Timestamp::MAX, wish.length))).then_some(possible)
    }

    /// For each reservation of hosts, the hosts that match, whether free or booked.
    fn pools(&self, wish: &Wish<'_>) -> Vec<Pool> {
        let search = Search::new(*self, Window::ALWAYS, None);
        let of_hosts = wish.asked.iter().filter_map(|asked| match asked {
            ReservationTerms::Hosts(asked) => Some(asked),
            _ => None,
        });
        let pool = |asked: &HostsTerms| {
            let (matching, _) = search.matching(self.inventory.hosts(), asked, wish.before);
            Pool { hosts: matching.into_iter().map(|host| host.id).collect(), wanted: asked.least_in_all() }
        };
        of_hosts.map(pool).collect()
    }

    /// Instants before the deadline at which more resources can become available: the end of a booking and
    /// its cleaning, the wake-up of a host, the expected recovery of broken hosts, and the expected departure
    /// of guests.
    fn given_back(&self, wish: &Wish<'_>) -> BTreeSet<Timestamp> {
        let near = |host: &Host| 1 + self.calendar.near(host.id, &Window::ALWAYS) as u64;
        self.budget.charge(self.inventory.hosts().map(near).sum::<u64>() * BOOKING);
        let hosts = self.inventory.hosts().flat_map(|host| self.calendar.bookings(host.id));
        let addresses =
            self.inventory.floating_ips().flat_map(|ip| self.calendar.floating_ip_bookings(ip.id));
        let cleaned = hosts.map(|(window, _)| later(window.end(), self.calendar.cleaning_time()));
        let ends = cleaned.chain(addresses.map(|(window, _)| window.end()));
        let ends = ends.chain(self.facts.waking.iter().flatten().map(|(_, ready)| *ready));
        let down = self.inventory.hosts().any(|host| host.health != Health::Up);
        let ends = ends.chain(self.recovery().filter(|_| down));
        let occupied = self.fact_scope.occupied == Occupied::AtOnce && !self.facts.occupied.is_empty();
        let ends = ends.chain(Some(self.cleared_by_itself()).filter(|_| occupied));
        ends.filter(|end| wish.from < *end && *end < wish.before).collect()
    }
}

/// Matching hosts, and the number needed.
struct Pool {
    hosts: Vec<HostId>,
    wanted: usize,
}

/// A request to serve as soon as possible.
pub(super) struct Wish<'a> {
    pub(super) asked: &'a [&'a ReservationTerms],
    /// Earliest start.
    pub(super) from: Timestamp,
    /// The start must be before this instant.
    pub(super) before: Timestamp,
    pub(super) length: SignedDuration,
    /// The lease to change. Its own bookings don't count.
    pub(super) own: Option<LeaseId>,
}
