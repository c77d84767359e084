//! Hosts, their allocations and their properties (API-hosts).

use std::sync::Arc;

use api::v1::body::{
    AllocationBody, AllocationsBody, HostBody, HostChange, HostCreate, HostsBody, PropertiesBody,
    PropertyBody, PropertyChange,
};
use api::v1::{
    Allocation, Host, HostChanges, HostName, HostRequest, Property, host_id, lease_id, read_property_update,
    reservation_id,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use leases::free_pool::FreePool;
use leases::ids::{HostId, LeaseId, ReservationId};
use service::{AllocationFilter, HostAllocation, HostSelector, HostUpdate};
use store::{FreePoolRecord, HostRecord};

use super::paging::{Paging, Part, unknown_marker};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::listing::Listing;
use crate::policy::Rule;

/// List hosts.
#[utoipa::path(
    get, path = "/v1/os-hosts", tag = "hosts", operation_id = "list_hosts",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of hosts per page, at most \
            `limits.page`. Default: the whole list", minimum = 1),
        ("marker" = Option<String>, Query, description = "Identifier of the host after which the page starts"),
    ),
    responses((status = 200, body = HostsBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::HostsGet)?;
    let after = after(&app, &options)?;
    let service = Arc::clone(app.service());
    let read = move |after, limit| {
        Part::of(service.hosts().after(after, limit + 1).into_iter(), limit, |record| record.host.id)
    };
    let paging = Paging::new(&app, &session, &uri, &options)?;
    let app = app.clone();
    paging.answer("hosts", after, read, move |record| show_one(&app, Arc::clone(record))).await
}

/// The host in `marker`, after which the page starts. `None` for the first page.
fn after(app: &App, options: &Options) -> Result<Option<HostId>, ApiError> {
    let Some(marker) = options.parsed("marker", host_id)? else { return Ok(None) };
    if app.service().hosts().get(marker).is_none() {
        return Err(unknown_marker(&marker));
    }
    Ok(Some(marker))
}

