//! A thin client of `OpenStack`'s services, for what Allotment asks of them and nothing else.
//!
//! ```text
//! Call ──► Session ──► Transport ──► service
//!            │  ▲          │
//!            │  └─ token, catalog: one login for all calls, renewed before it expires
//!            └─ again after a pause (retry), or after a new login when the token was refused
//! ```
//!
//! A [`Session`] belongs to one cloud. It logs in when it is first needed, once however many calls wait for it, and
//! finds services in the catalog. A [`Call`] names its service, what it is for, and for services that have
//! microversions always the one it was written against. Answers are limited in time and size, unknown fields are
//! ignored, and an [`Error`] names service, call, status and the request's identifier in the cloud's logs.
//!
//! Passwords and tokens are never in errors, logs or `Debug`.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod access_rule;
mod call;
mod catalog;
mod error;
mod identity;
mod login;
mod retry;
mod session;
mod standing;
mod token;
mod transport;

pub use access_rule::AccessRule;
pub use call::{Answer, Api, Call, Microversion};
pub use catalog::{Catalog, Endpoint, Interface, Service};
pub use error::{Error, ErrorKind};
pub use identity::{has_project, identity_url, validate, validate_own};
pub use login::{Domain, Login, Project, Secret, User};
pub use retry::Retry;
pub use session::{Cloud, Session, SetupError};
pub use token::{ApplicationCredential, Named, Token, TokenError};
