//! Offers: alternatives to a refused request (CLS-10), held for the refused user for a limited time.
//!
//! The resources of a held offer are booked, so it can be accepted until it expires. It is withdrawn earlier
//! if a lease needs the resources, if its user is refused something else that needs them, or if it is older
//! than a minute and another refusal would have no alternative ([`leases::offer::find_alternatives`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Grant, Offer, OfferedChange};
use leases::calendar::Calendar;
use leases::ids::{LeaseId, OffersId, ReservationId};
use leases::lease::{Allocation, Lease, NewLease as Identity};
use leases::lease_type::LeaseType;
use leases::offer::{
    Alternatives, HeldOffers, OfferKind, beyond_limit, displaced_by, find_alternatives, kept_free,
};
use leases::project::{Owner, ProjectId};
use leases::standing::Standing;
use leases::terms::{ReservationTerms, Terms};
use leases::text::as_written;
use leases::work::Budget;
use store::encoding::requirement_json;
use store::{Commit, LeaseRecord, Wording, Write};

use crate::decider::Decider;
use crate::deciding::never;
use crate::entries::Entry;
use crate::execution::draft::Draft;
use crate::leasing::Leases;
use crate::leasing::proposed::Proposed;
use crate::leasing::update::{Basis, Decided};
use crate::proposals::{by_number, forget};
use crate::service::{Parts, Service};
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, LeaseChanges, NewLease, NotFound, ServiceError};
use crate::writing::{size_of, truncate_to_stored_precision};

/// Cost of copying the calendar with the held offers, per host and per offer.
const COPYING: u64 = 10;

/// Alternatives to a refused request.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Proposed leases, or changed versions of the lease.
    pub offers: Vec<Arc<LeaseRecord>>,
    /// Whether they can be accepted. If so, their resources are kept free until they expire. If not, they are
    /// only suggestions.
    pub held: bool,
}

/// Whether offers are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Not held, only suggested.
    No,
    /// Held for [`offer_hold`](crate::Settings::offer_hold).
    Default,
    /// Held for that duration, unless `offer_hold` is zero.
    For(SignedDuration),
}

impl Hold {
    /// Duration on the service's clock, which runs `rate` times as fast as clients' clocks.
    fn time(self, usual: SignedDuration, rate: u32) -> SignedDuration {
        let time = match self {
            Self::For(asked) => asked,
            Self::No | Self::Default => usual,
        };
        time.saturating_mul(i32::try_from(rate).unwrap_or(i32::MAX))
    }
}

