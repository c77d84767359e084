//! Differences between store and fleet. Not in Blazar.

use std::sync::Arc;

use api::v1::DriftEntry;
use api::v1::body::DriftBody;
use axum::Json;
use axum::extract::State;
use service::Drift;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::policy::Rule;

/// Looks at all machines for differences between what is stored and what the fleet shows. Nothing is changed.
#[utoipa::path(
    get, path = "/v1/drift", tag = "drift", operation_id = "list_drift",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<DriftBody>, ApiError> {
    session.allow(&app, Rule::DriftGet)?;
    Ok(Json(body(&app.service().drift().await?)))
}

/// Sets differences right where that can be done; the answer has what is left.
#[utoipa::path(
    post, path = "/v1/drift/repair", tag = "drift", operation_id = "repair_drift",
    responses((status = 200, body = DriftBody))
)]
pub(crate) async fn repair(State(app): State<App>, session: Session) -> Result<Json<DriftBody>, ApiError> {
    session.allow(&app, Rule::DriftRepair)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let left = session.change(async move { service.repair_drift(&caller).await }).await??;
    Ok(Json(body(&left)))
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
