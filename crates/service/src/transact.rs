//! Changes: decided on the state in memory, committed, and decided again on a conflict.

use jiff::Timestamp;
use leases::work::Budget;
use store::{Commit, CommitError};

use crate::service::Service;
use crate::state::State;
use crate::types::ServiceError;
use crate::writing::{Writer, conflict_error, retry_on_conflict};

/// Maximum number of decisions on one request because of conflicts with other services. Of three services
/// under full load, each has a conflict in two out of three attempts.
pub(crate) const ATTEMPTS: usize = 32;

/// Follow-up after a commit.
type After = Box<dyn FnOnce(&Service) + Send>;

/// A decision: its commit, and the answer after that.
pub(crate) struct Transaction<T> {
    /// `None` if nothing has to change.
    commit: Option<Commit>,
    answer: T,
    after: Option<After>,
    in_use: Option<ServiceError>,
    limited: bool,
}

impl<T> Transaction<T> {
    /// A decision that changes nothing.
    pub fn none(answer: T) -> Self {
        Self { commit: None, answer, after: None, in_use: None, limited: false }
    }

    pub fn of(commit: Commit, answer: T) -> Self {
        Self { commit: Some(commit), ..Self::none(answer) }
    }

    /// Adds a follow-up, which runs after the commit and before any other decision.
    pub fn then(self, after: impl FnOnce(&Service) + Send + 'static) -> Self {
        Self { after: Some(Box::new(after)), ..self }
    }

    /// Wakes the loop after the commit.
    pub fn wakes(self) -> Self {
        self.then(|service| service.wake.notify_one())
    }

    /// Fails if the transaction exceeds the size limit for requests.
    pub fn limited(self) -> Self {
        Self { limited: true, ..self }
    }

    /// Error to return if the store reports that the object to remove is in use.
    pub fn or_in_use(self, error: ServiceError) -> Self {
        Self { in_use: Some(error), ..self }
    }
}

impl Service {
    /// Decides with the write lock held, so the decision must be cheap, and commits.
    pub(crate) async fn transact<T>(
        &self,
        decide: impl Fn(&State, Timestamp) -> Result<Transaction<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        for _ in 0..ATTEMPTS {
            let writer = self.writer().await?;
            let now = self.now();
            // The snapshot is dropped before the commit. Otherwise the commit would copy the state.
            let change = decide(&self.snapshot(), now)?;
            if let Some(answer) = self.conclude(&writer, change).await? {
                return Ok(answer);
            }
        }
        Err(conflict_error())
    }

    /// Like [`Self::transact`], for decisions that can take long ([`Self::decided`]). `change` turns the decision into a
    /// transaction. Fails if the transaction exceeds the size limit for requests.
    pub(crate) async fn transact_decided<D, T>(
        &self,
        decide: impl Fn(&Budget) -> Result<D, ServiceError>,
        holds: impl Fn(&State, &D) -> bool,
        change: impl Fn(D) -> Result<Transaction<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        for _ in 0..ATTEMPTS {
            let (writer, decided) = self.decided(&decide, &holds).await?;
            if let Some(answer) = self.conclude(&writer, change(decided)?.limited()).await? {
                return Ok(answer);
            }
        }
        Err(conflict_error())
    }

    /// Commits and returns the answer. `None` if the decision must be made again.
    async fn conclude<T>(
        &self,
        writer: &Writer<'_>,
        change: Transaction<T>,
    ) -> Result<Option<T>, ServiceError> {
        let Transaction { commit, answer, after, in_use, limited } = change;
        let Some(commit) = commit else { return Ok(Some(answer)) };
        let committed =
            if limited { writer.commit_request(commit).await } else { writer.commit(commit).await };
        match (committed, in_use) {
            (Ok(()), _) => {
                if let Some(after) = after {
                    after(self);
                }
                Ok(Some(answer))
            }
            (Err(CommitError::InUse { .. }), Some(error)) => Err(error),
            (Err(error), _) => retry_on_conflict(error).map(|()| None),
        }
    }
}
