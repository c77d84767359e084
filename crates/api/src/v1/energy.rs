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

/// Number of hosts that must be on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnergyNeed {
    /// Start of the period, which ends at the next entry's start: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub start: String,
    /// Number of hosts.
    pub hosts: usize,
}

/// Period during which a host can be off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnergyRest {
    /// Identifier of the host.
    pub host_id: String,
    /// Name of the host.
    pub hypervisor_hostname: String,
    /// Time from which the host can be off: UTC, RFC 3339.
    #[schema(format = "date-time")]
    pub off_from: String,
    /// Time at which the host is switched on again: UTC, RFC 3339; null if that is after the planning
    /// horizon.
    #[schema(format = "date-time")]
    pub on_by: Option<String>,
}

/// Power-saving plan of a free pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyPool {
    /// Identifier of the pool; null for the default pool.
    pub pool_id: Option<String>,
    /// Name of the pool.
    pub pool: String,
    /// Number of hosts in the pool.
    pub hosts: usize,
    /// Maximum number of hosts that must be on at the same time.
    pub hosts_needed: usize,
    /// Number of hosts that must be on, over time.
    pub needed: Vec<EnergyNeed>,
    /// Hosts that can be off, each with its period.
    pub off: Vec<EnergyRest>,
    /// Energy that the plan saves compared with leaving hosts idle, in kWh. Includes only hosts with known
    /// power draw.
    pub saved_kwh: f64,
}

/// Energy saved and used in a free pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyPoolReport {
    /// Identifier of the pool; null for the default pool.
    pub pool_id: Option<String>,
    /// Name of the pool; null if it no longer exists.
    pub pool: Option<String>,
    /// Time that hosts were off, in host-hours.
    pub off_host_hours: f64,
    /// Energy saved by hosts while off, compared with leaving them idle, in kWh.
    pub saved_kwh: f64,
    /// Energy drawn by hosts while off, in kWh.
    pub used_kwh: f64,
    /// Time that hosts were leased or ran guests, in host-hours.
    pub busy_host_hours: f64,
    /// Energy drawn by hosts while leased or running guests, in kWh.
    pub busy_kwh: f64,
    /// Time that hosts were on without being leased or running guests, in host-hours.
    pub idle_host_hours: f64,
    /// Energy drawn by hosts while idle, in kWh.
    pub idle_kwh: f64,
    /// Energy used by all hosts while busy, idle and off, in kWh.
    pub total_kwh: f64,
    /// Number of hosts with unknown idle draw. Their idle time adds no energy to these sums.
    pub hosts_without_watts: u64,
    /// Number of times a host was switched off.
    pub switched_off: u64,
    /// Number of times a host was switched on again.
    pub switched_on: u64,
    /// Number of times a host didn't come up in time after it was switched on.
    pub boots_failed: u64,
    /// Duration of the longest boot, in seconds; null if no boot was measured.
    pub longest_boot_seconds: Option<i64>,
}

/// Power state of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EnergyHost {
    /// Identifier of the host.
    pub host_id: String,
    /// Name of the host.
    pub hypervisor_hostname: String,
    /// Name of the host's free pool.
    pub pool: String,
    /// Power state: `on`, `shutting_down`, `off`, `booting` or `failed`.
    pub power: String,
    /// Time since which the host is in this state; null if it is on.
    #[schema(format = "date-time")]
    pub since: Option<String>,
    /// Expected boot time, in seconds.
    pub boot_seconds: i64,
    /// Number of measured boots that `boot_seconds` is based on.
    pub measured_boots: usize,
    /// Number of times the host was switched off in the last 24 hours.
    pub switched_off_lately: usize,
    /// Power draw when on and idle, in watts; null if unknown.
    pub idle_watts: Option<f64>,
    /// Power draw with all CPUs busy, in watts; null if unknown.
    pub busy_watts: Option<f64>,
    /// Power draw when off, in watts; 0 if unknown.
    pub off_watts: f64,
    /// Whether the operator allows the host to be switched off.
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
    /// The power of a host of the pool of that name.
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
