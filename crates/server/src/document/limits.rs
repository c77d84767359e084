//! Size limits in the schemas of request bodies. They are the limits that parsing applies, and they go by
//! field name, so a field added later gets them as well.

use std::collections::BTreeSet;

use api::v1::Limits;
use api::v1::limits::LARGEST;
use leases::properties::MAX_ALIKE;
use serde_json::{Map, Value, json};

/// Characters that text must not contain, as the inside of a character class.
const CONTROLS: &str = r"\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069";

/// Characters that an expression must not contain. Line breaks are allowed between its parts.
const CONTROLS_OF_EXPRESSIONS: &str = r"\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069";

/// Bodies that must have at least one field, regardless of which one.
const CHANGES: [&str; 3] = ["FreePoolChange", "HostChange", "LeasePoolChange"];

/// Fields that contain expressions on host properties.
const EXPRESSIONS: [&str; 3] = ["hypervisor_properties", "resource_properties", "query"];

/// Adds the limits to every schema used by a request body.
pub(super) fn describe(document: &mut Value, limits: &Limits) {
    let mut schemas = BTreeSet::new();
    for item in document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            // Logins have other limits.
            if operation["tags"][0] == "identity" || operation["requestBody"].is_null() {
                continue;
            }
            let schema = &mut operation["requestBody"]["content"]["application/json"]["schema"];
            visit(schema, "", limits, &mut schemas);
        }
    }
    let mut done = BTreeSet::new();
    while let Some(name) = schemas.pop_first() {
        if done.insert(name.clone()) {
            let schema = &mut document["components"]["schemas"][&name];
            if CHANGES.contains(&name.as_str()) {
                schema["minProperties"] = json!(1);
            }
            visit(schema, "", limits, &mut schemas);
        }
    }
    optional_bodies(document);
}

/// A body without required fields can be omitted.
fn optional_bodies(document: &mut Value) {
    let schemas = document["components"]["schemas"].clone();
    for item in document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let name = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next());
            let Some(schema) = name.map(|name| &schemas[name]) else { continue };
            let optional = schema["required"].as_array().is_none_or(Vec::is_empty);
            if optional && schema["properties"].is_object() && schema["minProperties"].is_null() {
                operation["requestBody"]["required"] = json!(false);
            }
        }
    }
}

/// Adds limits to the schema of a field, or of a value inside that field. Adds the names of referenced
/// schemas to `others`.
fn visit(schema: &mut Value, field: &str, limits: &Limits, others: &mut BTreeSet<String>) {
    let Some(schema) = schema.as_object_mut() else { return };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        others.extend(name.rsplit('/').next().map(str::to_owned));
        return;
    }
    for alternatives in ["oneOf", "anyOf", "allOf"] {
        for one in schema.get_mut(alternatives).and_then(Value::as_array_mut).into_iter().flatten() {
            visit(one, field, limits, others);
        }
    }
    if is(schema, "string") && !schema.contains_key("enum") {
        describe_text(schema, field, limits);
    }
    if is(schema, "integer") {
        let amount = matches!(field, "amount" | "min" | "max" | "host_count");
        let most = if amount { limits.amount } else { LARGEST };
        schema.entry("maximum").or_insert(json!(most));
    }
    if is(schema, "array") {
        let most = match field {
            "hosts" => limits.hosts,
            "reservations" => limits.reservations,
            "alike" => MAX_ALIKE,
            _ => limits.entries,
        };
        schema.entry("maxItems").or_insert(json!(most));
        if let Some(items) = schema.get_mut("items") {
            visit(items, field, limits, others);
        }
    }
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        visit(property, name, limits, others);
    }
    if schema.get("additionalProperties").is_some_and(Value::is_object) {
        schema.entry("maxProperties").or_insert(json!(limits.entries));
        let names = json!({"maxLength": limits.value_length, "pattern": format!("^[^{CONTROLS}]*$")});
        schema.entry("propertyNames").or_insert(names);
        visit(&mut schema["additionalProperties"], "", limits, others);
    }
}

fn describe_text(schema: &mut Map<String, Value>, field: &str, limits: &Limits) {
    let expression = EXPRESSIONS.contains(&field);
    let most = if expression { limits.expression_length } else { limits.value_length };
    schema.entry("maxLength").or_insert(json!(most));
    let pattern = match field {
        "name" => format!(r"^[^{CONTROLS}]*[^{CONTROLS}\s][^{CONTROLS}]*$"),
        _ if expression => format!("^[^{CONTROLS_OF_EXPRESSIONS}]*$"),
        _ => format!("^[^{CONTROLS}]*$"),
    };
    if field == "name" {
        schema.entry("minLength").or_insert(json!(1));
    }
    schema.entry("pattern").or_insert(json!(pattern));
}

/// Whether the schema allows this type, possibly among several.
fn is(schema: &Map<String, Value>, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    }
}