/// Finds, holds and accepts alternatives to refused requests.
#[derive(Clone, Copy, Debug)]
pub struct CounterOffers<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> CounterOffers<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Finds alternatives to a new lease that was refused.
    pub async fn for_lease(
        self,
        caller: &Caller,
        new: &NewLease,
        hold: Hold,
    ) -> Result<Offers, ServiceError> {
        let now = truncate_to_stored_precision(new.asked_at);
        let group = self.new_group(hold, now);
        let find = |state: &State, budget: &Budget| {
            Ok(self.service.decider.find_offers(state, caller, new, group, budget))
        };
        self.make(caller, group, hold, None, find).await
    }

    /// Finds alternatives to a change that was refused.
    pub async fn for_change(
        self,
        caller: &Caller,
        id: LeaseId,
        changes: &LeaseChanges,
        hold: Hold,
    ) -> Result<Offers, ServiceError> {
        let now = truncate_to_stored_precision(changes.asked_at);
        let group = self.new_group(hold, now);
        let find = |state: &State, budget: &Budget| {
            self.service.decider.find_changes(state, caller, id, changes, group, budget)
        };
        self.make(caller, group, hold, Some(id), find).await
    }

    fn new_group(self, hold: Hold, now: Timestamp) -> Group {
        let Parts { ids, clock, .. } = &self.service.parts;
        let hold = hold.time(self.service.decider.settings.offer_hold, clock.rate());
        Group { id: OffersId(ids.uuid()), hold, now }
    }

    async fn make(
        self,
        caller: &Caller,
        group: Group,
        hold: Hold,
        of: Option<LeaseId>,
        find: impl Fn(&State, &Budget) -> Result<Alternatives<LeaseRecord>, ServiceError>,
    ) -> Result<Offers, ServiceError> {
        let find = |budget: &Budget| -> Result<_, ServiceError> {
            let mut alternatives = find(&self.service.snapshot(), budget)?;
            alternatives.found.sort_by_key(by_number);
            Ok(alternatives)
        };
        if hold == Hold::No || self.service.decider.settings.offer_hold.is_zero() {
            let offers = self.service.consider(find).await?.found;
            return Ok(Offers { offers: offers.into_iter().map(Arc::new).collect(), held: false });
        }
        let hold_them = |alternatives: Alternatives<LeaseRecord>| {
            let held = !alternatives.found.is_empty() && self.may_hold(&caller.owner(), group.now);
            let commit = held.then(|| self.held(&caller.owner(), &alternatives, of, group));
            // Offers that are too large for one transaction are suggested but not held.
            let limits = &self.service.decider.settings.writes;
            let commit = commit.filter(|commit| limits.check(size_of(commit, &self.service.state())).is_ok());
            let offers = alternatives.found.into_iter().map(Arc::new).collect();
            let offers = Offers { offers, held: commit.is_some() };
            let Some(commit) = commit else { return Ok(Transaction::none(offers)) };
            let owner = caller.owner();
            Ok(Transaction::of(commit, offers).then(move |service| {
                service.progress().offers_held.note(&owner, group.now);
                service.wake.notify_one();
            }))
        };
        self.service.transact_decided(find, never, hold_them).await
    }

    /// Whether the limits allow holding offers. Beyond them, offers are only suggested.
    fn may_hold(self, owner: &Owner, now: Timestamp) -> bool {
        let limits = self.service.decider.settings.offer_limits;
        limits.at_once > 0 && self.service.progress().offers_held.count(owner, now) < limits.hourly
    }

    /// The commit that holds these offers. It withdraws held offers that conflict with them, and the user's
    /// oldest offers beyond the limit.
    fn held(
        self,
        owner: &Owner,
        alternatives: &Alternatives<LeaseRecord>,
        of: Option<LeaseId>,
        group: Group,
    ) -> Commit {
        let state = self.service.snapshot();
        let own = of.and_then(|id| state.leases.get(id)).map(|record| &record.lease);
        let leases: Vec<&Lease> = alternatives.found.iter().map(|record| &record.lease).collect();
        let mut reservations: Vec<Lease> = Vec::new();
        if let Some(until) = leases.iter().filter_map(|lease| lease.standing.until()).max() {
            let kept = kept_free(&leases, own).into_iter();
            let lease = kept.filter_map(|(window, kept)| self.keeping(owner, window, kept));
            let standing = Standing::Kept { group: group.id, until };
            reservations.extend(lease.map(|lease| lease.standing(standing)));
        }
        let withdrawn = self.withdrawn_for(&state, owner, &reservations, &alternatives.disregarded);
        let mut commit = Commit::new(group.now);
        commit.writes = state.withdrawing_offers(&withdrawn);
        commit.writes.extend(reservations.into_iter().map(|lease| entered(lease, group.now)));
        let offers = alternatives.found.iter();
        let offers = offers.map(|record| Write::Lease { record: Box::new(record.clone()), expected: None });
        commit.writes.extend(offers);
        commit
    }

    /// Groups to withdraw for these reservations: groups of the same user and disregarded groups, if they
    /// need the same resources, and the user's oldest groups beyond the limit.
    fn withdrawn_for(
        self,
        state: &State,
        owner: &Owner,
        reservations: &[Lease],
        disregarded: &BTreeSet<OffersId>,
    ) -> BTreeSet<OffersId> {
        let own: BTreeSet<HeldOffers> =
            state.proposals.held().filter(|(_, to)| *to == owner).map(|(held, _)| held).collect();
        let yields =
            |group: &OffersId| disregarded.contains(group) || own.iter().any(|held| held.group == *group);
        let displaced = reservations
            .iter()
            .flat_map(|lease| displaced_by(lease, &state.offered, &state.calendar, &state.inventory));
        let displaced = displaced.filter_map(|id| state.proposals.get(id)?.lease.standing.group());
        let mut withdrawn: BTreeSet<OffersId> = displaced.filter(yields).collect();
        let rest = own.into_iter().filter(|held| !withdrawn.contains(&held.group));
        let excess = beyond_limit(rest, self.service.decider.settings.offer_limits.at_once);
        withdrawn.extend(excess);
        withdrawn
    }

    /// A lease that reserves these allocations for offers.
    fn keeping(
        self,
        owner: &Owner,
        window: leases::window::Window,
        kept: Vec<(ReservationTerms, Allocation)>,
    ) -> Option<Lease> {
        let (terms, allocations): (Vec<_>, Vec<_>) = kept.into_iter().unzip();
        let ids = &self.service.parts.ids;
        let identity = Identity {
            id: LeaseId(ids.uuid()),
            name: String::new(),
            owner: owner.clone(),
            end_action: self.service.decider.settings.end_action,
            reservations: terms.iter().map(|_| ReservationId(ids.uuid())).collect(),
        };
        // Windows of these allocations aren't empty.
        Some(Lease::new(identity, Terms::new(window, None, terms).ok()?, allocations, None))
    }

    /// Valid offers to a project, or to all projects, newest refusal first.
    pub fn all(self, project: Option<&ProjectId>) -> Vec<Arc<LeaseRecord>> {
        let state = self.service.state();
        let offers = state.proposals.offers(self.service.now()).into_iter();
        offers
            .filter(|record| project.is_none_or(|own| record.lease.owner.project == *own))
            .cloned()
            .collect()
    }

    /// The offer if it is still valid.
    pub fn get(self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        held_offer(&self.service.state(), id, self.service.now()).ok()
    }

    /// Creates the offered lease, or applies the offered change. Withdraws the other offers of the same
    /// refusal.
    pub async fn accept(self, caller: &Caller, id: LeaseId) -> Result<Arc<LeaseRecord>, ServiceError> {
        // Another service might have made the offer.
        self.service.refresh().await?;
        let now = self.service.now();
        let offer = held_offer(&self.service.state(), id, now)?;
        self.service.expect_rewritten(&offer);
        let terms = offer.lease.reservations.iter().map(|reservation| &reservation.terms);
        let observation = self.service.observe_for(offer.lease.window.start(), terms).await;
        let Standing::Offered { of: Some(lease), group, .. } = offer.lease.standing else {
            let decide = |budget: &Budget| Ok(self.accepted(id, now, budget)?.decided_on(observation));
            return Ok(Leases::of(self.service).enter(caller, now, None, decide).await?.lease);
        };
        let decide = |basis: &Basis<'_>, before: &LeaseRecord| {
            let state = basis.state;
            let offer = held_offer(state, id, now)?;
            let facts = self.service.decider.host_facts(state, now);
            let admission = self.service.decider.admission(state, &facts, now, basis.budget);
            let updated = admission.accepted_change(&before.lease, &offer.lease)?;
            self.service.decider.check_stack_of(state, Some(&before.lease), &updated.lease)?;
            let decided = Decided {
                lease: updated.lease,
                wording: offer.wording.clone(),
                before_end_rearmed: updated.before_end_rearmed,
                moved: Vec::new(),
            };
            Ok(decided.on(observation, before))
        };
        Leases::of(self.service).change(caller, lease, now, Some(group), decide).await
    }

    fn accepted(self, id: LeaseId, now: Timestamp, budget: &Budget) -> Result<Proposed, ServiceError> {
        let state = self.service.snapshot();
        let offer = held_offer(&state, id, now)?;
        let first = state.withdrawing_offers(&offer.lease.standing.group().into_iter().collect());
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self.service.decider.admission(&state, &facts, now, budget);
        let lease = admission.accepted(&offer.lease, offer.created_at)?;
        // The project might have got other leases since the offer.
        self.service.decider.check_stack_of(&state, None, &lease)?;
        let record = LeaseRecord { lease, created_at: now, ..LeaseRecord::clone(&offer) };
        Ok(Proposed { record, first, moved: Vec::new() })
    }

    /// Withdraws an offer and the other offers of the same refusal, and frees their resources.
    pub async fn withdraw(self, id: LeaseId) -> Result<(), ServiceError> {
        let withdraw = |state: &State, now| {
            let offer = held_offer(state, id, now)?;
            let writes = state.withdrawing_offers(&offer.lease.standing.group().into_iter().collect());
            Ok(Transaction::of(Commit { writes, ..Commit::new(now) }, ()))
        };
        self.service.transact(withdraw).await
    }
}

