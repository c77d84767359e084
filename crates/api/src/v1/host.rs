//! Hosts, their properties and their reservations (API-hosts).

use std::collections::BTreeMap;

use leases::free_pool::{FreePool, POOL_PROPERTY};
use leases::host::Health;
use leases::ids::{HostId, ReservationId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{HostRecord, LeaseRecord, PropertyRecord};
use utoipa::ToSchema;

use super::date::{created_at, date};
use super::error::RequestError;
use super::fields::{Fields, boolean};
use super::id::host_id;
use super::limits::CAPABILITY_NAME;
use super::python;

/// A host. Extra capabilities are additional fields with strings as values.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Identifier of the host: decimal digits, because clients interpret everything else as a name.
    pub id: String,
    /// Name of the host.
    pub hypervisor_hostname: String,
    /// Name of the host's compute service.
    pub service_name: String,
    /// Type of the hypervisor: `QEMU`.
    pub hypervisor_type: String,
    /// Version of the hypervisor, as a number.
    pub hypervisor_version: u64,
    /// Number of virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mb: u32,
    /// Disk in GiB.
    pub local_gb: u32,
    /// Description of the CPU: JSON in a string.
    pub cpu_info: String,
    /// Always null.
    pub status: Option<String>,
    /// Availability zone; empty if unknown.
    pub availability_zone: String,
    /// Always null, since the service doesn't use trusts.
    pub trust_id: Option<String>,
    /// Whether new leases can use the host: the operator allows it, and the host works.
    pub reservable: bool,
    /// Time at which the host was added: UTC to the second.
    pub created_at: String,
    /// Time of the last change: UTC to the second.
    pub updated_at: Option<String>,
    /// Extra capabilities.
    #[serde(flatten)]
    pub capabilities: BTreeMap<String, String>,
}

/// Names of the fields above, which capabilities can't have, and of the fields that identify a host in
/// requests.
const FIELDS: [&str; 16] = [
    "id",
    "name",
    "hypervisor_hostname",
    "service_name",
    "hypervisor_type",
    "hypervisor_version",
    "vcpus",
    "memory_mb",
    "local_gb",
    "cpu_info",
    "status",
    "availability_zone",
    "trust_id",
    "reservable",
    "created_at",
    "updated_at",
];

/// The field that closes a host to new leases, or opens it.
const RESERVABLE: &str = "reservable";

impl Host {
    /// The host with the properties of its pool. The default pool isn't named.
    pub fn of(record: &HostRecord, pool: &FreePool) -> Self {
        let mut described = HostRecord { host: pool.describe(record.host.clone()), ..record.clone() };
        if pool.id == FreePool::DEFAULT {
            described.host.capabilities.remove(POOL_PROPERTY);
        }
        Self::from(&described)
    }
}

impl From<&HostRecord> for Host {
    fn from(record: &HostRecord) -> Self {
        let host = &record.host;
        let capabilities = host.capabilities.iter();
        Self {
            id: host.id.to_string(),
            hypervisor_hostname: host.name.clone(),
            service_name: host.service_name.clone(),
            hypervisor_type: host.hypervisor_type.clone(),
            hypervisor_version: host.hypervisor_version,
            vcpus: host.vcpus,
            memory_mb: host.memory_mib,
            local_gb: host.disk_gib,
            cpu_info: host.cpu_info.clone(),
            status: None,
            availability_zone: host.availability_zone.clone(),
            trust_id: None,
            reservable: host.reservable && host.health == Health::Up,
            created_at: created_at(record.created_at),
            updated_at: record.updated_at.map(created_at),
            capabilities: capabilities
                .filter(|(name, _)| !FIELDS.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        }
    }
}

/// Identifies the machine of a new host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// That of this name.
    Name(String),
    /// That of this identifier.
    Id(HostId),
}

/// A host to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Which machine.
    pub which: HostName,
    /// Its extra capabilities.
    pub capabilities: Vec<(String, String)>,
}

