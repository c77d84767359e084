//! Calendar of host reservations, as far as the caller can see them, and notifications of changes. Not in
//! Blazar, whose calendar is the list of all allocations.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use api::v1::body::CalendarBody;
use api::v1::{Calendar, CalendarBar, CalendarChange, CalendarHost, CalendarLease, host_id};
use axum::Json;
use axum::extract::State;
use axum::http::header::ETAG;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::{Stream, unfold};
use jiff::SignedDuration;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use leases::free_pool::POOL_PROPERTY;
use leases::host::Host;
use leases::ids::FreePoolId;
use leases::occupancy::spans;
use leases::text::Quoted;
use leases::window::Window;
use service::{Bar, BarKind, CalendarQuestion, CalendarRow, CalendarStatus, CalendarViewer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::usage::period::{backwards, instant};
use crate::app::{App, Session};
use crate::auth::fingerprint;
use crate::console::knows;
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;
use crate::rate::Client;
use crate::unanswered::Asked;

/// Default length of the window.
const USUAL: SignedDuration = SignedDuration::from_hours(24 * 14);

/// Maximum length of the window.
const LONGEST: SignedDuration = SignedDuration::from_hours(24 * 400);

/// Default and maximum number of hosts in a response.
const USUAL_HOSTS: u32 = 200;
const MOST_HOSTS: u32 = 1000;

/// Maximum number of spans in a row.
const MOST_SPANS: u64 = 2000;

/// Interval of keep-alives, so that proxies don't close an idle stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Minimum interval between events of a stream. Frequent changes are combined.
const TOLD_EVERY: Duration = Duration::from_millis(500);

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Show the calendar of host reservations.
///
/// Shows bars, or the average reservation in spans of `bucket` minutes. Names of hosts and details of leases
/// are visible for the caller's project, and for other projects if the policy allows it.
#[utoipa::path(
    get, path = "/v1/calendar", tag = "calendar", operation_id = "show_calendar",
    params(
        ("start" = Option<String>, Query, description = "Start of the window: RFC 3339, or `YYYY-MM-DD`, or \
            `YYYY-MM-DD HH:MM` in UTC. Default: last midnight in UTC"),
        ("end" = Option<String>, Query, description = "End of the window, at most 400 days after `start`. \
            Default: 14 days after `start`"),
        ("pool" = Option<String>, Query, description = "Name or identifier of a free pool. Default: hosts of \
            all pools"),
        ("group_by" = Option<String>, Query, description = "Property to group hosts by: `pool`, or the name \
            of a capability"),
        ("bucket" = Option<u32>, Query, description = "Length in minutes of spans to show average \
            reservations for, instead of bars. At most 2000 spans", minimum = 1),
        ("limit" = Option<u32>, Query, description = "Maximum number of hosts per page, at most 1000. \
            Default: 200. A page can have fewer hosts and a `next`", minimum = 1),
        ("marker" = Option<String>, Query, description = "Value of `next` in the previous response"),
        ("If-None-Match" = Option<String>, Header, description = "`ETag` of a response that the client has"),
    ),
    responses(
        (status = 200, body = CalendarBody),
        (status = 304, description = "The client has the current response"),
    )
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    options: Options,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::CalendarGet)?;
    let viewer = CalendarViewer {
        project: session.identity.project.clone(),
        all_leases: session.may(Rule::CalendarGetNames),
        all_hosts: session.may(Rule::HostsGet),
    };
    let sees_pools = viewer.all_hosts || !app.service().calendar().is_hidden(POOL_PROPERTY);
    let question = CalendarQuestion {
        within: window(&app, &options)?,
        pool: pool(&app, &options, sees_pools)?,
        group_by: group(&app, &options, &viewer, sees_pools)?,
        bucket: options
            .parsed("bucket", |text| text.parse().ok().filter(|minutes: &u32| *minutes > 0))?
            .map(|minutes| SignedDuration::from_mins(minutes.into())),
        after: options.parsed("marker", host_id)?,
        limit: options.limit()?.unwrap_or(USUAL_HOSTS).min(MOST_HOSTS) as usize,
        viewer,
    };
    if let Some(length) = &question.bucket
        && spans(&question.within, *length).is_none_or(|spans| spans > MOST_SPANS)
    {
        let message = format!(
            "Malformed parameter bucket: there would be more than {MOST_SPANS} in that time; give a longer one"
        );
        return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
    }
    let tag = |revision| {
        let asked = format!("{sees_pools} {question:?}");
        format!("W/\"{}\"", &fingerprint(&[revision_text(&app, revision).as_bytes(), asked.as_bytes()])[..32])
    };
    let current = tag(app.service().calendar().revision());
    if knows(&headers, &current) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, current)]).into_response());
    }
    let (service, asked) = (Arc::clone(app.service()), question.clone());
    let page = session.consider(async move { service.calendar().page(&asked).await }).await??;
    let own = &session.identity.project;
    let host = |host: service::CalendarHost| {
        let (bars, buckets) = match host.row {
            CalendarRow::Bars(bars) => (Some(bars.iter().map(bar).collect()), None),
            CalendarRow::Buckets(buckets) => (None, Some(buckets)),
        };
        CalendarHost {
            id: host.id.to_string(),
            name: host.name,
            pool: sees_pools.then_some(host.pool),
            group: host.group,
            status: status_name(host.status).into(),
            power: host.power.map(|on| if on { "on" } else { "off" }.into()),
            bars,
            buckets,
        }
    };
    let lease =
        |record: &Arc<store::LeaseRecord>| CalendarLease::of(record, record.lease.owner.project == *own);
    let calendar = Calendar {
        bucket_minutes: question.bucket.and_then(|length| u64::try_from(length.as_mins()).ok()),
        hosts: page.hosts.into_iter().map(host).collect(),
        leases: page.leases.iter().map(lease).collect(),
        next: page.next.map(|host| host.to_string()),
        ..Calendar::new(&question.within, page.now, revision_text(&app, page.revision))
    };
    Ok(([(ETAG, tag(page.revision))], Json(CalendarBody { calendar })).into_response())
}

