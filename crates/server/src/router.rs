//! All routes and the OpenAPI document. Both come from one router, so neither can lack an operation that the
//! other has.

use std::sync::{Arc, LazyLock};

use api::v1::Limits;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state, map_response_with_state};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::console;
use crate::document;
use crate::error::{ApiError, with_shortage_status};
use crate::middleware::{authenticate, compression, context, current, security, suffix, unread, version};
use crate::routes::{
    audit, availability, calendar, capacity, drift, energy, flavors, floating_ips, free_pools, hints, hosts,
    identity, instances, lease_pools, leases, maintenance, notifications, occupancy, offers, operation,
    placement, preemptible, series, session, settings, usage, vendordata, versions, waitlist,
};

/// Routes with their parts of the OpenAPI document.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(document::head())
        .routes(routes!(versions::root))
        .routes(routes!(versions::versions))
        .routes(routes!(operation::healthz))
        .routes(routes!(operation::readyz))
        .routes(routes!(operation::metrics))
        .routes(routes!(leases::list, leases::create))
        .routes(routes!(leases::show, leases::update, leases::delete))
        .routes(routes!(leases::plan))
        .routes(routes!(occupancy::show))
        .routes(routes!(offers::list))
        .routes(routes!(offers::show, offers::decline))
        .routes(routes!(offers::accept))
        .routes(routes!(series::show, series::delete))
        .routes(routes!(waitlist::list))
        .routes(routes!(waitlist::show, waitlist::delete))
        .routes(routes!(hints::list))
        .routes(routes!(hosts::list, hosts::create))
        .routes(routes!(hosts::show, hosts::update, hosts::delete))
        .routes(routes!(hosts::list_allocations))
        .routes(routes!(hosts::show_allocation))
        .routes(routes!(hosts::list_properties))
        .routes(routes!(hosts::update_property))
        .routes(routes!(free_pools::list, free_pools::create))
        .routes(routes!(free_pools::show, free_pools::update, free_pools::delete))
        .routes(routes!(free_pools::list_hosts, free_pools::add_host))
        .routes(routes!(free_pools::move_host, free_pools::remove_host))
        .routes(routes!(lease_pools::list, lease_pools::create))
        .routes(routes!(lease_pools::show, lease_pools::update, lease_pools::delete))
        .routes(routes!(lease_pools::list_hosts, lease_pools::add_hosts))
        .routes(routes!(lease_pools::swap_host))
        .routes(routes!(maintenance::book))
        .routes(routes!(floating_ips::list, floating_ips::create))
        .routes(routes!(floating_ips::show, floating_ips::delete))
        .routes(routes!(flavors::list, flavors::create))
        .routes(routes!(flavors::show, flavors::update, flavors::delete))
        .routes(routes!(instances::list, instances::create))
        .routes(routes!(instances::filter))
        .routes(routes!(vendordata::show))
        .routes(routes!(preemptible::show))
        .routes(routes!(preemptible::list_projects))
        .routes(routes!(preemptible::put_project, preemptible::delete_project))
        .routes(routes!(instances::show, instances::delete))
        .routes(routes!(instances::start))
        .routes(routes!(notifications::list))
        .routes(routes!(audit::list))
        .routes(routes!(availability::show))
        .routes(routes!(availability::of_flavors))
        .routes(routes!(calendar::show))
        .routes(routes!(calendar::changes))
        .routes(routes!(placement::clusters))
        .routes(routes!(placement::balance))
        .routes(routes!(placement::drain))
        .routes(routes!(placement::whatif))
        .routes(routes!(placement::fit))
        .routes(routes!(session::show, session::begin, session::end))
        .routes(routes!(settings::list))
        .routes(routes!(settings::names))
        .routes(routes!(energy::plan))
        .routes(routes!(energy::report))
        .routes(routes!(energy::hosts))
        .routes(routes!(usage::show))
        .routes(routes!(usage::billing))
        .routes(routes!(usage::events))
        .routes(routes!(capacity::show))
        .routes(routes!(drift::list))
        .routes(routes!(drift::repair))
        .routes(routes!(drift::accept_clock))
        .routes(routes!(drift::accept_fleet))
        .routes(routes!(identity::versions))
        .routes(routes!(identity::version_3))
        .routes(routes!(identity::log_in, identity::show_token, identity::revoke_token))
}

/// The OpenAPI document of a service with the default limits.
pub fn openapi() -> Value {
    described(&Limits::default())
}

fn described(limits: &Limits) -> Value {
    document::complete(routes().split_for_parts().1, limits)
}

/// The server as a tower service.
pub fn router(app: App) -> axum::Router {
    let limits = app.inner.config.limits.parts;
    // Serialized on the first request for it. All responses share the same memory.
    let document = Arc::new(LazyLock::new(move || Bytes::from(described(&limits).to_string())));
    let serve_document = async move || ([(CONTENT_TYPE, "application/json")], Bytes::clone(&document));
    let (router, _) = routes().split_for_parts();
    let inner = router
        .route("/openapi.json", axum::routing::get(serve_document))
        .route(&format!("{}{{file}}", console::ASSETS), axum::routing::get(console::asset))
        .fallback(not_found)
        .method_not_allowed_fallback(other_method)
        .layer(map_response_with_state(app.clone(), shortage_status))
        .layer(from_fn(version::version))
        .layer(from_fn_with_state(app.clone(), current::current))
        .layer(from_fn_with_state(app.clone(), authenticate::authenticate))
        .layer(CatchPanicLayer::custom(|_| ApiError::internal().into_response()))
        .layer(from_fn_with_state(app.clone(), context::context))
        .layer(from_fn(security::harden))
        .layer(compression::layer())
        .layer(from_fn_with_state(app.clone(), unread::discard))
        .with_state(app);
    // Outside the router, because paths must be rewritten before routing.
    axum::Router::new()
        .fallback_service(inner.map_request(|request| compression::choose(suffix::strip(request))))
}

async fn shortage_status(State(app): State<App>, response: Response) -> Response {
    with_shortage_status(response, app.inner.config.shortage_status.0)
}

async fn not_found() -> ApiError {
    ApiError::framework(StatusCode::NOT_FOUND, "Not Found")
}

/// Answers `OPTIONS` with the allowed methods, in the header `Allow` that the router adds.
async fn other_method(request: Request) -> Response {
    if request.method() == Method::OPTIONS {
        return StatusCode::OK.into_response();
    }
    ApiError::framework(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed").into_response()
}
