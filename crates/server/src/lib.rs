//! HTTP server of the leasing service: version 1 of the reservation API as Blazar's clients know it, with
//! authentication, policy and limits.
//!
//! ```text
//! request ─► context ─► authenticate ─► version ─► handler ─► policy ─► parse ─► service ─► response
//!            id, log,   auth            middleware  routes     policy    api
//!            metrics
//! ```
//!
//! [`App`] is the server without sockets, built from a [`Config`]. [`router`] serves requests with it, and
//! [`bind`] and [`serve`] add sockets and TLS. [`mistakes`] and [`warnings`] check settings without serving.
//!
//! - An [`Authenticator`] turns [`Credentials`] into an [`Identity`], or returns a [`Denial`].
//! - A [`Policy`] decides whether an identity fulfills a [`Rule`] for a [`Target`].
//! - [`push_notifications`] and [`hear_the_cloud`] run beside the server. They send notifications to
//!   listeners, and receive those of the cloud's services.
//! - [`ExternalService`] lets a service with Blazar's protocol approve leases.
//! - [`UsersFile`], [`hash_password`] and [`hash_token`] are for commands that manage credentials.
//!
//! To create a lease, the handler checks the policy, the crate `api` parses the body, and the crate `service`
//! makes the decision in a task of its own. `error::ApiError` turns a refusal into a status and a body.
//!
//! No decision about leases is made here. A route requires valid credentials unless `public` lists it. A
//! request uses the users, tokens and rules that were in force when it arrived, even after a reload. Once
//! something is committed, a change runs to its end even if the client disconnects.
//!
//! Start reading at `router.rs`, which has all routes and the order of the middleware. `app.rs` has the state
//! that requests share.

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
pub use check::{mistakes, try_brokers, warnings};
pub use config::{
    AuthConfig, AuthMethod, Config, ExecConfig, ExternalServiceConfig, KeystoneConfig, Limits,
    MessageBusConfig, PlacementConfig, RateLimit, ShortageStatus, TlsConfig, TokenValidation, WebhookConfig,
};
pub use config_error::ConfigError;
pub use enforcement::ExternalService;
pub use policy::{Policy, PolicyError, Rule, Target};
pub use router::{openapi, router};
pub use serve::{ServeError, bind, serve};