impl Decider {
    /// Looks for offers that leave held offers of other users alone. If it finds no offer and the budget
    /// allows it, looks again without the oldest held offers.
    fn beside_held<T>(
        state: &State,
        owner: &Owner,
        now: Timestamp,
        budget: &Budget,
        find: impl Fn(&Calendar) -> Vec<T>,
    ) -> Alternatives<T> {
        let work = COPYING * (state.inventory.hosts().len() + state.proposals.iter().count()) as u64;
        let others = state.proposals.held().filter(|(_, to)| *to != owner).map(|(held, _)| held);
        find_alternatives(others, now, |disregarded| {
            let counts = |record: &LeaseRecord| {
                let group = record.lease.standing.group();
                record.lease.owner != *owner && !group.is_some_and(|group| disregarded.contains(&group))
            };
            if !budget.spend(work) {
                return Vec::new();
            }
            find(&state.calendar_with_offers(counts, now))
        })
    }

    fn find_offers(
        &self,
        state: &State,
        caller: &Caller,
        new: &NewLease,
        group: Group,
        budget: &Budget,
    ) -> Alternatives<LeaseRecord> {
        let (owner, now) = (caller.owner(), group.now);
        let facts = self.host_facts(state, now);
        Self::beside_held(state, &owner, now, budget, |calendar| {
            let admission = self.admission(state, &facts, now, budget).with_calendar(calendar);
            let offers = admission.offers(&owner.project, &new.terms, self.latest_offer(now));
            let record = |Offer { kind, grant }| {
                let identity = self.identify(caller, new);
                let wording = reworded(&identity.reservations, &new.terms, &grant.terms, &new.wording);
                let grant = Grant { terms: accepted_late(grant.terms, group.hold), ..grant };
                let lease = self.lease_of(state, &identity, new.end_action, grant);
                group.offer(lease, wording, kind, None)
            };
            let records = offers.into_iter().map(record);
            alone(records.filter(|record| self.check_stack_of(state, None, &record.lease).is_ok()).collect())
        })
    }

