//! Leases (API-routes to API-delete).

use std::sync::Arc;

use api::v1::body::{
    LeaseBody, LeaseChange, LeaseCreate, LeaseMadeBody, LeasesBody, PlanBody, WaitlistEntryBody,
};
use api::v1::{
    LeaseRequest, LeaseUpdate, Plan, PlanSummary, PlannedMove, Repeat, UnknownFields, asked_flavor,
    ignored_names, lease_id, read_hold, series_id,
};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use leases::hunt::{Move, MoveState};
use leases::ids::LeaseId;
use leases::lease_type::LeaseType;
use leases::project::ProjectId;
use leases::standing::Standing;
use leases::status::LeaseStatus;
use leases::terms::ReservationTerms;
use serde_json::Value;
use service::{
    Asked, Created, Hold, IdempotencyKey, LeaseChanges, LeaseFilter, NewLease, Offers, Position, ServiceError,
};
use store::LeaseRecord;

use super::lease_view::{
    check_properties, foreseen, mark_unseen, seen, target, unknown_properties, usable_flavors, viewed,
    with_usage,
};
use super::offers::said;
use super::paging::{Paging, Part, unknown_marker};
use super::visible::{Find, Visible};
use super::waitlist::entry;
use super::{project_to_list, series};
use crate::app::{App, Session};
use crate::auth::fingerprint;
use crate::error::ApiError;
use crate::extract::{Body, Options};
use crate::policy::Rule;

/// Query option: report the result, but change nothing.
pub(super) const DRY_RUN: &str = "dry_run";
/// Query option: if the request is rejected, hold the alternatives that are offered.
const HOLD_OFFERS: &str = "hold_offers";
/// Query option: how long offers are held.
const HOLD_FOR: &str = "hold_for";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Maximum length of a key, as proposed by the draft of the header.
const MAX_KEY: usize = 255;

/// List leases.
///
/// Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/leases", tag = "leases", operation_id = "list_leases",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of leases per page, at most \
            `limits.page`. Default: the whole list", minimum = 1, maximum = 2_147_483_647),
        ("marker" = Option<String>, Query, description = "Identifier of the lease after which the page \
            starts"),
        ("status" = Option<String>, Query, description = "Only leases in this status"),
        ("name" = Option<String>, Query, description = "Only leases with this name"),
        ("project_id" = Option<String>, Query, description = "Only leases of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
        ("series_id" = Option<String>, Query, description = "Only leases of this series"),
    ),
    responses((status = 200, body = LeasesBody))
)]
pub(crate) async fn list(
    State(app): State<App>,
    session: Session,
    options: Options,
    uri: Uri,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::LeasesGet)?;
    let filter = LeaseFilter {
        project: project_to_list(&app, &session, &options, Rule::LeasesGet)?,
        name: options.text("name").map(str::to_owned),
        status: options.parsed("status", |text| LeaseStatus::from_name(&text.to_ascii_uppercase()))?,
        series: options.parsed("series_id", series_id)?,
        ..LeaseFilter::default()
    };
    let after = after(&app, filter.project.as_ref(), &options)?;
    let service = Arc::clone(app.service());
    let read = move |after, limit| Part::from(service.leases().page(&filter, after, limit));
    let paging = Paging::new(&app, &session, &uri, &options)?;
    let (app, session) = (app.clone(), session.clone());
    let viewed = move |record: &Arc<LeaseRecord>| viewed(&app, &session, record);
    paging.answer("leases", after, read, viewed).await
}

/// Position of the lease in `marker`, after which the page starts. A lease that the caller can't list counts
/// as missing.
pub(super) fn after(
    app: &App,
    project: Option<&ProjectId>,
    options: &Options,
) -> Result<Option<Position>, ApiError> {
    let Some(marker) = options.parsed("marker", lease_id)? else { return Ok(None) };
    let record = app.service().leases().get(marker);
    let record = record.filter(|record| project.is_none_or(|own| record.lease.owner.project == *own));
    let record = record.ok_or_else(|| unknown_marker(&marker))?;
    Ok(Some(Position::from(record.as_ref())))
}

