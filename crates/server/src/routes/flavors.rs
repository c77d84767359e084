//! Flavors, which the service stores itself. Not in Blazar.

use std::sync::Arc;

use api::v1::body::{FlavorBody, FlavorCreate, FlavorsBody};
use api::v1::{Flavor, FlavorRequest};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leases::text::Quoted;
use store::FlavorRecord;

use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Body;
use crate::policy::Rule;

/// List flavors that the caller can use.
#[utoipa::path(
    get, path = "/v1/flavors", tag = "flavors", operation_id = "list_flavors",
    responses((status = 200, body = FlavorsBody))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<FlavorsBody>, ApiError> {
    session.allow(&app, Rule::FlavorsGet)?;
    let all = session.is_admin(&app);
    let flavors = app.service().flavors().all();
    let flavors = flavors.iter().filter(|record| record.public || all);
    Ok(Json(FlavorsBody { flavors: flavors.map(|record| Flavor::from(record.as_ref())).collect() }))
}

/// Create a flavor.
#[utoipa::path(
    post, path = "/v1/flavors", tag = "flavors", operation_id = "create_flavor",
    request_body = FlavorCreate,
    responses(
        (status = 201, body = FlavorBody),
        (status = 409, description = "A flavor with this identifier exists already",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FlavorsPost)?;
    let request = FlavorRequest::read(&body.json()?)?;
    let new_id = || leases::ids::LeaseId(app.inner.ids.uuid()).to_string();
    let id = request.id.clone().unwrap_or_else(new_id);
    if app.service().flavors().get(&id).is_some() {
        return Err(ApiError::new(StatusCode::CONFLICT, format!("Flavor {} already exists", Quoted(&id))));
    }
    let flavor = put(&app, &session, request, id).await?;
    Ok((StatusCode::CREATED, Json(flavor)).into_response())
}

async fn put(
    app: &App,
    session: &Session,
    request: FlavorRequest,
    id: String,
) -> Result<FlavorBody, ApiError> {
    let record = request.record(id, app.service().now())?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record = session.change(async move { service.flavors().put(&caller, record).await }).await??;
    Ok(FlavorBody { flavor: Flavor::from(record.as_ref()) })
}

fn find(app: &App, session: &Session, id: &str) -> Result<Arc<FlavorRecord>, ApiError> {
    let record = app.service().flavors().get(id).filter(|record| record.public || session.is_admin(app));
    record.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, format!("Flavor {} not found", Quoted(id))))
}

/// Show a flavor.
#[utoipa::path(
    get, path = "/v1/flavors/{flavor_id}", tag = "flavors", operation_id = "show_flavor",
    params(("flavor_id" = String, Path, description = "Identifier of the flavor")),
    responses((status = 200, body = FlavorBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<Json<FlavorBody>, ApiError> {
    session.allow(&app, Rule::FlavorsGet)?;
    Ok(Json(FlavorBody { flavor: Flavor::from(find(&app, &session, &id)?.as_ref()) }))
}

/// Create or replace a flavor.
///
/// Existing leases keep the previous version.
#[utoipa::path(
    put, path = "/v1/flavors/{flavor_id}", tag = "flavors", operation_id = "update_flavor",
    params(("flavor_id" = String, Path, description = "Identifier of the flavor")),
    request_body = FlavorCreate,
    responses((status = 200, body = FlavorBody))
)]
pub(crate) async fn update(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<FlavorBody>, ApiError> {
    session.allow(&app, Rule::FlavorsPut)?;
    let request = FlavorRequest::read(&body.json()?)?;
    if request.id.as_ref().is_some_and(|other| *other != id) {
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "id is not that of the address"));
    }
    Ok(Json(put(&app, &session, request, id).await?))
}

/// Delete a flavor.
///
/// Existing leases keep it.
#[utoipa::path(
    delete, path = "/v1/flavors/{flavor_id}", tag = "flavors", operation_id = "delete_flavor",
    params(("flavor_id" = String, Path, description = "Identifier of the flavor")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::FlavorsDelete)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.flavors().remove(&caller, &id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}
