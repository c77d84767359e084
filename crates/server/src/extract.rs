//! Axum extractors. They reject requests with errors in the service's own format.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;

use api::v1::RequestError;
use api::v1::limits::LARGEST;
use axum::body::{Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use futures::StreamExt;
use leases::text::Quoted;
use serde_json::Value;

use crate::app::{App, Session};
use crate::config::Limits;
use crate::error::ApiError;
use crate::public::limited;
use crate::request::{RequestId, peer};

/// Maximum length of a login's body, in bytes.
const LONGEST_LOGIN: usize = 1 << 16;

impl FromRequestParts<App> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        // Absent only if the handler of a public route asks for it.
        parts.extensions.get::<Session>().cloned().ok_or_else(|| ApiError::unauthorized(false))
    }
}

/// Client address and identifier of a request.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// `None` without a socket.
    pub peer: Option<IpAddr>,
    /// `req-...`.
    pub request_id: String,
}

impl FromRequestParts<App> for Origin {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let request_id = parts.extensions.get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
        Ok(Self { peer: peer(&parts.extensions), request_id })
    }
}

/// The raw body. Handlers parse it after they have checked the policy.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub bytes: Bytes,
    /// Limits on the size of its parts.
    parts: api::v1::Limits,
}

impl Body {
    /// Parses the body as JSON and checks the size of its parts. As in Blazar, an empty body counts as an
    /// empty object.
    pub fn json(&self) -> Result<Value, RequestError> {
        let value = self.passing()?;
        self.parts.check(&value)?;
        Ok(value)
    }

    /// Like [`Self::json`], but without size limits, for content that isn't stored: logins, whose names and
    /// passwords can be anything, and what Nova reports of a server.
    pub fn passing(&self) -> Result<Value, RequestError> {
        if self.bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| RequestError::Json(error.to_string()))
    }
}

impl FromRequest<App> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let longest = longest(&app.inner.config.limits, request.uri().path());
        Self::read(request, app, longest).await
    }
}

impl Body {
    /// Reads a body of at most `longest` bytes, within the time limit for sending one.
    pub async fn read(request: Request, app: &App, longest: usize) -> Result<Self, ApiError> {
        let limits = app.inner.config.limits;
        let read = bytes(request.into_body(), longest);
        // On shutdown, an unfinished request delays the server by at most this time.
        let stopping = async {
            app.stopping().await;
            tokio::time::sleep(limits.stop_read_time).await;
        };
        let read = tokio::time::timeout(limits.read_time, read);
        let read = tokio::select! {
            read = read => read.map_err(drop),
            () = stopping => Err(()),
        };
        match read {
            Ok(Ok(bytes)) => Ok(Self { bytes, parts: limits.parts }),
            Ok(Err(error)) => Err(error),
            Err(()) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "The request was not sent in time")),
        }
    }
}

/// Reads a whole body of at most `longest` bytes.
async fn bytes(body: axum::body::Body, longest: usize) -> Result<Bytes, ApiError> {
    let too_long = || {
        let message = format!("The body of a request may be {longest} bytes long");
        Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message))
    };
    if body.size_hint().lower() > longest as u64 {
        return too_long();
    }
    let mut pieces = body.into_data_stream();
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await {
        // If the client has disconnected, this response is lost.
        let piece = piece.map_err(|error| {
            let message = format!("The body of the request cannot be read: {}", Quoted(&error.to_string()));
            ApiError::new(StatusCode::BAD_REQUEST, message)
        })?;
        if all.len() + piece.len() > longest {
            return too_long();
        }
        all.extend_from_slice(&piece);
    }
    Ok(all.into())
}

/// Maximum length of a body. Before authentication, it may only be as large as a user name and a password.
fn longest(limits: &Limits, path: &str) -> usize {
    if limited(path) { limits.body_bytes.min(LONGEST_LOGIN) } else { limits.body_bytes }
}

/// Query parameters. The last value of a repeated parameter counts, and an empty value counts as absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(BTreeMap<String, String>);

impl Options {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Parses a parameter. `None` if it is absent.
    pub fn parsed<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        self.text(name)
            .map(|text| {
                read(text).ok_or_else(|| {
                    ApiError::new(StatusCode::BAD_REQUEST, format!("Malformed parameter {name}"))
                })
            })
            .transpose()
    }

    /// Maximum number of list entries. `None` if the client sets no limit.
    pub fn limit(&self) -> Result<Option<u32>, ApiError> {
        self.parsed("limit", |text| text.parse().ok().filter(|limit| (1..=LARGEST).contains(limit)))
    }

    /// A boolean, false if absent.
    pub fn truth(&self, name: &str) -> Result<bool, ApiError> {
        let read = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        Ok(self.parsed(name, read)?.unwrap_or(false))
    }

    /// Whether the parameter is set. Any text counts as true (API-hosts).
    pub fn is_set(&self, name: &str) -> bool {
        self.text(name).is_some()
    }
}

impl FromRequestParts<App> for Options {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let pairs = Query::<Vec<(String, String)>>::from_request_parts(parts, app).await;
        let Query(pairs) = pairs.map_err(|error| {
            ApiError::new(StatusCode::BAD_REQUEST, Quoted(&error.to_string()).to_string())
        })?;
        let parts = app.inner.config.limits.parts;
        for (name, text) in &pairs {
            parts.check_length_of(name, text)?;
        }
        Ok(Self(pairs.into_iter().collect()))
    }
}
