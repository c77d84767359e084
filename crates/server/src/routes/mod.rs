//! The addresses and what they answer: an address, its handler and its part of the document stand together.

use std::fmt::Display;

use api::v1::body::Link;
use axum::http::Uri;

pub(crate) mod audit;
pub(crate) mod drift;
pub(crate) mod flavors;
pub(crate) mod floating_ips;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod instances;
pub(crate) mod leases;
pub(crate) mod notifications;
pub(crate) mod operation;
pub(crate) mod versions;

/// The same question for what comes after that.
fn next_link(uri: &Uri, last: &impl Display) -> Link {
    let others = uri.query().unwrap_or_default().split('&');
    let others = others.filter(|pair| !pair.is_empty() && !pair.starts_with("marker="));
    let query: Vec<String> = others.map(str::to_owned).chain([format!("marker={last}")]).collect();
    Link { href: format!("{}?{}", uri.path(), query.join("&")), rel: "next".to_owned() }
}
