//! Existence of projects in Keystone.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use leases::project::ProjectId;
use openstack::Error;
use service::Projects;

use super::Keystone;

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

#[async_trait]
impl Projects for Keystone {
    async fn deleted(&self, projects: &BTreeSet<ProjectId>) -> Result<BTreeSet<ProjectId>, String> {
        let session = &self.inner.session;
        // A user that doesn't find its own project wouldn't find any other either.
        let own = session.own_token().await.map_err(reason)?.project.map(|project| project.id);
        if let Some(own) = own
            && !openstack::has_project(session, &own).await.map_err(reason)?
        {
            return Err(format!("Keystone does not find the project {own} of the service's user"));
        }
        let deleted = async |project: ProjectId| {
            let there = openstack::has_project(session, &project.0).await.map_err(reason)?;
            Ok::<_, String>((!there).then_some(project))
        };
        let asked = stream::iter(projects.iter().cloned()).map(deleted).buffer_unordered(AT_ONCE);
        Ok(asked.try_collect::<Vec<_>>().await?.into_iter().flatten().collect())
    }
}

/// The error, with the missing permission if Keystone forbids the request.
#[expect(clippy::needless_pass_by_value, reason = "it converts errors")]
fn reason(error: Error) -> String {
    match error.status() {
        Some(403) => format!("{error}; the service's user needs identity:get_project in Keystone's policy"),
        _ => error.to_string(),
    }
}
