//! Changing a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use leases::admission::Updated;
use leases::ids::{LeaseId, ReservationId};
use leases::lease::Lease;
use store::{Commit, LeaseRecord, Wording, Write};

use super::enforcing::{Question, granted};
use crate::notices::{self, notice};
use crate::state::State;
use crate::writing::{ATTEMPTS, as_stored, audit, decide_again, overtaken};
use crate::{Caller, LeaseChanges, NotFound, Service, ServiceError};

/// The words of reservations.
pub(crate) type Words = BTreeMap<ReservationId, Wording>;

/// A change that can be had.
struct Change {
    before: Arc<LeaseRecord>,
    after: Arc<LeaseRecord>,
    before_end_rearmed: bool,
}

impl Change {
    /// Nothing but the name is different: nobody is asked or told.
    fn renames_only(&self) -> bool {
        let renamed = Lease { name: self.after.lease.name.clone(), ..self.before.lease.clone() };
        renamed == self.after.lease && self.before.wording == self.after.wording
    }
}

impl Service {
    /// Changes a lease. Either all of the change can be had, or nothing happens.
    pub async fn update_lease(
        &self,
        caller: &Caller,
        id: LeaseId,
        changes: LeaseChanges,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let now = as_stored(changes.asked_at);
        let decide = |state: &State, before: &LeaseRecord| self.updated(state, before, &changes, now);
        self.change_lease(caller, id, now, decide).await
    }

    /// The lease as it would be after a change at this moment; nothing is changed. Whoever limits leases from outside is
    /// not asked.
    pub fn preview_update(
        &self,
        id: LeaseId,
        changes: &LeaseChanges,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let now = as_stored(changes.asked_at);
        let decide = |state: &State, before: &LeaseRecord| self.updated(state, before, changes, now);
        Ok(self.propose_change(id, decide, now)?.after)
    }

    fn updated(
        &self,
        state: &State,
        before: &LeaseRecord,
        changes: &LeaseChanges,
        now: Timestamp,
    ) -> Result<(Updated, Words), ServiceError> {
        let updated = self.admission(state, None, now).update(&before.lease, &changes.changes)?;
        let (after, project) = (&updated.lease, &before.lease.owner.project);
        let given = after.reservations.iter().map(|reservation| &reservation.allocation);
        self.check_stack(state, project, Some(&before.lease), &after.window, given)?;
        Ok((updated, reworded(&before.wording, &changes.wording)))
    }

    /// Has a lease become what is decided, if whoever limits leases agrees.
    pub(crate) async fn change_lease(
        &self,
        caller: &Caller,
        id: LeaseId,
        now: Timestamp,
        decide: impl Fn(&State, &LeaseRecord) -> Result<(Updated, Words), ServiceError>,
    ) -> Result<Arc<LeaseRecord>, ServiceError> {
        let mut approved: Option<Lease> = None;
        for _ in 0..ATTEMPTS {
            let writer = self.writer().await?;
            let change = self.propose_change(id, &decide, now)?;
            let (before, after) = (&change.before, &change.after);
            if before.lease == after.lease && before.wording == after.wording {
                return Ok(before.clone());
            }
            if let Some(enforcer) = &self.parts.enforcer
                && !change.renames_only()
                && approved.as_ref() != Some(&after.lease)
            {
                let question = self.question(&change);
                drop(writer);
                self.ask(enforcer.as_ref(), caller, &question).await?;
                approved = Some(after.lease.clone());
                continue;
            }
            match writer.commit(commit_of(caller, &change, now)).await {
                Ok(()) => {
                    self.wake.notify_one();
                    return Ok(change.after);
                }
                Err(error) => decide_again(error)?,
            }
        }
        Err(overtaken())
    }

    fn question(&self, change: &Change) -> Question {
        let state = self.state();
        Question::Update(granted(&state, change.before.clone()), granted(&state, change.after.clone()))
    }

    /// What the lease would become.
    fn propose_change(
        &self,
        id: LeaseId,
        decide: impl Fn(&State, &LeaseRecord) -> Result<(Updated, Words), ServiceError>,
        now: Timestamp,
    ) -> Result<Change, ServiceError> {
        let state = self.state();
        let before = state.leases.get(id).cloned().ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
        let (updated, wording) = decide(&state, &before)?;
        let after = LeaseRecord {
            lease: updated.lease,
            wording,
            version: before.version.next(),
            created_at: before.created_at,
            updated_at: Some(now),
        };
        Ok(Change { before, after: Arc::new(after), before_end_rearmed: updated.before_end_rearmed })
    }
}

/// The old words with the new ones in their places. There are none for reservations that do not exist: those
/// were refused.
fn reworded(old: &Words, new: &Words) -> Words {
    let mut all = old.clone();
    for (id, new) in new {
        let words = all.entry(*id).or_default();
        if new.hypervisor_properties.is_some() {
            words.hypervisor_properties.clone_from(&new.hypervisor_properties);
        }
        if new.resource_properties.is_some() {
            words.resource_properties.clone_from(&new.resource_properties);
        }
    }
    all
}

fn commit_of(caller: &Caller, change: &Change, now: Timestamp) -> Commit {
    let mut commit = Commit::new(now);
    commit.writes.push(Write::Lease {
        record: Box::new(LeaseRecord::clone(&change.after)),
        expected: Some(change.before.version),
    });
    commit.audit.push(audit(caller, now, notices::UPDATE, &change.after.lease.id));
    if change.before_end_rearmed {
        commit.notifications.push(notice(notices::BEFORE_END_STOP, &change.after));
    }
    if !change.renames_only() {
        commit.notifications.push(notice(notices::UPDATE, &change.after));
    }
    commit
}