/// Create a lease.
///
/// If the request is repeated with the same `Idempotency-Key` within a day, no second lease is created.
#[utoipa::path(
    post, path = "/v1/leases", tag = "leases", operation_id = "create_lease",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Key that makes it safe to repeat the \
            request"),
        ("dry_run" = Option<bool>, Query, description = "Whether to show the lease without creating it"),
        ("hold_offers" = Option<bool>, Query,
         description = "Whether to hold the alternatives that are offered if the request is rejected"),
        ("hold_for" = Option<String>, Query,
         description = "With `hold_offers`: duration for which offers are held, `10m` or `PT10M`, at most 15 \
            minutes. Default: `leases.offer_hold`"),
    ),
    request_body = LeaseCreate,
    responses(
        (status = 200, description = "The lease that would be created (`dry_run`)", body = LeaseMadeBody),
        (status = 201, body = LeaseMadeBody),
        (status = 202, description = "The request is on the waitlist (`waitlist`)", body = WaitlistEntryBody),
        (status = 409, description = "Not enough capacity, if `api.shortage_status` is 409 instead of 400. \
            The response offers alternatives",
         body = api::v1::ErrorBody),
        (status = 422, description = "The key was used for a different request", body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    session: Session,
    headers: HeaderMap,
    options: Options,
    body: Body,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::LeasesPost)?;
    let asked_at = app.service().now();
    if options.truth(DRY_RUN)? {
        let (new, repeat) = read(&app, &session, &body.json()?, asked_at).await?;
        if let Some(repeat) = repeat {
            return series::preview(&app, &session, new, &repeat).await;
        }
        let (service, caller, asked) = (Arc::clone(app.service()), session.caller(), new.clone());
        let preview = session.consider(async move { service.leases().preview(&caller, &asked).await });
        let record = match preview.await? {
            Ok(record) => record,
            Err(error) => return Err(not_made(&app, &session, &new, error, Hold::No).await),
        };
        return Ok(Json(LeaseBody { lease: foreseen(&app, &record).await }).into_response());
    }
    let key = idempotency_key(&headers, &session, &body)?;
    if let Some(key) = &key {
        // Before the body is read: by now, it can name objects that no longer exist, and dates in the past.
        let served = app.service().leases().served_before(&session.caller(), key, asked_at).await;
        if let Some(created) = served.map_err(ApiError::of_creation)? {
            return match created.lease.lease.series {
                Some(id) => series::again(&app, id),
                None => answer(&app, &session, created).await,
            };
        }
    }
    let hold = hold(&options)?;
    let (new, repeat) = read(&app, &session, &body.json()?, asked_at).await?;
    if let Some(repeat) = repeat {
        return series::create(&app, &session, new, &repeat, key).await;
    }
    answer(&app, &session, enter(&app, &session, new, key, hold).await?).await
}

/// Creates the lease in the body, which must not recur.
pub(super) async fn make(
    app: &App,
    session: &Session,
    body: &Value,
    asked_at: Timestamp,
    key: Option<IdempotencyKey>,
    hold: Hold,
) -> Result<Created, ApiError> {
    match read(app, session, body, asked_at).await? {
        (new, None) => enter(app, session, new, key, hold).await,
        (_, Some(_)) => Err(ApiError::new(StatusCode::BAD_REQUEST, "Malformed parameter repeat")),
    }
}

async fn enter(
    app: &App,
    session: &Session,
    new: NewLease,
    key: Option<IdempotencyKey>,
    hold: Hold,
) -> Result<Created, ApiError> {
    let (service, caller, asked) = (Arc::clone(app.service()), session.caller(), new.clone());
    match session.change(async move { service.leases().create(&caller, asked, key).await }).await? {
        Ok(created) => Ok(created),
        Err(error) => Err(not_made(app, session, &new, error, hold).await),
    }
}

