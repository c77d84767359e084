//! How anything is changed: one writer at a time decides on what the store holds, commits, and then shows it.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use store::{AuditRecord, Commit, CommitError, StoreError};
use tokio::sync::MutexGuard;

use crate::state::State;
use crate::{Caller, Service, ServiceError};

/// How often a decision is taken anew when the store has it that somebody else was first.
pub(crate) const ATTEMPTS: usize = 8;

/// The right to change something. While it is held, memory and store say the same.
pub(crate) struct Writer<'a> {
    service: &'a Service,
    _turn: MutexGuard<'a, ()>,
}

/// Marks the memory as doubtful unless it is settled: also when the call that commits is given up half-way.
struct Doubt<'a> {
    service: &'a Service,
    settled: bool,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.service.doubtful.store(true, Ordering::Release);
            self.service.wake.notify_one();
        }
    }
}

impl Service {
    /// Waits for its turn. Loads everything if it is in doubt whether memory says what the store does.
    pub(crate) async fn writer(&self) -> Result<Writer<'_>, StoreError> {
        let turn = self.turn.lock().await;
        if self.doubtful.load(Ordering::Acquire) {
            let snapshot = self.parts.store.load().await?;
            let state = State::new(snapshot, self.settings.cleaning_time, self.now())
                .map_err(|conflict| StoreError::Corrupt(conflict.to_string()))?;
            *self.state_mut() = state;
            self.doubtful.store(false, Ordering::Release);
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(Writer { service: self, _turn: turn })
    }

    /// The present, as precise as stores keep it. Whoever serves a request reads it once.
    pub fn now(&self) -> Timestamp {
        as_stored(self.parts.clock.now())
    }
}

/// The instant, as precise as stores keep it.
pub(crate) fn as_stored(instant: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(instant.as_microsecond()).unwrap_or(instant)
}

impl Writer<'_> {
    /// Commits, and shows what was committed. After an error it is in doubt what the store holds, and the next
    /// writer loads it.
    pub async fn commit(&self, commit: Commit) -> Result<(), CommitError> {
        let mut doubt = Doubt { service: self.service, settled: false };
        self.service.parts.store.commit(&commit).await?;
        let applied = self.service.state_mut().apply(commit.writes, commit.at);
        doubt.settled = applied.is_ok();
        if let Err(conflict) = applied {
            tracing::error!(%conflict, "what was committed contradicts what is in memory; loading it again");
        }
        self.service.changes.send_modify(|count| *count += 1);
        Ok(())
    }
}

/// What a failed commit means to who asked: nothing if the decision is to be taken again.
pub(crate) fn decide_again(error: CommitError) -> Result<(), ServiceError> {
    match error {
        CommitError::Stale { .. }
        | CommitError::Taken { .. }
        | CommitError::NoRoom(_)
        | CommitError::Repeated(_) => Ok(()),
        error @ (CommitError::InUse { .. } | CommitError::Exists { .. }) => {
            Err(ServiceError::Conflict(error.to_string()))
        }
        CommitError::Store(error) => Err(error.into()),
    }
}

/// The store had it each time that somebody else was first.
pub(crate) fn overtaken() -> ServiceError {
    ServiceError::Conflict("others were faster each time; try again".to_owned())
}

/// The audit record of what the caller does.
pub(crate) fn audit(caller: &Caller, at: Timestamp, action: &str, object: &impl ToString) -> AuditRecord {
    AuditRecord {
        at,
        user: caller.user.clone(),
        project: caller.project.clone(),
        request_id: caller.request_id.clone(),
        action: action.to_owned(),
        object: object.to_string(),
    }
}
