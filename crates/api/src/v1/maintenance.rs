//! Maintenance of hosts (HK). Not in Blazar.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::date::{Dates, read_date};
use super::error::RequestError;
use super::fields::{Fields, list};
use super::lease_dates::{read_duration, read_minutes};
use super::limits::Limits;

/// Time in which a window is searched for, unless the request says otherwise.
const USUAL_HORIZON: SignedDuration = SignedDuration::from_hours(28 * 24);

/// Time before and after the maintenance in which no lease may use the host, unless the request says
/// otherwise.
const USUAL_MARGIN: SignedDuration = SignedDuration::from_mins(10);

/// Maintenance window of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Maintenance {
    /// Identifier of the host.
    pub host_id: String,
    /// Name of the host.
    pub host: String,
    /// Start, in UTC; null if no window is available.
    #[schema(format = "date-time")]
    pub start_date: Option<String>,
    /// End, in UTC; null if no window is available.
    #[schema(format = "date-time")]
    pub end_date: Option<String>,
    /// Identifier of the lease that reserves the host; null if no maintenance was booked.
    pub lease_id: Option<String>,
}

/// Maintenance in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceRequest {
    /// Names or identifiers of hosts.
    pub hosts: Vec<String>,
    /// A free pool, with all of its hosts.
    pub free_pool: Option<String>,
    /// Duration of the maintenance.
    pub length: SignedDuration,
    /// Time before and after it in which no lease may use the host.
    pub margin: SignedDuration,
    /// Earliest start.
    pub not_before: Timestamp,
    /// Latest end.
    pub before: Timestamp,
}

impl MaintenanceRequest {
    /// Reads the body of `POST /maintenance`.
    pub fn read(body: &Value, now: Timestamp, limits: &Limits) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        let length = read_minutes("duration", fields.required("duration")?)?;
        let margin = fields.given("margin").map(|value| read_duration("margin", value)).transpose()?;
        let dates = Dates::new(now, limits);
        let mut date = |name| fields.given(name).map(|value| read_date(name, value, dates)).transpose();
        let not_before = date("not_before")?.unwrap_or(now);
        let horizon = not_before.checked_add(USUAL_HORIZON).unwrap_or(Timestamp::MAX);
        let before = date("before")?.unwrap_or(horizon);
        let names = list("hosts", fields.get("hosts"))?.iter().map(|value| {
            let name = value.as_str().map(str::to_owned).or_else(|| value.as_u64().map(|id| id.to_string()));
            name.ok_or_else(|| RequestError::malformed("hosts", "a list of names or identifiers"))
        });
        let hosts = names.collect::<Result<Vec<_>, _>>()?;
        let free_pool = fields.given("freepool").map(|value| {
            let name = value.as_str().map(str::to_owned);
            name.ok_or_else(|| RequestError::malformed("freepool", "a name or identifier"))
        });
        let free_pool = free_pool.transpose()?;
        fields.finish()?;
        if hosts.is_empty() && free_pool.is_none() {
            return Err(RequestError::Missing("hosts or freepool".to_owned()));
        }
        if before <= not_before {
            return Err(RequestError::malformed("before", "later than not_before"));
        }
        let margin = margin.unwrap_or(USUAL_MARGIN);
        Ok(Self { hosts, free_pool, length, margin, not_before, before })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> Result<MaintenanceRequest, RequestError> {
        MaintenanceRequest::read(
            body,
            "2030-01-01T10:00:30Z".parse().expect("an instant"),
            &Limits::default(),
        )
    }

    #[test]
    fn hk_c_maintenance_is_of_hosts_or_of_a_pool() {
        let request = read(&json!({"hosts": ["node1", 2], "duration": "2h"})).expect("complete");
        assert_eq!(request.hosts, ["node1", "2"]);
        assert_eq!((request.length, request.margin), (SignedDuration::from_hours(2), USUAL_MARGIN));
        for (body, wrong) in [
            (json!({"duration": "2h"}), "Missing parameter hosts or freepool"),
            (json!({"hosts": ["a"]}), "Missing parameter duration"),
            (json!({"hosts": [true], "duration": "2h"}), "Malformed parameter hosts"),
            (json!({"freepool": 1, "duration": "2h"}), "Malformed parameter freepool"),
            (json!({"hosts": ["a"], "duration": "2h", "host": "a"}), "Unknown parameter host"),
            (
                json!({"hosts": ["a"], "duration": "2h", "not_before": "2030-01-02 10:00", "before": "2030-01-02 10:00"}),
                "Malformed parameter before",
            ),
        ] {
            assert_eq!(read(&body).expect_err("wrong").to_string(), wrong, "{body}");
        }
    }
}