/// Whether offers are held, and for how long.
fn hold(options: &Options) -> Result<Hold, ApiError> {
    let time = options.text(HOLD_FOR).map(|text| read_hold(HOLD_FOR, text)).transpose()?;
    let held = time.map_or(Hold::Default, Hold::For);
    Ok(if options.truth(HOLD_OFFERS)? { held } else { Hold::No })
}

/// Error for a lease that can't be created, with alternatives.
async fn not_made(app: &App, session: &Session, new: &NewLease, error: ServiceError, hold: Hold) -> ApiError {
    let negotiable = matches!(&error, ServiceError::Refused(refusal) if refusal.negotiable());
    let unknown = unknown_properties(app, session, &error, || Asked::of_terms(&new.terms)).await;
    let error = ApiError::of_creation(error).adding_hint(unknown);
    if !negotiable {
        return error;
    }
    let error = error.adding_hint(app.service().leases().stale_hint(&new.terms));
    let (service, caller, new) = (Arc::clone(app.service()), session.caller(), new.clone());
    let offers = session.change(async move { service.offers().for_lease(&caller, &new, hold).await });
    match offers.await {
        Ok(offers) => with_offers(app, session, error, offers),
        Err(broken) => broken,
    }
}

/// Error for a change that was rejected, with alternatives.
async fn not_changed(
    app: &App,
    session: &Session,
    id: LeaseId,
    changes: &LeaseChanges,
    error: ServiceError,
    hold: Hold,
) -> ApiError {
    let negotiable = matches!(&error, ServiceError::Refused(refusal) if refusal.negotiable());
    let unknown = unknown_properties(app, session, &error, || Asked::of_changes(&changes.changes)).await;
    let error = ApiError::from(error).adding_hint(unknown);
    if !negotiable {
        return error;
    }
    let (service, caller, changes) = (Arc::clone(app.service()), session.caller(), changes.clone());
    let offers =
        session.change(async move { service.offers().for_change(&caller, id, &changes, hold).await });
    match offers.await {
        Ok(offers) => with_offers(app, session, error, offers),
        Err(broken) => broken,
    }
}

fn with_offers(
    app: &App,
    session: &Session,
    error: ApiError,
    offers: Result<Offers, ServiceError>,
) -> ApiError {
    match offers {
        Ok(offers) => error.with_offers(said(app, session, &offers)),
        // The change stays rejected, without offers.
        Err(why) => {
            tracing::warn!(error = %why, "offers failed");
            error
        }
    }
}

async fn read(
    app: &App,
    session: &Session,
    body: &Value,
    asked_at: Timestamp,
) -> Result<(NewLease, Option<Repeat>), ApiError> {
    let limits = &app.inner.config.limits.parts;
    let asked = body["reservations"].as_array().into_iter().flatten().take(limits.reservations);
    let asked: Vec<_> = asked.filter_map(asked_flavor).collect();
    let usable = usable_flavors(app, session, asked.iter().map(AsRef::as_ref)).await?;
    let flavors = |id: &str| usable.get(id).cloned();
    let request = LeaseRequest::read(body, asked_at, &app.service().leases().deadlines(), &flavors, limits)?;
    let LeaseRequest { name, terms, wording, ignored, end_action, waits, repeat } = request;
    log_ignored(&ignored);
    if terms.reservations.iter().any(has_extra_specs) {
        session.allow(app, Rule::LeasesExtraSpecs)?;
    }
    let hints = app.service().leases().resolve_hints(&session.identity.project, (*terms.hints).clone())?;
    let mut terms = terms.hinting(hints);
    mark_unseen(app, session, |unseen| unseen.mark_terms(&mut terms));
    check_properties(app, session, Asked::of_terms(&terms)).await?;
    Ok((NewLease { asked_at, name, terms, wording, end_action, waits }, repeat))
}

fn has_extra_specs(terms: &ReservationTerms) -> bool {
    matches!(terms, ReservationTerms::Instances(asked) if !asked.extra_specs().is_empty())
}

