//! Free capacity over time, without revealing the owners of reserved capacity.

use jiff::SignedDuration;
use leases::admission::Availability;
use leases::project::ProjectId;
use leases::terms::ReservationTerms;
use leases::window::Window;

use crate::calendar::CalendarView;
use crate::types::ServiceError;

/// Maximum number of proposed windows.
const PROPOSED: usize = 3;

impl CalendarView<'_> {
    /// Free capacity for a project within the window. With a length, also the earliest windows of that length
    /// in which all of the request could be reserved: three at most, without overlaps.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] if the request is never granted or takes too much work;
    /// [`ServiceError::Gone`].
    pub async fn availability(
        self,
        project: &ProjectId,
        asked: &ReservationTerms,
        within: Window,
        length: Option<SignedDuration>,
    ) -> Result<(Availability, Option<Vec<Window>>), ServiceError> {
        let now = self.service.now();
        self.service
            .consider(|budget| {
                let state = self.service.snapshot();
                let facts = self.service.decider.host_facts(&state, now);
                let admission = self.service.decider.admission(&state, &facts, now, budget);
                let found = admission.availability(project, asked, within)?;
                let windows = |length| admission.earliest_windows(project, asked, within, (length, PROPOSED));
                Ok((found, length.map(windows).transpose()?))
            })
            .await
    }

    /// Availability of several requests, each on its own, in one state of the store. They count as one
    /// decision and share its budget.
    ///
    /// # Errors
    /// Same as [`Self::availability`].
    pub async fn availability_of_each(
        self,
        project: &ProjectId,
        asked: &[ReservationTerms],
        within: Window,
    ) -> Result<Vec<Availability>, ServiceError> {
        let now = self.service.now();
        self.service
            .consider(|budget| {
                let state = self.service.snapshot();
                let facts = self.service.decider.host_facts(&state, now);
                let admission = self.service.decider.admission(&state, &facts, now, budget);
                let of = |asked| Ok(admission.availability(project, asked, within)?);
                asked.iter().map(of).collect()
            })
            .await
    }
}
