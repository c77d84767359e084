//! What members ask for that is costly.

use std::time::Duration;

use e2e::leasing::acknowledged::whole_hosts;
use e2e::leasing::date::Minute;
use reqwest::Method;
use serde_json::{Value, json};

/// What the members of a scenario do, again and again.
#[derive(Debug)]
pub struct Scenario {
    /// What it is called.
    pub name: &'static str,
    /// What is asked for the time of that number.
    pub ask: fn(usize) -> Ask,
    /// How long members wait for an answer.
    pub patience: Duration,
    /// Whether they read what they are answered.
    pub reads: bool,
}

/// A request.
#[derive(Debug)]
pub struct Ask {
    pub method: Method,
    pub path: String,
    pub body: Option<Value>,
}

const fn scenario(name: &'static str, ask: fn(usize) -> Ask) -> Scenario {
    Scenario { name, ask, patience: Duration::from_mins(1), reads: true }
}

/// All of them.
pub const ALL: [Scenario; 16] = [
    scenario("nothing", |_| get("/healthz")),
    scenario("each instance on another host", |number| lease("", number, &distinct(1000))),
    scenario("more instances than hosts", |number| lease("", number, &distinct(20_000))),
    scenario("many long expressions", |number| lease("", number, &expressions())),
    scenario("series of many reservations", series),
    scenario("offers that are held", |number| lease("?hold_offers=true", number, &json!([most_hosts()]))),
    scenario("dry runs", |number| lease("?dry_run=true", number, &json!([most_hosts()]))),
    scenario("hints with a long query", hinted),
    scenario("requests on the waitlist", waiting),
    scenario("usage by the hour", |_| get(&usage())),
    scenario("allocations of all hosts", |_| get("/v1/os-hosts/allocations")),
    scenario("pages of leases", |number| get(&format!("/v1/leases?limit={}", 1 + number % 100))),
    scenario("all leases", |_| get("/v1/leases")),
    Scenario { reads: false, ..scenario("all hosts, unread", |_| get("/v1/os-hosts")) },
    Scenario {
        patience: Duration::from_millis(20),
        ..scenario("clients that leave at once", |number| lease("", number, &distinct(1000)))
    },
    // The last, since some of them have all hosts from then on.
    scenario("best-effort leases", best_effort),
];

fn get(path: &str) -> Ask {
    Ask { method: Method::GET, path: path.to_owned(), body: None }
}

fn post(path: &str, body: Value) -> Ask {
    Ask { method: Method::POST, path: path.to_owned(), body: Some(body) }
}

/// An hour in the years to come, another one each time.
fn hour(number: usize) -> [String; 2] {
    let start = Minute::now().plus(60 * (24 * 400 + (number as i64 * 37) % 10_000));
    [start.sent(), start.plus(60).sent()]
}

fn lease(query: &str, number: usize, reservations: &Value) -> Ask {
    post(&format!("/v1/leases{query}"), body(number, reservations))
}

fn body(number: usize, reservations: &Value) -> Value {
    let [start, end] = hour(number);
    json!({"name": "costly", "start_date": start, "end_date": end, "reservations": reservations})
}

fn distinct(amount: usize) -> Value {
    json!([{"resource_type": "virtual:instance", "amount": amount, "vcpus": 1, "memory_mb": 1, "disk_gb": 1,
            "affinity": false, "resource_properties": ""}])
}

/// Nearly all hosts, so that it is refused where anybody has any.
fn most_hosts() -> Value {
    whole_hosts(990, 1000)
}

/// Compares with as many values as it may.
fn expression(values: usize) -> String {
    let mut words = vec![json!("in"), json!("$capability2")];
    words.extend((0..values).map(|value| json!(format!("value {value}"))));
    Value::Array(words).to_string()
}

fn expressions() -> Value {
    let mut wanted = whole_hosts(1, 1);
    wanted["resource_properties"] = json!(expression(499));
    Value::Array(vec![wanted; 50])
}

fn series(number: usize) -> Ask {
    let mut body = body(number, &Value::Array(vec![distinct(200)[0].clone(); 10]));
    body["repeat"] = json!({"every": "1w", "times": 50});
    post("/v1/leases?dry_run=true", body)
}

fn hinted(number: usize) -> Ask {
    let mut body = body(number, &json!([most_hosts()]));
    body["scheduler_hints"] = json!({"query": expression(499)});
    post("/v1/leases", body)
}

/// One of many that wait for the same hosts.
fn best_effort(number: usize) -> Ask {
    let start = Minute::now().plus(60);
    let mut body = body(number, &json!([whole_hosts(200, 200)]));
    body["lease_type"] = json!("best-effort");
    body["timeout"] = json!("7d");
    (body["start_date"], body["end_date"]) = (json!(start.sent()), json!(start.plus(600).sent()));
    post("/v1/leases", body)
}

fn waiting(number: usize) -> Ask {
    let mut body = body(number, &json!([whole_hosts(1000, 1000), whole_hosts(1, 1)]));
    body["waitlist"] = json!(true);
    post("/v1/leases", body)
}

fn usage() -> String {
    let (end, hours) = (Minute::now(), 24 * 30);
    let start = end.plus(-60 * hours);
    let escaped = |minute: Minute| minute.sent().replace(' ', "%20");
    format!("/v1/usage?group_by=lease,user,hour&start={}&end={}", escaped(start), escaped(end))
}
