//! Lease pools (LP).

use std::collections::BTreeMap;

use leases::extra_specs::ExtraSpecs;
use leases::ids::HostId;
use leases::lease::Reservation;
use leases::lease_pool::{LEASE_KEY, OWNER_KEY, Ratio};
use leases::properties::{CPU_RATIO, RAM_RATIO};
use leases::terms::HostsTerms;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use store::LeaseRecord;
use utoipa::ToSchema;

use super::error::RequestError;
use super::fields::{Fields, count, read_name, strict_text, text};
use super::host_properties::texts;
use super::id::host_id;
use super::limits::{LEASE_NAME, NAME};

/// Lease pool: the hosts of a reservation while its lease runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeasePool {
    /// Identifier of the pool, which is the identifier of its reservation.
    pub id: String,
    /// Name of the pool. Default: its identifier.
    pub name: String,
    /// Identifier of the lease.
    pub lease_id: String,
    /// Project that owns the lease.
    pub project_id: String,
    /// Number of hosts.
    pub hosts: usize,
    /// CPU overcommit ratio of the hosts. Null: the ratio of each host, or no overcommitment if it has no
    /// ratio.
    pub cpu_allocation_ratio: Option<f64>,
    /// Memory overcommit ratio of the hosts. Null: the ratio of each host, or no overcommitment if it has no
    /// ratio.
    pub ram_allocation_ratio: Option<f64>,
    /// Metadata for schedulers: `filter_lease_id`, `blazar:owner`, and ratios.
    pub metadata: BTreeMap<String, String>,
}

impl LeasePool {
    /// The pool that a reservation makes.
    pub fn of(record: &LeaseRecord, reservation: &Reservation, terms: &HostsTerms) -> Self {
        let (lease, pool) = (&record.lease, &terms.pool);
        let mut metadata = BTreeMap::from([
            (LEASE_KEY.to_owned(), lease.id.to_string()),
            (OWNER_KEY.to_owned(), lease.owner.project.0.clone()),
        ]);
        for (key, ratio) in [(CPU_RATIO, pool.ratios.cpu), (RAM_RATIO, pool.ratios.ram)] {
            metadata.extend(ratio.map(|ratio| (key.to_owned(), ratio.get().to_string())));
        }
        Self {
            id: reservation.id.to_string(),
            name: pool.name.clone().unwrap_or_else(|| reservation.id.to_string()),
            lease_id: lease.id.to_string(),
            project_id: lease.owner.project.0.clone(),
            hosts: reservation.allocation.hosts().len(),
            cpu_allocation_ratio: pool.ratios.cpu.map(Ratio::get),
            ram_allocation_ratio: pool.ratios.ram.map(Ratio::get),
            metadata,
        }
    }
}

/// A host of a lease pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeasePoolHost {
    /// Identifier of the host.
    pub id: String,
    /// Name of the host.
    pub name: String,
    /// Instances on the host.
    pub instances: Vec<LeasePoolInstance>,
}

/// An instance in a lease pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LeasePoolInstance {
    /// Identifier of the instance.
    pub id: String,
    /// Name of the instance; null if it wasn't started through this service.
    pub name: Option<String>,
}

/// Changes of a lease pool. Absent fields stay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeasePoolRequest {
    /// Its name. The inner `None` stands for null.
    pub name: Option<Option<String>>,
    /// Allocation ratio of CPUs. The inner `None` stands for null.
    pub cpu_ratio: Option<Option<Ratio>>,
    /// Allocation ratio of memory. The inner `None` stands for null.
    pub ram_ratio: Option<Option<Ratio>>,
}

impl LeasePoolRequest {
    /// Reads the body of `PUT /leasepools/{id}`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        let name = fields.get("name").map(|value| some(value, pool_name)).transpose()?;
        let cpu = fields.get(CPU_RATIO).map(|value| some(value, |value| ratio(CPU_RATIO, value)));
        let ram = fields.get(RAM_RATIO).map(|value| some(value, |value| ratio(RAM_RATIO, value)));
        fields.finish()?;
        let request = Self { name, cpu_ratio: cpu.transpose()?, ram_ratio: ram.transpose()? };
        if request == Self::default() { Err(RequestError::NothingToUpdate) } else { Ok(request) }
    }
}

fn some<T>(
    value: &Value,
    read: impl Fn(&Value) -> Result<T, RequestError>,
) -> Result<Option<T>, RequestError> {
    if value.is_null() { Ok(None) } else { read(value).map(Some) }
}

/// Hosts to add to a lease pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreHosts {
    /// Number of hosts.
    pub count: u32,
    /// Requirements on the new hosts, in addition to those on the pool's other hosts.
    pub extra_specs: ExtraSpecs,
}

impl MoreHosts {
    /// Reads the body of `POST /leasepools/{id}/hosts`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        let count = fields.given("host_count").map_or(Ok(1), |value| count("host_count", value, 1))?;
        let specs = fields.given("extra_specs").map(|value| texts("extra_specs", value)).transpose()?;
        fields.finish()?;
        Ok(Self { count, extra_specs: ExtraSpecs::new(specs.unwrap_or_default())? })
    }
}

