//! Requests to services, and their successful responses.

use std::fmt;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// Default limit on the size of a response, in bytes. Services page their lists, mostly at 1,000 entries.
const MOST_BYTES: usize = 16 << 20;

/// A microversion: selects the meaning of a request to a service that has changed over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion {
    pub major: u16,
    pub minor: u16,
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A service, with a microversion if the service has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Keystone, at the URL where the session logs in.
    Identity,
    /// Nova.
    Compute(Microversion),
    Placement(Microversion),
    /// Neutron.
    Network,
    /// Glance.
    Image,
}

impl Api {
    /// Type of the service in the catalog.
    pub fn service_type(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute(_) => "compute",
            Self::Placement(_) => "placement",
            Self::Network => "network",
            Self::Image => "image",
        }
    }

    /// Value of `OpenStack-API-Version`, if the service has microversions.
    pub(crate) fn version(self) -> Option<String> {
        match self {
            Self::Compute(version) | Self::Placement(version) => {
                Some(format!("{} {version}", self.service_type()))
            }
            Self::Identity | Self::Network | Self::Image => None,
        }
    }
}

/// A request to a service.
#[derive(Clone)]
pub struct Call {
    pub(crate) api: Api,
    /// Purpose of the call, for errors: `list servers`.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// Segments of the path below the service's URL, not percent-encoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// Header with a value that must not be shown.
    pub(crate) secret: Option<(HeaderName, SecretString)>,
    pub(crate) body: Option<Value>,
    /// Whether the call can be sent again when its outcome is unknown.
    pub(crate) repeatable: bool,
    pub(crate) most_bytes: usize,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body of a login has a password.
        let mut shown = f.debug_struct("Call");
        shown.field("api", &self.api).field("name", &self.name).field("method", &self.method);
        shown.field("path", &self.path).field("query", &self.query).finish_non_exhaustive()
    }
}

impl Call {
    /// A request that is repeatable unless its method is `POST` or `PATCH`.
    pub fn new(api: Api, name: &'static str, method: Method, path: &[&str]) -> Self {
        let repeatable = ![Method::POST, Method::PATCH].contains(&method);
        Self {
            api,
            name,
            method,
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            secret: None,
            body: None,
            repeatable,
            most_bytes: MOST_BYTES,
        }
    }

    pub fn get(api: Api, name: &'static str, path: &[&str]) -> Self {
        Self::new(api, name, Method::GET, path)
    }

    #[must_use]
    pub fn with_body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Adds a parameter to the query.
    #[must_use]
    pub fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets a header that is never shown.
    #[must_use]
    pub fn with_secret(self, name: HeaderName, value: SecretString) -> Self {
        Self { secret: Some((name, value)), ..self }
    }

    /// Makes the call repeatable despite its method, for calls that are idempotent.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// Limits the size of the response, in bytes.
    #[must_use]
    pub fn at_most(self, most_bytes: usize) -> Self {
        Self { most_bytes, ..self }
    }

    /// Type of the service: `compute`.
    pub fn service(&self) -> &'static str {
        self.api.service_type()
    }

    /// An error of this call that isn't caused by a response.
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error { service: self.api.service_type(), call: self.name, request_id: None, kind }
    }
}

/// A response with a success status.
pub struct Answer {
    /// HTTP status, 200 to 299.
    pub status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) service: &'static str,
    pub(crate) call: &'static str,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keystone's headers and bodies have tokens.
        let mut shown = f.debug_struct("Answer");
        shown.field("service", &self.service).field("call", &self.call).field("status", &self.status);
        shown.field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

impl Answer {
    /// Deserializes the body. Unknown fields are ignored.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.malformed(&error.to_string()))
    }

    /// A header; `None` if it is missing or isn't text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// An error for an invalid response.
    pub fn malformed(&self, reason: &str) -> Error {
        let request_id = crate::transport::request_id(&self.headers);
        let kind = ErrorKind::Malformed(crate::error::shown(reason));
        Error { service: self.service, call: self.call, request_id, kind }
    }
}
