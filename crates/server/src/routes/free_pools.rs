//! Free pools and their hosts (FP).

use std::sync::Arc;

use api::v1::body::{
    FreePoolBody, FreePoolChange, FreePoolCreate, FreePoolsBody, HostBody, HostCreate, HostsBody,
};
use api::v1::{FreePool, FreePoolRequest, HostRequest};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leases::ids::HostId;
use store::{FreePoolRecord, HostRecord};

use super::hosts;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Body;
use crate::listing::Listing;
use crate::policy::Rule;

/// List free pools.
#[utoipa::path(
    get, path = "/v1/freepools", tag = "freepools", operation_id = "list_freepools",
    responses((status = 200, body = FreePoolsBody))
)]
pub(crate) async fn list(State(app): State<App>, session: Session) -> Result<Json<FreePoolsBody>, ApiError> {
    session.allow(&app, Rule::FreePoolsGet)?;
    let freepools = app.service().free_pools().all().iter().map(|record| shown(&app, record)).collect();
    Ok(Json(FreePoolsBody { freepools }))
}

/// Create a free pool.
#[utoipa::path(
    post, path = "/v1/freepools", tag = "freepools", operation_id = "create_freepool",
    request_body = FreePoolCreate,
    responses(
        (status = 201, body = FreePoolBody),
        (status = 409, description = "A pool with this name exists already", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FreePoolsPost)?;
    let FreePoolRequest { name, extra_specs, end_action } = FreePoolRequest::read(&body.json()?, true)?;
    let new = service::NewFreePool {
        name: name.unwrap_or_default(),
        extra_specs: extra_specs.unwrap_or_default(),
        end_action: end_action.flatten(),
    };
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record = session.change(async move { service.free_pools().create(&caller, new).await }).await??;
    Ok((StatusCode::CREATED, Json(FreePoolBody { freepool: shown(&app, &record) })).into_response())
}

