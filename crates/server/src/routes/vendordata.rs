//! Vendor data, which Nova requests for the metadata of its servers.

use std::sync::Arc;

use api::v1::body::VendordataRequest;
use api::v1::{Vendordata, VendordataLease, read_vendordata_request, rfc_3339};
use axum::Json;
use axum::extract::State;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Body;
use crate::policy::Rule;

/// Show the lease of a server, or the time of its preemption.
///
/// Nova sends this request, and passes the response to the server as metadata.
#[utoipa::path(
    post, path = "/v1/vendordata", tag = "instances", operation_id = "vendordata",
    request_body = VendordataRequest,
    responses(
        (status = 200, body = Vendordata),
        (status = 503, description = "The cloud doesn't respond", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Json<Vendordata>, ApiError> {
    session.allow(&app, Rule::VendordataPost)?;
    let id = read_vendordata_request(&body.passing()?)?;
    let service = Arc::clone(app.service());
    let facts = session.consider(async move { service.instances().facts(id).await }).await??;
    let Some(facts) = facts else { return Ok(Json(Vendordata::default())) };
    let lease = facts.lease.as_deref();
    Ok(Json(Vendordata {
        lease: lease.map(|lease| VendordataLease::new(lease, facts.reservation)),
        preemptible: Some(facts.preemptible),
        shutdown_date: facts.departure.map(|departure| rfc_3339(departure.asked_at)),
        gone_date: facts.departure.map(|departure| rfc_3339(departure.gone_by)),
    }))
}
