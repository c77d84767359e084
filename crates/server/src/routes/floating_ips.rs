//! Floating IPs (API-hosts).

use std::sync::Arc;

use api::v1::body::{FloatingIpBody, FloatingIpCreate, FloatingIpsBody};
use api::v1::{FloatingIp, FloatingIpRequest, floating_ip_id};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use leases::text::Quoted;
use service::NewFloatingIp;
use store::FloatingIpRecord;

use super::paging::{Paging, Part, unknown_marker};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::policy::Rule;

/// List floating IPs that can be leased.
#[utoipa::path(
    get, path = "/v1/floatingips", tag = "floating IPs", operation_id = "list_floating_ips",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of floating IPs per page, at most \
            `limits.page`. Default: the whole list", minimum = 1),
        ("marker" = Option<String>, Query, description = "Identifier of the floating IP after which the page \
            starts"),
    ),
    responses((status = 200, body = FloatingIpsBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FloatingIpsGet)?;
    let after = options.parsed("marker", floating_ip_id)?;
    if let Some(marker) = after.filter(|marker| app.service().floating_ips().get(*marker).is_none()) {
        return Err(unknown_marker(&marker));
    }
    let service = Arc::clone(app.service());
    let read = move |after, limit| {
        let rest = service.floating_ips().after(after, limit + 1).into_iter();
        Part::of(rest, limit, |record| record.floating_ip.id)
    };
    let paging = Paging::new(&app, &session, &uri, &options)?;
    paging.answer("floatingips", after, read, |record| FloatingIp::from(record.as_ref())).await
}

/// Add a floating IP that can be leased.
#[utoipa::path(
    post, path = "/v1/floatingips", tag = "floating IPs", operation_id = "create_floating_ip",
    request_body = FloatingIpCreate,
    responses(
        (status = 201, body = FloatingIpBody),
        (status = 404, description = "No subnet contains the address", body = api::v1::ErrorBody),
        (status = 409, description = "A floating IP with this address exists already",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FloatingIpsPost)?;
    let FloatingIpRequest { network, address } = FloatingIpRequest::read(&body.json()?)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let new = NewFloatingIp { network, address };
    let record = session.change(async move { service.floating_ips().add(&caller, new).await }).await??;
    let body = FloatingIpBody { floatingip: FloatingIp::from(record.as_ref()) };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

fn find(app: &App, id: &str) -> Result<Arc<FloatingIpRecord>, ApiError> {
    let record = floating_ip_id(id).and_then(|id| app.service().floating_ips().get(id));
    record
        .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, format!("Floating IP {} not found.", Quoted(id))))
}

/// Show a floating IP.
#[utoipa::path(
    get, path = "/v1/floatingips/{floatingip_id}", tag = "floating IPs", operation_id = "show_floating_ip",
    params(("floatingip_id" = String, Path, description = "Identifier of the floating IP")),
    responses((status = 200, body = FloatingIpBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<Json<FloatingIpBody>, ApiError> {
    session.allow(&app, Rule::FloatingIpsGet)?;
    Ok(Json(FloatingIpBody { floatingip: FloatingIp::from(find(&app, &id)?.as_ref()) }))
}

/// Remove a floating IP.
#[utoipa::path(
    delete, path = "/v1/floatingips/{floatingip_id}", tag = "floating IPs",
    operation_id = "delete_floating_ip",
    params(("floatingip_id" = String, Path, description = "Identifier of the floating IP")),
    responses(
        (status = 204),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The floating IP is reserved", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::FloatingIpsDelete)?;
    let id = find(&app, &id)?.floating_ip.id;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.floating_ips().remove(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}