/// The requested window, which starts at midnight UTC by default.
fn window(app: &App, options: &Options) -> Result<Window, ApiError> {
    let now = app.service().now();
    let midnight = || {
        let date = TimeZone::UTC.to_datetime(now).date();
        TimeZone::UTC.to_timestamp(date.to_datetime(Time::midnight())).unwrap_or(now)
    };
    let start = instant(options, "start", now)?.unwrap_or_else(midnight);
    let end = instant(options, "end", now)?.or_else(|| start.checked_add(USUAL).ok());
    let within = Window::new(start, end.unwrap_or(start)).map_err(|_| backwards())?;
    if within.length() > LONGEST {
        let message = "Malformed parameter end: the calendar shows 400 days at most";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
    }
    Ok(within)
}

/// The requested free pool. `None` for all pools.
fn pool(app: &App, options: &Options, may_know: bool) -> Result<Option<FreePoolId>, ApiError> {
    let Some(name) = options.text("pool") else { return Ok(None) };
    let pool = app.service().free_pools().get(name).filter(|_| may_know);
    let missing = || {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            format!("Malformed parameter pool: there is no {}", Quoted(name)),
        )
    };
    pool.map(|record| Some(record.pool.id)).ok_or_else(missing)
}

/// The property that hosts are grouped by. Hidden properties, and properties that identify hosts or projects,
/// are only for callers who can see them.
fn group(
    app: &App,
    options: &Options,
    viewer: &CalendarViewer,
    sees_pools: bool,
) -> Result<Option<String>, ApiError> {
    let Some(name) = options.text("group_by") else { return Ok(None) };
    let name = if name == "pool" { POOL_PROPERTY } else { name };
    let open = match name {
        POOL_PROPERTY => sees_pools,
        "availability_zone" => true,
        _ => !Host::FIELDS.contains(&name) && app.service().calendar().is_shown(name),
    };
    if viewer.all_hosts || open {
        return Ok(Some(name.to_owned()));
    }
    let message = format!("Malformed parameter group_by: hosts cannot be grouped by {}", Quoted(name));
    Err(ApiError::new(StatusCode::BAD_REQUEST, message))
}

