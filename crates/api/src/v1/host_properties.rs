//! Requirements on hosts other than expressions, in requests (CLS-05 to CLS-07). Not in Blazar.

use std::collections::BTreeSet;

use leases::extra_specs::ExtraSpecs;
use leases::failure_domain::FailureDomain;
use leases::properties::{ImageProperties, MAX_ALIKE, PropertyChange};
use serde_json::Value;

use super::error::RequestError;
use super::fields::{Fields, boolean, count, read_name, text};
use super::limits::NAME;
use super::python;

/// Reads the fields that are present. Null removes a requirement.
pub(super) fn read_properties(fields: &mut Fields<'_>) -> Result<Vec<PropertyChange>, RequestError> {
    let mut changes = Vec::new();
    for (name, change) in [
        ("region", PropertyChange::Region as fn(Option<String>) -> PropertyChange),
        ("availability_zone", PropertyChange::AvailabilityZone),
    ] {
        if let Some(value) = fields.get(name) {
            let read = (!value.is_null()).then(|| text(name, value)).transpose()?;
            // An empty name can't be meant, so it is the same as null.
            changes.push(change(read.filter(|read| !read.is_empty())));
        }
    }
    for (name, change) in [
        ("vcpus", PropertyChange::Vcpus as fn(Option<u32>) -> PropertyChange),
        ("memory_mib", PropertyChange::MemoryMib),
        ("disk_gib", PropertyChange::DiskGib),
    ] {
        if let Some(value) = fields.get(name) {
            changes.push(change((!value.is_null()).then(|| count(name, value, 0)).transpose()?));
        }
    }
    if let Some(value) = fields.get("homogeneous") {
        let alike = if value.is_null() { false } else { boolean("homogeneous", value)? };
        changes.push(PropertyChange::Homogeneous(alike));
    }
    if let Some(value) = fields.get("alike") {
        changes.push(PropertyChange::Alike(alike(value)?));
    }
    if let Some(value) = fields.get("survives") {
        changes.push(PropertyChange::Survives(failure_domain(value)?));
    }
    if let Some(value) = fields.get("extra_specs") {
        changes.push(PropertyChange::ExtraSpecs(ExtraSpecs::new(texts("extra_specs", value)?)?));
    }
    if let Some(value) = fields.get("image_properties") {
        changes.push(PropertyChange::Image(ImageProperties::new(texts("image_properties", value)?)?));
    }
    Ok(changes)
}

/// Names of properties that must have equal values. Null is an empty list.
fn alike(value: &Value) -> Result<BTreeSet<String>, RequestError> {
    let wrong = || RequestError::malformed("alike", "a list of up to 8 names of properties");
    let names = match value {
        Value::Null => return Ok(BTreeSet::new()),
        Value::Array(names) if names.len() <= MAX_ALIKE => names,
        _ => return Err(wrong()),
    };
    names.iter().map(|name| read_name("alike", name.as_str().ok_or_else(wrong)?, NAME)).collect()
}

/// The part of the fleet that may fail. `None` for null.
pub(super) fn failure_domain(value: &Value) -> Result<Option<FailureDomain>, RequestError> {
    let known = "host, or a property that says where hosts are";
    let name = (!value.is_null()).then(|| text("survives", value)).transpose()?;
    name.map(|name| name.parse().map_err(|_| RequestError::malformed("survives", known))).transpose()
}

/// An object of texts. Numbers, true and false become the text that Python has for them.
pub(super) fn texts(name: &'static str, value: &Value) -> Result<Vec<(String, String)>, RequestError> {
    let object = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(object) => object,
        _ => return Err(RequestError::malformed(name, "an object of texts")),
    };
    let scalar = |(key, value): (&String, &Value)| match value {
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(RequestError::malformed(format!("{name}.{key}"), "text"))
        }
        scalar => Ok((key.clone(), python::shown(scalar))),
    };
    object.iter().map(scalar).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(entry: &Value) -> Result<Vec<PropertyChange>, RequestError> {
        let mut fields = Fields::entry("reservations", 0, entry)?;
        let changes = read_properties(&mut fields)?;
        fields.finish()?;
        Ok(changes)
    }

    #[test]
    fn cls_05_every_property_can_be_given_and_taken_back() {
        let all = json!({
            "region": "north", "availability_zone": "az1", "vcpus": 16, "memory_mib": "65536", "disk_gib": 0,
            "homogeneous": true, "alike": ["rack", "cpu_mhz", "rack"], "survives": "rack",
            "extra_specs": {"num": 8, "ssd": true}, "image_properties": {"img_hv_type": "qemu"},
        });
        let specs = [("num", "8"), ("ssd", "True")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let image = [("img_hv_type".to_owned(), "qemu".to_owned())];
        let expected = [
            PropertyChange::Region(Some("north".into())),
            PropertyChange::AvailabilityZone(Some("az1".into())),
            PropertyChange::Vcpus(Some(16)),
            PropertyChange::MemoryMib(Some(65_536)),
            PropertyChange::DiskGib(Some(0)),
            PropertyChange::Homogeneous(true),
            PropertyChange::Alike(["cpu_mhz".to_owned(), "rack".to_owned()].into()),
            PropertyChange::Survives(Some(FailureDomain::Place("rack".into()))),
            PropertyChange::ExtraSpecs(ExtraSpecs::new(specs).expect("well formed")),
            PropertyChange::Image(ImageProperties::new(image).expect("well formed")),
        ];
        assert_eq!(read(&all), Ok(expected.to_vec()));
        assert_eq!(read(&json!({})), Ok(Vec::new()));
        assert_eq!(read(&json!({"vcpus": null})), Ok(vec![PropertyChange::Vcpus(None)]));
        assert_eq!(read(&json!({"homogeneous": null})), Ok(vec![PropertyChange::Homogeneous(false)]));
        assert_eq!(read(&json!({"alike": null})), Ok(vec![PropertyChange::Alike(BTreeSet::new())]));
        assert_eq!(read(&json!({"survives": null})), Ok(vec![PropertyChange::Survives(None)]));
        let none = PropertyChange::ExtraSpecs(ExtraSpecs::default());
        assert_eq!(read(&json!({"extra_specs": null})), Ok(vec![none]));
    }

    #[test]
    fn cls_05_what_a_property_cannot_be_is_refused_by_its_name() {
        for (entry, message) in [
            (json!({"vcpus": "many"}), "Malformed parameter vcpus"),
            (json!({"memory_mib": -1}), "memory_mib must be >= 0"),
            (json!({"region": ["a"]}), "Malformed parameter region"),
            (json!({"homogeneous": "maybe"}), "Malformed parameter homogeneous"),
            (json!({"alike": "cpu_mhz"}), "Malformed parameter alike"),
            (json!({"alike": [1]}), "Malformed parameter alike"),
            (json!({"alike": [" "]}), "Malformed parameter alike"),
            (json!({"alike": vec!["rack"; 9]}), "Malformed parameter alike"),
            (json!({"survives": ""}), "Malformed parameter survives"),
            (json!({"survives": ["rack"]}), "Malformed parameter survives"),
            (json!({"extra_specs": "a=b"}), "Malformed parameter extra_specs"),
            (json!({"extra_specs": {"a": {}}}), "Malformed parameter extra_specs.a"),
            (
                json!({"extra_specs": {"ram": ">= much"}}),
                "Malformed extra_specs: ram is compared as a number, and \"much\" is none: compare text with s==, \
                 s!=, s<, s<=, s> or s>=",
            ),
        ] {
            let error = read(&entry).expect_err("wrong");
            assert_eq!((error.status(), error.to_string().as_str()), (400, message));
        }
    }
}
