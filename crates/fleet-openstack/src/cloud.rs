//! Calls of Nova, Placement, Neutron and Glance, each as one function. Nothing is decided here.

mod glance;
mod neutron;
pub(crate) mod nova;
mod placement;

use std::sync::Arc;

use fleet::FleetError;
use openstack::{Answer, Call, Error, Session};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedMutexGuard;

use crate::turns::Turns;

/// Entries of a page. Services may be set to give fewer.
const PAGE: usize = 1000;

/// More pages than a cloud has: a service that always has one more is not followed forever.
const MOST_PAGES: usize = 1000;

/// Longest page, bytes: a server with many addresses and tags takes some 10 KiB.
const MOST_BYTES: usize = 64 << 20;

/// The services of a cloud.
#[derive(Debug)]
pub(crate) struct Cloud {
    session: Arc<Session>,
    /// Whether servers are asked for with the hints that they were started with.
    hints: bool,
    turns: Turns<Turn>,
}

/// Work that one request at a time does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// Changing the aggregate with this number.
    Aggregate(u64),
    /// Creating the object with this name.
    Name(String),
}

/// The outcome of a request to create an object with a name of its own.
#[derive(Debug)]
enum Creation {
    Created(Answer),
    /// The object may exist, so look for it. If it doesn't, this is why it was not created.
    Conflict(FleetError),
}

impl Cloud {
    pub(crate) fn new(session: Arc<Session>, hints: bool) -> Self {
        Self { session, hints, turns: Turns::default() }
    }

    /// Who this is to the cloud.
    pub(crate) async fn own_user(&self) -> Result<String, FleetError> {
        self.session.own_token().await.map(|token| token.user.id).map_err(failed)
    }

    pub(crate) fn is_login_refused(&self) -> bool {
        self.session.is_login_refused()
    }

    async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, FleetError> {
        self.session.call(&call).await.and_then(|answer| answer.json()).map_err(failed)
    }

    /// All entries of a list that comes in pages. `entries` says what a page has and whether there is another one,
    /// `marker` what the next one is asked for by.
    async fn paged<P: DeserializeOwned, T>(
        &self,
        list: Call,
        entries: impl Fn(P) -> (Vec<T>, bool),
        marker: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, FleetError> {
        let list = list.with_query("limit", PAGE.to_string()).at_most(MOST_BYTES);
        let mut all: Vec<T> = Vec::new();
        for _ in 0..MOST_PAGES {
            let page = match all.last() {
                Some(last) => list.clone().with_query("marker", marker(last)),
                None => list.clone(),
            };
            let (page, more) = entries(self.ask(page).await?);
            let last = page.is_empty() || !more;
            all.extend(page);
            if last {
                return Ok(all);
            }
        }
        Err(FleetError::Unavailable(format!("{}: a list has more than {MOST_PAGES} pages", list.service())))
    }

    async fn send(&self, call: Call) -> Result<Answer, FleetError> {
        self.session.call(&call).await.map_err(failed)
    }

    /// Waits until no other step of this service creates an object with that name. Another service still can.
    async fn turn_for(&self, name: &str) -> OwnedMutexGuard<()> {
        self.turns.of(Turn::Name(name.to_owned())).await
    }

    /// Sends a request to create an object. Of two such requests at the same time, Nova answers one with 500
    /// (`DBDuplicateEntry`) instead of 409. A 500 for another reason is also a conflict, because the object may have been
    /// created before the request failed.
    async fn create(&self, call: Call) -> Result<Creation, FleetError> {
        match self.session.call(&call).await {
            Ok(answer) => Ok(Creation::Created(answer)),
            Err(error) if matches!(error.status(), Some(409 | 500)) => Ok(Creation::Conflict(failed(error))),
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates an object, or finds that `exists` is true of one that another request has created.
    async fn ensure(
        &self,
        call: Call,
        exists: impl AsyncFnOnce() -> Result<bool, FleetError>,
    ) -> Result<(), FleetError> {
        match self.create(call).await? {
            Creation::Conflict(error) if !exists().await? => Err(error),
            Creation::Created(_) | Creation::Conflict(_) => Ok(()),
        }
    }

    /// Sends it; none if the service answers with one of these statuses, which mean that there is nothing to do.
    async fn send_unless(&self, call: Call, statuses: &[u16]) -> Result<Option<Answer>, FleetError> {
        match self.session.call(&call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.status().is_some_and(|status| statuses.contains(&status)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// What a service refuses it refuses tomorrow as well; all else may go later.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: Error) -> FleetError {
    match error.status() {
        Some(400 | 403 | 404 | 405 | 406 | 413 | 422) => FleetError::Refused(error.to_string()),
        _ => FleetError::Unavailable(error.to_string()),
    }
}

/// Names of things that lists are paged by: the marker of the next page, if there is one.
fn has_next(links: &[Link]) -> bool {
    links.iter().any(|link| link.rel == "next")
}

/// A link of a list.
#[derive(Debug, serde::Deserialize)]
struct Link {
    #[serde(default)]
    rel: String,
}