/// Logs the names of ignored fields, which Blazar ignores as well.
fn log_ignored(ignored: &[UnknownFields]) {
    if let Some(fields) = ignored_names(ignored) {
        tracing::info!(fields, "unknown fields ignored");
    }
}

/// Responds with the lease, or with the waitlist entry if the request waits. For an immediate lease, waits
/// until it has started.
async fn answer(app: &App, session: &Session, mut created: Created) -> Result<Response, ApiError> {
    let lease = &created.lease.lease;
    if lease.standing.is_firm() {
        created.lease = if matches!(lease.lease_type, LeaseType::Immediate { .. }) {
            app.service().leases().started(lease.id).await?
        } else {
            app.service().leases().prepared(&session.caller(), created.lease).await?
        };
    }
    let waits = matches!(created.lease.lease.standing, Standing::Waiting { .. });
    let mut response = if waits {
        let body = WaitlistEntryBody { waitlist_entry: entry(app, created.lease.lease.id)? };
        (StatusCode::ACCEPTED, Json(body)).into_response()
    } else {
        let body = LeaseBody { lease: viewed(app, session, &created.lease) };
        (StatusCode::CREATED, Json(body)).into_response()
    };
    if created.repeated {
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

fn idempotency_key(
    headers: &HeaderMap,
    session: &Session,
    body: &Body,
) -> Result<Option<IdempotencyKey>, ApiError> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let key =
        value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_KEY && !key.contains('\t'));
    let message = format!("Idempotency-Key must be 1 to {MAX_KEY} printable ASCII characters long");
    let key = key.ok_or_else(|| ApiError::new(StatusCode::BAD_REQUEST, message))?;
    // Includes the user: a response to one user must never be replayed to another.
    let fingerprint = fingerprint(&[b"POST /v1/leases", session.identity.user.0.as_bytes(), &body.bytes]);
    Ok(Some(IdempotencyKey { key: key.to_owned(), fingerprint }))
}

