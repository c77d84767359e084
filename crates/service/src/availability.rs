//! How much is free when, without saying who has the rest.

use jiff::SignedDuration;
use leases::admission::{Admission, Availability, Refusal};
use leases::project::ProjectId;
use leases::terms::{ReservationTerms, Terms};
use leases::window::Window;

use crate::{Service, ServiceError};

/// So many times are proposed at most.
const PROPOSED: usize = 3;

impl Service {
    /// How much of what is asked for is free for a project within the window, and, if a length is given, the earliest times
    /// at which all of it could be reserved for that long, three at most, none of which overlaps another.
    ///
    /// # Errors
    /// [`ServiceError::Refused`] for what is never granted and what takes too much work; [`ServiceError::Gone`].
    pub async fn availability(
        &self,
        project: &ProjectId,
        asked: &ReservationTerms,
        within: Window,
        length: Option<SignedDuration>,
    ) -> Result<(Availability, Option<Vec<Window>>), ServiceError> {
        let now = self.now();
        self.consider(|budget| {
            let state = self.snapshot();
            let hosts = self.known_hosts(&state, now);
            let admission = self.admission(&state, None, &hosts, now, budget);
            let found = admission.availability(project, asked, within)?;
            let best =
                length.map(|length| earliest(&admission, project, asked, within, length)).transpose()?;
            Ok((found, best))
        })
        .await
    }
}

fn earliest(
    admission: &Admission<'_>,
    project: &ProjectId,
    asked: &ReservationTerms,
    within: Window,
    length: SignedDuration,
) -> Result<Vec<Window>, ServiceError> {
    let mut found = Vec::new();
    let mut rest = within.since(admission.now);
    while found.len() < PROPOSED && rest.length() >= length {
        let terms = Terms::new(Window::starting(rest.start(), length), None, vec![asked.clone()]);
        let terms = terms.and_then(|terms| terms.anywhere_in(rest)).map_err(Refusal::from)?;
        match admission.grant(project, &terms) {
            Ok(grant) => {
                let window = grant.terms.window();
                rest = rest.since(window.end());
                found.push(window);
            }
            Err(ended @ (Refusal::TooCostly(_) | Refusal::Canceled)) => return Err(ended.into()),
            Err(_) => break,
        }
    }
    Ok(found)
}
