//! What happens to every request before and after its handler, from the outside in: [`context`] numbers, logs
//! and counts it, [`authenticate`] finds out who sends it, [`current`] brings the service up to date, [`version`] finds out which
//! version of the API is meant.

pub(crate) mod authenticate;
pub(crate) mod context;
pub(crate) mod current;
pub(crate) mod suffix;
pub(crate) mod version;
