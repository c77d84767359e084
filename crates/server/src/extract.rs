//! Parts of requests as handlers take them; what is wrong with them is said in the service's shapes.

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

/// Longest body of a login, in bytes.
const LONGEST_LOGIN: usize = 1 << 16;

impl FromRequestParts<App> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        // It is absent only where a handler of a public address asks for it.
        parts.extensions.get::<Session>().cloned().ok_or_else(|| ApiError::unauthorized(false))
    }
}

/// Where a request comes from, and which one it is.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The other side's address, if there is a socket.
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

/// The body as it came. Handlers read it as JSON after they have asked the policy.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// The body.
    pub bytes: Bytes,
    /// How large its parts may be.
    parts: api::v1::Limits,
}

impl Body {
    /// The JSON in it, of which no part is too large; nothing counts as an empty object, as in Blazar.
    pub fn json(&self) -> Result<Value, RequestError> {
        let value = self.passing()?;
        self.parts.check(&value)?;
        Ok(value)
    }

    /// The same with parts of any size, of which nothing is kept: a login, in which names and passwords are whatever they are,
    /// or what Nova says of a server.
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
    /// Reads a body of so many bytes at most, as long as a client may take to send it.
    pub async fn read(request: Request, app: &App, longest: usize) -> Result<Self, ApiError> {
        let limits = app.inner.config.limits;
        let read = bytes(request.into_body(), longest);
        // Who does not finish a request keeps the server from ending no longer than that.
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

/// All of a body, if it is so long at most.
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
        // Of a client that went away nobody reads the answer.
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

/// How long a body may be. Of somebody of whom nothing is known yet, no more is read than a name and a password.
fn longest(limits: &Limits, path: &str) -> usize {
    if limited(path) { limits.body_bytes.min(LONGEST_LOGIN) } else { limits.body_bytes }
}

/// What comes after the question mark. Of several values of a name the last counts; empty ones count as absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(BTreeMap<String, String>);

impl Options {
    /// The text of that name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// The value of that name, if it is one.
    pub fn parsed<T>(&self, name: &str, read: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        self.text(name)
            .map(|text| {
                read(text).ok_or_else(|| {
                    ApiError::new(StatusCode::BAD_REQUEST, format!("Malformed parameter {name}"))
                })
            })
            .transpose()
    }

    /// How many entries a list is to have at most, if it is said.
    pub fn limit(&self) -> Result<Option<u32>, ApiError> {
        self.parsed("limit", |text| text.parse().ok().filter(|limit| (1..=LARGEST).contains(limit)))
    }

    /// Yes or no; no if absent.
    pub fn truth(&self, name: &str) -> Result<bool, ApiError> {
        let read = |text: &str| match text.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        Ok(self.parsed(name, read)?.unwrap_or(false))
    }

    /// Whether there is anything of that name: any text counts as yes (API-hosts).
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
