//! Power saving in answers (EN). Not in Blazar.

use leases::energy;
use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::error::RequestError;
use super::lease_dates::read_duration;

/// Milliwatt-seconds in a kilowatt-hour.
const KWH: f64 = 3.6e9;

#[expect(clippy::cast_precision_loss, reason = "nobody meters so precisely")]
fn kwh(milliwatt_seconds: u128) -> f64 {
    // Rounded to a milliwatt-hour. More digits are noise.
    (milliwatt_seconds as f64 / KWH * 1e6).round() / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "nobody meters so precisely")]
fn hours(seconds: u64) -> f64 {
    (seconds as f64 / 3.6).round() / 1e3
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) / 1000.0
}

/// How many hosts have to be on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnergyNeed {
    /// From when, until the next: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// How many.
    pub hosts: usize,
}

/// A time that a host may be off for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnergyRest {
    /// Which host.
    pub host_id: String,
    /// Its name.
    pub hypervisor_hostname: String,
    /// From when: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub off_from: String,
    /// When it is to be switched on again; nothing if that is beyond the horizon.
    #[schema(format = "date-time")]
    pub on_by: Option<String>,
}

/// What is planned for a free pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyPool {
    /// Its identifier; nothing of the pool that is always there.
    pub pool_id: Option<String>,
    /// Its name.
    pub pool: String,
    /// How many hosts are in it.
    pub hosts: usize,
    /// How many have to be on at the busiest instant.
    pub hosts_needed: usize,
    /// How many have to be on, over time.
    pub needed: Vec<EnergyNeed>,
    /// Which may be off when.
    pub off: Vec<EnergyRest>,
    /// What that saves, compared with idle hosts, as far as it is known what they draw.
    pub saved_kwh: f64,
}

/// What was saved and used in a free pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyPoolReport {
    /// Its identifier; nothing of the pool that is always there.
    pub pool_id: Option<String>,
    /// Its name; nothing if it is gone.
    pub pool: Option<String>,
    /// Hosts that were off times hours.
    pub off_host_hours: f64,
    /// What that saved, compared with idle hosts.
    pub saved_kwh: f64,
    /// What these hosts drew while they were off.
    pub used_kwh: f64,
    /// Hosts that were leased or carried guests times hours.
    pub busy_host_hours: f64,
    /// What they drew then.
    pub busy_kwh: f64,
    /// Hosts that were on beside that times hours.
    pub idle_host_hours: f64,
    /// What they drew then.
    pub idle_kwh: f64,
    /// What hosts used in all: at work, idle and off.
    pub total_kwh: f64,
    /// How many hosts are not in these sums, since nobody has said what they draw when they are idle.
    pub hosts_without_watts: u64,
    /// How often a host was switched off.
    pub switched_off: u64,
    /// How often one was switched on again.
    pub switched_on: u64,
    /// How often one did not come up in time then.
    pub boots_failed: u64,
    /// The longest boot, seconds.
    pub longest_boot_seconds: Option<i64>,
}

/// The power of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyHost {
    /// Which host.
    pub host_id: String,
    /// Its name.
    pub hypervisor_hostname: String,
    /// The name of its free pool.
    pub pool: String,
    /// `on`, `shutting_down`, `off`, `booting` or `failed`.
    pub power: String,
    /// Since when, unless it is on.
    #[schema(format = "date-time")]
    pub since: Option<String>,
    /// How long it is expected to boot.
    pub boot_seconds: i64,
    /// How often that was measured.
    pub measured_boots: usize,
    /// How often it was switched off within the last day.
    pub switched_off_lately: usize,
    /// What it draws when it is on and idle, if somebody has said.
    pub idle_watts: Option<f64>,
    /// The same when it works.
    pub busy_watts: Option<f64>,
    /// The same when it is off.
    pub off_watts: f64,
    /// Whether the operator lets it be switched off.
    pub may_be_off: bool,
}

