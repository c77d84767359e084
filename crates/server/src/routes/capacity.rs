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

/// Requests for new leases that were refused for lack of capacity in a past period, by kind, and how many of them more
/// capacity would have met. The 100 kinds with the most refusals are shown. Of the caller's project; an administrator sees
/// all.
#[utoipa::path(
    get, path = "/v1/capacity", tag = "usage", operation_id = "show_capacity",
    params(
        ("start" = Option<String>, Query, description = "First instant, written as for usage; by default the beginning of the \
            month. Refusals are counted by days in UTC, and days that the period touches are included"),
        ("end" = Option<String>, Query, description = "End of the period, written as for usage; by default now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of dates without a time, as for usage"),
        ("project_id" = Option<String>, Query, description = "Only of this project; of others for administrators only"),
        ("tenant_id" = Option<String>, Query, description = "The same as project_id"),
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
