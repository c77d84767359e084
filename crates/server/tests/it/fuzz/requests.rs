//! Generates requests to every operation in the OpenAPI document: valid, almost valid and invalid ones.

use std::fmt;
use std::fmt::Write;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{Method, Request};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use serde_json::Value;

use super::bodies::Bodies;
use super::damage::{odd_text, spoil, written};
use super::known::Known;
use crate::contract::document;

/// An operation in the OpenAPI document.
struct Operation {
    method: Method,
    path: &'static str,
    description: &'static Value,
}

/// All operations but `/readyz`, whose response depends on the service's loop. The loop doesn't run here.
static OPERATIONS: LazyLock<Vec<Operation>> = LazyLock::new(|| {
    let paths = document()["paths"].as_object().expect("paths").iter();
    let operations = paths.flat_map(|(path, item)| {
        item.as_object().expect("an item").iter().filter_map(move |(name, description)| {
            let method = name.to_uppercase().parse().ok()?;
            description.is_object().then_some(Operation { method, path, description })
        })
    });
    operations.filter(|operation| operation.path != "/readyz").collect()
});

/// Percentages of requests that create leases, and that change them.
const CREATIONS: u32 = 30;
const CHANGES: u32 = 20;

/// A generated request.
#[derive(Clone)]
pub struct Drawn {
    pub token: &'static str,
    pub method: Method,
    /// Path of the operation in the document, with variables.
    pub template: &'static str,
    pub address: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Drawn {
    /// Whether the response can depend on the start of a lease.
    pub fn waits_for_a_start(&self) -> bool {
        self.method == Method::POST && self.template == "/v1/leasepools"
    }

    pub fn is_dry_run(&self) -> bool {
        self.says("dry_run=")
    }

    /// Whether a rejected request can have an effect, because alternatives are held.
    pub fn holds_offers(&self) -> bool {
        self.says("hold_offers=")
    }

    /// Whether an option is true. If it is repeated, the last value counts.
    fn says(&self, option: &str) -> bool {
        let options = self.address.split_once('?').map_or("", |(_, options)| options).split('&');
        let wanted = options.filter_map(|pair| pair.strip_prefix(option)).next_back();
        wanted.is_some_and(|value| ["true", "1"].contains(&value.to_ascii_lowercase().as_str()))
    }

    /// The HTTP request. `None` if it would not be valid HTTP.
    pub fn request(&self) -> Option<Request<Body>> {
        let mut builder = Request::builder().method(self.method.clone()).uri(&self.address);
        if !self.token.is_empty() {
            builder = builder.header("x-auth-token", self.token);
        }
        for (name, value) in &self.headers {
            builder = builder.header(*name, value.as_bytes());
        }
        builder.body(Body::from(self.body.clone())).ok()
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = String::from_utf8_lossy(&self.body).chars().take(2000).collect();
        write!(f, "{} {} by {:?} {:?} {shown}", self.method, self.address, self.token, self.headers)
    }
}

pub fn draw(known: &Known, rng: &mut SmallRng) -> Drawn {
    let of_leases = |method: Method| {
        let mut operations = OPERATIONS.iter();
        operations.find(|one| one.method == method && one.path.starts_with("/v1/leases"))
    };
    let operation = match rng.random_range(0..100) {
        number if number < CREATIONS => of_leases(Method::POST),
        number if number < CREATIONS + CHANGES => of_leases(Method::PUT),
        _ => OPERATIONS.choose(rng),
    };
    let operation = operation.expect("the document has operations");
    let mut draw = Draw { operation, known, rng, lease: None };
    let address = draw.address();
    let headers = draw.headers();
    let body = draw.body();
    let token = match rng.random_range(0..40) {
        0 => "",
        1 => "nosuch",
        2 => "reader",
        3 => "foreign",
        4..12 => "member",
        _ => "admin",
    };
    let (method, template) = (operation.method.clone(), operation.path);
    Drawn { token, method, template, address, headers, body }
}

struct Draw<'a> {
    operation: &'static Operation,
    known: &'a Known,
    rng: &'a mut SmallRng,
    /// The lease in the path.
    lease: Option<String>,
}

impl Draw<'_> {
    fn chance(&mut self, of_one: f64) -> bool {
        self.rng.random_bool(of_one)
    }

    fn address(&mut self) -> String {
        let mut address = String::new();
        for part in self.operation.path.split('/').skip(1) {
            let part = match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => self.identifier(name),
                None => part.to_owned(),
            };
            address.push('/');
            address.push_str(&part);
        }
        if self.chance(0.05) {
            address.push_str(".json");
        }
        let query: Vec<String> = self.query();
        if query.is_empty() { address } else { format!("{address}?{}", query.join("&")) }
    }

    fn identifier(&mut self, name: &str) -> String {
        let known = self.known.named(name, self.rng);
        match known {
            Some(known) if self.chance(0.85) => {
                if name == "lease_id" {
                    self.lease = Some(known.clone());
                }
                encoded(&known)
            }
            Some(known) if self.chance(0.3) => encoded(&known.to_uppercase()),
            _ => encoded(&odd_text(self.rng)),
        }
    }

    fn query(&mut self) -> Vec<String> {
        let parameters = self.operation.description["parameters"].as_array().cloned().unwrap_or_default();
        let mut pairs = Vec::new();
        for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
            let name = parameter["name"].as_str().unwrap_or_default();
            if self.chance(0.7) {
                continue;
            }
            let usual = self.known.named(name, self.rng).unwrap_or_else(|| "1".to_owned());
            let value = if self.chance(0.5) { usual } else { odd_text(self.rng) };
            pairs.push(format!("{name}={}", encoded(&value)));
        }
        if self.chance(0.03) {
            let odd = ["limit=1&limit=2", "=", "&&&", "a%zz=%", "limit", "%ff=%fe"];
            pairs.push(odd.choose(self.rng).copied().unwrap_or_default().to_owned());
        }
        pairs
    }

    fn headers(&mut self) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if self.chance(0.15) {
            let keys = ["k1", "k2", "k3"];
            headers.push(("idempotency-key", keys.choose(self.rng).copied().unwrap_or_default().to_owned()));
        }
        if self.chance(0.05) {
            let names = [
                "idempotency-key",
                "openstack-api-version",
                "x-openstack-request-id",
                "content-type",
                "content-encoding",
                "host",
                "authorization",
                "x-project-id",
            ];
            let values =
                ["", "reservation 1.0", "reservation 9999999999.0", "gzip", "Basic Og==", "é", "\u{1}"];
            let odd = odd_text(self.rng);
            let value =
                values.choose(self.rng).filter(|_| self.rng.random_bool(0.5)).copied().unwrap_or(&odd);
            headers.push((names.choose(self.rng).copied().unwrap_or_default(), value.to_owned()));
        }
        headers
    }

    fn body(&mut self) -> Vec<u8> {
        let schema = &self.operation.description["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() && self.chance(0.95) {
            return Vec::new();
        }
        let mut bodies = Bodies { rng: self.rng, known: self.known, lease: self.lease.as_deref() };
        let mut body = bodies.value("", schema, 0);
        if self.chance(0.5) {
            for _ in 0..self.rng.random_range(1..3) {
                spoil(&mut body, self.rng);
            }
        }
        written(&body, self.rng)
    }
}

/// Percent-encodes text for a path.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
