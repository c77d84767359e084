//! Changes: decided on what is in memory, committed, and decided again if somebody else was first.

use jiff::Timestamp;
use leases::work::Budget;
use store::{Commit, CommitError};

use crate::service::Service;
use crate::state::State;
use crate::types::ServiceError;
use crate::writing::{Writer, decide_again, overtaken};

/// How often a decision is taken again when the store has it that somebody else was first. Of three services that
/// are asked for as much as they can do, each is overtaken twice out of three times.
pub(crate) const ATTEMPTS: usize = 32;

/// What else is to be done once something is committed.
type After = Box<dyn FnOnce(&Service) + Send>;

/// What was decided: what is to be committed, and the answer once it is.
pub(crate) struct Transaction<T> {
    /// None if everything is as it was asked to be.
    commit: Option<Commit>,
    answer: T,
    after: Option<After>,
    in_use: Option<ServiceError>,
    limited: bool,
}

impl<T> Transaction<T> {
    /// Nothing is to be changed.
    pub fn none(answer: T) -> Self {
        Self { commit: None, answer, after: None, in_use: None, limited: false }
    }

    /// This is to be committed.
    pub fn of(commit: Commit, answer: T) -> Self {
        Self { commit: Some(commit), ..Self::none(answer) }
    }

    /// What else is to be done once it is committed, before anybody else decides.
    pub fn then(self, after: impl FnOnce(&Service) + Send + 'static) -> Self {
        Self { after: Some(Box::new(after)), ..self }
    }

    /// The loop has something to do once it is committed.
    pub fn wakes(self) -> Self {
        self.then(|service| service.wake.notify_one())
    }

    /// Fails if the transaction exceeds the size limit for requests.
    pub fn limited(self) -> Self {
        Self { limited: true, ..self }
    }

    /// The answer if the store says that what is to be removed is in use.
    pub fn or_in_use(self, error: ServiceError) -> Self {
        Self { in_use: Some(error), ..self }
    }
}

impl Service {
    /// Decides with the write lock, which should take little, and commits what was decided.
    pub(crate) async fn transact<T>(
        &self,
        decide: impl Fn(&State, Timestamp) -> Result<Transaction<T>, ServiceError>,
    ) -> Result<T, ServiceError> {
        for _ in 0..ATTEMPTS {
            let writer = self.writer().await?;
            let now = self.now();
            // A copy of the state that is kept until the commit would have it copied.
            let change = decide(&self.snapshot(), now)?;
            if let Some(answer) = self.conclude(&writer, change).await? {
                return Ok(answer);
            }
        }
        Err(overtaken())
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
        Err(overtaken())
    }

    /// The answer, if it could be committed; none if it is to be decided again.
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
            (Err(error), _) => decide_again(error).map(|()| None),
        }
    }
}
