//! Checks responses against the OpenAPI document. All requests go through [`crate::site::Site::send`], which
//! calls this, so every response in every test is checked.

use std::path::Path;
use std::sync::OnceLock;

use axum::http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The OpenAPI document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::to_value(server::openapi()).expect("JSON"))
}

/// Fails unless the document allows such a response from the endpoint. Paths that aren't endpoints are
/// ignored.
#[track_caller]
pub fn check(method: &str, path: &str, status: u16, body: &str) {
    let Some(operation) = operation(method, path) else { return };
    let response = &operation["responses"][status.to_string()];
    assert!(
        response.is_object(),
        "{method} {path} answers {status}, which the document does not have: {body}"
    );
    let Some(content) = response["content"].as_object() else {
        assert!(status != 204 || body.is_empty(), "{method} {path} answers {status} with a body");
        return;
    };
    if path.contains("format=csv") && content.contains_key("text/csv") && status == 200 {
        return;
    }
    let Some(media) = content.get("application/json") else { return };
    let value: Value =
        serde_json::from_str(body).unwrap_or_else(|_| panic!("{method} {path}: no JSON: {body}"));
    if let Err(error) = validate(&media["schema"], &value, "$") {
        panic!("{method} {path} answers {status}, but {error}: {body}");
    }
}

/// Fails unless a response below `/v1` forbids storing it and varies by all headers that identify the client.
#[track_caller]
pub fn check_headers(path: &str, headers: &HeaderMap) {
    if path != "/v1" && !path.starts_with("/v1/") {
        return;
    }
    let all = |name: &str| {
        let values = headers.get_all(name).into_iter().map(|value| value.to_str().expect("text"));
        values.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(all("cache-control"), "private, no-store", "{path}");
    let vary = all("vary").to_ascii_lowercase();
    for name in ["authorization", "cookie", "x-auth-token", "x-project-id", "x-allot-console"] {
        assert!(vary.split(", ").any(|one| one == name), "{path}: vary: {vary}");
    }
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next()?;
    let path = path.strip_suffix(".json").filter(|path| path.starts_with("/v1/")).unwrap_or(path);
    let parts: Vec<_> = path.split('/').collect();
    let matches = |template: &str| {
        let pairs = template.split('/').zip(&parts);
        template.split('/').count() == parts.len()
            && pairs
                .into_iter()
                .all(|(wanted, part)| wanted == *part || (wanted.starts_with('{') && !part.is_empty()))
    };
    let paths = document()["paths"].as_object()?;
    let mut found: Vec<_> = paths.iter().filter(|(template, _)| matches(template)).collect();
    // Paths without variables take precedence.
    found.sort_by_key(|(template, _)| template.matches('{').count());
    let operation = &found.first()?.1[method.to_lowercase()];
    operation.is_object().then_some(operation)
}

#[test]
fn a_project_can_be_named_by_either_of_its_names_wherever_it_can_be_named() {
    let paths = document()["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    let mut seen = 0;
    for (operation, described) in operations {
        let parameters = described["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
        let has = |name: &str| parameters.iter().any(|one| one["name"] == name && one["in"] == "query");
        assert_eq!(has("project_id"), has("tenant_id"), "{operation}");
        seen += usize::from(has("project_id"));
    }
    assert!(seen >= 10, "{seen} operations");
}

/// Validates a value against a schema. Covers types, dates, fields and alternatives only.
fn validate(schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(schema) = schema.as_object() else { return Ok(()) };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let pointer = name.strip_prefix('#').ok_or("a reference elsewhere")?;
        let target = document().pointer(pointer).ok_or_else(|| format!("{name} is not defined"))?;
        return validate(target, value, at);
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(schemas) = schema.get(alternatives).and_then(Value::as_array) {
            let errors: Vec<_> = schemas.iter().filter_map(|one| validate(one, value, at).err()).collect();
            if errors.len() == schemas.len() {
                return Err(format!("none of the alternatives fits: {}", errors.join("; ")));
            }
        }
    }
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        validate(part, value, at)?;
    }
    check_type(schema, value, at)?;
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(value)
    {
        return Err(format!("{at} is none of {values:?}"));
    }
    if schema.get("format").is_some_and(|format| format == "date-time")
        && let Some(text) = value.as_str()
        && !is_rfc_3339(text)
    {
        return Err(format!("{at} is {text:?}, which is not RFC 3339 in UTC"));
    }
    match value {
        Value::Object(fields) => check_fields(schema, fields, at),
        Value::Array(items) => {
            let of = &schema.get("items").cloned().unwrap_or_default();
            items.iter().enumerate().try_for_each(|(i, item)| validate(of, item, &format!("{at}[{i}]")))
        }
        _ => Ok(()),
    }
}

fn is_rfc_3339(text: &str) -> bool {
    text.parse::<Timestamp>().is_ok() && text.as_bytes().get(10) == Some(&b'T') && text.ends_with('Z')
}

fn check_type(schema: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    let fits = match schema.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("{at} is {value}, which is not of type {}", schema["type"])) }
}

