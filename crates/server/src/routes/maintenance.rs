//! Maintenance of hosts (HK). Not in Blazar.

use std::sync::Arc;

use api::v1::body::{MaintenanceBody, MaintenanceCreate};
use api::v1::{Maintenance, MaintenanceRequest, rfc_3339};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leases::maintenance::MaintenanceWish;
use service::{NewMaintenance, PlannedMaintenance};

use super::leases::DRY_RUN;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::policy::Rule;

/// Book maintenance of hosts.
///
/// Each host gets the earliest window in which it isn't in use. Either all hosts are booked, or the request
/// is rejected.
#[utoipa::path(
    post, path = "/v1/maintenance", tag = "hosts", operation_id = "book_maintenance",
    params(("dry_run" = Option<bool>, Query, description = "Whether to show windows without booking them")),
    request_body = MaintenanceCreate,
    responses(
        (status = 200, description = "The windows that would be booked (`dry_run`)", body = MaintenanceBody),
        (status = 201, body = MaintenanceBody),
        (status = 404, description = "Host not found", body = api::v1::ErrorBody),
        (status = 409, description = "No window is available, or `housekeeping.maintenance_project` isn't set",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn book(
    State(app): State<App>,
    session: Session,
    options: Options,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::MaintenancePost)?;
    let request =
        MaintenanceRequest::read(&body.json()?, app.service().now(), &app.inner.config.limits.parts)?;
    let MaintenanceRequest { hosts, free_pool, length, margin, not_before, before } = request;
    let new =
        NewMaintenance { hosts, free_pool, wish: MaintenanceWish { length, margin, not_before, before } };
    if options.truth(DRY_RUN)? {
        let service = Arc::clone(app.service());
        let planned = session.consider(async move { service.maintenance().plan(&new).await }).await??;
        return Ok(Json(shown(&planned)).into_response());
    }
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let booked = session.change(async move { service.maintenance().book(&caller, &new).await }).await??;
    Ok((StatusCode::CREATED, Json(shown(&booked))).into_response())
}

fn shown(planned: &[PlannedMaintenance]) -> MaintenanceBody {
    let maintenance = planned.iter().map(|one| Maintenance {
        host_id: one.host.host.id.to_string(),
        host: one.host.host.name.clone(),
        start_date: one.window.map(|window| rfc_3339(window.start())),
        end_date: one.window.map(|window| rfc_3339(window.end())),
        lease_id: one.lease.map(|lease| lease.to_string()),
    });
    MaintenanceBody { maintenance: maintenance.collect() }
}
