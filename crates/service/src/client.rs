//! The client of a request, and whether it still waits for the response.
//!
//! The server runs the work of a request in the [scope](Client::scope) of its client. Decisions in that scope
//! are charged to the client's share. Once the client has [left](Client::leave), work that is queued is given
//! up and long decisions are canceled. Work that needn't wait is still done, and a commit in progress runs to
//! its end. Aborting it halfway would leave the outcome of the change unknown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leases::project::Owner;
use leases::work::Budget;
use tokio::sync::watch;

use crate::cost;
use crate::places::{Kind, Who};

tokio::task_local! {
    static CLIENT: Client;
}

/// A client that waits for a response.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

/// Properties of a request that are known before it is processed.
#[derive(Clone, Debug)]
pub struct Request {
    /// The authenticated user, and the project that is charged.
    pub owner: Owner,
    /// Method and route. The typical cost is remembered per operation.
    pub operation: Arc<str>,
    /// Size of the body in bytes.
    pub body: u64,
    /// Whether the user acts on behalf of many users and has higher limits.
    pub privileged: bool,
}

#[derive(Debug)]
struct Shared {
    request: Request,
    gone: watch::Sender<bool>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    /// A commit has begun.
    committed: bool,
    /// Minimum cost of writing the changes, in units of work; 0 while unknown.
    expected: u64,
    /// Budgets of decisions in progress.
    running: Vec<Arc<Budget>>,
}

/// The client left before anything was committed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Client {
    pub fn new(request: Request) -> Self {
        let shared = Shared { request, gone: watch::Sender::new(false), progress: Mutex::default() };
        Self(Arc::new(shared))
    }

    /// Runs `work` on behalf of the client.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CLIENT.scope(self, work).await
    }

    /// The client stopped waiting: cancels its decisions. No effect once a commit has begun.
    pub fn leave(&self) {
        let progress = self.progress();
        if progress.committed {
            return;
        }
        self.0.gone.send_replace(true);
        for budget in &progress.running {
            budget.cancel();
        }
    }

    /// Client of the current task, if it works for one.
    pub(crate) fn current() -> Option<Self> {
        CLIENT.try_with(Self::clone).ok()
    }

    /// The user and project of the request.
    pub(crate) fn owner(&self) -> &Owner {
        &self.0.request.owner
    }

    /// Identity of the client for fair queuing.
    pub(crate) fn who(&self) -> Who {
        let Request { owner, operation, .. } = &self.0.request;
        Who::Client(Some((owner.clone(), Arc::clone(operation))))
    }

    pub(crate) fn is_privileged(&self) -> bool {
        self.0.request.privileged
    }

    /// Sets the minimum cost of writing the changes, in units of work.
    pub(crate) fn expects(&self, work: u64) {
        self.progress().expected = work;
    }

    /// Known minimum cost of the request in a place of this kind, in units of work.
    pub(crate) fn expected(&self, kind: Kind) -> u64 {
        let body = cost::of_body(self.0.request.body);
        match kind {
            Kind::Write => self.progress().expected.max(body),
            // Decisions and reads don't write the changes.
            Kind::Read | Kind::Parts | Kind::Store => body,
        }
    }

    /// Waits until the client has left.
    pub(crate) async fn gone(&self) {
        // Can't fail: `self` has the sender.
        let _ = self.0.gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// Marks the start of a commit. From here on, leaving has no effect.
    pub(crate) fn commits(&self) {
        self.progress().committed = true;
    }

    /// Whether a commit for the client has begun.
    pub fn has_committed(&self) -> bool {
        self.progress().committed
    }

    /// Cancels `budget` when the client leaves, as long as the returned guard exists.
    pub(crate) fn decides(&self, budget: &Arc<Budget>) -> Deciding<'_> {
        let mut progress = self.progress();
        if *self.0.gone.borrow() {
            budget.cancel();
        }
        progress.running.push(Arc::clone(budget));
        Deciding { client: self, budget: Arc::clone(budget) }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard of a decision in progress.
pub(crate) struct Deciding<'a> {
    client: &'a Client,
    budget: Arc<Budget>,
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.client.progress().running.retain(|other| !Arc::ptr_eq(other, &self.budget));
    }
}

#[cfg(test)]
mod tests {
    use leases::project::{ProjectId, UserId};

    use super::*;

    fn client() -> Client {
        let owner = Owner { project: ProjectId("p".into()), user: UserId("u".into()) };
        Client::new(Request { owner, operation: "".into(), body: 0, privileged: false })
    }

    #[test]
    fn what_is_decided_for_a_client_that_leaves_is_canceled() {
        let (client, before, after) =
            (client(), Arc::new(Budget::unlimited()), Arc::new(Budget::unlimited()));
        let _deciding = client.decides(&before);
        assert!(!before.canceled());
        client.leave();
        let _deciding_late = client.decides(&after);
        assert!(before.canceled() && after.canceled());
    }

    #[test]
    fn what_is_being_committed_is_not_canceled() {
        let (client, budget) = (client(), Arc::new(Budget::unlimited()));
        client.commits();
        client.leave();
        let _deciding = client.decides(&budget);
        assert!(!budget.canceled(), "a change goes on to its end");
    }

    #[test]
    fn decisions_that_are_over_are_forgotten() {
        let (client, budget) = (client(), Arc::new(Budget::unlimited()));
        drop(client.decides(&budget));
        client.leave();
        assert!(!budget.canceled() && client.progress().running.is_empty());
    }
}
