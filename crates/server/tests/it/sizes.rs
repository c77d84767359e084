//! Size limits on parts of requests. Requests are generated from the OpenAPI document, so fields added later
//! are tested, too.

use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::contract::document;
use crate::site::{Answer, Site, hosts_lease};

/// Larger than any limit.
const HUGE: usize = 40_000;

/// Maximum length of an error, whatever it quotes.
const LONGEST_ERROR: usize = 3000;

/// Bodies that match the schema and have all fields, one for each alternative.
fn samples(schema: &Value) -> Vec<Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        return samples(document().pointer(&reference[1..]).expect("references lead somewhere"));
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(all) = schema[alternatives].as_array() {
            return all.iter().flat_map(samples).filter(|sample| !sample.is_null()).collect();
        }
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut all = vec![Map::new()];
        for part in parts {
            let more: Vec<_> = samples(part).iter().filter_map(Value::as_object).cloned().collect();
            let joined = |one: &Map<String, Value>| {
                let more = more.iter().cloned();
                let one = one.clone();
                more.map(move |more| one.clone().into_iter().chain(more).collect())
            };
            all = all.iter().flat_map(joined).collect();
        }
        return all.into_iter().map(Value::Object).collect();
    }
    if let Some(first) = schema["enum"].get(0) {
        return vec![first.clone()];
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"].get(0)?.as_str()).unwrap_or_default();
    match kind {
        "object" => objects(schema),
        "array" => samples(&schema["items"]).into_iter().map(|item| json!([item])).collect(),
        "integer" | "number" => vec![json!(1)],
        "boolean" => vec![json!(false)],
        // Text, for a field that can have any type.
        _ => vec![json!("x")],
    }
}

fn objects(schema: &Value) -> Vec<Value> {
    let mut all = vec![Map::new()];
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let values = samples(property);
        let with = |object: &Map<String, Value>| {
            let object = object.clone();
            let values = values.clone().into_iter();
            values.map(move |value| {
                let mut object = object.clone();
                object.insert(name.clone(), value);
                object
            })
        };
        all = all.iter().flat_map(with).collect();
    }
    if schema["additionalProperties"].is_object() {
        let values = samples(&schema["additionalProperties"]);
        for object in &mut all {
            object.extend(values.first().map(|value| ("k".to_owned(), value.clone())));
        }
    }
    all.into_iter().map(Value::Object).collect()
}

/// Copies of the body, each with one part replaced by `spoil`.
fn spoiled(body: &Value, spoil: &dyn Fn(&Value) -> Vec<Value>) -> Vec<Value> {
    let mut all = spoil(body);
    match body {
        Value::Object(fields) => {
            for (name, field) in fields {
                for other in spoiled(field, spoil) {
                    let mut changed = fields.clone();
                    changed.insert(name.clone(), other);
                    all.push(Value::Object(changed));
                }
            }
        }
        Value::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                for other in spoiled(item, spoil) {
                    let mut changed = items.clone();
                    changed[number] = other;
                    all.push(Value::Array(changed));
                }
            }
        }
        _ => {}
    }
    all
}

/// Replacements that are far too large: a text, a field name, a list.
fn huge(part: &Value) -> Vec<Value> {
    let text = "a".repeat(HUGE);
    match part {
        Value::Object(fields) => {
            let mut named = fields.clone();
            named.insert(text.clone(), json!("x"));
            let many = (0..HUGE / 20).map(|number| (format!("k{number}"), json!("x")));
            vec![json!(text), Value::Object(named), Value::Object(many.collect())]
        }
        Value::Array(items) => {
            let first = items.first().cloned().unwrap_or_default();
            let many = HUGE / (first.to_string().len() + 1);
            vec![json!(text), Value::Array(vec![first; many])]
        }
        _ => vec![json!(text), json!([text]), json!({(text): "x"})],
    }
}

/// Replacements with a character that a terminal would obey.
fn hostile(part: &Value) -> Vec<Value> {
    let text = "a\u{1b}]0;b";
    match part {
        Value::Object(fields) => {
            let mut named = fields.clone();
            named.insert(text.to_owned(), json!("x"));
            vec![Value::Object(named)]
        }
        Value::String(_) => {
            ["a\u{0}", text, "a\u{202e}b", "a\u{2028}b", "a\u{9b}b"].map(|text| json!(text)).into()
        }
        _ => Vec::new(),
    }
}

/// A site with one object for each variable in paths, and all operations that take a body.
async fn site() -> (Site, Vec<(Method, String, Value)>) {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00")).await;
    site.post("/v1/freepools", &json!({"name": "pool"})).await.ok(201);
    site.post("/v1/flavors", &json!({"id": "f", "name": "f", "vcpus": 1, "ram": 1, "disk": 1})).await.ok(201);
    let lease = lease["id"].as_str().expect("an identifier");
    let known = [
        ("{lease_id}", lease),
        ("{host_id}", "1"),
        ("{freepool}", "pool"),
        ("{flavor_id}", "f"),
        ("{name}", "rack"),
    ];
    let mut operations = Vec::new();
    for (path, item) in document()["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("an item") {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            if schema.is_null() || operation["operationId"] == "log_in" {
                continue;
            }
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            let path = known.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value));
            // Other variables have no object on this site.
            let path = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            operations.push((method, path.collect::<Vec<_>>().join("/"), schema.clone()));
        }
    }
    assert!(operations.len() > 15, "the document says what bodies are");
    (site, operations)
}

