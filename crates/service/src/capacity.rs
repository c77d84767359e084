//! Capacity planning: requests that were refused for lack of capacity, and how much more of it would have met them.

use leases::project::ProjectId;
use leases::shortage::{Shortage, Unmet, beginning_of_day, unmet};
use leases::window::Window;
use store::RefusalFilter;

use crate::service::Service;
use crate::types::{Caller, NewLease, ServiceError};

/// Maximum number of kinds in an answer. Those that were refused most often come first.
const KINDS: u32 = 100;

/// Refused requests, and how much more capacity would have met them.
#[derive(Clone, Copy, Debug)]
pub struct Capacity<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> Capacity<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// Refused requests by kind, on all days in UTC that the period touches; of one project, or of all if it is `None`.
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
    /// Counts a request for a new lease that was refused for lack of capacity. Requests that would wait instead, of which
    /// only dry runs are refused, don't count.
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
