//! Lease pools (LP).

use std::sync::Arc;

use ::leases::ids::ReservationId;
use ::leases::lease_pool::pools;
use ::leases::project::ProjectId;
use api::v1::body::{
    LeasePoolBody, LeasePoolChange, LeasePoolCreate, LeasePoolGrowth, LeasePoolHostsBody, LeasePoolSwap,
    LeasePoolsBody,
};
use api::v1::{
    LeasePool, LeasePoolHost, LeasePoolInstance, LeasePoolRequest, MoreHosts, lease_of_pool, reservation_id,
    swapped_host,
};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use service::{Asked, Hold};
use store::LeaseRecord;

use super::lease_view::{mark_unseen, target, unknown_properties};
use super::paging::{Paging, Part};
use super::visible::{Find, Visible};
use super::{leases, project_to_list};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::policy::Rule;

/// List lease pools.
///
/// Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/leasepools", tag = "leasepools", operation_id = "list_leasepools",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of leases whose pools are on a page, at \
            most `limits.page`. Default: the whole list", minimum = 1),
        ("marker" = Option<String>, Query, description = "Identifier of the lease after which the page \
            starts"),
        ("project_id" = Option<String>, Query, description = "Only lease pools of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
    ),
    responses((status = 200, body = LeasePoolsBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::LeasePoolsGet)?;
    let project = project_to_list(&app, &session, &options, Rule::LeasePoolsGet)?;
    let after = leases::after(&app, project.as_ref(), &options)?;
    let shown = |record: &Arc<LeaseRecord>| -> Vec<LeasePool> {
        pools(&record.lease).map(|(reservation, terms)| LeasePool::of(record, reservation, terms)).collect()
    };
    let service = Arc::clone(app.service());
    let read = move |after, limit| {
        let page = service.lease_pools().leases(project.as_ref(), after, limit);
        Part { items: page.items.iter().flat_map(shown).collect(), next: page.next }
    };
    Paging::new(&app, &session, &uri, &options)?.answer("leasepools", after, read, LeasePool::clone).await
}

/// Create a lease pool.
///
/// Creates a lease that starts immediately, or rejects the request. An administrator can create a lease pool
/// for another project, which then owns the lease.
#[utoipa::path(
    post, path = "/v1/leasepools", tag = "leasepools", operation_id = "create_leasepool",
    request_body = LeasePoolCreate,
    responses(
        (status = 201, body = LeasePoolBody),
        (status = 403, description = "The pool is for another project, and the caller isn't an administrator",
         body = api::v1::ErrorBody),
        (status = 409, description = "Not enough hosts", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::LeasePoolsPost)?;
    session.allow(&app, Rule::LeasesPost)?;
    let (lease, project) = lease_of_pool(&body.json()?)?;
    let session = match project {
        Some(project) => session.for_project(&app, ProjectId(project), Rule::LeasePoolsPost)?,
        None => session,
    };
    // `host_count` has become an amount, which has a limit.
    app.inner.config.limits.parts.check(&lease)?;
    let asked_at = app.service().now();
    let created = leases::make(&app, &session, &lease, asked_at, None, Hold::No).await?;
    let record = app.service().leases().started(created.lease.lease.id).await?;
    let id = record.lease.reservations.first().map(|reservation| reservation.id);
    let shown = id.and_then(|id| shown(&record, id));
    let leasepool = shown.ok_or_else(|| ApiError::not_found("lease_id", &record.lease.id.to_string()))?;
    Ok((StatusCode::CREATED, Json(LeasePoolBody { leasepool })).into_response())
}

