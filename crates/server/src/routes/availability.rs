//! Free capacity over time. Not in Blazar, where members can find out only by requesting a lease.

use std::sync::Arc;

use api::v1::body::{AvailabilityBody, FlavorInstancesBody};
use api::v1::{Availability, FlavorAvailability, minute, read_asked, read_length};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::SignedDuration;
use leases::window::Window;
use serde_json::{Map, Value, json};
use service::Asked;

use super::lease_view::{check_names, check_properties, mark_unseen, usable_flavors};
use super::usage::period::{backwards, instant};
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::policy::Rule;

/// Default length of the window.
const USUAL: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Maximum number of steps in a response.
const MOST_STEPS: usize = 10_000;

/// Show free capacity over time.
///
/// Covers hosts, instances or floating IPs that the caller's project can reserve. The response doesn't
/// contain names of hosts or owners of leases.
#[utoipa::path(
    get, path = "/v1/availability", tag = "availability", operation_id = "show_availability",
    params(
        ("start" = Option<String>, Query, description = "Start of the window: RFC 3339, or `YYYY-MM-DD`, or \
            `YYYY-MM-DD HH:MM` in UTC. Default: now"),
        ("end" = Option<String>, Query, description = "End of the window. Default: 30 days after its start"),
        ("resource_properties" = Option<String>, Query, description = "Requirements on hosts, as in a \
            reservation: a JSON expression"),
        ("hypervisor_properties" = Option<String>, Query, description = "More requirements on hosts, as in a \
            reservation. Hosts must match both"),
        ("flavor_id" = Option<String>, Query, description = "Show capacity for instances of this flavor \
            instead of whole hosts"),
        ("vcpus" = Option<String>, Query, description = "Show capacity for instances with this number of \
            virtual CPUs"),
        ("memory_mb" = Option<String>, Query, description = "Memory of these instances, in MiB"),
        ("disk_gb" = Option<String>, Query, description = "Disk of these instances, in GiB"),
        ("network_id" = Option<String>, Query, description = "Show free addresses of this network"),
        ("amount" = Option<String>, Query, description = "Number of hosts, instances or addresses needed at \
            the same time for `duration`. Default: 1"),
        ("duration" = Option<String>, Query, description = "Duration: `P1D`, `4h`. The response then has the \
            earliest windows with `amount` free"),
    ),
    responses((status = 200, body = AvailabilityBody))
)]
pub(crate) async fn show(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<AvailabilityBody>, ApiError> {
    session.allow(&app, Rule::AvailabilityGet)?;
    let within = within(&app, &options, ("start", "end"))?;
    let length = options.parsed("duration", read_length)?;
    let asked = reservation(&options)?;
    let flavors = usable_flavors(&app, &session, asked["flavor_id"].as_str().into_iter()).await?;
    let mut asked = read_asked(&asked, &|id| flavors.get(id).cloned())?;
    mark_unseen(&app, &session, |unseen| unseen.mark_reservation(&mut asked));
    check_properties(&app, &session, Asked::of_reservation(&asked)).await?;
    let resource_type = asked.resource_type();
    let (service, project) = (Arc::clone(app.service()), session.identity.project.clone());
    let terms = asked.clone();
    let found = async move { service.calendar().availability(&project, &terms, within, length).await };
    let (found, best) = session.consider(found).await??;
    if found.total == 0 {
        check_names(&app, &session, Asked::of_reservation(&asked)).await?;
    }
    bounded(found.steps.len(), "ask for a shorter time")?;
    let availability = Availability::new(resource_type, &within, &found, best.as_deref());
    Ok(Json(AvailabilityBody { availability }))
}

/// Show free capacity for instances of flavors over time.
///
/// Without `flavor_id`, covers each of the service's own flavors that the caller can use. Request and
/// response follow Chameleon's Blazar; Blazar itself doesn't have this path.
#[utoipa::path(
    get, path = "/v1/flavor-instances/availability", tag = "availability",
    operation_id = "show_flavor_availability",
    params(
        ("flavor_id" = Option<String>, Query, description = "Identifier of the flavor. Default: all flavors \
            that `GET /v1/flavors` lists"),
        ("start_date" = Option<String>, Query, description = "Start of the window: `YYYY-MM-DD HH:MM` in \
            UTC, or RFC 3339. Default: now"),
        ("end_date" = Option<String>, Query, description = "End of the window. Default: 30 days after its \
            start"),
    ),
    responses((status = 200, body = FlavorInstancesBody))
)]
pub(crate) async fn of_flavors(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<FlavorInstancesBody>, ApiError> {
    session.allow(&app, Rule::AvailabilityGet)?;
    let within = within(&app, &options, ("start_date", "end_date"))?;
    let all = session.is_admin(&app);
    let flavors: Vec<String> = if let Some(id) = options.text("flavor_id") {
        vec![id.to_owned()]
    } else {
        let flavors = app.service().flavors().all();
        flavors.iter().filter(|record| record.public || all).map(|record| record.id.clone()).collect()
    };
    let usable = usable_flavors(&app, &session, flavors.iter().map(String::as_str)).await?;
    let ask = |id: &String| {
        let reservation =
            json!({"resource_type": "flavor:instance", "flavor_id": id, "amount": "1", "affinity": null});
        read_asked(&reservation, &|id| usable.get(id).cloned())
    };
    let asked = flavors.iter().map(ask).collect::<Result<Vec<_>, _>>()?;
    let (service, project) = (Arc::clone(app.service()), session.identity.project.clone());
    let found = async move { service.calendar().availability_of_each(&project, &asked, within).await };
    let found = session.consider(found).await??;
    bounded(found.iter().map(|found| found.steps.len()).sum(), "ask for one flavor, or for a shorter time")?;
    let flavors = flavors.into_iter().zip(&found);
    Ok(Json(FlavorInstancesBody {
        flavor_instances: flavors.map(|(id, found)| FlavorAvailability::new(id, found)).collect(),
    }))
}

/// The requested window.
fn within(app: &App, options: &Options, (start, end): (&str, &str)) -> Result<Window, ApiError> {
    let now = app.service().now();
    let start = instant(options, start, now)?.unwrap_or_else(|| minute(now));
    let end = instant(options, end, now)?.or_else(|| start.checked_add(USUAL).ok());
    Window::new(start, end.unwrap_or(start)).map_err(|_| backwards())
}

fn bounded(steps: usize, hint: &str) -> Result<(), ApiError> {
    if steps <= MOST_STEPS {
        return Ok(());
    }
    let message = format!("The answer would have {steps} steps, and may have {MOST_STEPS}: {hint}");
    Err(ApiError::new(StatusCode::BAD_REQUEST, message))
}

/// The requested capacity, as fields of a reservation.
fn reservation(options: &Options) -> Result<Value, ApiError> {
    let kinds = [
        ("flavor_id", "flavor:instance"),
        ("vcpus", "virtual:instance"),
        ("network_id", "virtual:floatingip"),
    ];
    let mut given = kinds.iter().filter(|(name, _)| options.is_set(name));
    let kind = given.next().map_or("physical:host", |(_, kind)| kind);
    if let Some((more, _)) = given.next() {
        let message = format!("Malformed parameter {more}: ask for one of flavor_id, vcpus and network_id");
        return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
    }
    let amount = options.text("amount").unwrap_or("1");
    let mut fields = Map::new();
    fields.insert("resource_type".to_owned(), json!(kind));
    let mut put = |name: &str, value: Option<&str>| {
        fields.insert(name.to_owned(), value.map_or(Value::Null, Value::from));
    };
    let takes: &[&str] = match kind {
        "physical:host" => {
            put("min", Some(amount));
            put("max", Some(amount));
            &["hypervisor_properties", "resource_properties"]
        }
        "virtual:instance" => {
            put("affinity", None);
            put("disk_gb", Some("0"));
            &["vcpus", "memory_mb", "disk_gb", "resource_properties"]
        }
        "flavor:instance" => {
            put("affinity", None);
            &["flavor_id"]
        }
        _ => &["network_id"],
    };
    if kind != "physical:host" {
        put("amount", Some(amount));
    }
    for name in [
        "hypervisor_properties",
        "resource_properties",
        "flavor_id",
        "vcpus",
        "memory_mb",
        "disk_gb",
        "network_id",
    ] {
        match options.text(name) {
            Some(text) if takes.contains(&name) => put(name, Some(text)),
            Some(_) => {
                let message = format!("Malformed parameter {name}: it says nothing about {kind}");
                return Err(ApiError::new(StatusCode::BAD_REQUEST, message));
            }
            None if name.ends_with("_properties") && takes.contains(&name) => put(name, Some("")),
            None => {}
        }
    }
    Ok(Value::Object(fields))
}
