//! Making, changing and deleting leases.

pub(crate) mod create;
mod delete;
mod enforcing;
mod holding;
mod immediate;
mod preparing;
pub(crate) mod series;
pub(crate) mod update;
