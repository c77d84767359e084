//! Refused requests, and how much more capacity would have met them. Not in Blazar.

use std::sync::Arc;

use api::v1::RefusedRequests;
use api::v1::body::CapacityBody;
use axum::Json;
use axum::extract::State;

use super::project_to_list;
use super::usage::period;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// Show requests that were rejected for lack of capacity.
///
/// Counts requests for new leases in a past period by kind, and the number that additional capacity would
/// have met. Contains the 100 kinds with the most rejections. Covers the caller's project; for
/// administrators, all projects.
#[utoipa::path(
    get, path = "/v1/capacity", tag = "usage", operation_id = "show_capacity",
    params(
        ("start" = Option<String>, Query, description = "Start of the period, in the format of `GET \
            /v1/usage`. Default: start of the current month. Rejections are counted by day in UTC, and days \
            that the period touches are included"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `GET /v1/usage`. \
            Default: now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of dates without a time. Default: UTC"),
        ("project_id" = Option<String>, Query, description = "Only requests of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = CapacityBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<CapacityBody>, ApiError> {
    session.allow(&app, Rule::CapacityGet)?;
    let project = project_to_list(&app, &session, &options, Rule::CapacityGet)?;
    let (period, _) = period::asked(&options, app.service().now())?;
    let service = Arc::clone(app.service());
    let refused = async move { service.capacity().refused(project.as_ref(), period).await };
    let refused = session.consider(refused).await??;
    Ok(Json(CapacityBody {
        start: period.start().to_string(),
        end: period.end().to_string(),
        capacity: refused.into_iter().map(RefusedRequests::from).collect(),
    }))
}
