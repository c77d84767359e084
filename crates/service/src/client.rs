//! Who a request is for, and whether they still wait for its answer.
//!
//! Whoever serves a request has its work run in the [scope](Client::scope) of its client. Decisions in that scope are
//! charged to the client's share. Once the client has [left](Client::leave), what waits for its turn gives it up, and what
//! takes long ends early. What can be done at once is done, and what is being committed runs to its end: nobody would
//! know what became of a change that is broken off halfway.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leases::project::Owner;
use leases::work::Budget;
use tokio::sync::watch;

use crate::cost;
use crate::places::{Kind, Who};

tokio::task_local! {
    static CLIENT: Client;
}

/// A client that waits for an answer.
#[derive(Clone, Debug)]
pub struct Client(Arc<Shared>);

/// Properties of a request that are known before it is served.
#[derive(Clone, Debug)]
pub struct Request {
    /// The user who sent it, and the project that is charged.
    pub owner: Owner,
    /// Method and route. The usual cost is remembered for each operation.
    pub operation: Arc<str>,
    /// Size of the body in bytes.
    pub body: u64,
    /// Whether the user acts for many others and has higher limits.
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
    /// Something is being committed, or was.
    committed: bool,
    /// Minimum cost of writing the changes, in units of work; 0 while it isn't known.
    expected: u64,
    /// What is being decided.
    running: Vec<Arc<Budget>>,
}

/// The client has gone before anything was committed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Client {
    /// A client that waits for the response to `request`.
    pub fn new(request: Request) -> Self {
        let shared = Shared { request, gone: watch::Sender::new(false), progress: Mutex::default() };
        Self(Arc::new(shared))
    }

    /// Has work done on behalf of the client.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CLIENT.scope(self, work).await
    }

    /// Nobody waits for the answer any more. Once something was committed for the client that makes no difference.
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

    /// The client on whose behalf the present task works, if it is for one.
    pub(crate) fn current() -> Option<Self> {
        CLIENT.try_with(Self::clone).ok()
    }

    /// Whose request it is.
    pub(crate) fn owner(&self) -> &Owner {
        &self.0.request.owner
    }

    /// The client as fair queuing identifies it.
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

    /// Returns when the client has gone.
    pub(crate) async fn gone(&self) {
        // The sender is ours, so it is there.
        let _ = self.0.gone.subscribe().wait_for(|gone| *gone).await;
    }

    /// From here on the client is served to the end.
    pub(crate) fn commits(&self) {
        self.progress().committed = true;
    }

    /// Whether something was committed for the client, or is being committed.
    pub fn has_committed(&self) -> bool {
        self.progress().committed
    }

    /// Has a decision with that budget end early when the client leaves, for as long as the answer is kept.
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

/// A decision for a client.
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