fn check(answer: &Answer, what: &str) {
    assert!(answer.status.is_client_error(), "{what}: {}", answer.status);
    assert!(answer.text.len() <= LONGEST_ERROR, "{what}: {} bytes", answer.text.len());
    assert!(!answer.text.contains(&"a".repeat(201)), "{what} quotes too much");
}

#[tokio::test]
async fn nothing_of_a_body_may_be_huge_and_no_error_repeats_it() {
    let (site, operations) = site().await;
    for (method, path, schema) in operations {
        let what = format!("{method} {path}");
        for sample in samples(&schema) {
            for body in spoiled(&sample, &huge) {
                let answer = site.send_as("any", method.clone(), &path, Some(&body)).await;
                check(&answer, &what);
            }
        }
    }
}

#[tokio::test]
async fn a_megabyte_is_refused_in_a_few_words() {
    let site = Site::open().await;
    let mut lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 11:00");
    lease["reservations"][0]["resource_properties"] =
        json!(format!("[\"==\",\"$a\",\"{}\"]", "a".repeat(1_000_000)));
    let answer = site.post("/v1/leases", &lease).await;
    assert!(answer.text.len() < 500, "{}", answer.text.len());
    let wanted = "Malformed parameter reservations[0].resource_properties: it has 1000014 characters and may have 16384";
    assert_eq!(answer.error(), (400, wanted.to_owned()));
}

#[tokio::test]
async fn characters_that_a_terminal_obeys_are_refused_in_every_text() {
    let (site, operations) = site().await;
    for (method, path, schema) in operations {
        for sample in samples(&schema) {
            for body in spoiled(&sample, &hostile) {
                let answer = site.send_as("any", method.clone(), &path, Some(&body)).await;
                assert!(answer.status.is_client_error(), "{method} {path} {body}: {}", answer.text);
            }
        }
    }
}

#[tokio::test]
async fn no_error_repeats_an_address_or_a_header() {
    let site = Site::open().await;
    let long = "a".repeat(8000);
    for (path, item) in document()["paths"].as_object().expect("paths") {
        let filled = path.split('/').map(|part| if part.starts_with('{') { &long } else { part });
        let filled = filled.collect::<Vec<_>>().join("/");
        for (method, operation) in item.as_object().expect("an item") {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            if filled != *path {
                let body = (method != Method::GET).then(|| json!({}));
                let answer = site.send_as("any", method.clone(), &filled, body.as_ref()).await;
                check(&answer, &format!("{method} {path}"));
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().expect("a name");
                if parameter["in"] == "query" {
                    let path = format!("{path}?{name}={long}").replace(['{', '}'], "");
                    let answer = site.send_as("any", method.clone(), &path, Some(&json!({}))).await;
                    check(&answer, &path[..path.len() - long.len()]);
                }
            }
        }
    }
    let mut request = crate::site::request(Method::GET, "/v1/leases", "any", None);
    request
        .headers_mut()
        .insert("openstack-api-version", format!("reservation {long}").parse().expect("text"));
    check(&site.send(request).await, "a version");
    let mut request = crate::site::request(Method::POST, "/v1/leases", "any", Some(&json!({})));
    request.headers_mut().insert("content-type", long.parse().expect("text"));
    check(&site.send(request).await, "a type of content");
}

#[tokio::test]
async fn what_stock_clients_send_is_small_enough() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let mut lease = hosts_lease(1, 1, "2050-12-26 10:00", "2050-12-27 10:00");
    lease["name"] = json!("ä".repeat(80));
    let values: Vec<_> = (0..300).map(|number| format!("value-{number:020}")).collect();
    let mut any_of = json!(["in", "$rack", "r1"]);
    any_of.as_array_mut().expect("a list").extend(values.iter().map(|value| json!(value)));
    assert!(any_of.to_string().len() > 8000);
    lease["reservations"][0]["resource_properties"] = json!(any_of.to_string());
    site.lease(&lease).await;
    lease["name"] = json!("ä".repeat(81));
    let error = site.post("/v1/leases", &lease).await.error();
    assert_eq!(error, (400, "Malformed parameter name: it has 81 characters and may have 80".to_owned()));
    for blank in ["", "  "] {
        lease["name"] = json!(blank);
        assert_eq!(
            site.post("/v1/leases", &lease).await.error(),
            (400, "Malformed parameter name".to_owned())
        );
    }
}

#[tokio::test]
async fn a_page_has_a_largest_number() {
    let site = Site::open().await;
    for path in ["/v1/leases", "/v1/audit", "/v1/notifications", "/v1/usage/events"] {
        for (limit, status) in [("2147483647", 200), ("2147483648", 400), ("4294967296", 400), ("0", 400)] {
            let answer = site.get(&format!("{path}?limit={limit}")).await;
            assert_eq!(answer.status, StatusCode::from_u16(status).expect("a status"), "{path} {limit}");
        }
    }
}
