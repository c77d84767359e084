//! Capacity planning: requests refused for lack of capacity, and the capacity that they lacked.

use leases::project::ProjectId;
use leases::shortage::{Shortage, Unmet, beginning_of_day, unmet};
use leases::window::Window;
use store::RefusalFilter;

use crate::service::Service;
use crate::types::{Caller, NewLease, ServiceError};

/// Maximum number of kinds in a response. Kinds with the most refusals come first.
const KINDS: u32 = 100;

/// Access to counts of refused requests.
#[derive(Clone, Copy, Debug)]
pub struct Capacity<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Capacity<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Refused requests by kind, for all UTC days that the period touches. `None` for all projects.
    pub async fn refused(
        self,
        project: Option<&ProjectId>,
        period: Window,
    ) -> Result<Vec<Unmet>, ServiceError> {
        if period.is_empty() {
            return Ok(Vec::new());
        }
        let days = Window::new(beginning_of_day(period.start()), period.end()).unwrap_or(period);
        let filter = RefusalFilter { project: project.cloned(), days };
        let refusals = self.service.parts.store.refusals(&filter, KINDS);
        Ok(unmet(self.service.store_read(refusals).await?))
    }
}

impl Service {
    /// Counts a request for a new lease that was refused for lack of capacity. Requests that can wait don't
    /// count: only their dry runs are refused.
    pub(crate) fn count_refusal(&self, caller: &Caller, new: &NewLease, error: &ServiceError) {
        let ServiceError::Refused(refusal) = error else { return };
        if new.waits {
            return;
        }
        if let Some((shortage, needed)) = Shortage::from_refusal(refusal, &new.terms.reservations) {
            self.refusals.count(caller, self.now(), new.terms.window().start(), shortage, needed);
        }
    }
}