    fn find_changes(
        &self,
        state: &State,
        caller: &Caller,
        id: LeaseId,
        changes: &LeaseChanges,
        group: Group,
        budget: &Budget,
    ) -> Result<Alternatives<LeaseRecord>, ServiceError> {
        let before = state.leases.get(id).ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
        let (owner, now) = (caller.owner(), group.now);
        let facts = self.host_facts(state, now);
        let wording = crate::leasing::update::reworded(&before.wording, &changes.wording);
        Ok(Self::beside_held(state, &owner, now, budget, |calendar| {
            let admission = self.admission(state, &facts, now, budget).with_calendar(calendar);
            let offers = admission.offers_of_change(&before.lease, &changes.changes, self.latest_offer(now));
            let record = |offer: OfferedChange| {
                let lease = Lease { id: LeaseId(self.ids.uuid()), owner: owner.clone(), ..offer.lease };
                group.offer(lease, wording.clone(), offer.kind, Some(id))
            };
            let allowed =
                |record: &LeaseRecord| self.check_stack_of(state, Some(&before.lease), &record.lease).is_ok();
            alone(offers.into_iter().map(record).filter(allowed).collect())
        }))
    }

    fn latest_offer(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.settings.offers_ahead).unwrap_or(Timestamp::MAX)
    }

    /// Forgets expired offers and waiting requests.
    pub(crate) fn expire(&self, draft: &mut Draft) {
        let (state, now) = (draft.state(), draft.now);
        let entry = |record: &Arc<LeaseRecord>| {
            let notifications = crate::waitlist::expiry(record).into_iter().collect();
            let commit = Commit { writes: vec![forget(record)], notifications, ..Commit::new(now) };
            Entry::quiet(commit)
        };
        let expired = state.proposals.expired(now).map(entry).collect();
        drop(state);
        draft.enter(self, expired);
    }
}