fn shown(pool: FreePoolId) -> Option<String> {
    (pool != FreePool::DEFAULT).then(|| pool.to_string())
}

impl EnergyPool {
    /// The plan for a pool. `host` returns the name of a host.
    pub fn new(id: FreePoolId, pool: &str, plan: &energy::PoolPlan, host: impl Fn(HostId) -> String) -> Self {
        let rest = |rest: &energy::Rest| EnergyRest {
            host_id: rest.host.to_string(),
            hypervisor_hostname: host(rest.host),
            off_from: rest.from.to_string(),
            on_by: rest.until.map(|until| until.to_string()),
        };
        let need = |need: &energy::Need| EnergyNeed { start: need.from.to_string(), hosts: need.hosts };
        Self {
            pool_id: shown(id),
            pool: pool.to_owned(),
            hosts: plan.hosts,
            hosts_needed: plan.most_needed(),
            needed: plan.needed.iter().map(need).collect(),
            off: plan.rests.iter().map(rest).collect(),
            saved_kwh: kwh(plan.saved_milliwatt_seconds),
        }
    }
}

impl EnergyPoolReport {
    /// Savings in a pool. `pool` is its name, if the pool still exists.
    pub fn new(id: FreePoolId, pool: Option<&str>, report: &energy::PoolReport) -> Self {
        Self {
            pool_id: shown(id),
            pool: pool.map(str::to_owned),
            off_host_hours: hours(report.off_seconds),
            saved_kwh: kwh(report.saved_milliwatt_seconds),
            used_kwh: kwh(report.used_milliwatt_seconds),
            busy_host_hours: hours(report.busy_seconds),
            busy_kwh: kwh(report.busy_milliwatt_seconds),
            idle_host_hours: hours(report.idle_seconds),
            idle_kwh: kwh(report.idle_milliwatt_seconds),
            total_kwh: kwh(report.total_milliwatt_seconds()),
            hosts_without_watts: report.hosts_not_metered,
            switched_off: report.switched_off,
            switched_on: report.switched_on,
            boots_failed: report.failed,
            longest_boot_seconds: report.longest_boot.map(|boot| boot.as_secs()),
        }
    }

    /// The sum of a figure over pools.
    pub fn sum(reports: &[Self], of: fn(&Self) -> f64) -> f64 {
        // Start at 0: the sum of no numbers is -0.
        (reports.iter().map(of).fold(0.0, std::ops::Add::add) * 1e6).round() / 1e6
    }
}

impl EnergyHost {
    pub fn new(
        host: &leases::host::Host,
        pool: &str,
        boot_time: jiff::SignedDuration,
        now: jiff::Timestamp,
    ) -> Self {
        let figures = energy::Figures::of(host);
        Self {
            host_id: host.id.to_string(),
            hypervisor_hostname: host.name.clone(),
            pool: pool.to_owned(),
            power: host.power.state.name().to_owned(),
            since: host.power.state.since().map(|since| since.to_string()),
            boot_seconds: boot_time.as_secs(),
            measured_boots: host.power.boots.len(),
            switched_off_lately: host.power.rests_before(now),
            idle_watts: figures.idle_milliwatts.map(watts),
            busy_watts: figures.busy_milliwatts.map(watts),
            off_watts: watts(figures.off_milliwatts),
            may_be_off: energy::may_be_off(host),
        }
    }
}

/// Reads the time to plan ahead from text such as `12h` or `7d`. It can be one minute to one year.
pub fn horizon(text: &str) -> Result<jiff::SignedDuration, RequestError> {
    let field = "horizon";
    let horizon = read_duration(field, &Value::String(text.to_owned()))?;
    let (shortest, longest) =
        (jiff::SignedDuration::from_mins(1), jiff::SignedDuration::from_hours(24 * 366));
    if horizon < shortest || horizon > longest {
        return Err(RequestError::malformed(field, "a minute at least, and a year at most"));
    }
    Ok(horizon)
}
