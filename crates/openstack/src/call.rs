//! What is asked of a service, and what it answers.

use std::fmt;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, ErrorKind};

/// Most bytes of an answer unless a call says otherwise: lists are paged by the services, at 1,000 entries mostly.
const MOST_BYTES: usize = 16 << 20;

/// A microversion: what a request means to a service that has changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion {
    /// The part before the dot.
    pub major: u16,
    /// The part after it.
    pub minor: u16,
}

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A service, with the microversion where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// Keystone, at the address that the session logs in at.
    Identity,
    /// Nova.
    Compute(Microversion),
    /// Placement.
    Placement(Microversion),
    /// Neutron.
    Network,
    /// Glance.
    Image,
}

impl Api {
    /// The type that the catalog knows it by.
    pub fn service_type(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute(_) => "compute",
            Self::Placement(_) => "placement",
            Self::Network => "network",
            Self::Image => "image",
        }
    }

    /// The value of `OpenStack-API-Version`, if the service has microversions.
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
    /// What it is for, for errors: `list servers`.
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// Parts of the path below the service's address, not yet encoded.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// A header whose value nobody may see.
    pub(crate) secret: Option<(HeaderName, SecretString)>,
    pub(crate) body: Option<Value>,
    /// Whether it may be sent again when it is not known what became of it.
    pub(crate) repeatable: bool,
    pub(crate) most_bytes: usize,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A login's body has a password in it.
        let mut shown = f.debug_struct("Call");
        shown.field("api", &self.api).field("name", &self.name).field("method", &self.method);
        shown.field("path", &self.path).field("query", &self.query).finish_non_exhaustive()
    }
}

impl Call {
    /// A request that may be repeated unless its method is `POST` or `PATCH`.
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

    /// A `GET`.
    pub fn get(api: Api, name: &'static str, path: &[&str]) -> Self {
        Self::new(api, name, Method::GET, path)
    }

    /// The same with a body.
    #[must_use]
    pub fn with_body(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The same with one more parameter of the query.
    #[must_use]
    pub fn with_query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The same with one more header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a header that is never shown.
    #[must_use]
    pub fn with_secret(self, name: HeaderName, value: SecretString) -> Self {
        Self { secret: Some((name, value)), ..self }
    }

    /// The same, which may be sent again although its method does not say so: the service ends up the same however often
    /// it comes.
    #[must_use]
    pub fn repeatable(self) -> Self {
        Self { repeatable: true, ..self }
    }

    /// The same with another limit on the answer's size, bytes.
    #[must_use]
    pub fn at_most(self, most_bytes: usize) -> Self {
        Self { most_bytes, ..self }
    }

    /// The type of the service that is asked: `compute`.
    pub fn service(&self) -> &'static str {
        self.api.service_type()
    }

    /// An error of this call that comes from no answer.
    pub(crate) fn error(&self, kind: ErrorKind) -> Error {
        Error { service: self.api.service_type(), call: self.name, request_id: None, kind }
    }
}

/// What a service answers with a status of success.
pub struct Answer {
    /// The HTTP status, 200 to 299.
    pub status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) service: &'static str,
    pub(crate) call: &'static str,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and bodies of Keystone have tokens in them.
        let mut shown = f.debug_struct("Answer");
        shown.field("service", &self.service).field("call", &self.call).field("status", &self.status);
        shown.field("bytes", &self.body.len()).finish_non_exhaustive()
    }
}

impl Answer {
    /// The body as JSON; fields that the type does not have are ignored.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.malformed(&error.to_string()))
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// An error: the answer is not what it should be.
    pub fn malformed(&self, reason: &str) -> Error {
        let request_id = crate::transport::request_id(&self.headers);
        let kind = ErrorKind::Malformed(crate::error::shown(reason));
        Error { service: self.service, call: self.call, request_id, kind }
    }
}