/// Reads the body of `POST /leasepools/{id}/swap`: the host to exchange.
pub fn swapped_host(body: &Value) -> Result<HostId, RequestError> {
    let mut fields = Fields::body(body)?;
    let id = text("host_id", fields.required("host_id")?)?;
    fields.finish()?;
    host_id(&id).ok_or_else(|| RequestError::malformed("host_id", "the identifier of a host"))
}

/// Reads the body of `POST /leasepools`: a lease that starts at once, with hosts that make one pool. Returns
/// it as the body of `POST /leases`, with the project that it is for, if the request names one: as
/// `project_id`, or as `tenant_id` like in the blueprint.
pub fn lease_of_pool(body: &Value) -> Result<(Value, Option<String>), RequestError> {
    let mut fields = Fields::body(body)?;
    fields.require(&["host_count"])?;
    let count = count("host_count", fields.required("host_count")?, 1)?;
    let name = fields.given("name").map(pool_name).transpose()?;
    let mut reservation = json!({"resource_type": "physical:host", "min": count, "max": count,
        "hypervisor_properties": "", "resource_properties": "", "pool_name": name});
    if let Some(specs) = fields.given("extra_specs") {
        reservation["extra_specs"] = specs.clone();
    }
    let mut project = |field| fields.given(field).map(|value| project_id(field, value)).transpose();
    let (project, tenant) = (project("project_id")?, project("tenant_id")?);
    if project.as_ref().zip(tenant.as_ref()).is_some_and(|(project, tenant)| project != tenant) {
        return Err(RequestError::malformed("tenant_id", "the same as project_id, or absent"));
    }
    let mut lease = Map::new();
    let lease_name: String = name.as_deref().unwrap_or("lease pool").chars().take(LEASE_NAME).collect();
    lease.insert("name".to_owned(), json!(lease_name));
    lease.insert("lease_type".to_owned(), json!("IMMEDIATE"));
    for field in ["duration", "end_date", "end_action"] {
        lease.extend(fields.given(field).map(|value| (field.to_owned(), value.clone())));
    }
    fields.finish()?;
    lease.insert("reservations".to_owned(), json!([reservation]));
    Ok((Value::Object(lease), project.or(tenant)))
}

fn project_id(field: &'static str, value: &Value) -> Result<String, RequestError> {
    read_name(field, &strict_text(field, value)?, NAME)
}

pub(super) fn pool_name(value: &Value) -> Result<String, RequestError> {
    read_name("name", &strict_text("name", value)?, NAME)
}

fn ratio(name: &'static str, value: &Value) -> Result<Ratio, RequestError> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let wrong = || RequestError::malformed(name, "a number from 0.001 to 1000");
    number.and_then(Ratio::new).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lp_3_8_9_a_change_names_what_is_to_be_different() {
        let read = |body: Value| LeasePoolRequest::read(&body);
        let body = json!({"name": "mine", "cpu_allocation_ratio": "1.5", "ram_allocation_ratio": null});
        let request = read(body).expect("a change");
        assert_eq!(request.name, Some(Some("mine".to_owned())));
        assert_eq!((request.cpu_ratio, request.ram_ratio), (Some(Ratio::new(1.5)), Some(None)));
        for (body, wrong) in [
            (json!({"cpu_allocation_ratio": 0}), "Malformed parameter cpu_allocation_ratio"),
            (json!({"name": " "}), "Malformed parameter name"),
            (json!({"ratio": 1}), "Unknown parameter ratio"),
        ] {
            assert_eq!(read(body).expect_err("wrong").to_string(), wrong);
        }
        assert!(matches!(read(json!({})), Err(RequestError::NothingToUpdate)));
    }

    #[test]
    fn lp_1_a_pool_is_asked_for_like_a_lease_that_starts_at_once() {
        let body = json!({"name": "mine", "host_count": 2, "duration": "1d", "extra_specs": {"ssd": "yes"}});
        let (lease, project) = lease_of_pool(&body).expect("complete");
        assert_eq!(project, None);
        assert_eq!((&lease["lease_type"], &lease["duration"]), (&json!("IMMEDIATE"), &json!("1d")));
        let reservation = &lease["reservations"][0];
        assert_eq!((&reservation["min"], &reservation["pool_name"]), (&json!(2), &json!("mine")));
        assert_eq!(reservation["extra_specs"], json!({"ssd": "yes"}));
        for body in [
            json!({"tenant_id": "q"}),
            json!({"project_id": "q"}),
            json!({"project_id": "q", "tenant_id": "q"}),
        ] {
            let mut body = body;
            body["host_count"] = json!(1);
            assert_eq!(lease_of_pool(&body).expect("complete").1.as_deref(), Some("q"));
        }
        for (body, wrong) in [
            (json!({"duration": "1d"}), "Missing parameter host_count"),
            (json!({"host_count": 1, "hosts": 1}), "Unknown parameter hosts"),
            (json!({"host_count": 1, "tenant_id": 5}), "Malformed parameter tenant_id"),
            (json!({"host_count": 1, "project_id": " "}), "Malformed parameter project_id"),
            (json!({"host_count": 1, "project_id": "p", "tenant_id": "q"}), "Malformed parameter tenant_id"),
        ] {
            assert_eq!(lease_of_pool(&body).expect_err("wrong").to_string(), wrong);
        }
    }
}
