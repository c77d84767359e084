//! Flavors, which the service stores itself, with Nova's field names (API-lease, API-flavors). Not in Blazar.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::terms::{Flavor as FlavorOfTerms, FlavorSize, InstanceSize};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::FlavorRecord;
use utoipa::ToSchema;

use super::error::RequestError;
use super::fields::{Fields, boolean, count, read_name, strict_text, text};
use super::limits::NAME;

/// A flavor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Flavor {
    /// Identifier of the flavor.
    pub id: String,
    /// Name of the flavor.
    pub name: String,
    /// Number of virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub ram: u32,
    /// Root disk in GiB.
    pub disk: u32,
    /// Ephemeral disk in GiB.
    #[serde(rename = "OS-FLV-EXT-DATA:ephemeral")]
    pub ephemeral: u32,
    /// Swap in MiB.
    pub swap: u32,
    /// Always 1.
    pub rxtx_factor: f32,
    /// Whether every project can use the flavor.
    #[serde(rename = "os-flavor-access:is_public")]
    pub is_public: bool,
    /// Requirements on hosts, as extra specs.
    pub extra_specs: BTreeMap<String, String>,
}

impl From<&FlavorRecord> for Flavor {
    fn from(record: &FlavorRecord) -> Self {
        let size = &record.size.instance;
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            vcpus: size.vcpus(),
            ram: size.memory_mib(),
            disk: size.disk_gib(),
            ephemeral: record.size.ephemeral_gib,
            swap: record.swap_mib,
            rxtx_factor: 1.0,
            is_public: record.public,
            extra_specs: record.extra_specs.clone(),
        }
    }
}

/// The flavor as its reservations show it: JSON in a string.
pub(crate) fn as_json(record: &FlavorRecord) -> String {
    // This can't fail: the struct has numbers, text, and maps with text as keys.
    serde_json::to_string(&Flavor::from(record)).unwrap_or_default()
}

/// A flavor in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorRequest {
    /// Its identifier, if the request has one.
    pub id: Option<String>,
    name: String,
    size: FlavorSize,
    swap_mib: u32,
    public: bool,
    extra_specs: BTreeMap<String, String>,
}

impl FlavorRequest {
    /// Reads the body of `POST /flavors` or `PUT /flavors/{id}`.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let mut fields = Fields::body(body)?;
        fields.require(&["name", "vcpus", "ram", "disk"])?;
        let id = fields.given("id").map(|value| strict_text("id", value)).transpose()?;
        let id = id.map(identifier).transpose()?;
        let name = read_name("name", &strict_text("name", fields.required("name")?)?, NAME)?;
        let vcpus = count("vcpus", fields.required("vcpus")?, 1)?;
        let ram = count("ram", fields.required("ram")?, 1)?;
        let disk = count("disk", fields.required("disk")?, 0)?;
        let mut optional = |name| fields.given(name).map_or(Ok(0), |value| count(name, value, 0));
        let (ephemeral_gib, swap_mib) = (optional("OS-FLV-EXT-DATA:ephemeral")?, optional("swap")?);
        let public = fields.given("os-flavor-access:is_public");
        let public = public.map_or(Ok(true), |value| boolean("os-flavor-access:is_public", value))?;
        let extra_specs = extra_specs(fields.given("extra_specs"))?;
        // Answers have this field. Its value is always 1, so it isn't stored.
        fields.get("rxtx_factor");
        fields.finish()?;
        let size = FlavorSize { instance: InstanceSize::new(vcpus, ram, disk)?, ephemeral_gib };
        let request = Self { id, name, size, swap_mib, public, extra_specs };
        // Reject specs that placement wouldn't understand now, rather than when the flavor is reserved.
        FlavorOfTerms::new("", size, &request.extra_specs)?;
        Ok(request)
    }

    /// The flavor's record with that identifier, which must be valid in an address.
    pub fn record(self, id: String, now: Timestamp) -> Result<FlavorRecord, RequestError> {
        Ok(FlavorRecord {
            id: identifier(id)?,
            name: self.name,
            size: self.size,
            swap_mib: self.swap_mib,
            public: self.public,
            extra_specs: self.extra_specs,
            created_at: now,
        })
    }
}

/// Nova's rule for identifiers. They are part of addresses, where the ending `.json` would be cut off.
fn identifier(id: String) -> Result<String, RequestError> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '-' | '_');
    let dots = id.chars().all(|c| c == '.');
    let plain = !dots && id.len() <= NAME && id.chars().all(letter);
    if plain && id.trim() == id && id.strip_suffix(".json").is_none() {
        return Ok(id);
    }
    let expected = "1 to 255 letters, digits, '.', '-', '_' or blanks inside, and not end in '.json'";
    Err(RequestError::malformed("id", expected))
}

fn extra_specs(value: Option<&Value>) -> Result<BTreeMap<String, String>, RequestError> {
    let wrong = || RequestError::malformed("extra_specs", "an object with text as values");
    let Some(value) = value else { return Ok(BTreeMap::new()) };
    let object = value.as_object().ok_or_else(wrong)?;
    let specs = object.iter();
    specs.map(|(key, value)| Ok((key.clone(), text("extra_specs", value).map_err(|_| wrong())?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flavor_has_an_identifier_that_an_address_can_have() {
        let read =
            |id: &str| FlavorRequest::read(&json!({"id": id, "name": "f", "vcpus": 1, "ram": 1, "disk": 1}));
        for good in ["f1", "m1.small", "a b", "0_-", &"x".repeat(NAME)] {
            assert_eq!(read(good).expect("a flavor").id.as_deref(), Some(good));
        }
        for bad in ["", " f", "f ", ".", "..", "a/b", "f.json", "f\n", "f\u{0}", "é", &"x".repeat(NAME + 1)]
        {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
