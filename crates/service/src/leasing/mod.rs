//! Creating, changing, deleting and reading leases.

pub(crate) mod create;
mod delete;
mod enforcing;
pub(crate) mod holding;
mod immediate;
pub(crate) mod moving;
mod preparing;
pub(crate) mod proposed;
mod reading;
pub(crate) mod series;
pub(crate) mod update;

use crate::service::Service;

/// Creates, changes, deletes and reads leases.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Leases<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }
}
