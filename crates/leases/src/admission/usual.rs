//! Default properties for requests without any (HK).

use super::{Admission, Grant, Refusal};
use crate::housekeeping::HousekeepingRules;
use crate::project::ProjectId;
use crate::terms::Terms;

impl Admission<'_> {
    /// Allocates a new lease. If its terms ask for nothing in particular, it gets hosts with the default
    /// properties, unless too few are available. Its terms stay as requested.
    pub fn grant_usual(
        &self,
        project: &ProjectId,
        terms: &Terms,
        rules: &HousekeepingRules,
    ) -> Result<Grant, Refusal> {
        if let Some(usual) = rules.usual(terms)
            && let Ok(mut grant) = self.grant(project, &usual)
        {
            grant.terms.reservations.clone_from(&terms.reservations);
            return Ok(grant);
        }
        self.grant(project, terms)
    }
}
