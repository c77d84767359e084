//! Isolation of projects: for every endpoint in the OpenAPI document, with every parameter and every field of
//! its responses, a member and a reader who know all about another project's objects can't see them. A new
//! endpoint or parameter without a row here fails the test.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use axum::http::Method;
use serde_json::{Value, json};

use crate::contract::document;
use crate::site::Site;

/// Requests to an endpoint: values for its parameters, and a body that can refer to the other project's
/// objects.
struct Row {
    endpoint: (&'static str, &'static str),
    parameters: &'static [(&'static str, &'static str)],
    body: fn(&Theirs) -> Value,
}

const fn row(method: &'static str, path: &'static str) -> Row {
    Row { endpoint: (method, path), parameters: &[], body: |_| Value::Null }
}

impl Row {
    const fn with(self, parameters: &'static [(&'static str, &'static str)]) -> Self {
        Self { parameters, ..self }
    }

    const fn sending(self, body: fn(&Theirs) -> Value) -> Self {
        Self { body, ..self }
    }
}

const ROWS: [Row; 101] = [
    row("GET", "/"),
    row("GET", "/versions"),
    row("GET", "/healthz"),
    row("GET", "/readyz"),
    row("GET", "/metrics"),
    row("GET", "/identity"),
    row("GET", "/identity/v3"),
    row("POST", "/identity/v3/auth/tokens"),
    row("GET", "/identity/v3/auth/tokens"),
    row("DELETE", "/identity/v3/auth/tokens"),
    row("GET", "/v1/leases").with(&[
        ("limit", "1"),
        ("marker", "{lease}"),
        ("status", "ACTIVE"),
        ("name", "{lease_name}"),
        ("project_id", "q"),
        ("tenant_id", "q"),
        ("series_id", "{series}"),
    ]),
    row("POST", "/v1/leases")
        .with(&[
            ("Idempotency-Key", "theirs"),
            ("dry_run", "true"),
            ("hold_offers", "true"),
            ("hold_for", "10m"),
        ])
        .sending(lease_of_the_same),
    row("GET", "/v1/leases/{lease_id}").with(&[("detail", "1")]),
    row("GET", "/v1/leases/{lease_id}/plan"),
    row("GET", "/v1/leases/{lease_id}/occupancy").with(&[("after", "0"), ("limit", "1000")]),
    row("PUT", "/v1/leases/{lease_id}")
        .with(&[("dry_run", "true"), ("hold_offers", "true"), ("hold_for", "10m")])
        .sending(change_of_everything),
    row("DELETE", "/v1/leases/{lease_id}"),
    row("GET", "/v1/offers").with(&[("project_id", "q"), ("tenant_id", "q")]),
    row("GET", "/v1/offers/{offer_id}"),
    row("POST", "/v1/offers/{offer_id}/accept"),
    row("DELETE", "/v1/offers/{offer_id}"),
    row("GET", "/v1/series/{series_id}"),
    row("DELETE", "/v1/series/{series_id}"),
    row("GET", "/v1/waitlist").with(&[("project_id", "q"), ("tenant_id", "q")]),
    row("GET", "/v1/waitlist/{waitlist_entry_id}"),
    row("DELETE", "/v1/waitlist/{waitlist_entry_id}"),
    row("GET", "/v1/hints"),
    row("GET", "/v1/os-hosts").with(&[("limit", "1"), ("marker", "1")]),
    row("POST", "/v1/os-hosts").sending(|_| json!({"id": "1"})),
    row("GET", "/v1/os-hosts/{host_id}"),
    row("PUT", "/v1/os-hosts/{host_id}").sending(|_| json!({"rack": "r9"})),
    row("DELETE", "/v1/os-hosts/{host_id}"),
    row("GET", "/v1/availability").with(&[
        ("start", "2030-01-01 00:00"),
        ("end", "2030-03-01 00:00"),
        ("resource_properties", ""),
        ("hypervisor_properties", ""),
        ("flavor_id", ""),
        ("vcpus", ""),
        ("memory_mb", ""),
        ("disk_gb", ""),
        ("network_id", ""),
        ("amount", "1"),
        ("duration", "1h"),
    ]),
    row("GET", "/v1/flavor-instances/availability").with(&[
        ("flavor_id", ""),
        ("start_date", "2030-01-01 00:00"),
        ("end_date", "2030-03-01 00:00"),
    ]),
    row("GET", "/v1/calendar").with(&[
        ("start", "2030-01-01 00:00"),
        ("end", "2030-03-01 00:00"),
        ("pool", "freepool"),
        ("group_by", "rack"),
        ("bucket", "60"),
        ("limit", "1"),
        ("marker", "1"),
        ("If-None-Match", "*"),
    ]),
    row("GET", "/v1/calendar/changes").with(&[("Last-Event-ID", "1")]),
    row("GET", "/v1/placement/clusters"),
    row("POST", "/v1/placement/balance").sending(|_| json!({"cluster": "theirs"})),
    row("POST", "/v1/placement/drain").sending(|_| json!({"text": "", "nodes": ["n1"]})),
    row("POST", "/v1/placement/whatif").sending(|_| json!({"text": "", "lose": ["n1"]})),
    row("POST", "/v1/placement/fit").sending(|_| json!({"text": "", "shape": "1g,1g,1"})),
    row("POST", "/v1/session").with(&[("X-Allot-Console", "1")]).sending(|_| json!({"token": "member"})),
    row("GET", "/v1/session"),
    row("DELETE", "/v1/session"),
    row("GET", "/v1/os-hosts/allocations").with(&[
        ("limit", "1"),
        ("marker", "1"),
        ("lease_id", "{lease}"),
        ("reservation_id", "{reservation}"),
    ]),
    row("GET", "/v1/os-hosts/{host_id}/allocation")
        .with(&[("lease_id", "{lease}"), ("reservation_id", "{reservation}")]),
    row("GET", "/v1/os-hosts/properties").with(&[("detail", "1"), ("all", "1")]),
    row("PATCH", "/v1/os-hosts/properties/{name}").sending(|_| json!({"private": true})),
    row("GET", "/v1/floatingips").with(&[("limit", "1"), ("marker", "{lease}")]),
    row("POST", "/v1/floatingips")
        .sending(|theirs| json!({"floating_network_id": "public", "floating_ip_address": theirs.address})),
    row("GET", "/v1/floatingips/{floatingip_id}"),
    row("DELETE", "/v1/floatingips/{floatingip_id}"),
    row("GET", "/v1/freepools"),
    row("POST", "/v1/freepools").sending(|_| json!({"name": "slow"})),
    row("GET", "/v1/freepools/{freepool}"),
    row("PUT", "/v1/freepools/{freepool}").sending(|_| json!({"name": "quick"})),
    row("DELETE", "/v1/freepools/{freepool}"),
    row("GET", "/v1/freepools/{freepool}/hosts"),
    row("POST", "/v1/freepools/{freepool}/hosts").sending(|_| json!({"id": "3"})),
    row("PUT", "/v1/freepools/{freepool}/hosts/{host_id}"),
    row("DELETE", "/v1/freepools/{freepool}/hosts/{host_id}"),
    row("GET", "/v1/leasepools").with(&[
        ("limit", "1"),
        ("marker", "{lease}"),
        ("project_id", "q"),
        ("tenant_id", "q"),
    ]),
    row("POST", "/v1/leasepools").sending(|_| json!({"host_count": 1, "duration": "1h"})),
    row("GET", "/v1/leasepools/{leasepool_id}"),
    row("PUT", "/v1/leasepools/{leasepool_id}").sending(|_| json!({"name": "mine"})),
    row("DELETE", "/v1/leasepools/{leasepool_id}"),
    row("GET", "/v1/leasepools/{leasepool_id}/hosts"),
    row("POST", "/v1/leasepools/{leasepool_id}/hosts").sending(|_| json!({"host_count": 1})),
    row("POST", "/v1/leasepools/{leasepool_id}/swap").sending(|_| json!({"host_id": "1"})),
    row("POST", "/v1/maintenance")
        .with(&[("dry_run", "true")])
        .sending(|_| json!({"hosts": ["1"], "duration": "1h"})),
    row("GET", "/v1/flavors"),
    row("POST", "/v1/flavors").sending(|_| json!({"id": "f2", "name": "g", "vcpus": 1, "ram": 1, "disk": 1})),
    row("GET", "/v1/flavors/{flavor_id}"),
    row("PUT", "/v1/flavors/{flavor_id}").sending(|_| json!({"vcpus": 2})),
    row("DELETE", "/v1/flavors/{flavor_id}"),
    row("GET", "/v1/instances").with(&[
        ("limit", "1"),
        ("marker", "{instance}"),
        ("lease_id", "{lease}"),
        ("project_id", "q"),
        ("tenant_id", "q"),
    ]),
    row("POST", "/v1/instances").sending(instance_in_theirs),
    row("POST", "/v1/instances/filter").sending(|_| json!({"hosts": ["r1-h01"], "project_id": "q"})),
    row("POST", "/v1/vendordata").sending(|theirs| json!({"instance-id": theirs.instance["id"]})),
    row("GET", "/v1/preemptible").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
        ("project_id", "q"),
        ("tenant_id", "q"),
    ]),
    row("GET", "/v1/preemptible/projects"),
    row("PUT", "/v1/preemptible/projects/{pattern}"),
    row("DELETE", "/v1/preemptible/projects/{pattern}"),
    row("GET", "/v1/instances/{instance_id}"),
    row("DELETE", "/v1/instances/{instance_id}"),
    row("POST", "/v1/instances/{instance_id}/start"),
    row("GET", "/v1/notifications").with(&[("after", "0"), ("limit", "1000"), ("wait", "0")]),
    row("GET", "/v1/usage").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
        ("group_by", "project,user,pool,lease,lease_type"),
        ("project_id", "q"),
        ("tenant_id", "q"),
        ("user_id", "foreign"),
        ("lease_id", "{lease}"),
        ("pool", "freepool"),
        ("format", "csv"),
    ]),
    row("GET", "/v1/usage/billing").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
        ("interval", "day"),
        ("project_id", "q"),
        ("tenant_id", "q"),
        ("lease_id", "{lease}"),
        ("format", "csv"),
    ]),
    row("GET", "/v1/usage/events").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
        ("project_id", "q"),
        ("tenant_id", "q"),
        ("lease_id", "{lease}"),
        ("event", "lease.started"),
        ("after", "0"),
        ("limit", "1000"),
    ]),
    row("GET", "/v1/capacity").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
        ("project_id", "q"),
        ("tenant_id", "q"),
    ]),
    row("GET", "/v1/energy/plan").with(&[("horizon", "1d")]),
    row("GET", "/v1/energy/report").with(&[
        ("start", "2030-01-01"),
        ("end", "now"),
        ("time_zone", "Asia/Kolkata"),
    ]),
    row("GET", "/v1/energy/hosts"),
    row("GET", "/v1/settings"),
    row("GET", "/v1/names"),
    row("GET", "/v1/drift"),
    row("POST", "/v1/drift/repair"),
    row("POST", "/v1/drift/accept-clock"),
    row("POST", "/v1/drift/accept-fleet"),
    row("GET", "/v1/audit").with(&[
        ("limit", "1000"),
        ("marker", "1000"),
        ("user_id", "foreign"),
        ("project_id", "q"),
        ("tenant_id", "q"),
        ("request_id", "r"),
        ("action", "lease.create"),
        ("object_id", "{lease}"),
    ]),
];