impl HostRequest {
    /// Reads the body of `POST /os-hosts`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let object = object(body)?;
        let text = |name| match object.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            _ => None,
        };
        let which = match (text("name"), text("id")) {
            (Some(name), _) => HostName::Name(name),
            (None, Some(id)) => host_id(&id).map_or(HostName::Name(id), HostName::Id),
            (None, None) => return Err(RequestError::Host(python::notation(body))),
        };
        let extras = object.iter().filter(|(name, _)| !matches!(name.as_str(), "name" | "id"));
        let capabilities = extras
            .map(|(name, value)| {
                let value = capability(name, value)?;
                value.map(|value| (name.clone(), value)).ok_or_else(|| no_text(name))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { which, capabilities })
    }
}

/// Changes of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostChanges {
    /// Capabilities to set. `None` removes a capability.
    pub capabilities: Vec<(String, Option<String>)>,
    /// Whether new leases may use it. `None` if that doesn't change.
    pub reservable: Option<bool>,
}

impl HostChanges {
    /// Reads the body of `PUT /os-hosts/{id}`: `reservable`, and capabilities. Null removes a capability.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let object = object(body)?;
        if object.is_empty() {
            return Err(RequestError::NothingToUpdate);
        }
        let reservable = object.get(RESERVABLE).map(|value| boolean(RESERVABLE, value)).transpose()?;
        let others = object.iter().filter(|(name, _)| *name != RESERVABLE);
        let capabilities = others.map(|(name, value)| Ok((name.clone(), capability(name, value)?)));
        Ok(Self { capabilities: capabilities.collect::<Result<_, RequestError>>()?, reservable })
    }
}

fn object(body: &Value) -> Result<&Map<String, Value>, RequestError> {
    body.as_object().ok_or_else(|| RequestError::malformed("body", "a JSON object"))
}

fn no_text(name: &str) -> RequestError {
    RequestError::malformed(name, "text")
}

/// The value of a capability as text. `None` for null.
pub(super) fn capability(name: &str, value: &Value) -> Result<Option<String>, RequestError> {
    if name.chars().count() > CAPABILITY_NAME {
        return Err(RequestError::CapabilityTooLong);
    }
    if FIELDS.contains(&name) || name == POOL_PROPERTY {
        return Err(RequestError::CapabilityIsField(name.to_owned()));
    }
    match value {
        _ if name.is_empty() => Err(RequestError::malformed("extra capability", "named")),
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => Err(no_text(name)),
        scalar => Ok(Some(python::shown(scalar))),
    }
}

/// Reservations of a host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Allocation {
    /// Identifier of the host.
    pub resource_id: String,
    /// Reservations, by start.
    pub reservations: Vec<AllocatedReservation>,
}

/// A reservation that has a host, in whole or in part.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AllocatedReservation {
    /// Identifier of the reservation.
    pub id: String,
    /// Identifier of the lease.
    pub lease_id: String,
    /// Start: UTC with microseconds.
    pub start_date: String,
    /// End: UTC with microseconds.
    pub end_date: String,
}

impl Allocation {
    /// Reservations of a host.
    pub fn new<'a>(
        host: HostId,
        reservations: impl IntoIterator<Item = (&'a LeaseRecord, ReservationId)>,
    ) -> Self {
        let reservations = reservations.into_iter().map(|(record, id)| AllocatedReservation {
            id: id.to_string(),
            lease_id: record.lease.id.to_string(),
            start_date: date(record.lease.window.start()),
            end_date: date(record.lease.window.end()),
        });
        Self { resource_id: host.to_string(), reservations: reservations.collect() }
    }
}

/// A property of hosts: the name of a capability. The other fields are present if the request asks for
/// details.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Property {
    /// Name of the property.
    pub property: String,
    /// Whether the property is hidden from lists, unless an administrator requests all properties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<bool>,
    /// Values of the property on hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// A property whose visibility was changed. Dates have microseconds, like dates of leases and unlike dates of
/// other records: Blazar uses this format here, and gophercloud parses no other.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourceProperty {
    /// Identifier of the property, a UUID.
    pub id: String,
    /// Always `physical:host`.
    pub resource_type: String,
    /// Name of the property.
    pub property_name: String,
    /// Whether the property is hidden from lists, unless an administrator requests all properties.
    pub private: bool,
    /// Time at which the property was added: UTC with microseconds.
    pub created_at: String,
    /// Time of the last change: UTC with microseconds.
    pub updated_at: Option<String>,
}

