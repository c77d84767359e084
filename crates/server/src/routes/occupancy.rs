//! Instances observed on the hosts of a lease, for auditors. Not in Blazar.

use std::sync::Arc;

use api::v1::body::OccupancyBody;
use api::v1::{OccupancyInterval, lease_id};
use axum::Json;
use axum::extract::{Path, State};
use leases::ids::LeaseId;
use leases::project::UserId;
use service::Occupancy;

use super::lease_view::seen;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::{Rule, Target};

/// Maximum number of intervals in a response.
const MOST: u32 = 1000;
/// Default number of intervals in a response.
const USUAL: u32 = 100;

/// Show instances observed on the whole hosts of a lease.
///
/// Also shows the fence that kept other projects away, and periods without observations. Records are kept as
/// long as usage, even if the lease no longer exists. Instances of other projects have no identifiers, except
/// for callers who can see hosts.
#[utoipa::path(
    get, path = "/v1/leases/{lease_id}/occupancy", tag = "leases", operation_id = "show_lease_occupancy",
    params(
        ("lease_id" = String, Path, description = "Identifier of the lease, which can be deleted already"),
        ("after" = Option<u64>, Query, description = "Only intervals with higher numbers"),
        ("limit" = Option<u32>, Query, description = "Maximum number of intervals, at most 1000. Default: \
            100", minimum = 1, maximum = 2_147_483_647),
    ),
    responses((status = 200, body = OccupancyBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Path(id): Path<String>,
    options: Options,
) -> Result<Json<OccupancyBody>, ApiError> {
    session.allow(&app, Rule::LeasesGet)?;
    let missing = || ApiError::not_found("lease_id", &id);
    let lease = lease_id(&id).ok_or_else(missing)?;
    let after = options.parsed("after", |text| text.parse().ok())?.unwrap_or(0);
    let limit = options.limit()?.unwrap_or(USUAL).min(MOST);
    if let Some(record) = app.service().leases().get(lease) {
        seen(&app, &session, Some(record), ("lease_id", &id))?;
    } else if !may_see_gone(&app, &session, lease).await? {
        return Err(missing());
    }
    let Occupancy { intervals, seen_until } = read(&app, &session, lease, after, limit).await?;
    let show_others = session.may(Rule::HostsGet);
    let last = intervals.last().map_or(after, |(number, _)| *number);
    let shown = intervals.iter().map(|(number, interval)| {
        let host = app.service().hosts().get(interval.host).map(|record| record.host.name.clone());
        OccupancyInterval::new(*number, interval, host, show_others)
    });
    let occupancy = shown.collect();
    Ok(Json(OccupancyBody { occupancy, last, seen_until: seen_until.map(|until| until.to_string()) }))
}

/// Whether the caller can see a lease that no longer exists. Its occupancy records still name its project.
async fn may_see_gone(app: &App, session: &Session, lease: LeaseId) -> Result<bool, ApiError> {
    let first = read(app, session, lease, 0, 1).await?.intervals.pop();
    let user = UserId(String::new());
    Ok(first.is_some_and(|(_, first)| {
        let target = Target { project: &first.project, user: &user };
        session.allow_on(app, Rule::LeasesGet, &target).is_ok()
    }))
}

async fn read(
    app: &App,
    session: &Session,
    lease: LeaseId,
    after: u64,
    limit: u32,
) -> Result<Occupancy, ApiError> {
    let service = Arc::clone(app.service());
    let read = async move { service.usage().occupancy(lease, after, limit).await };
    Ok(session.consider(read).await??)
}
