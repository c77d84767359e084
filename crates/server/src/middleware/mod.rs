//! Middleware around every handler, from the outside in: [`unread`] drains request bodies that no handler
//! reads, [`compression`] and [`security`] set how the response is sent, [`context`] identifies, logs and
//! counts the request, [`authenticate`] identifies its sender, [`charge`] accounts for its cost, [`current`]
//! refreshes the service, and [`version`] negotiates the API version.

pub(crate) mod authenticate;
mod charge;
pub(crate) mod compression;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod security;
pub(crate) mod suffix;
pub(crate) mod unread;
pub(crate) mod version;
