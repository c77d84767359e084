//! Responses of the service, with the fields that the client needs. Unknown fields are ignored, and most
//! missing ones have defaults.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ClientError;

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lease {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub project_id: String,
    #[serde(default)]
    pub user_id: String,
    pub start_date: String,
    pub end_date: String,
    #[serde(default)]
    pub created_at: Option<String>,
    #[serde(default)]
    pub timeout_date: Option<String>,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub status_reason: Option<String>,
    #[serde(default, rename = "lease_type")]
    pub kind: Option<String>,
    #[serde(default, rename = "lease_state")]
    pub state: Option<String>,
    #[serde(default)]
    pub plan: Option<PlanSummary>,
    #[serde(default)]
    pub degraded: bool,
    #[serde(default)]
    pub backfill: bool,
    #[serde(default)]
    pub end_action: Option<String>,
    /// `None` if nothing has a price.
    #[serde(default)]
    pub cost: Option<Cost>,
    #[serde(default)]
    pub scheduler_hints: BTreeMap<String, Value>,
    #[serde(default)]
    pub reservations: Vec<Reservation>,
    #[serde(default)]
    pub events: Vec<Event>,
}

impl Lease {
    /// Names of the lease's hosts that the user is allowed to know.
    pub fn hosts(&self) -> Vec<String> {
        self.all("hosts")
    }

    pub fn addresses(&self) -> Vec<String> {
        self.all("floating_ips")
    }

    fn all(&self, field: &str) -> Vec<String> {
        let all: BTreeSet<String> =
            self.reservations.iter().flat_map(|reservation| reservation.texts(field)).collect();
        all.into_iter().collect()
    }
}

impl Reservation {
    /// Texts of a list in `fields`.
    pub fn texts(&self, field: &str) -> Vec<String> {
        let list = self.fields.get(field).and_then(Value::as_array);
        list.into_iter().flatten().map(plain).collect()
    }
}

/// Cost of a lease from its start to its end.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Cost {
    pub amount: String,
    #[serde(default)]
    pub currency: String,
}

impl Cost {
    /// The amount with at least two decimals, and the currency.
    pub fn text(&self) -> String {
        let (whole, decimals) = self.amount.split_once('.').unwrap_or((self.amount.as_str(), ""));
        format!("{whole}.{decimals:0<2} {}", self.currency).trim_end().to_owned()
    }
}

/// Summary of the migration plan of a lease.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PlanSummary {
    #[serde(default)]
    pub hosts_to_clear: u64,
    #[serde(default)]
    pub instances_to_move: u64,
    #[serde(default)]
    pub memory_mb: u64,
    #[serde(default)]
    pub disk_gb: u64,
    #[serde(default)]
    pub expected_seconds: u64,
}

/// A reservation of a lease. Fields that depend on its type are in `fields`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Reservation {
    pub id: String,
    pub resource_type: String,
    #[serde(default)]
    pub status: String,
    #[serde(default)]
    pub missing_resources: bool,
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "event_type")]
    pub kind: String,
    #[serde(default)]
    pub time: Option<String>,
    #[serde(default)]
    pub status: Option<String>,
}

/// A host. Its capabilities are among `fields`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Host {
    pub id: String,
    pub hypervisor_hostname: String,
    #[serde(default)]
    pub vcpus: u64,
    #[serde(default)]
    pub memory_mb: u64,
    #[serde(default)]
    pub local_gb: u64,
    #[serde(default)]
    pub reservable: bool,
    #[serde(flatten)]
    pub fields: BTreeMap<String, Value>,
}

/// Reservations of a host.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Allocation {
    pub resource_id: String,
    #[serde(default)]
    pub reservations: Vec<AllocatedReservation>,
}

/// A reservation that uses the host.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AllocatedReservation {
    pub lease_id: String,
    pub start_date: String,
    pub end_date: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FloatingIp {
    pub id: String,
    #[serde(rename = "floating_network_id")]
    pub network: String,
    #[serde(rename = "floating_ip_address")]
    pub address: String,
    #[serde(default)]
    pub reservable: bool,
}

/// Deserializes the value of `key` in a response.
pub(crate) fn read<T: DeserializeOwned>(document: &Value, key: &str) -> Result<T, ClientError> {
    T::deserialize(&document[key]).map_err(|error| ClientError::Nonsense {
        url: "the service".to_owned(),
        reason: format!("`{key}`: {error}"),
    })
}

/// Formats a JSON value for people: texts without quotes, and lists separated by commas.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(place, letter)| match place {
            8 | 13 | 18 | 23 => letter == '-',
            _ => letter.is_ascii_hexdigit(),
        })
}
