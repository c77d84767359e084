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

/// A host. Extra capabilities stand beside these fields, with text as their values.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its identifier: decimal digits, because clients take anything else for a name.
    pub id: String,
    /// Its name.
    pub hypervisor_hostname: String,
    /// The name of its compute service.
    pub service_name: String,
    /// The hypervisor: `QEMU`.
    pub hypervisor_type: String,
    /// Its version as a number.
    pub hypervisor_version: u64,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, MiB.
    pub memory_mb: u32,
    /// Disk, GiB.
    pub local_gb: u32,
    /// The CPU's description: JSON in a string.
    pub cpu_info: String,
    /// Always null.
    pub status: Option<String>,
    /// Empty if unknown.
    pub availability_zone: String,
    /// Always null: there are no trusts.
    pub trust_id: Option<String>,
    /// Whether it may be reserved: the operator lets it, and it works.
    pub reservable: bool,
    /// When it was entered: UTC to the second.
    pub created_at: String,
    /// When it was last changed.
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
    Name(String),
    Id(HostId),
}

/// A host to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRequest {
    pub which: HostName,
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

/// What is reserved of a host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Allocation {
    /// The host's identifier.
    pub resource_id: String,
    /// The reservations, by start.
    pub reservations: Vec<AllocatedReservation>,
}

/// A reservation that has something of a host.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AllocatedReservation {
    /// The reservation's identifier.
    pub id: String,
    /// The lease that it belongs to.
    pub lease_id: String,
    /// From when: UTC with microseconds.
    pub start_date: String,
    /// Until when.
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

/// A property of hosts, that is, the name of a capability; the rest only if details are asked for.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Property {
    /// Its name.
    pub property: String,
    /// Whether it is left out of lists unless all are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<bool>,
    /// The values that hosts have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}

/// A property after a change of its visibility. Its dates have microseconds, as those of leases and unlike those of other
/// records: Blazar writes them so here, and gophercloud reads nothing else.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ResourceProperty {
    /// Its identifier, a UUID.
    pub id: String,
    /// `physical:host`.
    pub resource_type: String,
    /// Its name.
    pub property_name: String,
    /// Whether it is left out of lists unless all are asked for.
    pub private: bool,
    /// When it was entered.
    pub created_at: String,
    /// When it was last changed.
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
