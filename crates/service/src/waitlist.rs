//! The waitlist: requests that were short of capacity, and are promoted to leases in order of creation.
//!
//! Whenever something changes, waiting requests are tried, oldest first. A request that still can't be
//! granted doesn't hold up those behind it.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Refusal};
use leases::ids::LeaseId;
use leases::lease::{Allocation, Lease, NewLease as Identity};
use leases::project::ProjectId;
use leases::standing::Standing;
use leases::terms::ReservationTerms;
use leases::work::Budget;
use store::{Commit, LeaseRecord, NewNotification, StoreError, Write};

use crate::decider::Decider;
use crate::execution::pass_cursor::Known;
use crate::free_pools::end_action;
use crate::leasing::holding::Decision;
use crate::leasing::moving::{decide_new, enter_reallocated, reallocated};
use crate::leasing::proposed::Proposed;
use crate::notices::{self, notice};
use crate::proposals::forget;
use crate::service::Service;
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, NewLease, NotFound, ServiceError};
use crate::writing::audit;

/// A waiting request that becomes a lease.
struct Promotion {
    before: Arc<LeaseRecord>,
    served: LeaseRecord,
    /// Leases that get other hosts to make room for it, before and after.
    moved: Vec<(Arc<LeaseRecord>, LeaseRecord)>,
}