/// The other project's lease, and its details, which must stay hidden.
struct Theirs {
    lease: Value,
    /// An instance in the lease.
    instance: Value,
    /// An offer to the other project, and its waiting request.
    offer: Value,
    waits: Value,
    series: Value,
    address: String,
    secrets: Vec<String>,
}

/// Fields whose values identify an object or its owner.
const TELLING: [&str; 7] =
    ["id", "name", "user_id", "project_id", "lease_id", "reservation_id", "resource_id"];

fn secrets(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if TELLING.contains(&name.as_str()) && !text.is_empty() => {
                        found.push(text.to_owned());
                    }
                    _ => secrets(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secrets(item, found)),
        _ => {}
    }
}

impl Theirs {
    /// Creates a lease of project `q` with one of each: a host, instance capacity, an address, and a history.
    async fn make(site: &Site) -> Self {
        let post = async |path: &str, token: &str, body: &Value| {
            site.send_as(token, Method::POST, path, Some(body)).await.ok(201)
        };
        for id in ["1", "2"] {
            post("/v1/os-hosts", "admin", &json!({"id": id, "rack": "r1"})).await;
        }
        let address = "203.0.113.200".to_owned();
        let ip = json!({"floating_network_id": "public", "floating_ip_address": address});
        post("/v1/floatingips", "admin", &ip).await;
        post("/v1/freepools", "admin", &json!({"name": "secret", "extra_specs": {"tenants": "foreign"}}))
            .await;
        let flavor = json!({"id": "f1", "name": "f", "vcpus": 1, "ram": 1, "disk": 1});
        post("/v1/flavors", "admin", &flavor).await;
        let hidden = json!({"id": "f3", "name": "hidden", "vcpus": 1, "ram": 1, "disk": 1,
            "os-flavor-access:is_public": false});
        post("/v1/flavors", "admin", &hidden).await;
        let request = keyed("foreign", &lease_of(&address));
        let lease = site.send(request).await.ok(201)["lease"].clone();
        let lease = site.until_as("admin", "2030-01-01T10:01:00Z", &lease, "ACTIVE").await;
        let instance = json!({"name": "their secret machine", "vcpus": 1, "memory_mb": 1,
            "scheduler_hints": {"lease": lease["id"]}});
        let instance = post("/v1/instances", "foreign", &instance).await["instance"].clone();
        let mut hosts = crate::site::hosts_lease(9, 9, "2030-02-02 10:00", "2030-02-02 11:00");
        hosts["name"] = json!("their secret wish");
        let held = site.send_as("foreign", Method::POST, "/v1/leases?hold_offers=true", Some(&hosts)).await;
        let offer = held.ok(400)["offers"][0].clone();
        hosts["waitlist"] = json!(true);
        let waits = site.send_as("foreign", Method::POST, "/v1/leases", Some(&hosts)).await.ok(202);
        let waits = waits["waitlist_entry"].clone();
        let series = json!({"name": "their secret habit", "start_date": "2030-01-05 10:00",
            "duration": "1h", "repeat": {"every": "1w", "times": 2}});
        let series = post("/v1/leases", "foreign", &series).await["series"].clone();
        let mut theirs =
            Self { lease, instance, offer, waits, series, address, secrets: vec!["hidden".to_owned()] };
        secrets(&theirs.lease, &mut theirs.secrets);
        secrets(&theirs.instance, &mut theirs.secrets);
        secrets(&theirs.waits, &mut theirs.secrets);
        secrets(&theirs.series, &mut theirs.secrets);
        assert!(theirs.secrets.iter().any(|secret| secret == "foreign"));
        theirs
    }

