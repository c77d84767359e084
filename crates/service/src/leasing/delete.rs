//! Deleting a lease.

use std::sync::Arc;

use jiff::Timestamp;
use leases::ids::{LeaseId, SeriesId};
use leases::lease::Lease;
use leases::plan::{self, LeaseChange, World};
use leases::status::{EventStatus, LeaseStatus};
use store::{Commit, LeaseRecord, Write};

use super::Leases;
use crate::notices::{self, notice};
use crate::state::State;
use crate::transact::Transaction;
use crate::types::{Caller, NotFound, ServiceError};
use crate::writing::audit;

impl Leases<'_> {
    /// Deletes a lease. It is gone when this returns, unless releasing its hosts takes longer than
    /// [`crate::Settings::delete_wait`]. In that case it is DELETING, and disappears when they are released.
    pub async fn delete(self, caller: &Caller, id: LeaseId) -> Result<(), ServiceError> {
        self.accept_deletion(caller, id).await?;
        self.wait_until_gone(&[id]).await;
        Ok(())
    }

    /// Deletes the leases of a series that haven't started, like [`Self::delete`]. A lease that starts before
    /// its deletion is committed isn't deleted.
    pub async fn delete_series(self, caller: &Caller, id: SeriesId) -> Result<(), ServiceError> {
        let waits = |lease: &Lease| lease.status == LeaseStatus::Pending;
        let pending = self.series(id).into_iter().filter(|record| waits(&record.lease));
        let pending: Vec<LeaseId> = pending.map(|record| record.lease.id).collect();
        let (mut rest, mut count) = (pending.as_slice(), pending.len());
        while !rest.is_empty() {
            let (part, later) = rest.split_at(count.min(rest.len()));
            match self.accept_deletions(caller, part, waits).await {
                Ok(()) => rest = later,
                Err(ServiceError::TooLarge(error)) if part.len() > 1 => count = error.part_of(part.len()),
                Err(error) => return Err(error),
            }
        }
        self.wait_until_gone(&pending).await;
        Ok(())
    }

    /// Waits until the leases are gone, for at most [`crate::Settings::delete_wait`].
    async fn wait_until_gone(self, ids: &[LeaseId]) {
        let limit = self.service.decider.settings.delete_wait;
        if limit.is_zero() {
            return;
        }
        let all_gone = async {
            for id in ids {
                self.gone(*id).await;
            }
        };
        // The answer is the same if they aren't gone in time.
        let _ = tokio::time::timeout(limit, all_gone).await;
    }

    /// Marks a lease as DELETING, or removes it if no machine has traces of it.
    pub(super) async fn accept_deletion(self, caller: &Caller, id: LeaseId) -> Result<(), ServiceError> {
        self.get(id).ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
        self.accept_deletions(caller, &[id], |_| true).await
    }

    /// Deletes the leases among `ids` that still exist and match, in one transaction. Its size is limited unless it deletes
    /// only one lease.
    async fn accept_deletions(
        self,
        caller: &Caller,
        ids: &[LeaseId],
        matches: impl Fn(&Lease) -> bool,
    ) -> Result<(), ServiceError> {
        let delete = |state: &State, now| {
            let found = ids.iter().filter_map(|id| state.leases.get(*id));
            let deleted: Vec<Arc<LeaseRecord>> = found
                .filter(|record| record.lease.status != LeaseStatus::Deleting && matches(&record.lease))
                .map(Arc::clone)
                .collect();
            if deleted.is_empty() {
                return Ok(Transaction::none(()));
            }
            let mut commit = Commit::new(now);
            for before in &deleted {
                self.add_deletion(&mut commit, caller, before, now);
            }
            let single = deleted.len() == 1;
            let transaction = Transaction::of(commit, ()).then(move |service| {
                for before in deleted {
                    service.progress().look_at_end(&before.lease);
                    if before.lease.events.end == EventStatus::Undone {
                        Leases::of(service).tell_end(&before);
                    }
                }
                service.wake.notify_one();
            });
            Ok(if single { transaction } else { transaction.limited() })
        };
        self.service.transact(delete).await
    }

    fn add_deletion(self, commit: &mut Commit, caller: &Caller, before: &Arc<LeaseRecord>, now: Timestamp) {
        let after = before.becomes(before.lease.deleted(now), now);
        commit.audit.push(audit(caller, now, notices::DELETE, &before.lease.id));
        let expected = before.version;
        if self.nothing_left(&before.lease, &after.lease, now) {
            commit.notifications.push(notice(notices::DELETE, &after));
            commit.writes.push(Write::ForgetLease { id: before.lease.id, expected });
        } else {
            commit.writes.push(Write::Lease { record: Box::new(after), expected: Some(expected) });
        }
    }

    /// Whether nothing of a lease that is being deleted is left on any machine. For a running lease, that
    /// isn't known until its hosts are observed again.
    fn nothing_left(self, before: &Lease, deleted: &Lease, now: Timestamp) -> bool {
        let prepares = self.service.decider.abilities.prepares;
        if before.status == LeaseStatus::Pending && !prepares {
            return true;
        }
        let state = self.service.state();
        let progress = self.service.progress();
        let had_nothing = before.over() || before.status == LeaseStatus::Pending;
        if !had_nothing || !progress.settled(before.id) {
            return false;
        }
        let rules = &self.service.decider.settings.plan_rules;
        let world = World { prepares, ..World::new(&progress.observed, &state.history, rules, now) };
        plan::plan([deleted], world).changes.contains(&LeaseChange::Forgotten(before.id))
    }

    /// Returns when the lease no longer exists.
    async fn gone(self, id: LeaseId) {
        let mut changes = self.service.changes.subscribe();
        while self.get(id).is_some() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
