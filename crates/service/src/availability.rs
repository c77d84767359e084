//! How much is free when, without saying who has the rest.

use jiff::SignedDuration;
use leases::admission::Availability;
use leases::project::ProjectId;
use leases::terms::ReservationTerms;
use leases::window::Window;

use crate::calendar::CalendarView;
use crate::types::ServiceError;

/// So many times are proposed at most.
const PROPOSED: usize = 3;

impl CalendarView<'_> {
    /// How much of what is asked for is free for a project within the window, and, if a length is given, the earliest times
    /// at which all of it could be reserved for that long, three at most, none of which overlaps another.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] for what is never granted and what takes too much work; [`ServiceError::Gone`].
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

    /// The same of several, each by itself, as of one state. All of it is one decision, and costs as much at most.
    ///
    /// # Errors
    /// Those of [`Self::availability`].
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
