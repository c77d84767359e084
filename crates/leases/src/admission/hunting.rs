//! Scavenger hunts: leases on hosts from which other guests are moved away (CLS-03).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use placement::clear;

use super::earliest::Wish;
use super::{Admission, Search};
use crate::failure_domain::FailureDomain;
use crate::hints::Location;
use crate::host::Health;
use crate::hunt::{Cost, Hunt, HuntRefusal, Moving, Preferred, Scene, may_hunt};
use crate::ids::{GuestId, HostId, LeaseId};
use crate::lease::{Allocation, Lease};
use crate::plan::Observed;
use crate::project::ProjectId;
use crate::terms::{HostsTerms, ReservationTerms};
use crate::window::{Window, later};

/// The window of a lease, its hosts, and the migration plan that clears them.
type Hunted = (Window, Vec<Allocation>, Hunt);

impl Admission<'_> {
    /// Plans a hunt for a request, if it is worth it compared to waiting until `patience`, the start without
    /// a hunt. `None` if no guests should be moved.
    ///
    /// The window begins now, because the hosts are kept from other leases from now on. It is extended by the
    /// maximum duration of the hunt.
    pub(super) fn hunt(
        &self,
        project: &ProjectId,
        wish: &Wish<'_>,
        patience: Option<Timestamp>,
    ) -> Option<Result<Hunted, HuntRefusal>> {
        let rules = &self.rules.hunting;
        if !rules.enabled || self.fact_scope.no_hunts {
            return None;
        }
        if wish.from > self.now || patience.is_some_and(|start| start <= self.now) {
            return None;
        }
        let asked = hosts_only(wish.asked).filter(|asked| !self.scattered(asked))?;
        let left = wish.before.duration_since(self.now);
        let hunter = (project, wish.own);
        // The duration is known only once the hunt is planned, but hosts are needed for that time as well. So
        // plan again with more time until it is enough.
        let mut allowance = rules.allowance(&Cost::default());
        let (allocations, hunt) = loop {
            let window = Window::starting(self.now, allowance.saturating_add(wish.length));
            match self.cleared(&asked, hunter, window, &Preferred::default()) {
                Ok((_, hunt)) if hunt.moves.is_empty() => return None,
                Ok((_, hunt)) if hunt.allowance > rules.longest => {
                    return Some(Err(HuntRefusal::TooLong { takes: hunt.allowance, longest: rules.longest }));
                }
                Ok((_, hunt)) if hunt.allowance > left => {
                    return Some(Err(HuntRefusal::PastTimeout { takes: hunt.allowance, left }));
                }
                Ok((allocations, hunt)) if hunt.allowance <= allowance => break (allocations, hunt),
                Ok((_, hunt)) => allowance = hunt.allowance.max(allowance * 2),
                Err(refusal) => return Some(Err(refusal.into())),
            }
        };
        // Waiting costs as well, per host.
        let hosts: u64 = allocations.iter().map(Allocation::amount).sum();
        let begins = later(self.now, hunt.allowance);
        let cheaper = |start: Timestamp| {
            let seconds = u64::try_from(start.duration_since(self.now).as_secs()).unwrap_or(0);
            let waiting = seconds.saturating_mul(hosts).saturating_mul(rules.weights.per_second_of_waiting);
            start <= begins || waiting <= hunt.cost.points
        };
        if patience.is_some_and(cheaper) {
            return None;
        }
        let window = Window::starting(self.now, hunt.allowance.saturating_add(wish.length));
        Some(Ok((window, allocations, hunt)))
    }

    /// Whether a guest is in the way of a lease that can hunt, and the lease's migration plan doesn't move
    /// it, or no longer can.
    pub fn obstructed(&self, lease: &Lease) -> bool {
        // Bookings of the lease itself count too: a destination of its moves can become one of its hosts.
        let booked = |host| self.booked(host, None);
        let hunts = self.rules.hunting.enabled && may_hunt(lease);
        hunts && self.facts.surroundings().obstructs(lease, self.inventory, booked)
    }

    /// Replans the hunt of a lease, perhaps with other hosts, if the lease is [obstructed](Self::obstructed).
    /// `None` if it isn't, or if there is no better plan. Then the lease keeps its plan until its timeout.
    pub fn replan_hunt(&self, lease: &Lease) -> Option<Lease> {
        if !self.obstructed(lease) {
            return None;
        }
        let hinted = self.hinted(&lease.hints).lasting(self.time_left(lease));
        let asked: Vec<&ReservationTerms> = lease.reservations.iter().map(|r| &r.terms).collect();
        let asked = hosts_only(&asked).filter(|asked| !hinted.scattered(asked))?;
        let own: BTreeSet<HostId> = lease.reservations.iter().flat_map(|r| r.allocation.hosts()).collect();
        let stopping = |host: &HostId| self.facts.surroundings().is_anybody_stopping(*host);
        let preferred = Preferred { stopping: own.iter().copied().filter(stopping).collect(), own };
        let hunter = (&lease.owner.project, Some(lease.id));
        let (allocations, hunt) = hinted.cleared(&asked, hunter, lease.window, &preferred).ok()?;
        let hunt = match &lease.hunt {
            Some(before) => before.continued_by(hunt, &self.facts.guests.observed),
            None => Hunt { allowance: SignedDuration::ZERO, ..hunt },
        };
        let mut replanned = lease.clone().hunting(Some(hunt));
        for (reservation, allocation) in replanned.reservations.iter_mut().zip(allocations) {
            reservation.allocation = allocation;
            reservation.missing_resources = false;
        }
        self.settled_or_none((replanned != *lease).then_some(replanned))
    }

    /// Removes moves to hosts that are booked now or later, so that no guest moves there, even while there is
    /// no better plan. Moves that have been made stay in the plan.
    pub fn without_lost_destinations(&self, lease: &Lease, observed: &Observed) -> Option<Lease> {
        let mut hunt = lease.hunt.clone()?;
        let before = hunt.moves.len();
        let open: BTreeSet<GuestId> = hunt.open(observed).map(|mov| mov.guest).collect();
        hunt.moves.retain(|mov| !open.contains(&mov.guest) || !self.booked(mov.to, None));
        (hunt.moves.len() < before).then(|| lease.clone().hunting(Some(hunt)))
    }

    /// Hosts for each reservation in the window, and the migration plan that clears them.
    fn cleared(
        &self,
        asked: &[&HostsTerms],
        (project, lease): (&ProjectId, Option<LeaseId>),
        window: Window,
        preferred: &Preferred,
    ) -> Result<(Vec<Allocation>, Hunt), clear::Refusal> {
        let surroundings = self.facts.surroundings();
        let (booked, none) = (|host| self.booked(host, lease), BTreeSet::new());
        let whose = Moving::Others { project, lease };
        let mut scene = Scene::new(&self.rules.hunting, self.inventory, &surroundings, whose, booked);
        // Neither guests nor the resources they use matter, since the guests leave.
        let admission = self.without_guests().asked_by(project);
        let mut search = Search::new(admission, window, lease);
        let mut allocations = Vec::new();
        for terms in asked {
            let (free, _) = search.free_hosts(terms);
            let works = |host: &HostId| {
                surroundings.observed.hosts.get(host).is_some_and(|host| host.health == Health::Up)
            };
            // One host more than requested is enough to survive the failure of any one host.
            let beside = terms.least_in_all() - terms.min() as usize;
            let wanted = (terms.min() as usize + beside, terms.max() as usize + beside);
            let attempt = |candidates: &BTreeSet<HostId>| {
                let mut attempt = scene.clone();
                attempt.clear(candidates, wanted, preferred, self.budget).map(|hosts| (attempt, hosts))
            };
            let kinds = search.kinds(free.iter().map(|fit| fit.host).filter(works), terms);
            let (cleared, hosts) =
                kinds.iter().map(attempt).reduce(cheaper).unwrap_or_else(|| attempt(&none))?;
            scene = cleared;
            search.taken.whole.extend(&hosts);
            allocations.push(Allocation::Hosts(hosts));
        }
        Ok((allocations, scene.hunt()))
    }

    /// Whether hosts must be in several places. A hunt clears the cheapest set of hosts regardless of their
    /// places, so such leases wait instead.
    fn scattered(&self, asked: &[&HostsTerms]) -> bool {
        let over_places = |terms: &&HostsTerms| {
            terms.properties.survives.as_ref().is_some_and(|domain| *domain != FailureDomain::Host)
        };
        self.hints.is_some_and(|hints| hints.location == Some(Location::Different))
            || asked.iter().any(over_places)
    }

    /// Whether another lease has booked any part of the host, now or later.
    pub(super) fn booked(&self, host: HostId, own: Option<LeaseId>) -> bool {
        self.calendar
            .bookings(host)
            .any(|(window, booking)| window.end() > self.now && Some(booking.lease) != own)
    }
}

/// Result of an attempt to clear hosts.
type Attempt<'a> = Result<(Scene<'a>, BTreeSet<HostId>), clear::Refusal>;

/// The cheaper attempt. The first one if both cost the same.
fn cheaper<'a>(first: Attempt<'a>, second: Attempt<'a>) -> Attempt<'a> {
    match (first, second) {
        (Ok(first), Ok(second)) if second.0.cost() < first.0.cost() => Ok(second),
        (Err(_), Ok(second)) => Ok(second),
        (first, _) => first,
    }
}

/// The terms of the reservations. `None` for an empty list, or if any isn't for whole hosts.
fn hosts_only<'a>(asked: &[&'a ReservationTerms]) -> Option<Vec<&'a HostsTerms>> {
    let terms = asked.iter().map(|asked| match asked {
        ReservationTerms::Hosts(terms) => Some(terms),
        _ => None,
    });
    terms.collect::<Option<Vec<_>>>().filter(|terms| !terms.is_empty())
}