fn check_fields(schema: &Map<String, Value>, fields: &Map<String, Value>, at: &str) -> Result<(), String> {
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap_or_default()) {
            return Err(format!("{at} has no {name}"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let composed = schema.contains_key("allOf") || schema.contains_key("oneOf");
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        match (properties.and_then(|properties| properties.get(name)), schema.get("additionalProperties")) {
            (Some(property), _) => validate(property, value, &at)?,
            (None, Some(Value::Bool(false))) if !composed => return Err(format!("{at} is not declared")),
            (None, Some(other)) => validate(other, value, &at)?,
            (None, None) => {}
        }
    }
    Ok(())
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    fn walk(value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                    assert!(document().pointer(&name[1..]).is_some(), "{name}");
                }
                fields.values().for_each(walk);
            }
            Value::Array(items) => items.iter().for_each(walk),
            _ => {}
        }
    }
    walk(document());
}

#[test]
fn dates_of_answers_are_rfc_3339_in_all_fields_that_blazar_does_not_have() {
    // `FlavorStep` has the form that Chameleon's clients read.
    let of_blazar =
        ["AllocatedReservation", "Event", "FlavorStep", "FloatingIp", "Host", "Lease", "ResourceProperty"];
    let endings =
        ["_at", "_by", "_date", "_from", "end", "now", "since", "start", "time", "timestamp", "until"];
    let schemas = document()["components"]["schemas"].as_object().expect("schemas");
    let mut own = 0;
    // Only schemas of request bodies exclude additional properties.
    for (name, schema) in schemas.iter().filter(|(_, schema)| schema["additionalProperties"] != false) {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let kind = &property["type"];
            let is_text = kind == "string" || kind.get(0).is_some_and(|kind| kind == "string");
            // `before_end` is an action, not a date.
            if !is_text || field == "before_end" || !endings.iter().any(|ending| field.ends_with(ending)) {
                continue;
            }
            let is_own = !of_blazar.contains(&name.as_str()) || field == "timeout_date";
            assert_eq!(property["format"] == "date-time", is_own, "{name}.{field}");
            own += usize::from(is_own);
        }
    }
    assert!(own >= 40, "{own} fields");
    assert!(is_rfc_3339("2030-01-02T10:00:00Z") && is_rfc_3339("2030-01-02T10:00:00.25Z"));
    for of_blazar in ["2030-01-02T10:00:00.000000", "2030-01-02 10:00:00", "2030-01-02 10:00:00Z"] {
        assert!(!is_rfc_3339(of_blazar), "{of_blazar}");
    }
}

#[test]
fn a_wrong_answer_is_noticed() {
    let check = |status, body: &'static str| {
        std::panic::catch_unwind(move || check("GET", "/v1/leases", status, body)).is_ok()
    };
    assert!(check(200, "{\"leases\": []}"));
    assert!(!check(200, "{}"));
    assert!(!check(200, "{\"leases\": [{}]}"));
    assert!(!check(200, "{\"leases\": null}"));
    assert!(!check(202, "{\"leases\": []}"));
    assert!(!check(403, "{\"error\": 403}"));
}

#[tokio::test]
async fn the_document_is_served_as_the_tests_have_it() {
    let site = crate::site::Site::guarded().await;
    let answer = site.get("/openapi.json").await;
    assert_eq!(answer.headers["content-type"], "application/json");
    assert_eq!(answer.ok(200), *document());
}

#[test]
fn every_operation_has_a_name_of_its_own_and_says_what_it_is_for() {
    let mut names = std::collections::BTreeSet::new();
    for (path, item) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let name = operation["operationId"].as_str().expect("a name");
            assert!(names.insert(name), "{name} is there twice");
            assert!(operation["summary"].is_string(), "{method} {path} says nothing");
            let secured = operation["security"].is_array();
            assert_eq!(secured, path.starts_with("/v1/"), "{method} {path}");
        }
    }
}

#[test]
fn the_bench_attacks_every_operation() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/src/hostile/attackers.rs");
    let table = std::fs::read_to_string(table).expect("the table of attackers");
    let attacked: Vec<&str> =
        table.split("attack(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for (path, item) in document()["paths"].as_object().expect("paths") {
        for method in item.as_object().expect("an item").keys() {
            let operation = format!("{} {path}", method.to_uppercase());
            assert!(
                attacked.contains(&operation.as_str()),
                "no attacker for {operation}: add it to crates/bench/src/hostile/attackers.rs"
            );
        }
    }
}