/// Offers made for one refusal.
#[derive(Clone, Copy)]
struct Group {
    id: OffersId,
    /// Duration for which they are held.
    hold: SignedDuration,
    now: Timestamp,
}

impl Group {
    fn offer(
        self,
        lease: Lease,
        wording: BTreeMap<ReservationId, Wording>,
        kind: OfferKind,
        of: Option<LeaseId>,
    ) -> LeaseRecord {
        let until = self.now.checked_add(self.hold).unwrap_or(Timestamp::MAX).min(lease.window.end());
        let standing = Standing::Offered { group: self.id, until, kind, of };
        LeaseRecord::new(lease.standing(standing), wording, self.now)
    }
}

/// Moves a best-effort deadline by `hold`, so that an owner who accepts at the last moment still has the
/// requested time.
fn accepted_late(terms: Terms, hold: SignedDuration) -> Terms {
    match terms.lease_type {
        LeaseType::BestEffort { deadline } => {
            let deadline = deadline.checked_add(hold).unwrap_or(Timestamp::MAX);
            terms.of_type(LeaseType::BestEffort { deadline })
        }
        LeaseType::Schedule | LeaseType::Immediate { .. } => terms,
    }
}

/// The offer if it is valid at `now`.
fn held_offer(state: &State, id: LeaseId, now: Timestamp) -> Result<Arc<LeaseRecord>, ServiceError> {
    let offer = state.proposals.get(id).filter(|record| match record.lease.standing {
        Standing::Offered { until, .. } => now < until,
        _ => false,
    });
    offer.cloned().ok_or(ServiceError::NotFound(NotFound::Offer(id)))
}

fn entered(lease: Lease, now: Timestamp) -> Write {
    let wording = BTreeMap::new();
    let record = LeaseRecord::new(lease, wording, now);
    Write::Lease { record: Box::new(record), expected: None }
}

/// Keeps only the first offer if it reserves instance capacity along with something else. Different numbers
/// of slots of different sizes on one host can't all be kept free at once.
fn alone(mut offers: Vec<LeaseRecord>) -> Vec<LeaseRecord> {
    let mixed = |record: &LeaseRecord| {
        let reservations = &record.lease.reservations;
        reservations.len() > 1 && reservations.iter().any(|r| matches!(r.allocation, Allocation::Slots(_)))
    };
    if offers.first().is_some_and(mixed) {
        offers.truncate(1);
    }
    offers
}

/// Wording of an offer: the request's wording, with changed requirements rewritten.
fn reworded(
    ids: &[ReservationId],
    asked: &Terms,
    offered: &Terms,
    wording: &[Wording],
) -> BTreeMap<ReservationId, Wording> {
    let terms = asked.reservations.iter().zip(&offered.reservations);
    let words = terms.zip(wording).map(|((asked, offered), words)| {
        let mut words = words.clone();
        match (asked, offered) {
            (ReservationTerms::Hosts(asked), ReservationTerms::Hosts(offered)) => {
                if asked.resource != offered.resource {
                    words.resource_properties =
                        Some(requirement_json(&offered.resource.renamed(&as_written)).to_string().into());
                }
                if asked.hypervisor != offered.hypervisor {
                    words.hypervisor_properties =
                        Some(requirement_json(&offered.hypervisor.renamed(&as_written)).to_string().into());
                }
            }
            (ReservationTerms::Instances(asked), ReservationTerms::Instances(offered))
                if asked.requirement != offered.requirement =>
            {
                words.resource_properties =
                    Some(requirement_json(&offered.requirement.renamed(&as_written)).to_string().into());
            }
            _ => {}
        }
        words
    });
    ids.iter().copied().zip(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_are_held_in_the_time_of_clients() {
        let (usual, asked) = (SignedDuration::from_mins(1), SignedDuration::from_mins(10));
        for (hold, minutes) in [(Hold::Default, 1), (Hold::No, 1), (Hold::For(asked), 10)] {
            assert_eq!(hold.time(usual, 1), SignedDuration::from_mins(minutes));
            assert_eq!(hold.time(usual, 60), SignedDuration::from_hours(minutes));
        }
    }
}
