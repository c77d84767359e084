//! Paged lists: pages of the size that the client requests, or whole lists, which are read in chunks while
//! they are sent.

use std::fmt::Display;
use std::sync::Arc;

use api::v1::body::Link;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use service::{Page, Position};

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::listing::{CHUNK, Listing};

/// A page or chunk of a list.
pub(super) struct Part<T, P> {
    pub items: Vec<T>,
    /// Position after which the list continues. `None` at its end.
    pub next: Option<P>,
}

impl<T> From<Page<T>> for Part<Arc<T>, Position> {
    fn from(page: Page<T>) -> Self {
        Self { items: page.items, next: page.next }
    }
}

impl<T, P> Part<T, P> {
    /// Takes up to `limit` items of `rest`. Reads one more to find out whether the list continues.
    pub fn of(rest: impl Iterator<Item = T>, limit: usize, position: impl Fn(&T) -> P) -> Self {
        let mut items: Vec<T> = rest.take(limit.saturating_add(1)).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(position);
        Self { items, next }
    }
}

/// The page that the client requests.
pub(super) struct Paging<'a> {
    session: &'a Session,
    uri: &'a Uri,
    limit: Option<usize>,
}

impl<'a> Paging<'a> {
    /// Limits the page to the option `limit`, and to the server's maximum. Without the option, the whole list
    /// is sent.
    pub fn new(app: &App, session: &'a Session, uri: &'a Uri, options: &Options) -> Result<Self, ApiError> {
        let limit = options.limit()?.map(|limit| limit.min(app.inner.config.limits.page) as usize);
        Ok(Self { session, uri, limit })
    }

    /// Responds with the items that `read` returns for a position and a maximum number of items, starting
    /// after `after`.
    pub async fn answer<T, P, W>(
        &self,
        field: &str,
        after: Option<P>,
        mut read: impl FnMut(Option<P>, usize) -> Part<T, P> + Send + 'static,
        show: impl Fn(&T) -> W + Send + 'static,
    ) -> Result<Response, ApiError>
    where
        T: Send + 'static,
        P: Display + Send + 'static,
        W: Serialize + 'static,
    {
        let Part { items, mut next } = read(after, self.limit.unwrap_or(CHUNK));
        let listing = Listing::new(self.session, field, items, show);
        if self.limit.is_some() {
            let Some(last) = next else { return Ok(listing.respond().await) };
            let links = [next_link(self.uri, &last)];
            return Ok(listing.with(&format!("{field}_links"), &links)?.respond().await);
        }
        let more = move || {
            let part = read(Some(next.take()?), CHUNK);
            next = part.next;
            Some(part.items)
        };
        Ok(listing.then(more).respond().await)
    }
}

/// Error for a marker that isn't in the list.
pub(super) fn unknown_marker(marker: &impl Display) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, format!("marker {marker} is not in the list"))
}

/// Link to the next page: the same query with a new marker.
pub(super) fn next_link(uri: &Uri, last: &impl Display) -> Link {
    let others = uri.query().unwrap_or_default().split('&');
    let others = others.filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
    let query: Vec<String> = others.map(str::to_owned).chain([format!("marker={last}")]).collect();
    Link { href: format!("{}?{}", uri.path(), query.join("&")), rel: "next".to_owned() }
}