    fn put_in(&self, text: &str) -> String {
        let own = |field: &str| self.lease[field].as_str().expect("text").to_owned();
        let reservation = self.lease["reservations"][0]["id"].as_str().expect("text");
        text.replace("{lease}", &own("id"))
            .replace("{lease_name}", "their%20secret%20plan")
            .replace("{reservation}", reservation)
            .replace("{instance}", self.instance["id"].as_str().expect("text"))
            .replace("{series}", self.series["id"].as_str().expect("text"))
    }

    /// Fails if the response reveals anything. A message can repeat text from the request.
    #[track_caller]
    fn hidden_in(&self, answer: &str, question: &str) {
        for secret in self.secrets.iter().filter(|secret| secret.len() > 3 && !question.contains(*secret)) {
            assert!(!answer.contains(secret.as_str()), "{question}\n{answer}\nsays {secret}");
        }
        let mut told = Vec::new();
        secrets(&serde_json::from_str(answer).unwrap_or_default(), &mut told);
        let said = told.iter().find(|told| self.secrets.contains(told));
        assert!(said.is_none(), "{question}\n{answer}\nsays {said:?}");
    }
}

fn lease_of(address: &str) -> Value {
    json!({
        "name": "their secret plan", "start_date": "now", "end_date": "2030-01-03 10:00",
        "reservations": [
            {"resource_type": "physical:host", "min": 1, "max": 1,
                "hypervisor_properties": "", "resource_properties": ""},
            {"resource_type": "virtual:instance", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "amount": 1,
                "affinity": null, "resource_properties": ""},
            {"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1,
                "required_floatingips": [address]},
        ],
    })
}

