//! Scheduler hints for leases (CLS-11). Not in Blazar.

use api::v1::OfferedHints;
use axum::Json;
use axum::extract::State;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::policy::Rule;

/// List scheduler hints for leases, with their values, combinations and limits.
#[utoipa::path(
    get, path = "/v1/hints", tag = "leases", operation_id = "list_hints",
    responses((status = 200, body = OfferedHints))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<OfferedHints>, ApiError> {
    session.allow(&app, Rule::LeasesGet)?;
    // Only operators can see the inventory.
    let hosts = session.allow(&app, Rule::HostsGet).is_ok().then(|| {
        let records = app.service().hosts().all();
        records.iter().map(|record| record.host.name.clone()).collect::<Vec<_>>()
    });
    Ok(Json(OfferedHints::of(app.service().hint_rules(), hosts.as_deref())))
}
