//! Projects that are there no more, and what they have left.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use leases::ids::LeaseId;
use leases::project::ProjectId;

use crate::drift::Drift;
use crate::service::Service;
use crate::types::{Caller, ServiceError};

/// Whoever knows which projects there are.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Those of the projects that were deleted.
    ///
    /// # Errors
    /// Why that cannot be told.
    async fn deleted(&self, projects: &BTreeSet<ProjectId>) -> Result<BTreeSet<ProjectId>, String>;
}

impl Service {
    /// Leases that are not over, of projects that were deleted. Where it cannot be told which projects there are, the log
    /// says why, and nothing is found.
    pub(crate) async fn ownerless(&self, projects: &dyn Projects) -> Vec<Drift> {
        let mut leases: BTreeMap<ProjectId, Vec<(LeaseId, String)>> = BTreeMap::new();
        let state = self.snapshot();
        for lease in state.leases.going().chain(state.leases.pending()).map(|record| &record.lease) {
            let of_project = leases.entry(lease.owner.project.clone()).or_default();
            of_project.push((lease.id, lease.name.clone()));
        }
        if leases.is_empty() {
            return Vec::new();
        }
        let deleted = match projects.deleted(&leases.keys().cloned().collect()).await {
            Ok(deleted) => deleted,
            Err(error) => {
                tracing::warn!(error, "deleted projects not looked for");
                return Vec::new();
            }
        };
        let gone = leases.into_iter().filter(|(project, _)| deleted.contains(project));
        gone.filter_map(|(project, leases)| {
            let first = leases.first()?.1.clone();
            Some(Drift::Ownerless { project, first, leases: leases.into_iter().map(|(id, _)| id).collect() })
        })
        .collect()
    }

    /// Deletes leases of a project that was deleted.
    pub(crate) async fn delete_ownerless(
        &self,
        caller: &Caller,
        leases: &[LeaseId],
    ) -> Result<(), ServiceError> {
        for lease in leases {
            match self.delete_lease(caller, *lease).await {
                // It has ended meanwhile, or somebody else was first.
                Ok(()) | Err(ServiceError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
