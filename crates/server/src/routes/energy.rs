//! Power saving: the plan, the report on saved energy, and the state of hosts (EN). Not in Blazar.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::v1::body::{EnergyHostsBody, EnergyPlanBody, EnergyReportBody};
use api::v1::{EnergyHost, EnergyPool, EnergyPoolReport, horizon};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use leases::ids::{FreePoolId, HostId};
use leases::window::Window;
use service::HostPower;

use super::usage::period;
use crate::app::{App, Session};
use crate::error::ApiError;
use crate::extract::Options;
use crate::listing::{CHUNK, Listing};
use crate::policy::Rule;

/// Show the power-saving plan.
///
/// For each free pool, contains the number of hosts that must be on over time, and the hosts that can be off.
/// The plan is also computed while power saving is off.
#[utoipa::path(
    get, path = "/v1/energy/plan", tag = "energy", operation_id = "show_energy_plan",
    params(("horizon" = Option<String>, Query, description = "Planning horizon, from 1 minute to 1 year: \
            `12h`, `7d`. Default: `energy.horizon`")),
    responses((status = 200, body = EnergyPlanBody))
)]
pub(crate) async fn plan(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<EnergyPlanBody>, ApiError> {
    session.allow(&app, Rule::EnergyGet)?;
    let service = app.service();
    let horizon = options.text("horizon").map(horizon).transpose()?;
    let planner = Arc::clone(service);
    let plan = session.consider(async move { planner.power_saving().plan(horizon).await }).await??;
    let pools = pools(&app);
    let names: BTreeMap<HostId, String> =
        service.hosts().all().iter().map(|record| (record.host.id, record.host.name.clone())).collect();
    let name = |host: HostId| names.get(&host).cloned().unwrap_or_default();
    let shown = plan.pools.iter().map(|(id, plan)| {
        let pool = pools.get(id).map_or("", String::as_str);
        EnergyPool::new(*id, pool, plan, name)
    });
    let now = service.now();
    let end = Window::starting(now, horizon.unwrap_or(service.power_saving().settings().rules.horizon)).end();
    Ok(Json(EnergyPlanBody {
        mode: service.power_saving().settings().mode.name().to_owned(),
        start: now.to_string(),
        end: end.to_string(),
        pools: shown.collect(),
    }))
}

/// Show energy saved and used in a past period, by free pool.
#[utoipa::path(
    get, path = "/v1/energy/report", tag = "energy", operation_id = "show_energy_report",
    params(
        ("start" = Option<String>, Query, description = "Start of the period, in the format of `GET \
            /v1/usage`. Default: start of the current month"),
        ("end" = Option<String>, Query, description = "End of the period, in the format of `GET /v1/usage`. \
            Default: now"),
        ("time_zone" = Option<String>, Query, description = "Time zone of dates without a time. Default: UTC"),
    ),
    responses((status = 200, body = EnergyReportBody))
)]
pub(crate) async fn report(
    State(app): State<App>,
    session: Session,
    options: Options,
) -> Result<Json<EnergyReportBody>, ApiError> {
    session.allow(&app, Rule::EnergyGet)?;
    let (asked, _) = period::asked(&options, app.service().now())?;
    let service = Arc::clone(app.service());
    let report = session.consider(async move { service.power_saving().report(asked).await }).await??;
    let pools = pools(&app);
    let shown = |(id, report)| EnergyPoolReport::new(id, pools.get(&id).map(String::as_str), &report);
    let pools: Vec<EnergyPoolReport> = report.into_iter().map(shown).collect();
    let sum = |of| EnergyPoolReport::sum(&pools, of);
    let (saved_kwh, used_kwh) = (sum(|pool| pool.saved_kwh), sum(|pool| pool.used_kwh));
    let total_kwh = sum(|pool| pool.total_kwh);
    let (start, end) = (asked.start().to_string(), asked.end().to_string());
    Ok(Json(EnergyReportBody { start, end, pools, saved_kwh, used_kwh, total_kwh }))
}

/// List power states of all hosts.
#[utoipa::path(
    get, path = "/v1/energy/hosts", tag = "energy", operation_id = "list_energy_hosts",
    responses((status = 200, body = EnergyHostsBody))
)]
pub(crate) async fn hosts(State(app): State<App>, session: Session) -> Result<Response, ApiError> {
    session.allow(&app, Rule::EnergyGet)?;
    let (pools, now) = (pools(&app), app.service().now());
    let (service, mut last) = (Arc::clone(app.service()), None);
    let mut read = move || {
        let hosts = service.power_saving().hosts_after(last, CHUNK);
        last = Some(hosts.last()?.host.id);
        Some(hosts)
    };
    let first = read().unwrap_or_default();
    let shown = move |power: &HostPower| {
        let pool = pools.get(&power.host.pool).map_or("", String::as_str);
        EnergyHost::new(&power.host, pool, power.boot_time, now)
    };
    Ok(Listing::new(&session, "hosts", first, shown).then(read).respond().await)
}

/// Names of free pools by identifier.
fn pools(app: &App) -> BTreeMap<FreePoolId, String> {
    app.service().free_pools().all().iter().map(|record| (record.pool.id, record.pool.name.clone())).collect()
}
