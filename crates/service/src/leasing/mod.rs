//! Making, changing and deleting leases.

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

/// Leases: making, changing and deleting them, and questions about them.
#[derive(Clone, Copy, Debug)]
pub struct Leases<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Leases<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }
}
