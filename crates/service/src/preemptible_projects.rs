//! Projects whose instances are preemptible unless a request says otherwise, as listed by administrators
//! (PRE-03a). Projects in the settings are listed as well, and can't be removed.

use jiff::Timestamp;
use leases::preemption::ProjectPattern;
use store::{PreemptibleProjectRecord, Write};

use crate::service::Service;
use crate::types::{Caller, NotFound, ServiceError};

/// Maximum length of a pattern in characters.
const MOST_CHARACTERS: usize = 255;

/// Projects whose instances are preemptible unless a request says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct PreemptibleProjects<'a> {
    pub(crate) service: &'a Service,
}

impl<'a> PreemptibleProjects<'a> {
    pub(crate) fn of(service: &'a Service) -> Self {
        Self { service }
    }

    /// All patterns, those from the settings first. Patterns that an administrator added have the time of
    /// that.
    pub fn all(self) -> Vec<(ProjectPattern, Option<Timestamp>)> {
        let settings =
            self.service.decider.settings.preemption.projects.iter().map(|pattern| (pattern.clone(), None));
        let state = self.service.state();
        let entered = state.preemptible_projects.values();
        let entered = entered.map(|record| (record.pattern.clone(), Some(record.created_at)));
        settings.chain(entered).collect()
    }

    /// Adds a pattern. Instances that its projects start from now on are preemptible. Returns the existing
    /// record if an administrator has added the pattern before.
    pub async fn add(
        self,
        caller: &Caller,
        pattern: ProjectPattern,
    ) -> Result<PreemptibleProjectRecord, ServiceError> {
        if !self.service.decider.settings.preemptible_by_project {
            let why = "servers of this fleet are preemptible by what marks them, or by preemptible.projects of the settings";
            return Err(ServiceError::Conflict(why.to_owned()));
        }
        let text = pattern.to_string();
        if text.is_empty() || text.chars().count() > MOST_CHARACTERS || text.chars().any(char::is_control) {
            return Err(ServiceError::Invalid(format!(
                "the pattern of projects is not 1 to {MOST_CHARACTERS} characters that can be shown"
            )));
        }
        let writer = self.service.writer().await?;
        if let Some(known) = self.service.state().preemptible_projects.get(&text) {
            return Ok(known.clone());
        }
        let record = PreemptibleProjectRecord { pattern, created_at: self.service.now() };
        let write = Write::PreemptibleProject(record.clone());
        writer.write_one(caller, "preemptible_project.create", &text, write).await?;
        Ok(record)
    }

    /// Removes a pattern. Instances that are already preemptible remain so.
    pub async fn remove(self, caller: &Caller, pattern: ProjectPattern) -> Result<(), ServiceError> {
        let text = pattern.to_string();
        let writer = self.service.writer().await?;
        if !self.service.state().preemptible_projects.contains_key(&text) {
            return Err(if self.service.decider.settings.preemption.projects.contains(&pattern) {
                ServiceError::Conflict(format!("{text} is listed in the settings, preemptible.projects"))
            } else {
                ServiceError::NotFound(NotFound::PreemptibleProject(text))
            });
        }
        let write = Write::RemovePreemptibleProject(pattern);
        writer.write_one(caller, "preemptible_project.delete", &text, write).await
    }
}
