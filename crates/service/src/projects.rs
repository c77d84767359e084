//! Existence of projects.

use std::collections::BTreeSet;

use async_trait::async_trait;
use leases::project::ProjectId;

/// A source that knows which projects exist.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Returns the projects among these that were deleted.
    ///
    /// # Errors
    /// Reason why the source can't tell.
    async fn deleted(&self, projects: &BTreeSet<ProjectId>) -> Result<BTreeSet<ProjectId>, String>;
}
