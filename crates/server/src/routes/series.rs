//! Recurring leases (CLS-10).

use std::sync::Arc;

use api::v1::body::{LeaseMadeBody, SeriesBody};
use api::v1::{Lease, Repeat, Skipped, date, rfc_3339, series_id};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use leases::ids::SeriesId;
use leases::window::Window;
use service::{Asked, IdempotencyKey, Missing, NewLease, NewSeries, ServiceError};
use store::LeaseRecord;

use super::lease_view::{target, unknown_properties};
use super::visible::{Find, Visible};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::listing::Listing;
use crate::policy::Rule;

/// Creates the leases of a request with `repeat`.
pub(super) async fn create(
    app: &App,
    session: &Session,
    new: NewLease,
    repeat: &Repeat,
    key: Option<IdempotencyKey>,
) -> Result<Response, ApiError> {
    let new = series_of(new, repeat)?;
    let (service, caller, asked) = (Arc::clone(app.service()), session.caller(), new.clone());
    let made = session
        .change(async move { service.leases().create_series(&caller, &asked, key.as_ref()).await })
        .await?;
    match made {
        Ok(made) => answer(StatusCode::CREATED, &made),
        Err(missing) => Err(not_made(app, session, &new, missing).await),
    }
}

/// Reports the leases of the series without creating them.
pub(super) async fn preview(
    app: &App,
    session: &Session,
    new: NewLease,
    repeat: &Repeat,
) -> Result<Response, ApiError> {
    let new = series_of(new, repeat)?;
    let (service, caller, asked) = (Arc::clone(app.service()), session.caller(), new.clone());
    let would =
        session.consider(async move { service.leases().preview_series(&caller, &asked).await }).await?;
    match would {
        Ok(would) => answer(StatusCode::OK, &would),
        Err(missing) => Err(not_made(app, session, &new, missing).await),
    }
}

/// Error for a series that can't be created. Names the date that failed.
async fn not_made(app: &App, session: &Session, new: &NewSeries, missing: Missing) -> ApiError {
    let Missing { window, error, overlaps } = missing;
    let error = *error;
    let asked = || Asked::of_terms(&new.lease.terms);
    let unknown = unknown_properties(app, session, &error, asked).await;
    let lack = matches!(&error, ServiceError::Refused(refusal) if refusal.is_lack());
    let collides = |other: &Window| *other != window && other.overlaps(&window);
    let way_out = match (overlaps, &unknown) {
        (true, _) if new.windows.iter().any(collides) => {
            Some("the leases of the series overlap each other: make them shorter, or repeat them less often")
        }
        (true, _) => Some(
            "hosts are cleaned after each lease of the series, before the next one starts: make the leases shorter, or \
             repeat them less often",
        ),
        (false, None) if lack && !new.skips => {
            Some("skip_unavailable (`--skip-unavailable`) leaves out dates that can't be had")
        }
        _ => None,
    };
    let error = ApiError::of_creation(error).adding_hint(unknown);
    error.adding_hint(way_out.map(str::to_owned)).on(&date(window.start()))
}

/// Response to a repeated request: the leases of the series that still exist.
pub(super) fn again(app: &App, id: SeriesId) -> Result<Response, ApiError> {
    let series = service::Series { id, leases: app.service().leases().series(id), skipped: Vec::new() };
    answer(StatusCode::CREATED, &series)
}

/// Responds with the series. Its first lease is also in `lease`, where clients expect one.
fn answer(status: StatusCode, series: &service::Series) -> Result<Response, ApiError> {
    let first = series.leases.first().ok_or_else(ApiError::internal)?;
    let body = LeaseMadeBody { lease: Lease::from(first.as_ref()), series: Some(said(series)) };
    Ok((status, Json(body)).into_response())
}

fn series_of(lease: NewLease, repeat: &Repeat) -> Result<NewSeries, ApiError> {
    let windows = repeat.windows(lease.terms.window())?;
    Ok(NewSeries { lease, windows, skips: repeat.skips })
}

fn said(series: &service::Series) -> api::v1::Series {
    let skipped = series.skipped.iter().map(|(window, refusal)| Skipped {
        start_date: rfc_3339(window.start()),
        end_date: rfc_3339(window.end()),
        reason: refusal.to_string(),
    });
    api::v1::Series {
        id: series.id.to_string(),
        leases: series.leases.iter().map(|record| Lease::from(record.as_ref())).collect(),
        skipped: skipped.collect(),
    }
}

/// Show the existing leases of a series.
#[utoipa::path(
    get, path = "/v1/series/{series_id}", tag = "leases", operation_id = "show_series",
    params(("series_id" = String, Path, description = "Identifier of the series")),
    responses((status = 200, body = SeriesBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    session: Session,
    Visible(series): Visible<service::Series>,
) -> Result<Response, ApiError> {
    let show = |record: &Arc<LeaseRecord>| Lease::from(record.as_ref());
    let listing = Listing::new(&session, "leases", series.leases, show);
    let listing = listing.with("id", &series.id.to_string())?.with("skipped", &[(); 0])?;
    Ok(listing.within("series").respond().await)
}

/// Delete leases of a series that haven't started.
#[utoipa::path(
    delete, path = "/v1/series/{series_id}", tag = "leases", operation_id = "delete_series",
    params(("series_id" = String, Path, description = "Identifier of the series")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Visible(series): Visible<service::Series>,
) -> Result<StatusCode, ApiError> {
    for record in &series.leases {
        session.allow_on(&app, Rule::LeasesDelete, &target(record))?;
    }
    let (service, caller) = (Arc::clone(app.service()), session.caller());
    session.change(async move { service.leases().delete_series(&caller, series.id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

impl Find for service::Series {
    type Found = Self;

    /// Series of other projects look as if they didn't exist.
    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        session.allow(app, Rule::LeasesGet)?;
        let found = series_id(id).map(|id| (id, app.service().leases().series(id)));
        let visible =
            |record: &Arc<LeaseRecord>| session.allow_on(app, Rule::LeasesGet, &target(record)).is_ok();
        let found = found.filter(|(_, leases)| !leases.is_empty() && leases.iter().all(visible));
        let (id, leases) = found.ok_or_else(|| ApiError::not_found("series_id", id))?;
        Ok(Self { id, leases, skipped: Vec::new() })
    }
}
