//! Creating a lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Grant, Refusal};
use leases::ids::{LeaseId, ReservationId};
use leases::lease::{self, EndAction, Lease};
use leases::quota::LeaseUse;
use leases::terms::Terms;
use leases::work::Budget;
use store::{Commit, IdempotencyRecord, LeaseRecord, Write};

use super::Leases;
use super::enforcing::{Question, granted};
use super::holding::Decision;
use super::moving::{decide_new, enter_reallocated, reallocated};
use super::proposed::Proposed;
use crate::decider::Decider;
use crate::execution::sight::Observation;
use crate::free_pools::end_action;
use crate::notices::{self, notice};
use crate::state::State;
use crate::transact::ATTEMPTS;
use crate::types::{Caller, Created, IdempotencyKey, NewLease, NotFound, ServiceError};
use crate::waitlist::Waitlist;
use crate::writing::{audit, conflict_error, retry_on_conflict, truncate_to_stored_precision};

impl Leases<'_> {
    /// Creates a lease. A request with a known idempotency key gets the same answer again. If capacity is
    /// short and the owner prefers to wait, the answer is a request on the waitlist.
    pub async fn create(
        self,
        caller: &Caller,
        new: NewLease,
        key: Option<IdempotencyKey>,
    ) -> Result<Created, ServiceError> {
        let now = truncate_to_stored_precision(new.asked_at);
        let identity = self.service.decider.identify(caller, &new);
        self.check_size(&new, 1)?;
        let observation = self.observe_for_new(&new).await;
        let decide = |budget: &Budget| {
            let proposed = self.propose_or_wait(&identity, &new, now, budget)?;
            Ok(proposed.decided_on(observation))
        };
        let created = self.enter(caller, now, key.as_ref(), decide).await;
        created.inspect_err(|error| self.service.count_refusal(caller, &new, error))
    }

    /// Decides, asks the external enforcer if there is one, and commits.
    pub(crate) async fn enter(
        self,
        caller: &Caller,
        now: Timestamp,
        key: Option<&IdempotencyKey>,
        decide: impl Fn(&Budget) -> Result<Proposed, ServiceError>,
    ) -> Result<Created, ServiceError> {
        let mut approved: Option<Lease> = None;
        for _ in 0..ATTEMPTS {
            let decided = self
                .service
                .decided(&decide, |state, proposed| self.proposal_holds(state, proposed, now))
                .await;
            // A repeated request is answered like the first one, even if it would be decided differently now.
            if let Some(key) = key {
                let served = match &decided {
                    Ok(_) => self.recorded(caller, key, now).await?,
                    Err(_) => self.served_before(caller, key, now).await?,
                };
                if let Some(created) = served {
                    return Ok(created);
                }
            }
            let (writer, proposed) = decided?;
            let record = Arc::new(proposed.record.clone());
            if let Some(enforcer) = &self.service.parts.enforcer
                && approved.as_ref() != Some(&record.lease)
            {
                let question = Question::Create(granted(&self.service.state(), record.clone()));
                drop(writer);
                self.ask(enforcer.as_ref(), caller, &question).await?;
                approved = Some(record.lease.clone());
                continue;
            }
            match writer.commit_request(entered(caller, proposed, key)).await {
                Ok(()) => {
                    if self.service.decider.abilities.prepares {
                        self.service.wake.notify_one();
                    } else {
                        self.service.wake_if_soon(record.lease.window.start());
                    }
                    return Ok(Created { lease: record, repeated: false });
                }
                Err(error) => retry_on_conflict(error)?,
            }
        }
        Err(conflict_error())
    }

    /// The lease that this request would get now. Neither creates it nor asks the external enforcer.
    pub async fn preview(self, caller: &Caller, new: &NewLease) -> Result<LeaseRecord, ServiceError> {
        self.check_size(new, 1)?;
        let (identity, now) =
            (self.service.decider.identify(caller, new), truncate_to_stored_precision(new.asked_at));
        let observation = self.observe_for_new(new).await;
        let propose = |budget: &Budget| {
            let proposed = self.propose(&identity, new, now, budget);
            proposed.map_err(|error| self.with_quota(&identity, new, error))
        };
        let proposed = self.service.consider(propose).await;
        let proposed = proposed.inspect_err(|error| self.service.count_refusal(caller, new, error))?;
        Ok(proposed.decided_on(observation).record)
    }

    /// A hint for a refusal of these terms if the fleet doesn't answer and the decision was based on an old
    /// observation.
    pub fn stale_hint(self, terms: &Terms) -> Option<String> {
        self.service.stale_hint(terms.window().start(), &terms.reservations)
    }

    /// Observes the hosts first if the lease starts immediately.
    async fn observe_for_new(self, new: &NewLease) -> Observation {
        self.service.observe_for(new.terms.window().start(), &new.terms.reservations).await
    }

    /// Rejects a request for `times` of these leases if it would write too much.
    pub(super) fn check_size(self, new: &NewLease, times: usize) -> Result<(), ServiceError> {
        let reservations = new.terms.reservations.iter().zip(new.wording.iter().map(Some));
        Ok(self.service.check_writes(reservations, &new.terms.hints, times)?)
    }

    /// The lease of an earlier request with that key. Callers that need more than the request itself to parse
    /// it ask this first: a repetition is answered from the record, even if the world has changed since.
    pub async fn served_before(
        self,
        caller: &Caller,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Created>, ServiceError> {
        // Loads the committed lease into memory.
        self.service.update().await?;
        self.recorded(caller, key, now).await
    }

    /// Like [`Self::served_before`], but finds the lease only if it's already in memory.
    pub(crate) async fn recorded(
        self,
        caller: &Caller,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Created>, ServiceError> {
        // Reads one row by its key with the write lock held, so it doesn't wait for a place to read the
        // store.
        let Some(record) = self.service.parts.store.idempotent(&caller.project, &key.key, now).await? else {
            return Ok(None);
        };
        if record.fingerprint != key.fingerprint {
            return Err(ServiceError::KeyReused(key.key.clone()));
        }
        // The lease might have been deleted since. Creating another one would not be a repetition.
        let lease = self.get(record.lease).or_else(|| Waitlist::of(self.service).get(record.lease));
        let lease = lease.ok_or(ServiceError::NotFound(NotFound::Lease(record.lease)))?;
        Ok(Some(Created { lease, repeated: true }))
    }

    /// Proposes the lease, or a waiting request if capacity is short and the request can wait.
    fn propose_or_wait(
        self,
        identity: &lease::NewLease,
        new: &NewLease,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Proposed, ServiceError> {
        match self.propose(identity, new, now, budget) {
            Err(ServiceError::Refused(refusal)) if new.waits && refusal.is_lack() => {
                Waitlist::of(self.service).to_wait(identity, new, refusal, now)
            }
            decided => decided.map_err(|error| self.with_quota(identity, new, error)),
        }
    }

    /// Adds the quota to an error that reports a lack of capacity, if it would refuse the request as well.
    fn with_quota(self, identity: &lease::NewLease, new: &NewLease, error: ServiceError) -> ServiceError {
        match error {
            ServiceError::Refused(refusal) => {
                let (project, asked) = (&identity.owner.project, LeaseUse::least_of(&new.terms));
                let state = self.service.snapshot();
                self.service.decider.with_quota(&state, project, (None, &asked), &[], refusal).into()
            }
            error => error,
        }
    }

    /// Whether the proposal is still valid with the leases that exist now.
    fn proposal_holds(self, state: &State, proposed: &Proposed, now: Timestamp) -> bool {
        let moved = proposed.moved.iter().map(|(before, after)| (Some(&**before), after));
        let decisions: Vec<Decision<'_>> = moved.chain([(None, &proposed.record)]).collect();
        self.service.decider.still_hold(state, &decisions, now)
    }

    fn propose(
        self,
        identity: &lease::NewLease,
        new: &NewLease,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<Proposed, ServiceError> {
        let state = self.service.snapshot();
        let facts = self.service.decider.host_facts(&state, now);
        let admission = self.service.decider.admission(&state, &facts, now, budget);
        let decide = |admission: &Admission<'_>| -> Result<Lease, Refusal> {
            let project = &identity.owner.project;
            let grant =
                admission.grant_usual(project, &new.terms, &self.service.decider.settings.housekeeping)?;
            let lease = self.service.decider.lease_of(&state, identity, new.end_action, grant);
            self.service.decider.check_stack_of(&state, None, &lease)?;
            Ok(lease)
        };
        let movable = || self.service.decider.movable(&state, now, None);
        let asked = (&identity.owner.project, &new.terms);
        let (lease, moved) = decide_new(&admission, asked, movable, decide)?;
        let wording = identity.reservations.iter().copied().zip(new.wording.iter().cloned()).collect();
        let record = LeaseRecord::new(lease, wording, now);
        Ok(Proposed { record, first: Vec::new(), moved: reallocated(&state, moved, now) })
    }
}

impl Decider {
    /// Draws identifiers for the lease and its reservations. They stay the same when the decision is
    /// repeated.
    pub(crate) fn identify(&self, caller: &Caller, new: &NewLease) -> lease::NewLease {
        let ids = &self.ids;
        lease::NewLease {
            id: LeaseId(ids.uuid()),
            name: new.name.clone(),
            owner: caller.owner(),
            end_action: new.end_action.unwrap_or(self.settings.end_action),
            reservations: new.terms.reservations.iter().map(|_| ReservationId(ids.uuid())).collect(),
        }
    }

    pub(crate) fn lease_of(
        &self,
        state: &State,
        identity: &lease::NewLease,
        asked: Option<EndAction>,
        grant: Grant,
    ) -> Lease {
        let end_action = end_action(state, asked, self.settings.end_action, &grant.allocations);
        let identity = lease::NewLease { end_action, ..identity.clone() };
        let lead = self.settings.rules.before_end_lead;
        Lease::new(identity, grant.terms, grant.allocations, lead)
            .hunting(grant.hunt)
            .cleared_ahead(self.settings.plan_rules.clear_ahead)
    }
}

/// The commit that adds the lease or the waiting request.
fn entered(caller: &Caller, proposed: Proposed, key: Option<&IdempotencyKey>) -> Commit {
    let Proposed { record, first, moved } = proposed;
    let mut commit = Commit::new(record.created_at);
    commit.writes = first;
    enter_reallocated(&mut commit, moved);
    commit.idempotency = key.map(|key| remembered(caller, key, &record));
    enter(&mut commit, caller, record);
    commit
}

/// Adds a new lease or a waiting request to a commit.
pub(super) fn enter(commit: &mut Commit, caller: &Caller, record: LeaseRecord) {
    let event = if record.lease.standing.is_firm() { notices::CREATE } else { notices::WAITS };
    commit.audit.push(audit(caller, commit.at, event, &record.lease.id));
    commit.notifications.push(notice(event, &record));
    commit.writes.push(Write::Lease { record: Box::new(record), expected: None });
}

/// The record that identifies repetitions of this request.
pub(super) fn remembered(caller: &Caller, key: &IdempotencyKey, record: &LeaseRecord) -> IdempotencyRecord {
    IdempotencyRecord {
        project: caller.project.clone(),
        key: key.key.clone(),
        fingerprint: key.fingerprint.clone(),
        lease: record.lease.id,
        at: record.created_at,
    }
}