/// Exactly the request of the other project, with the same idempotency key.
fn lease_of_the_same(theirs: &Theirs) -> Value {
    let mut lease = lease_of(&theirs.address);
    lease["name"] = json!("my plan");
    lease
}

fn instance_in_theirs(theirs: &Theirs) -> Value {
    let hints = json!({"lease": theirs.lease["id"]});
    json!({"name": "mine", "vcpus": 1, "memory_mb": 1, "scheduler_hints": hints})
}

fn change_of_everything(theirs: &Theirs) -> Value {
    let id = &theirs.lease["reservations"][0]["id"];
    json!({
        "name": "mine now", "start_date": "2030-01-01 20:00", "end_date": "2030-01-02 10:00",
        "before_end_date": "2030-01-02 09:00", "end_action": "keep",
        "reservations": [{"id": id, "min": 1, "max": 2}],
    })
}

fn keyed(token: &str, body: &Value) -> axum::http::Request<axum::body::Body> {
    let mut request = crate::site::request(Method::POST, "/v1/leases", token, Some(body));
    request.headers_mut().insert("idempotency-key", "theirs".parse().expect("a value"));
    request
}

/// Parameters of the operation in the document, except those in the path.
fn parameters(operation: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let all = operation["parameters"].as_array().cloned().unwrap_or_default();
    let all = all.iter().filter(|parameter| parameter["in"] != "path");
    all.map(|parameter| (text(&parameter["name"]), text(&parameter["in"]))).collect()
}