/// Add a machine of the fleet as a host.
#[utoipa::path(
    post, path = "/v1/os-hosts", tag = "hosts", operation_id = "create_host",
    request_body = HostCreate,
    responses(
        (status = 201, body = HostBody),
        (status = 404, description = "The fleet doesn't have this machine", body = api::v1::ErrorBody),
        (status = 409, description = "The machine is a host already, or in use", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::HostsPost)?;
    let request = HostRequest::read(&body.json()?)?;
    let which = selector(request.which);
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let capabilities = request.capabilities;
    let record = session
        .change(async move { service.hosts().add(&caller, which, capabilities, FreePool::DEFAULT).await })
        .await??;
    let body = HostBody { host: show_one(&app, record) };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

/// Hosts with their free pools.
pub(super) fn in_pools(
    app: &App,
    hosts: Vec<Arc<HostRecord>>,
) -> Vec<(Arc<HostRecord>, Arc<FreePoolRecord>)> {
    hosts.into_iter().map(|host| in_pool(app, host)).collect()
}

fn in_pool(app: &App, host: Arc<HostRecord>) -> (Arc<HostRecord>, Arc<FreePoolRecord>) {
    let pool = app.service().free_pools().of_host(&host);
    (host, pool)
}

/// A host in the API, including the properties of its pool.
pub(super) fn shown((host, pool): &(Arc<HostRecord>, Arc<FreePoolRecord>)) -> Host {
    Host::of(host, &pool.pool)
}

pub(super) fn show_one(app: &App, host: Arc<HostRecord>) -> Host {
    shown(&in_pool(app, host))
}

pub(super) fn selector(name: HostName) -> HostSelector {
    match name {
        HostName::Name(name) => HostSelector::Name(name),
        HostName::Id(id) => HostSelector::Id(id),
    }
}

pub(super) fn find(app: &App, id: &str) -> Result<Arc<HostRecord>, ApiError> {
    let record = host_id(id).and_then(|id| app.service().hosts().get(id));
    record.ok_or_else(|| ApiError::not_found("host_id", id))
}

/// Show a host.
#[utoipa::path(
    get, path = "/v1/os-hosts/{host_id}", tag = "hosts", operation_id = "show_host",
    params(("host_id" = String, Path, description = "Identifier of the host")),
    responses((status = 200, body = HostBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<Json<HostBody>, ApiError> {
    session.allow(&app, Rule::HostsGet)?;
    Ok(Json(HostBody { host: show_one(&app, find(&app, &id)?) }))
}

/// Update a host.
///
/// Sets extra capabilities, or removes them if they are null. `reservable` closes the host to new leases
/// (false), or opens it again. If it is closed, leases that haven't started get other hosts, if there are
/// any; running leases continue on it. Either all changes are made, or the request is rejected.
#[utoipa::path(
    put, path = "/v1/os-hosts/{host_id}", tag = "hosts", operation_id = "update_host",
    params(("host_id" = String, Path, description = "Identifier of the host")),
    request_body = HostChange,
    responses(
        (status = 200, body = HostBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "A lease depends on the capability", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<HostBody>, ApiError> {
    session.allow(&app, Rule::HostsPut)?;
    let HostChanges { capabilities, reservable } = HostChanges::read(&body.json()?)?;
    let change = HostUpdate { capabilities, reservable };
    let id = find(&app, &id)?.host.id;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record = session.change(async move { service.hosts().update(&caller, id, change).await }).await??;
    Ok(Json(HostBody { host: show_one(&app, record) }))
}

/// Remove a host and return it to the fleet.
#[utoipa::path(
    delete, path = "/v1/os-hosts/{host_id}", tag = "hosts", operation_id = "delete_host",
    params(("host_id" = String, Path, description = "Identifier of the host")),
    responses(
        (status = 204),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The host is reserved", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    session.allow(&app, Rule::HostsDelete)?;
    let id = find(&app, &id)?.host.id;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.hosts().remove(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

/// Filters for allocations. An invalid identifier matches nothing, like the identifier of an unknown lease.
fn allocation_filter(options: &Options, host: Option<HostId>) -> AllocationFilter {
    let of = |name| options.text(name);
    AllocationFilter {
        host,
        lease: of("lease_id").map(|id| lease_id(id).unwrap_or(LeaseId(0))),
        reservation: of("reservation_id").map(|id| reservation_id(id).unwrap_or(ReservationId(0))),
    }
}

fn allocation(of: &HostAllocation) -> Allocation {
    Allocation::new(of.host, of.reservations.iter().map(|(record, id)| (record.as_ref(), *id)))
}

/// List reservations of all hosts.
///
/// Contains current and future reservations. With `lease_id` or `reservation_id`, also contains past
/// reservations.
#[utoipa::path(
    get, path = "/v1/os-hosts/allocations", tag = "hosts", operation_id = "list_allocations",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of hosts per page, at most \
            `limits.page`. Default: the whole list", minimum = 1),
        ("marker" = Option<String>, Query, description = "Identifier of the host after which the page starts"),
        ("lease_id" = Option<String>, Query, description = "Only reservations of this lease"),
        ("reservation_id" = Option<String>, Query, description = "Only this reservation"),
    ),
    responses((status = 200, body = AllocationsBody))
)]
pub(crate) async fn list_allocations(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::HostsGetAllocations)?;
    let filter = allocation_filter(&options, None);
    let after = after(&app, &options)?;
    let service = Arc::clone(app.service());
    let read = move |after, limit| {
        let (items, next) = service.leases().allocations_after(&filter, after, limit);
        Part { items, next }
    };
    let paging = Paging::new(&app, &session, &uri, &options)?;
    paging.answer("allocations", after, read, allocation).await
}

/// Show reservations of a host.
#[utoipa::path(
    get, path = "/v1/os-hosts/{host_id}/allocation", tag = "hosts", operation_id = "show_allocation",
    params(
        ("host_id" = String, Path, description = "Identifier of the host"),
        ("lease_id" = Option<String>, Query, description = "Only reservations of this lease"),
        ("reservation_id" = Option<String>, Query, description = "Only this reservation"),
    ),
    responses((status = 200, body = AllocationBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show_allocation(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
    options: Options,
) -> Result<Json<AllocationBody>, ApiError> {
    session.allow(&app, Rule::HostsGet)?;
    session.allow(&app, Rule::HostsGetAllocations)?;
    let host = find(&app, &id)?.host.id;
    let (service, filter) = (Arc::clone(app.service()), allocation_filter(&options, Some(host)));
    let allocations = session.consider(async move { service.leases().allocations(&filter).await }).await??;
    let nothing = || Allocation::new(host, []);
    let allocation = allocations.iter().find(|of| of.host == host).map_or_else(nothing, allocation);
    Ok(Json(AllocationBody { allocation }))
}

/// Whether the caller can see the property. Only administrators see private properties and those that name
/// projects.
pub(super) fn may_know(property: &service::Property, admin: bool) -> bool {
    admin || (!property.private && !property.names_projects())
}

/// List properties of hosts.
#[utoipa::path(
    get, path = "/v1/os-hosts/properties", tag = "hosts", operation_id = "list_properties",
    params(
        ("detail" = Option<String>, Query, description = "Include visibility and values. Any value means \
            true"),
        ("all" = Option<String>, Query, description = "Include hidden properties; for administrators. Any \
            value means true"),
    ),
    responses((status = 200, body = PropertiesBody))
)]
pub(crate) async fn list_properties(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::HostsGetProperties)?;
    let (all, detail, admin) = (options.is_set("all"), options.is_set("detail"), session.is_admin(&app));
    let seen =
        |property: &service::Property| may_know(property, admin) && ((admin && all) || !property.private);
    let turn = session.asked.turn().await;
    let properties = app.service().hosts().properties().into_iter().filter(seen).collect();
    drop(turn);
    let shown = move |property: &service::Property| Property {
        property: property.name.clone(),
        private: detail.then_some(property.private),
        values: detail.then(|| property.values.clone()),
    };
    Ok(Listing::new(&session, "resource_properties", properties, shown).respond().await)
}

/// Hide a property from lists, or show it again.
#[utoipa::path(
    patch, path = "/v1/os-hosts/properties/{name}", tag = "hosts", operation_id = "update_property",
    params(("name" = String, Path, description = "Name of the property")),
    request_body = PropertyChange,
    responses((status = 200, body = PropertyBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn update_property(
    State(app): State<App>,
    session: Session,
    Path(name): Path<String>,
    body: Body,
) -> Result<Json<PropertyBody>, ApiError> {
    session.allow(&app, Rule::HostsUpdateProperties)?;
    let private = read_property_update(&body.json()?)?;
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    let record = session
        .change(async move { service.hosts().set_property_private(&caller, &name, private).await })
        .await??;
    Ok(Json(PropertyBody { resource_property: (&record).into() }))
}