impl From<&PropertyRecord> for ResourceProperty {
    fn from(record: &PropertyRecord) -> Self {
        Self {
            id: leases::ids::LeaseId(record.id).to_string(),
            resource_type: "physical:host".to_owned(),
            property_name: record.name.clone(),
            private: record.private,
            created_at: date(record.created_at),
            updated_at: record.updated_at.map(date),
        }
    }
}

/// Reads the body of `PATCH /os-hosts/properties/{name}`. Returns whether the property is private.
pub fn read_property_update(body: &Value) -> Result<bool, RequestError> {
    let mut fields = Fields::body(body)?;
    let private = boolean("private", fields.required("private")?)?;
    fields.finish()?;
    Ok(private)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// gophercloud takes every field that it does not know for an extra capability of the host.
    #[test]
    fn a_host_has_the_fields_that_blazar_has_and_no_more() {
        let record = HostRecord {
            host: leases::host::Host::new(HostId(7), "node7", 16, 65_536, 1000),
            version: store::Version::FIRST,
            created_at: jiff::Timestamp::UNIX_EPOCH,
            updated_at: None,
        };
        let shown = serde_json::to_value(Host::from(&record)).expect("JSON");
        let shown: Vec<&str> = shown.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut blazars: Vec<&str> = FIELDS.into_iter().filter(|name| *name != "name").collect();
        blazars.sort_unstable();
        assert_eq!(shown, blazars);
    }

    #[test]
    fn a_host_is_named_by_name_or_number() {
        let read = |body| HostRequest::read(&body).expect("well formed").which;
        assert_eq!(read(json!({"name": "node1"})), HostName::Name("node1".into()));
        assert_eq!(read(json!({"id": "7"})), HostName::Id(HostId(7)));
        assert_eq!(read(json!({"id": 7})), HostName::Id(HostId(7)));
        let error = HostRequest::read(&json!({})).expect_err("no name");
        assert_eq!((error.status(), error.to_string().as_str()), (403, "Invalid values for host {}"));
    }

    #[test]
    fn capabilities_are_text_whatever_was_sent() {
        let body = json!({"name": "n", "rack": "r1", "ssds": 4, "gpu": true});
        let request = HostRequest::read(&body).expect("well formed");
        let text: Vec<_> = request.capabilities.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(text, [("gpu", "True"), ("rack", "r1"), ("ssds", "4")]);
    }

    #[test]
    fn capabilities_that_cannot_be_are_refused() {
        let long = HostRequest::read(&json!({"name": "n", "a".repeat(65): "x"})).expect_err("too long");
        assert_eq!(long.to_string(), "Extra capability key too long");
        for wrong in [json!({"vcpus": "9"}), json!({"": "x"}), json!({"a": [1]}), json!({})] {
            assert_eq!(HostChanges::read(&wrong).expect_err("wrong").status(), 400);
        }
        let taken = HostChanges::read(&json!({"gpu": null})).expect("well formed");
        assert_eq!(taken, HostChanges { capabilities: vec![("gpu".to_owned(), None)], reservable: None });
    }

    #[test]
    fn a_host_is_closed_and_opened_by_a_truth_value_or_the_word_for_it() {
        for (value, reservable) in
            [(json!(false), false), (json!("False"), false), (json!(true), true), (json!("true"), true)]
        {
            let changes =
                HostChanges::read(&json!({"reservable": value, "gpu": "yes"})).expect("well formed");
            assert_eq!(changes.reservable, Some(reservable));
            assert_eq!(changes.capabilities, [("gpu".to_owned(), Some("yes".to_owned()))]);
        }
        for wrong in [json!(null), json!(0), json!("no"), json!([])] {
            let error = HostChanges::read(&json!({"reservable": wrong})).expect_err("wrong");
            assert_eq!(error.to_string(), "Malformed parameter reservable");
        }
    }
}
