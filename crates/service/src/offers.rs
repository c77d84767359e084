//! Offers: what could be had instead of what was refused (CLS-10), kept free for a while for who was refused.
//!
//! Who asks for something else takes back what was offered to them before. An offer that is held can be accepted until
//! its time is over, whatever others do meanwhile: what it needs is booked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Grant, Offer};
use leases::ids::{LeaseId, OffersId, ReservationId};
use leases::lease::{Allocation, Lease, NewLease as Identity};
use leases::lease_type::LeaseType;
use leases::offer::{OfferKind, kept_free};
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
use crate::leasing::update::{Decided, Ground};
use crate::proposals::forget;
use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, LeaseChanges, NewLease, NotFound, ServiceError};
use crate::writing::{as_stored, size_of};

/// What could be had.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    /// Leases as they would be, or become.
    pub offers: Vec<Arc<LeaseRecord>>,
    /// Whether they can be accepted: what they need is kept free until they end. If not, they are only said.
    pub held: bool,
}

/// Offers of what is available instead of what was refused.
#[derive(Clone, Copy, Debug)]
pub struct CounterOffers<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> CounterOffers<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// What could be had instead of a new lease that was refused. If `hold`, it is kept free for a while.
    pub async fn for_lease(
        self,
        caller: &Caller,
        new: &NewLease,
        hold: bool,
    ) -> Result<Offers, ServiceError> {
        let now = as_stored(new.asked_at);
        let find = |state: &State, budget: &Budget| {
            Ok(self.service.decider.find_offers(state, caller, new, now, budget))
        };
        self.make(caller, now, hold, None, find).await
    }

    /// What a lease could become instead of what was refused. If `hold`, it is kept free for a while.
    pub async fn for_change(
        self,
        caller: &Caller,
        id: LeaseId,
        changes: &LeaseChanges,
        hold: bool,
    ) -> Result<Offers, ServiceError> {
        let now = as_stored(changes.asked_at);
        let find = |state: &State, budget: &Budget| {
            self.service.decider.find_changes(state, caller, id, changes, now, budget)
        };
        self.make(caller, now, hold, Some(id), find).await
    }

    async fn make(
        self,
        caller: &Caller,
        now: Timestamp,
        hold: bool,
        of: Option<LeaseId>,
        find: impl Fn(&State, &Budget) -> Result<Vec<LeaseRecord>, ServiceError>,
    ) -> Result<Offers, ServiceError> {
        let hold = hold && !self.service.decider.settings.offer_hold.is_zero();
        if !hold {
            let offers = self.service.consider(|budget| find(&self.service.snapshot(), budget)).await?;
            let offers = offers.into_iter().map(Arc::new).collect();
            return Ok(Offers { offers, held: false });
        }
        let hold_them = |found: Vec<LeaseRecord>| {
            let held = !found.is_empty() && self.may_hold(&caller.owner(), now);
            let commit = held.then(|| self.held(&caller.owner(), &found, of, now));
            // What is too much for one transaction is offered, and not held.
            let limits = &self.service.decider.settings.writes;
            let commit = commit.filter(|commit| limits.check(size_of(commit, &self.service.state())).is_ok());
            let offers = Offers { offers: found.into_iter().map(Arc::new).collect(), held: commit.is_some() };
            let Some(commit) = commit else { return Ok(Transaction::none(offers)) };
            let project = caller.project.clone();
            Ok(Transaction::of(commit, offers).then(move |service| {
                service.progress().offers_held.note(&project, now);
                service.wake.notify_one();
            }))
        };
        self.service.transact_decided(|budget| find(&self.service.snapshot(), budget), never, hold_them).await
    }

    /// Whether offers to the user may be held: a project has at most so many held at once, those that the new ones would
    /// replace not counted, and at most so many in an hour. Beyond that, offers are said and not held.
    fn may_hold(self, owner: &Owner, now: Timestamp) -> bool {
        let limits = self.service.decider.settings.offer_limits;
        let state = self.service.state();
        let reserved = state.proposals.reserved().filter(|record| record.lease.owner != *owner);
        let of_project = reserved.filter(|record| record.lease.owner.project == owner.project);
        let groups: BTreeSet<_> = of_project.filter_map(|record| record.lease.standing.group()).collect();
        groups.len() < limits.at_once
            && self.service.progress().offers_held.count(&owner.project, now) < limits.hourly
    }

    /// What has them hold, instead of those that there were.
    fn held(self, owner: &Owner, offers: &[LeaseRecord], of: Option<LeaseId>, now: Timestamp) -> Commit {
        let state = self.service.snapshot();
        let mut commit = Commit::new(now);
        commit.writes = state.withdrawing_offers(owner, None);
        let own = of.and_then(|id| state.leases.get(id)).map(|record| &record.lease);
        let leases: Vec<&Lease> = offers.iter().map(|record| &record.lease).collect();
        if let Some(standing) = leases.first().map(|lease| lease.standing)
            && let (Some(group), Some(until)) = (standing.group(), standing.until())
        {
            for (window, kept) in kept_free(&leases, own) {
                let lease = self.keeping(owner, window, kept);
                let lease = lease.map(|lease| lease.standing(Standing::Kept { group, until }));
                commit.writes.extend(lease.map(|lease| entered(lease, now)));
            }
        }
        let offers =
            offers.iter().map(|record| Write::Lease { record: Box::new(record.clone()), expected: None });
        commit.writes.extend(offers);
        commit
    }

    /// A lease that keeps this free.
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
        // Windows of what is kept are not empty.
        Some(Lease::new(identity, Terms::new(window, None, terms).ok()?, allocations, None))
    }

    /// Offers to a project that hold, those first that end first; of all projects, if none is given.
    pub fn all(self, project: Option<&ProjectId>) -> Vec<Arc<LeaseRecord>> {
        let state = self.service.state();
        let offers = state.proposals.offers(self.service.now());
        offers
            .filter(|record| project.is_none_or(|own| record.lease.owner.project == *own))
            .cloned()
            .collect()
    }

    /// An offer that holds.
    pub fn get(self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        held_offer(&self.service.state(), id, self.service.now()).ok()
    }

    /// Makes the lease that was offered, or changes it so. The other offers that were made with it are withdrawn.
    pub async fn accept(self, caller: &Caller, id: LeaseId) -> Result<Arc<LeaseRecord>, ServiceError> {
        // It may be another service that made it.
        self.service.refresh().await?;
        let now = self.service.now();
        let offer = held_offer(&self.service.state(), id, now)?;
        self.service.expect_rewritten(&offer);
        let terms = offer.lease.reservations.iter().map(|reservation| &reservation.terms);
        let observation = self.service.observe_for(offer.lease.window.start(), terms).await;
        let Standing::Offered { of: Some(lease), group, .. } = offer.lease.standing else {
            let decide =
                |budget: &Budget| Ok(self.accepted(caller, id, now, budget)?.decided_on(observation));
            return Ok(Leases::of(self.service).enter(caller, now, None, decide).await?.lease);
        };
        let decide = |ground: &Ground<'_>, before: &LeaseRecord| {
            let state = ground.state;
            let offer = held_offer(state, id, now)?;
            let facts = self.service.decider.host_facts(state, now);
            let admission = self.service.decider.admission(state, &facts, now, ground.budget);
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

    fn accepted(
        self,
        caller: &Caller,
        id: LeaseId,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Proposed, ServiceError> {
        let state = self.service.snapshot();
        let offer = held_offer(&state, id, now)?;
        let first = state.withdrawing_offers(&caller.owner(), offer.lease.standing.group());
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self.service.decider.admission(&state, &facts, now, budget);
        let lease = admission.accepted(&offer.lease)?;
        // The project may have other leases since.
        self.service.decider.check_stack_of(&state, None, &lease)?;
        let record = LeaseRecord { lease, created_at: now, ..LeaseRecord::clone(&offer) };
        Ok(Proposed { record, first, moved: Vec::new() })
    }

    /// Gives back what is kept free for an offer and those that were made with it.
    pub async fn withdraw(self, id: LeaseId) -> Result<(), ServiceError> {
        let withdraw = |state: &State, now| {
            let offer = held_offer(state, id, now)?;
            let group = offer.lease.standing.group();
            let writes = state.withdrawing_offers(&offer.lease.owner, group);
            Ok(Transaction::of(Commit { writes, ..Commit::new(now) }, ()))
        };
        self.service.transact(withdraw).await
    }
}

impl Decider {
    fn find_offers(
        &self,
        state: &State,
        caller: &Caller,
        new: &NewLease,
        now: Timestamp,
        budget: &Budget,
    ) -> Vec<LeaseRecord> {
        let owner = caller.owner();
        let calendar = state.calendar_with_offers(Some(&owner), now);
        let facts = self.host_facts(state, now);
        let admission = self.admission(state, &facts, now, budget).with_calendar(&calendar);
        let offers = admission.offers(&owner.project, &new.terms, self.latest_offer(now));
        let group = OffersId(self.ids.uuid());
        let record = |Offer { kind, grant }| {
            let identity = self.identify(caller, new);
            let wording = reworded(&identity.reservations, &new.terms, &grant.terms, &new.wording);
            let grant = Grant { terms: self.accepted_late(grant.terms), ..grant };
            let lease = self.lease_of(state, &identity, new.end_action, grant);
            self.offered(lease, wording, group, kind, None, now)
        };
        let records = offers.into_iter().map(record);
        alone(records.filter(|record| self.check_stack_of(state, None, &record.lease).is_ok()).collect())
    }

    fn find_changes(
        &self,
        state: &State,
        caller: &Caller,
        id: LeaseId,
        changes: &LeaseChanges,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Vec<LeaseRecord>, ServiceError> {
        let before = state.leases.get(id).ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
        let owner = caller.owner();
        let calendar = state.calendar_with_offers(Some(&owner), now);
        let facts = self.host_facts(state, now);
        let admission = self.admission(state, &facts, now, budget).with_calendar(&calendar);
        let offers = admission.offers_of_change(&before.lease, &changes.changes, self.latest_offer(now));
        let group = OffersId(self.ids.uuid());
        let wording = crate::leasing::update::reworded(&before.wording, &changes.wording);
        let record = |offer: leases::admission::OfferedChange| {
            let lease = Lease { id: LeaseId(self.ids.uuid()), owner: owner.clone(), ..offer.lease };
            self.offered(lease, wording.clone(), group, offer.kind, Some(id), now)
        };
        let allowed =
            |record: &LeaseRecord| self.check_stack_of(state, Some(&before.lease), &record.lease).is_ok();
        Ok(alone(offers.into_iter().map(record).filter(allowed).collect()))
    }

    /// Terms with a timeout that is as long after the end of the offer as it is after the offer was made.
    fn accepted_late(&self, terms: Terms) -> Terms {
        match terms.lease_type {
            LeaseType::BestEffort { deadline } => {
                let deadline = deadline.checked_add(self.settings.offer_hold).unwrap_or(Timestamp::MAX);
                terms.of_type(LeaseType::BestEffort { deadline })
            }
            LeaseType::Schedule | LeaseType::Immediate { .. } => terms,
        }
    }

    fn latest_offer(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.settings.offers_ahead).unwrap_or(Timestamp::MAX)
    }

    fn offered(
        &self,
        lease: Lease,
        wording: BTreeMap<ReservationId, Wording>,
        group: OffersId,
        kind: OfferKind,
        of: Option<LeaseId>,
        now: Timestamp,
    ) -> LeaseRecord {
        let until = now.checked_add(self.settings.offer_hold).unwrap_or(Timestamp::MAX);
        let lease = lease.standing(Standing::Offered { group, until, kind, of });
        LeaseRecord::new(lease, wording, now)
    }

    /// Forgets offers and requests whose time is over. Says whether there were any.
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

/// An offer that holds at that instant.
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

/// Where room for instances is reserved beside something else, only the first offer: what different numbers of slots of
/// different sizes need on one host cannot be kept free for all of them at once.
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

/// The words of an offer: those of the request, but for requirements that are different.
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
