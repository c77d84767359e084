//! A thin client of OpenStack's services, limited to the calls that Allotment needs.
//!
//! ```text
//! Call ──► Session ──► Transport ──► service
//!            │  ▲          │
//!            │  └─ token, catalog: one login for all calls, renewed before it expires
//!            └─ again after a pause (retry), or after a new login when the token was rejected
//! ```
//!
//! - A [`Session`] belongs to one [`Cloud`]. It logs in when it is first used, once for all concurrent calls,
//!   and finds services in the [`Catalog`].
//! - A [`Call`] names its service and its purpose. For services with microversions, it always has the
//!   [`Microversion`] that it was written for.
//! - An [`Answer`] is a successful response. Unknown fields are ignored.
//! - An [`Error`] names the service, the call, the status, and the request's identifier in the cloud's logs.
//! - [`validate`] checks a client's token.
//!
//! [`Session::call`] sends a call with the session's token. It retries calls that can be repeated, and logs
//! in again once if the service rejects the token.
//!
//! Passwords and tokens never appear in errors, logs or `Debug`. Each response is limited in time and size.
//!
//! Start reading at [`Session`].

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
