//! Requests to Nova, Placement, Neutron and Glance, one function for each. Decisions are made elsewhere.

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

/// Entries per page. A service can be configured to return fewer.
const PAGE: usize = 1000;

/// Maximum number of pages, more than any cloud has, so that a service that always reports another page isn't
/// followed forever.
const MOST_PAGES: usize = 1000;

/// Maximum size of a page, bytes. A server with many addresses and tags takes about 10 KiB.
const MOST_BYTES: usize = 64 << 20;

/// Client of a cloud's services.
#[derive(Debug)]
pub(crate) struct Cloud {
    session: Arc<Session>,
    /// Whether server lists include the scheduler hints that servers were started with.
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
    /// The object might exist, so look for it. If it doesn't, this error is the reason.
    Conflict(FleetError),
}

impl Cloud {
    pub(crate) fn new(session: Arc<Session>, hints: bool) -> Self {
        Self { session, hints, turns: Turns::default() }
    }

    /// ID of the service's own user.
    pub(crate) async fn own_user(&self) -> Result<String, FleetError> {
        self.session.own_token().await.map(|token| token.user.id).map_err(failed)
    }

    pub(crate) fn is_login_refused(&self) -> bool {
        self.session.is_login_refused()
    }

    async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, FleetError> {
        self.session.call(&call).await.and_then(|answer| answer.json()).map_err(failed)
    }

    /// All entries of a paginated list. `entries` returns a page's entries and whether another page follows.
    /// `marker` returns an entry's marker, which requests the page after it.
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

    /// Waits until no other step of this service creates an object with that name. Other services aren't
    /// excluded.
    async fn turn_for(&self, name: &str) -> OwnedMutexGuard<()> {
        self.turns.of(Turn::Name(name.to_owned())).await
    }

    /// Sends a request to create an object. Of two such requests at the same time, Nova answers one with 500
    /// (`DBDuplicateEntry`) instead of 409. Any other 500 is also treated as a conflict, because the object
    /// might have been created before the request failed.
    async fn create(&self, call: Call) -> Result<Creation, FleetError> {
        match self.session.call(&call).await {
            Ok(answer) => Ok(Creation::Created(answer)),
            Err(error) if matches!(error.status(), Some(409 | 500)) => Ok(Creation::Conflict(failed(error))),
            Err(error) => Err(failed(error)),
        }
    }

    /// Creates an object, or accepts that another request has created it if `exists` confirms that.
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

    /// Sends the call. Answers with one of these statuses mean that the work is already done, and become
    /// `None`.
    async fn send_unless(&self, call: Call, statuses: &[u16]) -> Result<Option<Answer>, FleetError> {
        match self.session.call(&call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.status().is_some_and(|status| statuses.contains(&status)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Errors that a repetition can't fix become `Refused`. Temporary errors become `Unavailable`.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: Error) -> FleetError {
    match error.status() {
        Some(400 | 403 | 404 | 405 | 406 | 413 | 422) => FleetError::Refused(error.to_string()),
        _ => FleetError::Unavailable(error.to_string()),
    }
}

fn has_next(links: &[Link]) -> bool {
    links.iter().any(|link| link.rel == "next")
}

/// A pagination link.
#[derive(Debug, serde::Deserialize)]
struct Link {
    #[serde(default)]
    rel: String,
}
