//! The leasing service over HTTP: version 1 of the reservation API as Blazar's clients know it, who may come in,
//! and who may do what.
//!
//! ```text
//! request ─► number, log, count ─► who? ─► which version? ─► route ─► may they? ─► read ─► service ─► answer
//!            middleware::context   auth    middleware::      routes   policy      api
//! ```
//!
//! [`App`] is the server without sockets, [`router`] serves requests with it, [`bind`] and [`serve`] add the
//! sockets. Nothing is decided here: requests are read by the crate `api` and given to the crate `service`. A
//! handler asks the policy first, then reads the body, and hands changes over to a task of their own, which ends
//! even if the client goes away.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod accept;
mod access;
mod app;
mod auth;
mod background;
mod certificates;
mod check;
mod cloud_news;
mod config;
mod config_error;
mod connections;
mod console;
mod console_session;
mod document;
mod enforcement;
mod error;
mod extract;
mod held;
mod listeners;
mod listing;
mod message_bus;
mod metrics;
mod middleware;
mod names;
mod placement;
mod policy;
mod public;
mod rate;
mod reload;
mod request;
mod router;
mod routes;
mod serve;
mod unanswered;

pub use access::{Difference, Reloaded};
pub use app::App;
pub use auth::{
    AuthFileError, Authenticator, Credentials, Denial, HashError, Identity, Names, Roles, UsersFile,
    UsersFileError, hash_password, hash_token,
};
pub use background::{hear_the_cloud, push_notifications};
pub use check::{mistakes, warnings};
pub use config::{
    AuthConfig, AuthMethod, Config, ExecConfig, ExternalServiceConfig, KeystoneConfig, Limits,
    MessageBusConfig, PlacementConfig, RateLimit, ShortageStatus, TlsConfig, TokenValidation, WebhookConfig,
};
pub use config_error::ConfigError;
pub use enforcement::ExternalService;
pub use policy::{Policy, PolicyError, Rule, Target};
pub use router::{openapi, router};
pub use serve::{ServeError, bind, serve};