/// Show a lease pool and its overcommit ratios.
#[utoipa::path(
    get, path = "/v1/leasepools/{leasepool_id}", tag = "leasepools", operation_id = "show_leasepool",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool, which is the \
            identifier of its reservation")),
    responses((status = 200, body = LeasePoolBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(Visible(pool): Visible<Pool>) -> Result<Json<LeasePoolBody>, ApiError> {
    body(&pool.lease, pool.id)
}

/// Update the name or overcommit ratios of a lease pool.
///
/// Ratios apply while its lease runs.
#[utoipa::path(
    put, path = "/v1/leasepools/{leasepool_id}", tag = "leasepools", operation_id = "update_leasepool",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool")),
    request_body = LeasePoolChange,
    responses(
        (status = 200, body = LeasePoolBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "Instances in the pool use more than these ratios allow",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    session: Session,
    Visible(pool): Visible<PoolToChange>,
    request: Body,
) -> Result<Json<LeasePoolBody>, ApiError> {
    let LeasePoolRequest { name, cpu_ratio, ram_ratio } = LeasePoolRequest::read(&request.json()?)?;
    let change = service::LeasePoolChange { name, cpu_ratio, ram_ratio };
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let changed = async move { service.lease_pools().update(&caller, pool.id, change).await };
    body(&*session.change(changed).await??, pool.id)
}

/// Delete a lease pool.
///
/// Ends its lease. The hosts return to their free pools.
#[utoipa::path(
    delete, path = "/v1/leasepools/{leasepool_id}", tag = "leasepools", operation_id = "delete_leasepool",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool")),
    responses(
        (status = 204),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The lease has more than this reservation", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Visible(pool): Visible<PoolToDelete>,
) -> Result<StatusCode, ApiError> {
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.lease_pools().delete(&caller, pool.id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// List hosts of a lease pool, with their instances.
#[utoipa::path(
    get, path = "/v1/leasepools/{leasepool_id}/hosts", tag = "leasepools",
    operation_id = "list_leasepool_hosts",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool")),
    responses((status = 200, body = LeasePoolHostsBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn list_hosts(
    State(app): State<App>,
    Visible(pool): Visible<Pool>,
) -> Result<Json<LeasePoolHostsBody>, ApiError> {
    let hosts = app.service().lease_pools().hosts(pool.id);
    let shown = |host: &service::LeasePoolHost| LeasePoolHost {
        id: host.host.host.id.to_string(),
        name: host.host.host.name.clone(),
        instances: host
            .guests
            .iter()
            .map(|(id, record)| LeasePoolInstance {
                id: id.to_string(),
                name: record.as_ref().map(|record| record.instance.name.clone()),
            })
            .collect(),
    };
    Ok(Json(LeasePoolHostsBody { hosts: hosts.iter().map(shown).collect() }))
}

/// Add hosts to a lease pool until its lease ends.
#[utoipa::path(
    post, path = "/v1/leasepools/{leasepool_id}/hosts", tag = "leasepools", operation_id = "grow_leasepool",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool")),
    request_body = LeasePoolGrowth,
    responses(
        (status = 200, body = LeasePoolBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "Not enough hosts", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn add_hosts(
    State(app): State<App>,
    session: Session,
    Visible(pool): Visible<PoolToChange>,
    request: Body,
) -> Result<Json<LeasePoolBody>, ApiError> {
    let MoreHosts { count, mut extra_specs } = MoreHosts::read(&request.json()?)?;
    mark_unseen(&app, &session, |unseen| unseen.mark_specs(&mut extra_specs));
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let specs = extra_specs.clone();
    let grown = async move { service.lease_pools().grow(&caller, pool.id, count, specs).await };
    match session.change(grown).await? {
        Ok(grown) => body(&grown, pool.id),
        Err(error) => {
            let asked = || Asked::names(extra_specs.capabilities());
            let unknown = unknown_properties(&app, &session, &error, asked).await;
            Err(ApiError::from(error).adding_hint(unknown))
        }
    }
}

/// Replace a bad host of a lease pool.
///
/// A similar host takes its place until the lease ends. The bad host must not run instances of the lease.
#[utoipa::path(
    post, path = "/v1/leasepools/{leasepool_id}/swap", tag = "leasepools", operation_id = "swap_leasepool_host",
    params(("leasepool_id" = String, Path, description = "Identifier of the lease pool")),
    request_body = LeasePoolSwap,
    responses(
        (status = 200, body = LeasePoolBody),
        (status = 404, description = "Pool not found, or host not found in the pool",
         body = api::v1::ErrorBody),
        (status = 409, description = "No replacement is available, or the operator's limit of replacements \
            is reached", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn swap_host(
    State(app): State<App>,
    session: Session,
    Visible(pool): Visible<PoolToChange>,
    request: Body,
) -> Result<Json<LeasePoolBody>, ApiError> {
    let host = swapped_host(&request.json()?)?;
    let limited = !session.is_admin(&app);
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let swapped = async move { service.maintenance().swap_host(&caller, pool.id, host, limited).await };
    body(&*session.change(swapped).await??, pool.id)
}

/// A lease pool: a reservation of a lease.
pub(crate) struct Pool {
    lease: Arc<LeaseRecord>,
    id: ReservationId,
}

impl Find for Pool {
    type Found = Self;

    /// Pools of other projects look as if they didn't exist.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self, ApiError> {
        session.allow(app, Rule::LeasePoolsGet)?;
        let missing = || ApiError::not_found("leasepool_id", id);
        let id = reservation_id(id).ok_or_else(missing)?;
        let lease = app.service().lease_pools().lease_of(id).ok_or_else(missing)?;
        session.allow_on(app, Rule::LeasePoolsGet, &target(&lease)).map_err(|_| missing())?;
        Ok(Self { lease, id })
    }
}

/// A lease pool to be changed. Without permission to change pools, the caller is told so even if the pool
/// doesn't exist.
pub(crate) struct PoolToChange;

impl Find for PoolToChange {
    type Found = Pool;

    fn find(app: &App, session: &Session, id: &str) -> Result<Pool, ApiError> {
        Pool::allowed(app, session, id, Rule::LeasePoolsPut)
    }
}

/// A lease pool to be deleted, with the same order of checks as [`PoolToChange`].
pub(crate) struct PoolToDelete;

impl Find for PoolToDelete {
    type Found = Pool;

    fn find(app: &App, session: &Session, id: &str) -> Result<Pool, ApiError> {
        Pool::allowed(app, session, id, Rule::LeasePoolsDelete)
    }
}

impl Pool {
    fn allowed(app: &App, session: &Session, id: &str, rule: Rule) -> Result<Self, ApiError> {
        session.allow(app, rule)?;
        let pool = Self::find(app, session, id)?;
        session.allow_on(app, rule, &target(&pool.lease))?;
        Ok(pool)
    }
}

fn shown(record: &LeaseRecord, id: ReservationId) -> Option<LeasePool> {
    let mut found = pools(&record.lease).filter(|(reservation, _)| reservation.id == id);
    found.next().map(|(reservation, terms)| LeasePool::of(record, reservation, terms))
}

fn body(record: &LeaseRecord, id: ReservationId) -> Result<Json<LeasePoolBody>, ApiError> {
    let leasepool = shown(record, id).ok_or_else(|| ApiError::not_found("leasepool_id", &id.to_string()))?;
    Ok(Json(LeasePoolBody { leasepool }))
}
