//! Usage and its cost (USE). Not in Blazar, which leaves both to consumers of its notifications.

pub(super) mod period;

use std::collections::BTreeMap;
use std::sync::Arc;

use api::v1::body::{BillingBody, UsageBody, UsageEventsBody};
use api::v1::{BillingLine, Usage, UsageEvent, lease_id};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use leases::project::UserId;
use leases::usage::{By, Decimal, Group, Occurrence, Query, Totals};
use leases::window::Window;
use service::Service;
use store::UsageFilter;

use self::period::{Step, asked, parts};
use super::project_to_list;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::listing::Listing;
use crate::policy::Rule;

/// Maximum number of events in a response.
const MOST: u32 = 1000;

/// Default number of events in a response.
const USUAL: u32 = 100;

/// Attributes and time step by which usage is grouped.
struct Grouping {
    by: By,
    step: Option<Step>,
}

impl Grouping {
    fn read(text: &str) -> Option<Self> {
        let mut grouping = Self { by: By::default(), step: None };
        for word in text.split(',').map(str::trim) {
            match word {
                "project" => grouping.by.project = true,
                "user" => grouping.by.user = true,
                "pool" => grouping.by.pool = true,
                "lease" => grouping.by.lease = true,
                "lease_type" => grouping.by.lease_type = true,
                // The finer of two steps would do, but naming two is a mistake.
                _ if grouping.step.is_some() => return None,
                word => grouping.step = Some(Step::from_name(word)?),
            }
        }
        Some(grouping)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Csv,
}

impl Format {
    fn read(options: &Options) -> Result<Self, ApiError> {
        let format = options.parsed("format", |text| match text {
            "json" => Some(Self::Json),
            "csv" => Some(Self::Csv),
            _ => None,
        })?;
        Ok(format.unwrap_or(Self::Json))
    }
}

/// Show reserved and used resources in a past period.
///
/// Usage after the current time isn't counted. Covers the caller's project; for administrators, all projects.
#[utoipa::path(
    get, path = "/v1/usage", tag = "usage", operation_id = "show_usage",
    params(
        ("start" = Option<String>, Query, description = "Start of the period: RFC 3339, `YYYY-MM-DD HH:MM` \
            in UTC, or a day of the time zone as `YYYY-MM-DD`. Default: start of the current month"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `start`. A day is \
            included. Default: now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of days and months, such as \
            `Europe/Paris`. Default: UTC"),
        ("group_by" = Option<String>, Query, description = "Grouping, separated by commas: `project`, \
            `user`, `pool`, `lease`, `lease_type`, and one of `hour`, `day` and `month`"),
        ("project_id" = Option<String>, Query, description = "Only usage of this project. Only \
            administrators can name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
        ("user_id" = Option<String>, Query, description = "Only usage of this user"),
        ("lease_id" = Option<String>, Query, description = "Only usage of this lease, which can be deleted \
            already"),
        ("pool" = Option<String>, Query, description = "Only usage of hosts of this free pool"),
        ("format" = Option<String>, Query, description = "Format of the response: `json` (default) or `csv`"),
    ),
    responses((status = 200, content((UsageBody = "application/json"), (String = "text/csv"))))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::UsageGet)?;
    let format = Format::read(&options)?;
    let Grouping { by, step } =
        options.parsed("group_by", Grouping::read)?.unwrap_or(Grouping { by: By::default(), step: None });
    let (period, zone) = asked(&options, app.service().now())?;
    let query = Query {
        periods: parts(period, step, &zone)?,
        by,
        user: options.text("user_id").map(|user| UserId(user.to_owned())),
        pool: options.text("pool").map(str::to_owned),
        ..of_whom(&app, &session, &options)?
    };
    let (service, asked) = (Arc::clone(app.service()), query.clone());
    let groups = session.consider(async move { service.usage().sums(&asked).await }).await??;
    let service = Arc::clone(app.service());
    let shown = move |(group, totals): &(Group, Totals)| {
        let whole = query.periods.get(group.period).copied().unwrap_or(period);
        Usage { lease_name: name_of(&service, group), ..Usage::new(whole, group, totals) }
    };
    let groups: Vec<_> = groups.into_iter().collect();
    if format == Format::Csv {
        return Ok(csv(&Usage::headings(by), groups.iter().map(|group| shown(group).row(by))));
    }
    let listing = Listing::new(&session, "usage", groups, shown);
    let listing = listing.with("start", &period.start().to_string())?;
    Ok(listing.with("end", &period.end().to_string())?.respond().await)
}

/// Show the cost of leases and preemptible instances in a past period.
///
/// Contains lines for each lease, at the operator's prices. Covers the caller's project; for administrators,
/// all projects.
#[utoipa::path(
    get, path = "/v1/usage/billing", tag = "usage", operation_id = "show_billing",
    params(
        ("start" = Option<String>, Query, description = "Start of the period, in the format of `GET \
            /v1/usage`. Default: start of the current month"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `GET /v1/usage`. \
            Default: now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of days and months, such as \
            `Europe/Paris`. Default: UTC"),
        ("interval" = Option<String>, Query, description = "Interval to split the bill into: `hour`, `day` \
            or `month`. Default: the whole period"),
        ("project_id" = Option<String>, Query, description = "Only this project. Only administrators can \
            name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
        ("lease_id" = Option<String>, Query, description = "Only this lease, which can be deleted already"),
        ("format" = Option<String>, Query, description = "Format of the response: `json` (default) or `csv`"),
    ),
    responses((status = 200, content((BillingBody = "application/json"), (String = "text/csv"))))
)]
pub(crate) async fn billing(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Response, ApiError> {
    session.allow(&app, Rule::UsageGet)?;
    let format = Format::read(&options)?;
    let (period, zone) = asked(&options, app.service().now())?;
    let prices = app.service().usage().prices();
    let by = By { project: true, user: true, lease: true, ..prices.grouping() };
    let step = options.parsed("interval", Step::from_name)?;
    let query = Query { periods: parts(period, step, &zone)?, by, ..of_whom(&app, &session, &options)? };
    let (service, asked) = (Arc::clone(app.service()), query.clone());
    let groups = session.consider(async move { service.usage().sums(&asked).await }).await??;
    let mut bills: BTreeMap<Group, Vec<(&Group, &Totals)>> = BTreeMap::new();
    for (group, totals) in &groups {
        let billed = Group { pool: None, flavor: None, lease_type: None, ..group.clone() };
        bills.entry(billed).or_default().push((group, totals));
    }
    let mut total = 0_u128;
    let mut billing = Vec::new();
    for (billed, groups) in bills {
        let within = query.periods.get(billed.period).copied().unwrap_or(period);
        for charge in prices.charges(groups) {
            if let Some(line) = BillingLine::new(within, &billed, &charge) {
                total = total.saturating_add(charge.amount.millionths);
                billing.push(BillingLine { lease_name: name_of(app.service(), &billed), ..line });
            }
        }
    }
    if format == Format::Csv {
        return Ok(csv(&BillingLine::HEADINGS, billing.iter().map(BillingLine::row)));
    }
    let listing = Listing::new(&session, "billing", billing, BillingLine::clone);
    let listing = listing.with("start", &period.start().to_string())?;
    let listing = listing.with("end", &period.end().to_string())?.with("currency", &prices.currency)?;
    Ok(listing.with("total", &Decimal { millionths: total }.to_string())?.respond().await)
}

/// List events of leases and instances, oldest first.
///
/// Contains every change of state, with its time and owner. Covers the caller's project; for administrators,
/// all projects. Only administrators see hosts.
#[utoipa::path(
    get, path = "/v1/usage/events", tag = "usage", operation_id = "list_usage_events",
    params(
        ("start" = Option<String>, Query, description = "Start of the period, in the format of `GET \
            /v1/usage`. Default: the first event"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `GET /v1/usage`. \
            Default: the last event"),
        ("time_zone" = Option<String>, Query, description = "Time zone of days and months, such as \
            `Europe/Paris`. Default: UTC"),
        ("project_id" = Option<String>, Query, description = "Only this project. Only administrators can \
            name another project"),
        ("tenant_id" = Option<String>, Query, description = "Synonym for `project_id`"),
        ("lease_id" = Option<String>, Query, description = "Only this lease, which can be deleted already"),
        ("event" = Option<String>, Query, description = "Only events of this kind: `lease.extended`"),
        ("after" = Option<u64>, Query, description = "Only events with higher numbers"),
        ("limit" = Option<u32>, Query, description = "Maximum number of events, at most 1000. \
            Default: 100", minimum = 1, maximum = 2_147_483_647),
    ),
    responses((status = 200, body = UsageEventsBody))
)]
pub(crate) async fn events(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<UsageEventsBody>, ApiError> {
    session.allow(&app, Rule::UsageGet)?;
    let now = app.service().now();
    let zone = period::zone(&options)?;
    let start = period::start(&options, now, &zone)?;
    let end = period::end(&options, now, &zone)?;
    let everything = Window::ALWAYS;
    let period = Window::new(start.unwrap_or(everything.start()), end.unwrap_or(everything.end()));
    let filter = UsageFilter {
        period: Some(period.map_err(|_| period::backwards())?),
        project: project_to_list(&app, &session, &options, Rule::UsageGet)?,
        lease: options.parsed("lease_id", lease_id)?,
        what: options.parsed("event", Occurrence::from_name)?,
    };
    let after = options.parsed("after", |text| text.parse().ok())?.unwrap_or(0);
    let limit = options.limit()?;
    let (service, limit) = (Arc::clone(app.service()), limit.unwrap_or(USUAL).min(MOST));
    let found =
        session.consider(async move { service.usage().events(&filter, after, limit).await }).await??;
    let last = found.last().map_or(after, |(number, _)| *number);
    let show_hosts = session.is_admin(&app);
    let events = found.into_iter().map(|(number, event)| UsageEvent::new(number, event, show_hosts));
    Ok(Json(UsageEventsBody { events: events.collect(), last }))
}

/// Project and lease whose usage the caller requests and is allowed to see.
fn of_whom(app: &App, session: &Session, options: &Options) -> Result<Query, ApiError> {
    Ok(Query {
        project: project_to_list(app, session, options, Rule::UsageGet)?,
        lease: options.parsed("lease_id", lease_id)?,
        ..Query::default()
    })
}

/// Name of the group's lease. `None` if it no longer exists.
fn name_of(service: &Service, group: &Group) -> Option<String> {
    Some(service.leases().get(group.lease?)?.lease.name.clone())
}

/// A CSV table according to RFC 4180.
fn csv(headings: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Response {
    let mut text = headings.join(",") + "\r\n";
    for row in rows {
        let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push_str("\r\n");
    }
    (StatusCode::OK, [(CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response()
}

/// Quotes the field if necessary. A field that a spreadsheet would interpret as a formula is turned into
/// text; only names can look like one.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '-', '@']);
    let field = if formula { format!("'{field}") } else { field.to_owned() };
    if field.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_tables_are_quoted_where_they_must_be() {
        let fields = ["plain", "a,b", "say \"hi\"", "two\nlines", "=1+1", ""].map(quoted);
        assert_eq!(fields, ["plain", "\"a,b\"", "\"say \"\"hi\"\"\"", "\"two\nlines\"", "'=1+1", ""]);
    }
}
