//! Differences between store and fleet. Not in Blazar.

use std::sync::Arc;

use api::v1::DriftEntry;
use api::v1::body::DriftBody;
use axum::Json;
use axum::extract::State;
use service::{Acceptable, Drift};

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::policy::Rule;

/// List differences between store and fleet.
///
/// Checks all machines. Also finds leases of projects that were deleted in Keystone, if the service accepts
/// only Keystone's tokens. Changes nothing.
#[utoipa::path(
    get, path = "/v1/drift", tag = "drift", operation_id = "list_drift",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<DriftBody>, ApiError> {
    session.allow(&app, Rule::DriftGet)?;
    let projects = app.projects();
    Ok(Json(body(&app.service().repairs().drift(projects.as_deref()).await?)))
}

/// Repair differences between store and fleet.
///
/// Repairs all differences that can be repaired. The response lists the remaining ones.
#[utoipa::path(
    post, path = "/v1/drift/repair", tag = "drift", operation_id = "repair_drift",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn repair(State(app): State<App>, session: Session) -> Result<Json<DriftBody>, ApiError> {
    session.allow(&app, Rule::DriftRepair)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let projects = app.projects();
    let left = session.change(async move { service.repairs().repair(&caller, projects.as_deref()).await });
    let left = left.await??;
    Ok(Json(body(&left)))
}

/// Accept the clock of the service's machine as correct.
///
/// Resolves the difference `wrong_clock`. The response lists the remaining differences.
#[utoipa::path(
    post, path = "/v1/drift/accept-clock", tag = "drift", operation_id = "accept_clock",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn accept_clock(
    State(app): State<App>,
    session: Session,
) -> Result<Json<DriftBody>, ApiError> {
    accept(&app, &session, Acceptable::Clock).await
}

/// Accept the fleet as belonging to this store.
///
/// Resolves the difference `foreign_fleet`. From then on, the service takes back everything that the fleet
/// holds for leases unknown to the store. The response lists the remaining differences.
#[utoipa::path(
    post, path = "/v1/drift/accept-fleet", tag = "drift", operation_id = "accept_fleet",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn accept_fleet(
    State(app): State<App>,
    session: Session,
) -> Result<Json<DriftBody>, ApiError> {
    accept(&app, &session, Acceptable::Fleet).await
}

async fn accept(app: &App, session: &Session, what: Acceptable) -> Result<Json<DriftBody>, ApiError> {
    session.allow(app, Rule::DriftRepair)?;
    let (service, caller, projects) = (Arc::clone(app.service()), session.caller(), app.projects());
    let left = session.change(async move {
        service.accept(&caller, what).await?;
        service.repairs().drift(projects.as_deref()).await
    });
    Ok(Json(body(&left.await??)))
}

fn body(drift: &[Drift]) -> DriftBody {
    let entry = |drift: &Drift| DriftEntry {
        kind: drift.kind().to_owned(),
        host_id: drift.host().map(|host| host.to_string()),
        message: drift.to_string(),
        repairable: drift.repairable(),
    };
    DriftBody { drift: drift.iter().map(entry).collect() }
}