fn bar(bar: &Bar) -> CalendarBar {
    let kind = match bar.kind {
        BarKind::Lease => "lease",
        BarKind::Offer => "offer",
        BarKind::Maintenance => "maintenance",
        BarKind::Instance => "instance",
        BarKind::Preemptible => "preemptible",
        BarKind::Other => "other",
    };
    CalendarBar {
        kind: kind.into(),
        start: bar.start,
        end: bar.end,
        lease: bar.lease,
        instances: bar.instances,
        whole: bar.whole,
    }
}

fn status_name(status: CalendarStatus) -> &'static str {
    match status {
        CalendarStatus::Open => "open",
        CalendarStatus::Closed => "closed",
        CalendarStatus::Failed => "failed",
        CalendarStatus::Maintenance => "maintenance",
    }
}

/// Revision in the API, with a random part for this run of the service: after a restart, the store can be a
/// new one.
fn revision_text(app: &App, revision: u64) -> String {
    let run = app.inner.run.get_or_init(|| format!("{:032x}", app.inner.ids.uuid())[..8].to_owned());
    format!("{revision}-{run}")
}

/// Follow changes of the calendar as server-sent events.
///
/// Each event is a `revision`, with the calendar's revision as its identifier. The first event comes
/// immediately, unless the client already knows the revision; then one comes after every change. The number
/// of streams of a user is limited. A stream ends after some time, and browsers reconnect by themselves.
#[utoipa::path(
    get, path = "/v1/calendar/changes", tag = "calendar", operation_id = "follow_calendar",
    params(("Last-Event-ID" = Option<String>, Header, description = "Revision that the client has")),
    responses((status = 200, description = "Events", content_type = "text/event-stream", body = CalendarChange))
)]
pub(crate) async fn changes(
    State(app): State<App>,
    session: Session,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::CalendarGet)?;
    let client = Client::User(session.identity.user.clone(), session.identity.project.clone());
    let own = app.inner.streams.ask(client);
    let of_all = Arc::clone(&app.inner.all_streams).try_acquire_owned().ok();
    let place = own.zip(of_all).ok_or_else(|| {
        let message = "Too many streams of changes at once: close one, or ask for the calendar now and then";
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, message)
    })?;
    let known = headers.get(LAST_EVENT).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let lasts = app.inner.config.limits.stream_time;
    let until = Instant::now() + lasts;
    let following = Following { app, known, told_at: None, until, _place: place };
    let events = Sse::new(events(following)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // A proxy that buffers responses would never forward the events.
    Ok(([(HeaderName::from_static("x-accel-buffering"), "no")], events).into_response())
}

/// A client that follows changes.
struct Following {
    app: App,
    /// The last revision that the client knows.
    known: Option<String>,
    told_at: Option<Instant>,
    until: Instant,
    _place: (Arc<Asked>, OwnedSemaphorePermit),
}

fn events(following: Following) -> impl Stream<Item = Result<Event, Infallible>> {
    let events = unfold(following, async |mut following| {
        let app = following.app.clone();
        let news = async {
            if let Some(at) = following.told_at {
                tokio::time::sleep_until(at + TOLD_EVERY).await;
            }
            loop {
                let revision = app.service().calendar().revision();
                let text = revision_text(&app, revision);
                if following.known.as_ref() != Some(&text) {
                    return text;
                }
                app.service().calendar().changed_since(revision).await;
            }
        };
        let text = tokio::select! {
            text = news => text,
            () = app.stopping() => return None,
            () = tokio::time::sleep_until(following.until) => return None,
        };
        let data = serde_json::json!({ "revision": text }).to_string();
        let change = CalendarChange { event: "revision".to_owned(), id: text.clone(), data };
        let event = Event::default().event(&change.event).id(&change.id).data(&change.data);
        following.known = Some(text);
        following.told_at = Some(Instant::now());
        Some((Ok(event), following))
    });
    events.fuse()
}
