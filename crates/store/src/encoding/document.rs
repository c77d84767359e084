//! Plain records as JSON documents. Their identifiers aren't included, because they are columns.

use std::collections::BTreeMap;

use jiff::Timestamp;
use leases::terms::{FlavorSize, InstanceSize};
use serde::{Deserialize, Serialize};

use super::lease::instant;
use super::{Unreadable, from_hex, from_json, hex, json};
use crate::{FlavorRecord, PreemptibleProjectRecord, PropertyRecord};

/// The document of a flavor. A field added to any document here needs a default, because older documents are
/// still read.
#[derive(Serialize, Deserialize)]
struct Flavor {
    name: String,
    vcpus: u32,
    memory_mib: u32,
    disk_gib: u32,
    ephemeral_gib: u32,
    swap_mib: u32,
    public: bool,
    extra_specs: BTreeMap<String, String>,
    created_at_us: i64,
}

pub fn flavor_json(record: &FlavorRecord) -> String {
    let FlavorSize { instance, ephemeral_gib } = record.size;
    json(&Flavor {
        name: record.name.clone(),
        vcpus: instance.vcpus(),
        memory_mib: instance.memory_mib(),
        disk_gib: instance.disk_gib(),
        ephemeral_gib,
        swap_mib: record.swap_mib,
        public: record.public,
        extra_specs: record.extra_specs.clone(),
        created_at_us: record.created_at.as_microsecond(),
    })
}

pub fn flavor_from_json(id: String, text: &str) -> Result<FlavorRecord, Unreadable> {
    let document: Flavor = from_json("flavor", text)?;
    let instance = InstanceSize::new(document.vcpus, document.memory_mib, document.disk_gib)
        .map_err(|error| Unreadable::new("flavor", text, error))?;
    Ok(FlavorRecord {
        id,
        name: document.name,
        size: FlavorSize { instance, ephemeral_gib: document.ephemeral_gib },
        swap_mib: document.swap_mib,
        public: document.public,
        extra_specs: document.extra_specs,
        created_at: instant(document.created_at_us)?,
    })
}

/// The document of a property.
#[derive(Serialize, Deserialize)]
struct Property {
    /// In the format of [`hex`].
    id: String,
    private: bool,
    created_at_us: i64,
    updated_at_us: Option<i64>,
}

pub fn property_json(record: &PropertyRecord) -> String {
    json(&Property {
        id: hex(record.id),
        private: record.private,
        created_at_us: record.created_at.as_microsecond(),
        updated_at_us: record.updated_at.map(Timestamp::as_microsecond),
    })
}

pub fn property_from_json(name: String, text: &str) -> Result<PropertyRecord, Unreadable> {
    let document: Property = from_json("property", text)?;
    Ok(PropertyRecord {
        id: from_hex(&document.id)?,
        name,
        private: document.private,
        created_at: instant(document.created_at_us)?,
        updated_at: document.updated_at_us.map(instant).transpose()?,
    })
}

/// The document of projects whose instances are preemptible.
#[derive(Serialize, Deserialize)]
struct PreemptibleProject {
    created_at_us: i64,
}

pub fn preemptible_project_json(record: &PreemptibleProjectRecord) -> String {
    json(&PreemptibleProject { created_at_us: record.created_at.as_microsecond() })
}

pub fn preemptible_project_from_json(
    pattern: &str,
    text: &str,
) -> Result<PreemptibleProjectRecord, Unreadable> {
    let PreemptibleProject { created_at_us } = from_json("preemptible projects", text)?;
    let Ok(pattern) = pattern.parse();
    Ok(PreemptibleProjectRecord { pattern, created_at: instant(created_at_us)? })
}
