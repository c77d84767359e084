//! Default properties, for requests that ask for nothing in particular (HK).

use super::{Admission, Grant, Refusal};
use crate::housekeeping::HousekeepingRules;
use crate::project::ProjectId;
use crate::terms::Terms;

impl Admission<'_> {
    /// What a new lease of these terms would be given. Where nothing in particular is asked for, hosts with the default
    /// properties are, unless they are not to be had; its terms stay what they are.
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