/// Show a free pool.
#[utoipa::path(
    get, path = "/v1/freepools/{freepool}", tag = "freepools", operation_id = "show_freepool",
    params(("freepool" = String, Path, description = "Identifier or name of the free pool")),
    responses((status = 200, body = FreePoolBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Path(freepool): Path<String>,
) -> Result<Json<FreePoolBody>, ApiError> {
    session.allow(&app, Rule::FreePoolsGet)?;
    Ok(Json(FreePoolBody { freepool: shown(&app, find(&app, &freepool)?.as_ref()) }))
}

/// Update the name, capabilities or end action of a free pool.
///
/// Existing leases don't change.
#[utoipa::path(
    put, path = "/v1/freepools/{freepool}", tag = "freepools", operation_id = "update_freepool",
    params(("freepool" = String, Path, description = "Identifier or name of the free pool")),
    request_body = FreePoolChange,
    responses(
        (status = 200, body = FreePoolBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "A pool with this name exists already, or a lease depends on the \
            capabilities",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    session: Session,
    Path(freepool): Path<String>,
    body: Body,
) -> Result<Json<FreePoolBody>, ApiError> {
    session.allow(&app, Rule::FreePoolsPut)?;
    let FreePoolRequest { name, extra_specs, end_action } = FreePoolRequest::read(&body.json()?, false)?;
    let change = service::FreePoolChange { name, extra_specs, end_action };
    let id = find(&app, &freepool)?.pool.id;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record =
        session.change(async move { service.free_pools().update(&caller, id, change).await }).await??;
    Ok(Json(FreePoolBody { freepool: shown(&app, &record) }))
}

/// Delete a free pool without hosts.
#[utoipa::path(
    delete, path = "/v1/freepools/{freepool}", tag = "freepools", operation_id = "delete_freepool",
    params(("freepool" = String, Path, description = "Identifier or name of the free pool")),
    responses(
        (status = 204),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The pool has hosts", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Path(freepool): Path<String>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::FreePoolsDelete)?;
    let id = find(&app, &freepool)?.pool.id;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.free_pools().delete(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// List hosts of a free pool, leased or not.
#[utoipa::path(
    get, path = "/v1/freepools/{freepool}/hosts", tag = "freepools", operation_id = "list_freepool_hosts",
    params(("freepool" = String, Path, description = "Identifier or name of the free pool")),
    responses((status = 200, body = HostsBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn list_hosts(
    State(app): State<App>,
    session: Session,
    Path(freepool): Path<String>,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FreePoolsGet)?;
    let pool = find(&app, &freepool)?.pool.id;
    let hosts = app.service().hosts().all().into_iter().filter(|record| record.host.pool == pool).collect();
    Ok(Listing::new(&session, "hosts", hosts::in_pools(&app, hosts), hosts::shown).respond().await)
}

/// Add a machine of the fleet to a free pool as a host.
///
/// The machine must not be in a pool, and must not run guests.
#[utoipa::path(
    post, path = "/v1/freepools/{freepool}/hosts", tag = "freepools", operation_id = "add_freepool_host",
    params(("freepool" = String, Path, description = "Identifier or name of the free pool")),
    request_body = HostCreate,
    responses(
        (status = 201, body = HostBody),
        (status = 404, description = "Pool or machine not found", body = api::v1::ErrorBody),
        (status = 409, description = "The machine is in a pool already, or in use",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn add_host(
    State(app): State<App>,
    session: Session,
    Path(freepool): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::FreePoolsPost)?;
    let pool = find(&app, &freepool)?.pool.id;
    let HostRequest { which, capabilities } = HostRequest::read(&body.json()?)?;
    let (service, caller, which) = (Arc::clone(app.service()), session.caller(), hosts::selector(which));
    let added = async move { service.hosts().add(&caller, which, capabilities, pool).await };
    let record = session.change(added).await??;
    Ok((StatusCode::CREATED, Json(HostBody { host: hosts::show_one(&app, record) })).into_response())
}

/// Move a host from another free pool to this one.
///
/// The host keeps its identifier, its own capabilities and its leases. The request is rejected if a lease
/// depends on capabilities that would change.
#[utoipa::path(
    put, path = "/v1/freepools/{freepool}/hosts/{host_id}", tag = "freepools",
    operation_id = "move_freepool_host",
    params(
        ("freepool" = String, Path, description = "Identifier or name of the new free pool"),
        ("host_id" = String, Path, description = "Identifier or name of the host"),
    ),
    responses(
        (status = 200, body = HostBody),
        (status = 404, description = "Pool or host not found", body = api::v1::ErrorBody),
        (status = 409, description = "A lease depends on capabilities that would change",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn move_host(
    State(app): State<App>,
    session: Session,
    Path((freepool, host)): Path<(String, String)>,
) -> Result<Json<HostBody>, ApiError> {
    session.allow(&app, Rule::FreePoolsPut)?;
    let pool = find(&app, &freepool)?.pool.id;
    let id = find_host(&app, &host, |_| true)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record =
        session.change(async move { service.free_pools().move_host(&caller, id, pool).await }).await??;
    Ok(Json(HostBody { host: hosts::show_one(&app, record) }))
}

/// Remove a host from a free pool and return it to the fleet.
///
/// Leases that haven't started get other hosts. The request is rejected if there are not enough other hosts,
/// or if a lease on the host has started.
#[utoipa::path(
    delete, path = "/v1/freepools/{freepool}/hosts/{host_id}", tag = "freepools",
    operation_id = "remove_freepool_host",
    params(
        ("freepool" = String, Path, description = "Identifier or name of the free pool"),
        ("host_id" = String, Path, description = "Identifier or name of the host"),
    ),
    responses(
        (status = 204),
        (status = 404, description = "Pool not found, or host not found in the pool",
         body = api::v1::ErrorBody),
        (status = 409, description = "A lease needs the host", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn remove_host(
    State(app): State<App>,
    session: Session,
    Path((freepool, host)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::FreePoolsDelete)?;
    let pool = find(&app, &freepool)?.pool.id;
    let id = find_host(&app, &host, |record| record.host.pool == pool)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.hosts().remove_from_pool(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

fn find(app: &App, freepool: &str) -> Result<Arc<FreePoolRecord>, ApiError> {
    app.service().free_pools().get(freepool).ok_or_else(|| ApiError::not_found("freepool", freepool))
}

/// Finds a host by identifier or name among those that `of` accepts.
fn find_host(app: &App, host: &str, of: impl Fn(&HostRecord) -> bool) -> Result<HostId, ApiError> {
    let mut known = app.service().hosts().all().into_iter().filter(|record| of(record));
    let found = known.find(|record| record.host.id.to_string() == host || record.host.name == host);
    Ok(found.ok_or_else(|| ApiError::not_found("host_id", host))?.host.id)
}

fn shown(app: &App, record: &FreePoolRecord) -> FreePool {
    FreePool::of(record, app.service().free_pools().hosts_in(record.pool.id))
}
