//! As soon as possible: when a best-effort lease can start, and whether one that waits can start sooner
//! (CLS-03; the hosts that it then has are its own from the moment of the answer).

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

/// What it costs to note when a booking ends.
const BOOKING: u64 = 20;

/// The shortest time that is told apart.
const INSTANT: SignedDuration = SignedDuration::from_nanos(1);

/// What a new lease is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its terms, with the window that it has: another one than was asked for if it starts as soon as it can.
    pub terms: Terms,
    /// One allocation per reservation.
    pub allocations: Vec<Allocation>,
    /// Whose guests are moved away for it, if any are.
    pub hunt: Option<Hunt>,
}

impl Admission<'_> {
    /// What a new lease of these terms would be given.
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
            // To move guests away doesn't help a lease that is too long.
            (None, Err(refusal)) | (Some(Err(_)), Err(refusal @ Refusal::Enforcement(_))) => Err(refusal),
            (Some(Err(hunt)), Err(refusal)) => Err(Refusal::NoHunt { refusal: Box::new(refusal), hunt }),
        };
        hinted.settled(&asked, granted)
    }

    /// The first time in a window when all that is asked for can be had.
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

    /// The lease as it would be if it started sooner; or later, but whole, if it lacks something. None if that
    /// cannot be, or if it does not wait for hosts at all.
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
        // Why it cannot is not asked: to find that out takes as long as to find out that it cannot.
        let found = self.remembering(|admission| {
            admission.suited_to(lease.lease_type).on_behalf_of(lease).found(&wish).ok()
        });
        let (start, given) = self.settled_or_none(found)?;
        Some(lease.moved_to(start, given))
    }

    /// The first instant at which all that is asked for can be had, and what is given then.
    pub(super) fn earliest(&self, wish: &Wish<'_>) -> Result<(Timestamp, Vec<Allocation>), Refusal> {
        let found = self.found(wish).map_err(|first_refusal| {
            // What stands in the way at first is more useful to know than what does at the last attempt.
            let refusal = first_refusal.or_else(|| self.at(wish, wish.from).err());
            refusal.unwrap_or(Refusal::DeadlineInPast)
        });
        self.settled(wish.asked, found)
    }

    /// The same; if there is none, why the first attempt failed, if any was made.
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

    /// What would be given from that instant on.
    fn at(&self, wish: &Wish<'_>, start: Timestamp) -> Result<Vec<Allocation>, Refusal> {
        Search::new(*self, Window::starting(start, wish.length), wish.own).give_all(wish.asked)
    }

    /// An instant from `start` on before which no reservation of hosts can be served by itself; none if there is
    /// one that cannot be served in time at all. Without this, each instant at which anything changes would have to
    /// be tried.
    fn not_before(&self, wish: &Wish<'_>, pools: &[Pool], start: Timestamp) -> Option<Timestamp> {
        let within = Window::new(start, later(wish.before, wish.length)).ok()?;
        let mut possible = start;
        for Pool { hosts, wanted } in pools {
            let slot =
                self.calendar.earliest_slot(hosts, *wanted, wish.length, &within, wish.own, self.budget)?;
            possible = possible.max(slot.window.start());
        }
        // All of it lies before the end of time.
        (possible < wish.before.min(earlier(Timestamp::MAX, wish.length))).then_some(possible)
    }

    /// For each reservation of hosts, those that it could have if nobody else had them.
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

    /// The instants before the deadline at which something is given back, has been woken, may work again, or may have been
    /// left by guests.
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
        let occupied = self.heeds.occupied == Occupied::AtOnce && !self.facts.occupied.is_empty();
        let ends = ends.chain(Some(self.cleared_by_itself()).filter(|_| occupied));
        ends.filter(|end| wish.from < *end && *end < wish.before).collect()
    }
}

/// Hosts, and how many of them are wanted.
struct Pool {
    hosts: Vec<HostId>,
    wanted: usize,
}

/// What is to be had as soon as possible.
pub(super) struct Wish<'a> {
    pub(super) asked: &'a [&'a ReservationTerms],
    /// Not before this instant.
    pub(super) from: Timestamp,
    /// It has to begin before this one.
    pub(super) before: Timestamp,
    /// For how long.
    pub(super) length: SignedDuration,
    /// The lease whose bookings do not count.
    pub(super) own: Option<LeaseId>,
}