/// Values of the variables in paths: objects of the other project, and objects that don't exist.
fn variables(theirs: &Theirs) -> [(&'static str, String, &'static str); 11] {
    let id = |value: &Value| value.as_str().expect("text").to_owned();
    [
        ("{lease_id}", id(&theirs.lease["id"]), UNKNOWN),
        ("{leasepool_id}", id(&theirs.lease["reservations"][0]["id"]), UNKNOWN),
        ("{offer_id}", id(&theirs.offer["id"]), UNKNOWN),
        ("{series_id}", id(&theirs.series["id"]), UNKNOWN),
        ("{waitlist_entry_id}", id(&theirs.waits["id"]), UNKNOWN),
        ("{instance_id}", id(&theirs.instance["id"]), UNKNOWN),
        ("{host_id}", "1".to_owned(), "9"),
        ("{flavor_id}", "f3".to_owned(), "nosuch"),
        ("{pattern}", "spot-*".to_owned(), "nosuch"),
        ("{freepool}", "secret".to_owned(), "nosuch"),
        ("{name}", "rack".to_owned(), "nosuch"),
    ]
}

/// An identifier that no object has.
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

/// Requests for a row: without parameters, with each parameter, and with all.
fn questions(row: &Row, operation: &Value, theirs: &Theirs) -> Vec<(String, Option<String>)> {
    let path = variables(theirs)
        .iter()
        .fold(row.endpoint.1.to_owned(), |path, (name, value, _)| path.replace(name, value));
    // Every member can see addresses.
    let path = path.replace("{floatingip_id}", "nosuch");
    let rows: BTreeMap<_, _> = row.parameters.iter().copied().collect();
    let (mut pairs, mut key) = (Vec::new(), None);
    let named = parameters(operation);
    for (name, place) in &named {
        let value = rows.get(name.as_str());
        let value = value.unwrap_or_else(|| panic!("{:?}: {name} has no value", row.endpoint));
        let value = theirs.put_in(value);
        match place.as_str() {
            "header" => key = Some(value),
            _ => pairs.push(format!("{name}={}", value.replace(' ', "%20"))),
        }
    }
    let single = pairs.iter().map(|pair| format!("{path}?{pair}"));
    let all = [path.clone(), format!("{path}?{}", pairs.join("&"))];
    let mut questions: Vec<_> = single.chain(all).map(|path| (path, None)).collect();
    questions.extend(key.map(|key| (path, Some(key))));
    questions
}

