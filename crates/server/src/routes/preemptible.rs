//! Usage of preemptible instances, and the list of projects whose instances are preemptible. Not in Blazar.

use std::sync::Arc;

use api::v1::body::{PreemptibleBody, PreemptibleProjectBody, PreemptibleProjectsBody};
use api::v1::{PreemptibleProject, PreemptibleUsage, hours};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::project_to_list;
use super::usage::period;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// Show usage of preemptible instances in a past period.
///
/// Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/preemptible", tag = "preemptible", operation_id = "show_preemptible_usage",
    params(
        ("start" = Option<String>, Query, description = "Start of the period, in the format of `GET \
            /v1/usage`. Default: start of the current month"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `GET /v1/usage`. \
            Default: now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of dates without a time. Default: UTC"),
        ("project_id" = Option<String>, Query, description = "Only instances of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = PreemptibleBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<PreemptibleBody>, ApiError> {
    session.allow(&app, Rule::UsageGet)?;
    let project = project_to_list(&app, &session, &options, Rule::UsageGet)?;
    let (period, _) = period::asked(&options, app.service().now())?;
    let service = Arc::clone(app.service());
    let usage = async move { service.usage().preemptible(period, project.as_ref()).await };
    let usage = session.consider(usage).await??;
    let capacity = hours(usage.capacity_cores_us);
    let part = if capacity > 0.0 { hours(usage.cores_us) / capacity } else { 0.0 };
    let preemptible = PreemptibleUsage {
        start: period.start().to_string(),
        end: period.end().to_string(),
        begun: usage.begun,
        preempted: usage.preempted,
        hours: hours(usage.ran_us),
        core_hours: hours(usage.cores_us),
        hours_lost: hours(usage.lost_us),
        utilisation_gained: session.allow(&app, Rule::HostsGet).is_ok().then_some(part),
    };
    Ok(Json(PreemptibleBody { preemptible }))
}

/// List patterns of projects whose instances are preemptible, unless a request says otherwise.
#[utoipa::path(
    get, path = "/v1/preemptible/projects", tag = "preemptible", operation_id = "list_preemptible_projects",
    responses((status = 200, body = PreemptibleProjectsBody))
)]
pub(crate) async fn list_projects(
    State(app): State<App>,
    session: Session,
) -> Result<Json<PreemptibleProjectsBody>, ApiError> {
    session.allow(&app, Rule::PreemptibleProjectsGet)?;
    let listed = app.service().preemptible_projects().all();
    let shown = |(pattern, since): (_, _)| PreemptibleProject::of(&pattern, since);
    Ok(Json(PreemptibleProjectsBody { projects: listed.into_iter().map(shown).collect() }))
}

/// Add a pattern of projects whose instances are preemptible.
///
/// Applies to instances that these projects start from now on. Has no effect if the pattern is already
/// listed.
#[utoipa::path(
    put, path = "/v1/preemptible/projects/{pattern}", tag = "preemptible",
    operation_id = "list_preemptible_project",
    params(("pattern" = String, Path, description = "Pattern of project identifiers: * matches any text and \
            ? any character")),
    responses(
        (status = 200, body = PreemptibleProjectBody),
    )
)]
pub(crate) async fn put_project(
    State(app): State<App>,
    session: Session,
    Path(pattern): Path<String>,
) -> Result<Json<PreemptibleProjectBody>, ApiError> {
    session.allow(&app, Rule::PreemptibleProjectsPut)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let Ok(pattern) = pattern.parse();
    let listed =
        session.change(async move { service.preemptible_projects().add(&caller, pattern).await }).await??;
    let project = PreemptibleProject::of(&listed.pattern, Some(listed.created_at));
    Ok(Json(PreemptibleProjectBody { project }))
}

/// Remove a pattern of projects whose instances are preemptible.
///
/// Instances that are already preemptible stay preemptible.
#[utoipa::path(
    delete, path = "/v1/preemptible/projects/{pattern}", tag = "preemptible",
    operation_id = "unlist_preemptible_project",
    params(("pattern" = String, Path, description = "Pattern of project identifiers")),
    responses(
        (status = 204),
        (status = 404, description = "The pattern is not listed", body = api::v1::ErrorBody),
        (status = 409, description = "The pattern is part of the operator's settings",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn delete_project(
    State(app): State<App>,
    session: Session,
    Path(pattern): Path<String>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::PreemptibleProjectsDelete)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let Ok(pattern) = pattern.parse();
    session.change(async move { service.preemptible_projects().remove(&caller, pattern).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}
