//! Parts of lists: as much as a client asks for, or all, read chunk by chunk as it is sent.

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

/// A part of a list.
pub(super) struct Part<T, P> {
    pub items: Vec<T>,
    /// What the rest comes after; none at the end of the list.
    pub next: Option<P>,
}

impl<T> From<Page<T>> for Part<Arc<T>, Position> {
    fn from(page: Page<T>) -> Self {
        Self { items: page.items, next: page.next }
    }
}

impl<T, P> Part<T, P> {
    /// Of what comes after a position: one more than fit says that there is more.
    pub fn of(rest: impl Iterator<Item = T>, limit: usize, position: impl Fn(&T) -> P) -> Self {
        let mut items: Vec<T> = rest.take(limit.saturating_add(1)).collect();
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(position);
        Self { items, next }
    }
}

/// What a client asks for.
pub(super) struct Paging<'a> {
    session: &'a Session,
    uri: &'a Uri,
    limit: Option<usize>,
}

impl<'a> Paging<'a> {
    /// At most so many as the option `limit` says, and never more than the server gives at once; all without it.
    pub fn new(app: &App, session: &'a Session, uri: &'a Uri, options: &Options) -> Result<Self, ApiError> {
        let limit = options.limit()?.map(|limit| limit.min(app.inner.config.limits.page) as usize);
        Ok(Self { session, uri, limit })
    }

    /// Answers with what `read` reads after that position, at most as much as it is told.
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

/// What is said of a marker that is not there.
pub(super) fn unknown_marker(marker: &impl Display) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, format!("marker {marker} is not in the list"))
}

/// The same question for what comes after that.
pub(super) fn next_link(uri: &Uri, last: &impl Display) -> Link {
    let others = uri.query().unwrap_or_default().split('&');
    let others = others.filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
    let query: Vec<String> = others.map(str::to_owned).chain([format!("marker={last}")]).collect();
    Link { href: format!("{}?{}", uri.path(), query.join("&")), rel: "next".to_owned() }
}
