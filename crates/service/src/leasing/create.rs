//! Making a lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::{Admission, Grant};
use leases::ids::{LeaseId, ReservationId};
use leases::lease::{self, Lease};
use leases::lease_type::LeaseType;
use leases::project::Owner;
use store::{Commit, IdempotencyRecord, LeaseRecord, Version, Write};

use super::Neighbours;
use super::enforcing::{Question, granted};
use crate::free_pools::end_action;
use crate::notices::{self, notice};
use crate::writing::{ATTEMPTS, Writer, as_stored, audit, decide_again, overtaken};
use crate::{Caller, Created, IdempotencyKey, NewLease, NotFound, Service, ServiceError};

impl Service {
    /// Makes a lease. A request with a key that was served before gets the same answer.
    pub async fn create_lease(
        &self,
        caller: &Caller,
        new: NewLease,
        key: Option<IdempotencyKey>,
    ) -> Result<Created, ServiceError> {
        let now = as_stored(new.asked_at);
        let identity = self.identify(caller, &new);
        let mut approved: Option<Lease> = None;
        for _ in 0..ATTEMPTS {
            let writer = self.writer().await?;
            if let Some(key) = &key
                && let Some(created) = self.recorded(caller, key, now).await?
            {
                return Ok(created);
            }
            let record = Arc::new(self.propose(&identity, &new, now)?);
            if let Some(enforcer) = &self.parts.enforcer
                && approved.as_ref() != Some(&record.lease)
            {
                let question = Question::Create(granted(&self.state(), record.clone()));
                drop(writer);
                self.ask(enforcer.as_ref(), caller, &question).await?;
                approved = Some(record.lease.clone());
                continue;
            }
            match self.enter(&writer, caller, &record, key.as_ref()).await {
                Ok(()) => {
                    self.wake_if_soon(record.lease.window.start());
                    return Ok(Created { lease: record, repeated: false });
                }
                Err(error) => decide_again(error)?,
            }
        }
        Err(overtaken())
    }

    /// The lease as it would be made at this moment; nothing is. Whoever limits leases from outside is not asked.
    pub fn preview_lease(&self, caller: &Caller, new: &NewLease) -> Result<LeaseRecord, ServiceError> {
        self.propose(&self.identify(caller, new), new, as_stored(new.asked_at))
    }

    /// Identifiers for the lease and its reservations: the same however often it is decided.
    fn identify(&self, caller: &Caller, new: &NewLease) -> lease::NewLease {
        let ids = &self.parts.ids;
        lease::NewLease {
            id: LeaseId(ids.uuid()),
            name: new.name.clone(),
            owner: Owner { project: caller.project.clone(), user: caller.user.clone() },
            end_action: new.end_action.unwrap_or(self.settings.end_action),
            reservations: new.terms.reservations.iter().map(|_| ReservationId(ids.uuid())).collect(),
        }
    }

    /// What was made for an earlier request with that key. Whoever has to look at more than the request itself
    /// to read it asks this first: a repetition is answered from the record, whatever has changed since.
    pub async fn served_before(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Created>, ServiceError> {
        // In its turn, so that a lease that was committed is also there to be seen.
        let _writer = self.writer().await?;
        self.recorded(caller, key, now).await
    }

    /// The same, in the turn of the caller.
    async fn recorded(
        &self,
        caller: &Caller,
        key: &IdempotencyKey,
        now: Timestamp,
    ) -> Result<Option<Created>, ServiceError> {
        let Some(record) = self.parts.store.idempotent(&caller.project, &key.key, now).await? else {
            return Ok(None);
        };
        if record.fingerprint != key.fingerprint {
            return Err(ServiceError::KeyReused(key.key.clone()));
        }
        // It may have been deleted since; making another would not be a repetition.
        let lease = self.lease(record.lease).ok_or(ServiceError::NotFound(NotFound::Lease(record.lease)))?;
        Ok(Some(Created { lease, repeated: true }))
    }

    /// The lease as it would be.
    fn propose(
        &self,
        identity: &lease::NewLease,
        new: &NewLease,
        now: Timestamp,
    ) -> Result<LeaseRecord, ServiceError> {
        let state = self.state();
        // Who asks for a date does not need to know.
        let neighbours = (new.terms.lease_type != LeaseType::Schedule).then(|| self.neighbours(&state));
        let occupied = neighbours.as_ref().map(|neighbours| &neighbours.occupied);
        let surroundings = neighbours.as_ref().map(Neighbours::surroundings);
        let used = neighbours.as_ref().map(Neighbours::used);
        let admission =
            Admission { surroundings, used: used.as_ref(), ..self.admission(&state, occupied, now) };
        let project = &identity.owner.project;
        let Grant { terms, allocations, hunt } =
            admission.grant_usual(project, &new.terms, &self.settings.housekeeping)?;
        self.check_stack(&state, project, None, &terms.window(), allocations.iter())?;
        let wording = identity.reservations.iter().copied().zip(new.wording.iter().cloned()).collect();
        let lead = admission.rules.before_end_lead;
        let action = end_action(&state, new.end_action, self.settings.end_action, &allocations);
        let identity = lease::NewLease { end_action: action, ..identity.clone() };
        let lease = Lease::new(identity, terms, allocations, lead).hunting(hunt);
        Ok(LeaseRecord { lease, wording, version: Version::FIRST, created_at: now, updated_at: None })
    }

    async fn enter(
        &self,
        writer: &Writer<'_>,
        caller: &Caller,
        record: &LeaseRecord,
        key: Option<&IdempotencyKey>,
    ) -> Result<(), store::CommitError> {
        let at = record.created_at;
        let mut commit = Commit::new(at);
        commit.writes.push(Write::Lease { record: Box::new(record.clone()), expected: None });
        commit.audit.push(audit(caller, at, notices::CREATE, &record.lease.id));
        commit.notifications.push(notice(notices::CREATE, record));
        commit.idempotency = key.map(|key| IdempotencyRecord {
            project: caller.project.clone(),
            key: key.key.clone(),
            fingerprint: key.fingerprint.clone(),
            lease: record.lease.id,
            at,
        });
        writer.commit(commit).await
    }
}