/// Requests that wait for capacity.
#[derive(Clone, Copy, Debug)]
pub struct Waitlist<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Waitlist<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Turns a refused request into a waiting one. Fails if it can't wait.
    pub(crate) fn to_wait(
        self,
        identity: &Identity,
        new: &NewLease,
        refusal: Refusal,
        now: Timestamp,
    ) -> Result<Proposed, ServiceError> {
        if self.service.parts.enforcer.is_some() {
            // The enforcer would have to check hosts that aren't known yet, long after the client has
            // disconnected.
            let text = "There is no waitlist where an external service limits leases";
            return Err(ServiceError::Conflict(format!("{refusal}. {text}.")));
        }
        let state = self.service.state();
        let limit = self.service.decider.settings.waitlist_limit;
        if state.proposals.waiting_of(&identity.owner.project) >= limit {
            let text = format!("{limit} requests of the project are on the waitlist already");
            return Err(ServiceError::Conflict(format!("{refusal}. {text}.")));
        }
        let terms = new.terms.clone();
        let within = terms.within();
        let until = match within {
            Some(within) => within.end().checked_sub(terms.window().length()).unwrap_or(within.end()),
            None => terms.lease_type.deadline().unwrap_or(terms.window().start()),
        };
        if until <= now {
            return Err(refusal.into());
        }
        let nothing = terms.reservations.iter().map(no_allocation).collect();
        let identity = Identity {
            end_action: end_action(&state, new.end_action, self.service.decider.settings.end_action, &[]),
            ..identity.clone()
        };
        let wording = identity.reservations.iter().copied().zip(new.wording.iter().cloned()).collect();
        let lease = Lease::new(identity, terms, nothing, self.service.decider.settings.rules.before_end_lead);
        let lease = lease.standing(Standing::Waiting { until, within });
        let record = LeaseRecord::new(lease, wording, now);
        Ok(Proposed { record, first: Vec::new(), moved: Vec::new() })
    }

    /// Waiting requests with their positions, oldest first, of one project if given. Positions count the
    /// requests of all projects.
    pub fn all(self, project: Option<&ProjectId>) -> Vec<(usize, Arc<LeaseRecord>)> {
        let state = self.service.state();
        let waiting = (1..).zip(state.proposals.waiting());
        let own = waiting.filter(|(_, record)| project.is_none_or(|own| record.lease.owner.project == *own));
        own.map(|(place, record)| (place, record.clone())).collect()
    }

    pub fn get(self, id: LeaseId) -> Option<Arc<LeaseRecord>> {
        waiting(&self.service.state(), id).cloned()
    }

    /// Removes a request from the waitlist.
    pub async fn withdraw(self, caller: &Caller, id: LeaseId) -> Result<(), ServiceError> {
        let stop = |state: &State, now| {
            let record = waiting(state, id).ok_or(ServiceError::NotFound(NotFound::Waiting(id)))?;
            let mut commit = Commit::new(now);
            commit.writes.push(forget(record));
            commit.audit.push(audit(caller, now, notices::WITHDRAWN, &id));
            commit.notifications.push(notice(notices::WITHDRAWN, record));
            Ok(Transaction::of(commit, ()))
        };
        self.service.transact(stop).await
    }

    /// Promotes the first waiting request that can be granted. Returns whether there was one, or a conflict
    /// requires another try.
    pub(crate) async fn promote(self, now: Timestamp) -> Result<bool, StoreError> {
        let holds = |state: &State, Promotion { before, served, moved }: &Promotion| {
            let moved = moved.iter().map(|(before, after)| (Some(&**before), after));
            let decisions: Vec<Decision<'_>> = moved.chain([(None, served)]).collect();
            waiting(state, before.lease.id).is_some()
                && self.service.decider.still_hold(state, &decisions, now)
        };
        let find = |budget: &Budget| self.promotable(now, budget);
        let found =
            self.service.decided_by_pass_for_lease(find, holds, |found| Some(&found.served.lease)).await?;
        let Some((writer, Promotion { before, served, moved })) = found else { return Ok(false) };
        let id = served.lease.id;
        let mut commit = Commit::new(now);
        commit.notifications.push(notice(notices::CREATE, &served));
        commit.notifications.push(notice(notices::SERVED, &served));
        enter_reallocated(&mut commit, moved);
        commit.writes.push(Write::Lease { record: Box::new(served), expected: Some(before.version) });
        match writer.commit(commit).await {
            Ok(()) => {
                tracing::info!(lease = %id, "waitlist request promoted");
                Ok(true)
            }
            Err(store::CommitError::Store(error)) => Err(error),
            // Another commit was first, so try again.
            Err(_) => Ok(true),
        }
    }

    fn promotable(self, now: Timestamp, budget: &Budget) -> Option<Promotion> {
        let state = self.service.snapshot();
        let facts = self.service.decider.host_facts(&state, now);
        let known = (state.revision, facts.occupied.clone());
        if !self.service.decider.any_waiting_to_try(&state, &known) {
            return None;
        }
        let admission = self.service.decider.admission(&state, &facts, now, budget).without_hunts();
        let waiting: Vec<_> = state.proposals.waiting().collect();
        let serve = |record: &Arc<LeaseRecord>| {
            let lease = &record.lease;
            let terms = lease.asked_terms()?;
            let rules = &self.service.decider.settings.housekeeping;
            let identity = Identity {
                id: lease.id,
                name: lease.name.clone(),
                owner: lease.owner.clone(),
                end_action: lease.end_action,
                reservations: lease.reservations.iter().map(|reservation| reservation.id).collect(),
            };
            let lead = self.service.decider.settings.rules.before_end_lead;
            let decide = |admission: &Admission<'_>| -> Result<Lease, Refusal> {
                let grant = admission.grant_usual(&lease.owner.project, &terms, rules)?;
                let served = Lease::new(identity.clone(), grant.terms, grant.allocations, lead);
                self.service.decider.check_stack_of(&state, None, &served)?;
                Ok(served)
            };
            let movable = || self.service.decider.movable(&state, now, None);
            let asked = (&lease.owner.project, &terms);
            let (served, moved) = decide_new(&admission, asked, movable, decide).ok()?;
            let served = record.becomes(served, now);
            Some(Promotion { before: Arc::clone(record), served, moved: reallocated(&state, moved, now) })
        };
        let found = self.service.decider.go_on(|memos| &mut memos.to_serve, &waiting, known, budget, serve);
        found.any()
    }
}

impl Decider {
    /// Whether a request is waiting, and the facts have changed since the last attempt without result.
    pub(crate) fn any_waiting_to_try(&self, state: &State, known: &Known) -> bool {
        state.proposals.waiting().next().is_some() && !self.progress().memos.to_serve.is_without_result(known)
    }
}

fn waiting(state: &State, id: LeaseId) -> Option<&Arc<LeaseRecord>> {
    let waits = |record: &&Arc<LeaseRecord>| matches!(record.lease.standing, Standing::Waiting { .. });
    state.proposals.get(id).filter(waits)
}

/// Notification of a waiting request that expired. `None` for offers.
pub(crate) fn expiry(record: &LeaseRecord) -> Option<NewNotification> {
    matches!(record.lease.standing, Standing::Waiting { .. }).then(|| notice(notices::EXPIRED, record))
}

/// Empty allocation for these terms.
fn no_allocation(terms: &ReservationTerms) -> Allocation {
    match terms {
        ReservationTerms::Hosts(_) => Allocation::Hosts([].into()),
        ReservationTerms::Instances(_) | ReservationTerms::Flavor(_) => Allocation::Slots([].into()),
        ReservationTerms::FloatingIps(_) => Allocation::FloatingIps([].into()),
    }
}
