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
    /// Deletes a lease. It is gone when this returns, unless taking its hosts back takes longer than
    /// [`crate::Settings::delete_wait`]; then it is DELETING, and goes by itself.
    pub async fn delete(self, caller: &Caller, id: LeaseId) -> Result<(), ServiceError> {
        self.accept_deletion(caller, id, |_| true).await?;
        self.wait_until_gone(&[id]).await;
        Ok(())
    }

    /// Deletes those leases of a series that have not started, as [one](Self::delete). One that starts meanwhile
    /// goes on.
    pub async fn delete_series(self, caller: &Caller, id: SeriesId) -> Result<(), ServiceError> {
        let waits = |lease: &Lease| lease.status == LeaseStatus::Pending;
        let pending = self.series(id).into_iter().filter(|record| waits(&record.lease));
        let pending: Vec<LeaseId> = pending.map(|record| record.lease.id).collect();
        for id in &pending {
            match self.accept_deletion(caller, *id, waits).await {
                // Somebody else has deleted it just now.
                Ok(()) | Err(ServiceError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.wait_until_gone(&pending).await;
        Ok(())
    }

    /// Waits until leases are gone that are deleted, or DELETING for as long as anybody waits for that.
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
        // Whether they are gone by then makes no difference to the answer.
        let _ = tokio::time::timeout(limit, all_gone).await;
    }

    /// From here on the lease is gone, or DELETING.
    pub(super) async fn accept_deletion(
        self,
        caller: &Caller,
        id: LeaseId,
        is_meant: impl Fn(&Lease) -> bool,
    ) -> Result<(), ServiceError> {
        let delete = |state: &State, now| {
            let before = state.leases.get(id).ok_or(ServiceError::NotFound(NotFound::Lease(id)))?;
            if before.lease.status == LeaseStatus::Deleting || !is_meant(&before.lease) {
                return Ok(Transaction::none(()));
            }
            let commit = self.deletion(caller, before, now);
            let before = Arc::clone(before);
            Ok(Transaction::of(commit, ()).then(move |service| {
                service.progress().look_at_end(&before.lease);
                service.wake.notify_one();
                if before.lease.events.end == EventStatus::Undone {
                    Leases::of(service).tell_end(&before);
                }
            }))
        };
        self.service.transact(delete).await
    }

    /// What makes the lease DELETING; or forgets it, if nothing of it is left anywhere.
    fn deletion(self, caller: &Caller, before: &Arc<LeaseRecord>, now: Timestamp) -> Commit {
        let after = before.becomes(before.lease.deleted(now), now);
        let mut commit = Commit::new(now);
        commit.audit.push(audit(caller, now, notices::DELETE, &before.lease.id));
        let expected = before.version;
        if self.nothing_left(&before.lease, &after.lease, now) {
            commit.notifications.push(notice(notices::DELETE, &after));
            commit.writes.push(Write::ForgetLease { id: before.lease.id, expected });
        } else {
            commit.writes.push(Write::Lease { record: Box::new(after), expected: Some(expected) });
        }
        commit
    }

    /// Whether nothing of a lease that is being deleted is left on any machine. Of one that goes on that is
    /// not known before its hosts are looked at again.
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

    /// Returns when there is no such lease.
    async fn gone(self, id: LeaseId) {
        let mut changes = self.service.changes.subscribe();
        while self.get(id).is_some() {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