#[tokio::test]
async fn nothing_of_another_projects_lease_is_seen_or_changed_through_any_endpoint() {
    let paths = document()["paths"].as_object().expect("paths");
    let mut met = 0;
    for (path, item) in paths {
        let methods = item.as_object().expect("an item").keys().filter(|name| {
            ["get", "put", "post", "delete", "patch", "head", "options", "trace"].contains(&name.as_str())
        });
        for method in methods {
            let (method, operation) = (method.to_uppercase(), &item[method]);
            let row = ROWS.iter().find(|row| row.endpoint == (method.as_str(), path.as_str()));
            let row = row.unwrap_or_else(|| panic!("{method} {path} has no row"));
            met += 1;
            check(row, operation).await;
        }
    }
    assert_eq!(met, ROWS.len(), "a row for an endpoint that there is not");
}

async fn check(row: &Row, operation: &Value) {
    let site = Site::guarded().await;
    let theirs = Theirs::make(&site).await;
    let body = (row.body)(&theirs);
    let body = (!body.is_null()).then_some(body);
    let method: Method = row.endpoint.0.parse().expect("a method");
    for caller in ["member", "reader"] {
        for (path, key) in questions(row, operation, &theirs) {
            let mut request = crate::site::request(method.clone(), &path, caller, body.as_ref());
            if let Some(key) = &key {
                request.headers_mut().insert("idempotency-key", key.parse().expect("a value"));
            }
            let answer = site.send(request).await;
            let said = body.as_ref().map(ToString::to_string).unwrap_or_default();
            theirs.hidden_in(&answer.text, &format!("{caller}: {method} {path} {said}"));
        }
    }
    let path = format!("/v1/leases/{}", theirs.lease["id"].as_str().expect("text"));
    let now = site.send_as("foreign", Method::GET, &path, None).await.ok(200)["lease"].clone();
    assert_eq!(now, theirs.lease, "{:?}", row.endpoint);
}

#[tokio::test]
async fn the_check_would_notice_what_an_administrator_sees() {
    let site = Site::guarded().await;
    let theirs = Theirs::make(&site).await;
    for path in ["/v1/leases", "/v1/os-hosts/allocations", "/v1/notifications", "/v1/flavors"] {
        let answer = site.send_as("admin", Method::GET, path, None).await.text;
        let noticed = std::panic::catch_unwind(AssertUnwindSafe(|| theirs.hidden_in(&answer, path)));
        assert!(noticed.is_err(), "{path}: {answer}");
    }
}

/// Blazar answers 403 for leases of other projects.
const FORBIDDEN: [(&str, &str); 3] =
    [("GET", "/v1/leases/{lease_id}"), ("PUT", "/v1/leases/{lease_id}"), ("DELETE", "/v1/leases/{lease_id}")];

#[tokio::test]
async fn objects_of_other_projects_look_as_if_they_did_not_exist() {
    let site = Site::guarded().await;
    let theirs = Theirs::make(&site).await;
    let rows = ROWS.iter().filter(|row| !FORBIDDEN.contains(&row.endpoint));
    for (row, (name, id, unknown)) in rows.flat_map(|row| variables(&theirs).map(|named| (row, named))) {
        let (method, path) = row.endpoint;
        if !path.contains(name) {
            continue;
        }
        let body = (row.body)(&theirs);
        let body = (!body.is_null()).then_some(body);
        let ask = async |caller: &str, id: &str| {
            let path = path.replace(name, id).replace("{host_id}", "1").replace("{freepool}", "secret");
            let method: Method = method.parse().expect("a method");
            let answer = site.send_as(caller, method, &path, body.as_ref()).await;
            (answer.status, answer.text.replace(id, "ID"))
        };
        for caller in ["member", "reader", "other"] {
            assert_eq!(ask(caller, &id).await, ask(caller, unknown).await, "{caller} {method} {path}");
        }
    }
}
