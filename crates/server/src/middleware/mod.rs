//! What happens to every request before and after its handler, from the outside in: [`unread`] lets clients send bodies
//! that nobody reads, [`compression`] and [`security`] see to how the response is sent, [`context`] numbers, logs and
//! counts the request, [`authenticate`] finds out who sends it and [`charge`] what it costs, [`current`] brings the
//! service up to date, and [`version`] finds out which version of the API is meant.

pub(crate) mod authenticate;
mod charge;
pub(crate) mod compression;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod security;
pub(crate) mod suffix;
pub(crate) mod unread;
pub(crate) mod version;
