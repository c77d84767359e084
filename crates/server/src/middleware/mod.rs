//! What happens to every request before and after its handler, from the outside in: [`context`] numbers, logs
//! and counts it, [`authenticate`] finds out who sends it, [`version`] which version of the API is meant.

pub(crate) mod authenticate;
pub(crate) mod context;
pub(crate) mod suffix;
pub(crate) mod version;
