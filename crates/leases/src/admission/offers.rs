//! Alternatives to a refused request (CLS-10): later, shorter, with fewer hosts, in another pool, or with a
//! longer timeout for moving guests.
//!
//! Each offer differs from the request in one respect and is as close to it as possible. It can be accepted
//! at the moment it is made. The caller keeps the offered resources free from then on
//! ([`crate::offer::kept_free`]).

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::earliest::Wish;
use super::update::{HostsChange, InstancesChange, TermsChange};
use super::{Admission, Changes, Grant, Occupied, Refusal};
use crate::enforcement::EnforcementError;
use crate::free_pool::POOL_PROPERTY;
use crate::hunt::HuntRefusal;
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::offer::OfferKind;
use crate::project::ProjectId;
use crate::status::LeaseStatus;
use crate::terms::{ReservationTerms, Terms};
use crate::window::{Window, later, next_minute};

/// Leases aren't offered for less than this fraction of the requested time: a tenth.
const SHORTEST_PART: i32 = 10;
/// Maximum number of other pools in offers.
const MOST_POOLS: usize = 3;

/// An alternative to a refused lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub kind: OfferKind,
    /// The lease with fixed dates, unless only its timeout differs.
    pub grant: Grant,
}

/// An alternative to a refused change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedChange {
    pub kind: OfferKind,
    /// The changed lease.
    pub lease: Lease,
}

impl Refusal {
    /// Whether there can be alternatives. There is no alternative to an invalid or forbidden request.
    pub fn negotiable(&self) -> bool {
        let too_long = matches!(self, Self::Enforcement(EnforcementError::TooLong { .. }));
        self.is_lack() || too_long || matches!(self, Self::QuotaAndLack { .. })
    }

    /// Whether other leases use the resources that the request needs.
    pub fn is_lack(&self) -> bool {
        if let Self::EndsTooLate { .. } = self {
            return true;
        }
        matches!(
            self,
            Self::NotEnough { .. } | Self::NoHunt { .. } | Self::FloatingIpTaken(_) | Self::WouldLoseHosts(_)
        )
    }
}

