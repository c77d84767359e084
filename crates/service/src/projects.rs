//! Which projects there are.

use std::collections::BTreeSet;

use async_trait::async_trait;
use leases::project::ProjectId;

/// Whoever knows which projects there are.
#[async_trait]
pub trait Projects: Send + Sync {
    /// Those of the projects that were deleted.
    ///
    /// # Errors
    /// Why that cannot be told.
    async fn deleted(&self, projects: &BTreeSet<ProjectId>) -> Result<BTreeSet<ProjectId>, String>;
}
