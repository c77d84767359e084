//! HTTP routes. A path, its handler and its part of the OpenAPI document are kept together.

use ::leases::project::ProjectId;
use axum::http::StatusCode;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

pub(crate) mod audit;
pub(crate) mod availability;
pub(crate) mod calendar;
pub(crate) mod capacity;
pub(crate) mod drift;
pub(crate) mod energy;
pub(crate) mod flavors;
pub(crate) mod floating_ips;
pub(crate) mod free_pools;
pub(crate) mod hints;
pub(crate) mod hosts;
pub(crate) mod identity;
pub(crate) mod instances;
pub(crate) mod lease_pools;
mod lease_view;
pub(crate) mod leases;
pub(crate) mod maintenance;
pub(crate) mod notifications;
pub(crate) mod occupancy;
pub(crate) mod offers;
pub(crate) mod operation;
mod paging;
pub(crate) mod placement;
pub(crate) mod preemptible;
pub(crate) mod series;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod usage;
pub(crate) mod vendordata;
pub(crate) mod versions;
mod visible;
pub(crate) mod waitlist;

/// Project whose objects are listed: the caller's. For an administrator, the one in the option `project_id`
/// or `tenant_id`, or `None` (all projects).
fn project_to_list(
    app: &App,
    session: &Session,
    options: &Options,
    rule: Rule,
) -> Result<Option<ProjectId>, ApiError> {
    let asked = named_project(options)?;
    let own = &session.identity.project;
    if session.is_admin(app) {
        Ok(asked)
    } else if asked.is_some_and(|asked| asked != *own) {
        Err(ApiError::forbidden(rule))
    } else {
        Ok(Some(own.clone()))
    }
}

/// The project in the option `project_id` or its synonym `tenant_id`.
fn named_project(options: &Options) -> Result<Option<ProjectId>, ApiError> {
    let (project, tenant) = (options.text("project_id"), options.text("tenant_id"));
    if project.zip(tenant).is_some_and(|(project, tenant)| project != tenant) {
        let message =
            "Malformed parameter tenant_id: it means the same as project_id, which has another value";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
    }
    Ok(project.or(tenant).map(|id| ProjectId(id.to_owned())))
}