impl Admission<'_> {
    /// Alternatives to a refused new lease. Later starts are tried until `latest`.
    ///
    /// Alternatives that would exceed the remaining budget are skipped.
    pub fn offers(&self, project: &ProjectId, terms: &Terms, latest: Timestamp) -> Vec<Offer> {
        self.remembering(|admission| {
            let mut offers = admission.alternatives(project, terms, latest);
            let longer = admission.settled_or_none(admission.waiting_longer(project, terms));
            offers.extend(longer.map(|grant| Offer { kind: OfferKind::LongerTimeout, grant }));
            offers
        })
    }

    /// The request with the timeout that a hunt needs, if its short timeout is the only obstacle.
    fn waiting_longer(&self, project: &ProjectId, terms: &Terms) -> Option<Grant> {
        terms.lease_type.deadline()?;
        let refused = self.granted(project, terms).err()?;
        let Refusal::NoHunt { hunt: HuntRefusal::PastTimeout { takes, .. }, .. } = refused else {
            return None;
        };
        (takes <= self.rules.deadlines.longest).then_some(())?;
        let deadline = next_minute(later(self.now, takes));
        let longer = terms.clone().of_type(LeaseType::BestEffort { deadline });
        self.granted(project, &longer).ok().filter(|grant| grant.hunt.is_some())
    }

    fn alternatives(&self, project: &ProjectId, terms: &Terms, latest: Timestamp) -> Vec<Offer> {
        let start = terms.window().start().max(self.now);
        let asked = terms.clone().fixed().of_type(LeaseType::Schedule).starting(start);
        // Current guests count in the same way as for the request, but no guests are moved for an offer.
        let mut admission = self.suited_to(terms.lease_type).without_hunts();
        if self.starts_at_once(start) {
            admission.fact_scope.occupied = Occupied::Always;
        }
        let given = |terms: &Terms| admission.given(project, terms).ok();
        let offer =
            |kind, (terms, allocations)| Offer { kind, grant: Grant { terms, allocations, hunt: None } };
        let later = self.settled_or_none(admission.started_later(project, &asked, latest));
        let shorter = self.settled_or_none(shortened(&asked, given));
        let fewer = self.settled_or_none(admission.with_fewer(project, &asked, given));
        let elsewhere = admission.in_other_pools(&asked, given);
        let single = [
            later.map(|found| offer(OfferKind::LaterStart, found)),
            shorter.map(|found| offer(OfferKind::ShorterDuration, found)),
            fewer.map(|found| offer(OfferKind::FewerHosts, found)),
        ];
        let pools = elsewhere.into_iter().map(|found| offer(OfferKind::OtherPool, found));
        single.into_iter().flatten().chain(pools).collect()
    }

    fn started_later(
        &self,
        project: &ProjectId,
        asked: &Terms,
        latest: Timestamp,
    ) -> Option<(Terms, Vec<Allocation>)> {
        self.check_length(project, &asked.window(), &asked.reservations).ok()?;
        self.check(project, asked).ok()?;
        let wanted: Vec<&ReservationTerms> = asked.reservations.iter().collect();
        let from = asked.window().start();
        let wish = Wish { asked: &wanted, from, before: latest, length: asked.window().length(), own: None };
        let admission = self.asked_by(project).hinted(&asked.hints).lasting(wish.length);
        let (start, _) = admission.earliest(&wish).ok()?;
        // Dates have no seconds, but cleaning times can have some.
        let start = next_minute(start);
        let terms = asked.clone().starting(start);
        // Near the end of time, the window would be cut short.
        (start > from && terms.window().length() == asked.window().length()).then_some(())?;
        Some((terms.clone(), self.given(project, &terms).ok()?))
    }

    fn with_fewer<T>(
        &self,
        project: &ProjectId,
        asked: &Terms,
        given: impl Fn(&Terms) -> Option<T>,
    ) -> Option<(Terms, T)> {
        let Err(Refusal::NotEnough { position, .. }) = self.given(project, asked) else { return None };
        let with = |number: i64| {
            let mut terms = asked.clone();
            let reservation = terms.reservations.get_mut(position)?;
            *reservation = reservation.with_number(u32::try_from(number).ok()?)?;
            given(&terms).map(|given| (terms, given))
        };
        let number = i64::from(least(asked.reservations.get(position)?));
        greatest(0, number, with).map(|(_, found)| found)
    }

    fn in_other_pools<T>(&self, asked: &Terms, given: impl Fn(&Terms) -> Option<T>) -> Vec<(Terms, T)> {
        let elsewhere = |pool: &str| {
            let mut terms = asked.clone();
            let mut named = false;
            for reservation in &mut terms.reservations {
                if let Some(moved) = reservation.in_free_pool(pool) {
                    named |= moved != *reservation;
                    *reservation = moved;
                }
            }
            named.then_some(terms)
        };
        // Without this check, every host would have to be asked for its pool.
        if elsewhere("-").is_none() {
            return Vec::new();
        }
        let pools: BTreeSet<&String> =
            self.inventory.hosts().filter_map(|host| host.capabilities.get(POOL_PROPERTY)).collect();
        let found = pools.into_iter().filter_map(|pool| {
            let terms = elsewhere(pool)?;
            given(&terms).map(|given| (terms, given))
        });
        found.take(MOST_POOLS).collect()
    }

    /// Alternatives to a refused change of a lease.
    ///
    /// Alternatives that would exceed the remaining budget are skipped.
    pub fn offers_of_change(
        &self,
        lease: &Lease,
        changes: &Changes,
        latest: Timestamp,
    ) -> Vec<OfferedChange> {
        self.remembering(|admission| admission.other_changes(lease, changes, latest))
    }

    fn other_changes(&self, lease: &Lease, changes: &Changes, latest: Timestamp) -> Vec<OfferedChange> {
        let found = [
            (OfferKind::LaterStart, self.settled_or_none(self.moved_later(lease, changes, latest))),
            (OfferKind::ShorterDuration, self.settled_or_none(self.ending_sooner(lease, changes))),
            (OfferKind::FewerHosts, self.settled_or_none(self.growing_less(lease, changes))),
        ];
        let offered =
            found.into_iter().filter_map(|(kind, lease)| Some(OfferedChange { kind, lease: lease? }));
        // A change that keeps all allocations needs no offer: everything else in the request can be changed
        // without one.
        offered.filter(|offer| offer.lease.clone().with_preferences_of(lease) != *lease).collect()
    }

    fn updated(&self, lease: &Lease, changes: &Changes) -> Option<Lease> {
        self.changed(lease, changes).ok().map(|updated| updated.lease)
    }

    fn moved_later(&self, lease: &Lease, changes: &Changes, latest: Timestamp) -> Option<Lease> {
        if lease.status != LeaseStatus::Pending {
            return None;
        }
        let changed = self.on_changed_terms(lease, changes).ok()?;
        let wanted: Vec<&ReservationTerms> = changed.reservations.iter().map(|r| &r.terms).collect();
        let (from, length) = (changed.window.start().max(self.now), changed.window.length());
        let wish = Wish { asked: &wanted, from, before: latest, length, own: Some(lease.id) };
        let (start, _) = self.on_behalf_of(lease).lasting(length).earliest(&wish).ok()?;
        let start = next_minute(start);
        (start > from).then_some(())?;
        let end = Some(start.checked_add(length).ok()?);
        let moved = Changes { start: Some(start), end, before_end: None, ..changes.clone() };
        self.updated(lease, &moved)
    }

    fn ending_sooner(&self, lease: &Lease, changes: &Changes) -> Option<Lease> {
        let start = changes.start.unwrap_or(lease.window.start());
        let asked = Window::new(start, changes.end.unwrap_or(lease.window.end())).ok()?;
        let all = asked.length().as_mins();
        let least = if asked.end() > lease.window.end() && changes.start.is_none() {
            lease.window.length().as_mins()
        } else {
            let over = self.now.duration_since(start).max(SignedDuration::ZERO).as_mins();
            over + (all - over) / i64::from(SHORTEST_PART)
        };
        let lasting = |minutes: i64| {
            let end = Some(lasting(&asked, minutes).end());
            self.updated(lease, &Changes { end, before_end: None, ..changes.clone() })
        };
        greatest(least, all, lasting).map(|(_, found)| found)
    }

    /// Adds the latest possible end to the refusal of an extension, if an earlier end is possible.
    pub(super) fn ends_too_late(&self, lease: &Lease, changes: &Changes, refusal: Refusal) -> Refusal {
        let asked = changes.end.filter(|end| *end > lease.window.end());
        let lacks = refusal.is_lack() || matches!(refusal, Refusal::FloatingIps { .. });
        let Some(asked) = asked.filter(|_| lacks) else { return refusal };
        let until = |end: Timestamp| {
            let sooner = Changes { end: Some(end), before_end: None, ..changes.clone() };
            self.updated(lease, &sooner).map(|_| end)
        };
        let (end, minutes) = (lease.window.end(), asked.duration_since(lease.window.end()).as_mins());
        let lasting = |minutes: i64| until(end.checked_add(SignedDuration::from_mins(minutes)).ok()?);
        let latest = greatest(0, minutes, lasting).map(|(_, found)| found).or_else(|| until(end));
        match self.settled_or_none(latest) {
            // The lease's own hosts stay free, so the obstacle is a different one.
            Some(latest) if latest == end && !self.is_taken(lease, asked) => refusal,
            Some(latest) => {
                let taken_from = match refusal {
                    Refusal::FloatingIps { .. } => latest,
                    _ => later(latest, self.calendar.cleaning_time()),
                };
                Refusal::EndsTooLate { refusal: Box::new(refusal), taken_from, taken_by: None, latest }
            }
            None => refusal,
        }
    }

    /// Whether any of the lease's resources is booked between its end and `until`.
    fn is_taken(&self, lease: &Lease, until: Timestamp) -> bool {
        let Ok(window) = Window::new(lease.window.start().max(self.now), until) else { return false };
        let cleaned = window.widened(self.calendar.cleaning_time());
        let own = Some(lease.id);
        lease.reservations.iter().any(|reservation| match &reservation.allocation {
            Allocation::Hosts(hosts) => {
                hosts.iter().any(|host| !self.calendar.host_free(*host, &cleaned, own))
            }
            Allocation::FloatingIps(ips) => {
                ips.iter().any(|ip| !self.calendar.floating_ip_free(*ip, &window, own))
            }
            Allocation::Slots(slots) => slots.iter().any(|(host, count)| {
                let fits = || {
                    let terms = reservation.terms.slots()?;
                    let used = self.calendar.peak_use(*host, &window, own);
                    Some(self.inventory.host(*host)?.capacity().slots(&used, &terms.size) >= *count)
                };
                !self.calendar.host_open_to_slots(*host, &cleaned, own) || fits() == Some(false)
            }),
        })
    }

    /// Adds the latest end that is possible if some of the `others` move, unless the refusal already has a
    /// later one.
    pub fn ends_later_by_moves(
        &self,
        lease: &Lease,
        changes: &Changes,
        (others, settled): (&[&Lease], Timestamp),
        refusal: Refusal,
    ) -> Refusal {
        let known = match &refusal {
            Refusal::EndsTooLate { latest, .. } => *latest,
            _ => lease.window.end(),
        };
        let Some(asked) = changes.end.filter(|end| *end > known && refusal.is_lack()) else { return refusal };
        let until = |minutes: i64| {
            let end = known.checked_add(SignedDuration::from_mins(minutes)).ok()?;
            let sooner = Changes { end: Some(end), before_end: None, ..changes.clone() };
            let Err(lack) = self.changed(lease, &sooner) else { return Some(end) };
            let wanted = self.wanted_by(lease, &sooner).ok()?;
            let decide = |admission: &Admission<'_>| admission.changed(lease, &sooner);
            let others = others.iter().copied();
            self.replan(others, settled, (&wanted, &lack), decide, |updated| &updated.lease).map(|_| end)
        };
        let latest = greatest(0, asked.duration_since(known).as_mins(), until);
        match self.settled_or_none(latest) {
            Some((_, latest)) => {
                let taken_from = later(latest, self.calendar.cleaning_time());
                let refusal = Box::new(refusal.cause().clone());
                Refusal::EndsTooLate { refusal, taken_from, taken_by: None, latest }
            }
            None => refusal,
        }
    }

    fn growing_less(&self, lease: &Lease, changes: &Changes) -> Option<Lease> {
        let Err(Refusal::NotEnough { position, .. }) = self.changed(lease, changes) else { return None };
        let changed = self.on_changed_terms(lease, changes).ok()?;
        let (before, after) = (lease.reservations.get(position)?, changed.reservations.get(position)?);
        let started = lease.status != LeaseStatus::Pending;
        let had = if started { before.allocation.amount() } else { 0 };
        let with = |number: i64| {
            let number = u32::try_from(number).ok()?;
            let mut changes = changes.clone();
            changes.reservations.push((before.id, number_of(&after.terms, number)?));
            self.updated(lease, &changes)
        };
        greatest(i64::try_from(had).ok()? - 1, i64::from(least(&after.terms)), with).map(|(_, found)| found)
    }
}