/// Show a lease.
#[utoipa::path(
    get, path = "/v1/leases/{lease_id}", tag = "leases", operation_id = "show_lease",
    params(
        ("lease_id" = String, Path, description = "Identifier of the lease"),
        ("detail" = Option<String>, Query, description = "Include usage, which isn't in Blazar. Any value \
            means true"),
    ),
    responses((status = 200, body = LeaseBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<LeaseRecord>,
    options: Options,
) -> Result<Json<LeaseBody>, ApiError> {
    // Not by default, because stock clients print all fields.
    let detailed = options.is_set("detail");
    let lease =
        if detailed { with_usage(&app, &session, &record).await } else { viewed(&app, &session, &record) };
    Ok(Json(LeaseBody { lease }))
}

/// Show the migration plan of a lease, and its progress.
///
/// The plan moves instances of other projects off hosts that the lease needs.
#[utoipa::path(
    get, path = "/v1/leases/{lease_id}/plan", tag = "leases", operation_id = "show_lease_plan",
    params(("lease_id" = String, Path, description = "Identifier of the lease")),
    responses((status = 200, body = PlanBody), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn plan(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<Planned>,
) -> Result<Json<PlanBody>, ApiError> {
    let states = app.service().leases().moves(&record.lease);
    let count = |state| states.iter().filter(|(_, other)| *other == state).count() as u64;
    let (moved, gone) = (count(MoveState::Moved), count(MoveState::Gone));
    // The instances belong to other projects.
    let moves = session.allow(&app, Rule::HostsGet).is_ok().then(|| {
        let name = |id| {
            app.service().hosts().get(id).map_or_else(|| id.to_string(), |record| record.host.name.clone())
        };
        let shown = |(mov, state): &(Move, MoveState)| PlannedMove {
            instance_id: mov.guest.to_string(),
            from_host: name(mov.from),
            to_host: name(mov.to),
            state: PlannedMove::state_name(*state).to_owned(),
            percent: match state {
                MoveState::Moving { percent } => *percent,
                _ => None,
            },
        };
        states.iter().map(shown).collect()
    });
    let summary = record.lease.hunt.as_ref().map(PlanSummary::from);
    Ok(Json(PlanBody { plan: Plan { lease_id: record.lease.id.to_string(), summary, moved, gone, moves } }))
}

/// A lease whose plan is shown.
pub(crate) struct Planned;

impl Find for Planned {
    type Found = Arc<LeaseRecord>;

    fn find(app: &App, session: &Session, id: &str) -> Result<Self::Found, ApiError> {
        let found = lease_id(id).and_then(|id| app.service().leases().get(id));
        seen(app, session, found, ("lease_id", id))
    }
}

/// Update a lease.
///
/// Either all changes are made, or the request is rejected. The response contains the updated lease.
#[utoipa::path(
    put, path = "/v1/leases/{lease_id}", tag = "leases", operation_id = "update_lease",
    params(
        ("lease_id" = String, Path, description = "Identifier of the lease"),
        ("dry_run" = Option<bool>, Query, description = "Whether to show the changed lease without changing \
            it"),
        ("hold_offers" = Option<bool>, Query,
         description = "Whether to hold the alternatives that are offered if the request is rejected"),
        ("hold_for" = Option<String>, Query,
         description = "With `hold_offers`: duration for which offers are held, `10m` or `PT10M`, at most 15 \
            minutes. Default: `leases.offer_hold`"),
    ),
    request_body = LeaseChange,
    responses(
        (status = 200, body = LeaseBody),
        (status = 404, body = api::v1::ErrorBody),
        (status = 409, description = "The change is not possible. The response offers alternatives",
         body = api::v1::ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<LeaseRecord>,
    options: Options,
    body: Body,
) -> Result<Json<LeaseBody>, ApiError> {
    session.allow_on(&app, Rule::LeasesPut, &target(&record))?;
    let (asked_at, id) = (app.service().now(), record.lease.id);
    let (shown, limits) = (viewed(&app, &session, &record), &app.inner.config.limits.parts);
    let update = LeaseUpdate::read(&body.json()?, asked_at, &record.lease, &shown, limits)?;
    log_ignored(&update.ignored);
    let mut changes = LeaseChanges { asked_at, changes: update.changes, wording: update.wording };
    mark_unseen(&app, &session, |unseen| unseen.mark_changes(&mut changes.changes));
    check_properties(&app, &session, Asked::of_changes(&changes.changes)).await?;
    if options.truth(DRY_RUN)? {
        let (service, asked) = (Arc::clone(app.service()), changes.clone());
        let preview = session.consider(async move { service.leases().preview_update(id, &asked).await });
        return match preview.await? {
            Ok(record) => Ok(Json(LeaseBody { lease: foreseen(&app, &record).await })),
            Err(error) => Err(not_changed(&app, &session, id, &changes, error, Hold::No).await),
        };
    }
    let hold = hold(&options)?;
    let (service, caller, asked) = (Arc::clone(app.service()), session.caller(), changes.clone());
    let updated = session.change(async move { service.leases().update(&caller, id, asked).await }).await?;
    let updated = match updated {
        Ok(updated) => updated,
        Err(error) => return Err(not_changed(&app, &session, id, &changes, error, hold).await),
    };
    Ok(Json(LeaseBody { lease: viewed(&app, &session, &updated) }))
}

/// Delete a lease, in any state.
#[utoipa::path(
    delete, path = "/v1/leases/{lease_id}", tag = "leases", operation_id = "delete_lease",
    params(("lease_id" = String, Path, description = "Identifier of the lease")),
    responses((status = 204), (status = 404, body = api::v1::ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    session: Session,
    Visible(record): Visible<LeaseRecord>,
) -> Result<StatusCode, ApiError> {
    session.allow_on(&app, Rule::LeasesDelete, &target(&record))?;
    let (service, caller, id) = (Arc::clone(app.service()), session.caller(), record.lease.id);
    session.change(async move { service.leases().delete(&caller, id).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}