/// The longest part of the window for which the request succeeds.
fn shortened<T>(asked: &Terms, given: impl Fn(&Terms) -> Option<T>) -> Option<(Terms, T)> {
    let window = asked.window();
    let lasting = |minutes: i64| {
        let terms = asked.clone().during(lasting(&window, minutes));
        given(&terms).map(|given| (terms, given))
    };
    let all = window.length().as_mins();
    greatest(all / i64::from(SHORTEST_PART), all, lasting).map(|(_, found)| found)
}

/// Minimum number that the reservation needs.
fn least(terms: &ReservationTerms) -> u32 {
    match terms {
        ReservationTerms::Hosts(terms) => terms.min(),
        _ => terms.number(),
    }
}

/// Changes only the number.
fn number_of(terms: &ReservationTerms, number: u32) -> Option<TermsChange> {
    match terms {
        ReservationTerms::Hosts(_) => {
            let (min, max) = (Some(number), Some(number));
            Some(TermsChange::Hosts(HostsChange { min, max, ..HostsChange::default() }))
        }
        ReservationTerms::Instances(_) => {
            let amount = Some(number.try_into().ok()?);
            Some(TermsChange::Instances(InstancesChange { amount, ..InstancesChange::default() }))
        }
        ReservationTerms::Flavor(_) | ReservationTerms::FloatingIps(_) => None,
    }
}

/// A window with the same start and this number of minutes.
fn lasting(window: &Window, minutes: i64) -> Window {
    Window::starting(window.start(), SignedDuration::from_mins(minutes))
}

/// Bisects for the greatest number strictly between `low` and `high` for which `attempt` succeeds, and
/// returns its result. Assumes that an attempt that succeeds also succeeds with every smaller number.
fn greatest<T>(low: i64, high: i64, attempt: impl Fn(i64) -> Option<T>) -> Option<(i64, T)> {
    let (mut low, mut high, mut best) = (low.max(0), high, None);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match attempt(middle) {
            Some(found) => {
                best = Some((middle, found));
                low = middle;
            }
            None => high = middle,
        }
    }
    best
}
