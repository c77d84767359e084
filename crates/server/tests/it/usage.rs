//! Usage through the API. Tests are named after the criteria of USE and CLS-12.

use axum::http::Method;
use leases::scoped::{Scope, Scoped};
use leases::usage::{Decimal, Prices};
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

/// Adds a member's lease of two hosts from 10:00 to 12:00, and waits until it is ACTIVE, at 10:00:40.
async fn used(site: Site) -> (Site, Value) {
    site.add_hosts_as("admin", 3).await;
    let body = hosts_lease(2, 2, "now", "2030-01-01 12:00");
    let lease =
        site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.ok(201)["lease"].clone();
    let lease = site.until_as("member", "2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    (site, lease)
}

async fn get(site: &Site, who: &str, path: &str) -> Value {
    site.send_as(who, Method::GET, path, None).await.ok(200)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Lets one hour pass after the lease became ACTIVE.
async fn an_hour_later(site: &Site) {
    site.pass(jiff::SignedDuration::from_hours(1)).await;
}

#[tokio::test]
async fn cls_12_a_lease_shows_what_it_has_reserved_and_used() {
    let (site, lease) = used(Site::guarded().await).await;
    let path = format!("/v1/leases/{}?detail=true", lease["id"].as_str().expect("text"));
    let usage = get(&site, "member", &path).await["lease"]["usage"].clone();
    let hours = number(&usage["reserved"]["host_hours"]);
    assert!(hours > 3.9 && hours <= 4.0, "two hosts for two hours: {usage}");
    for (name, per_host) in [("core_hours", 16.0), ("gib_hours", 64.0)] {
        let product = number(&usage["reserved"][name]) / hours;
        assert!((product - per_host).abs() < 1e-3, "{name}: {usage}");
    }
    assert!(number(&usage["reserved_so_far"]["host_hours"]) < 0.1, "{usage}");
    an_hour_later(&site).await;
    let later = get(&site, "member", &path).await["lease"]["usage"].clone();
    assert_eq!(later["reserved"], usage["reserved"]);
    let passed = number(&later["reserved_so_far"]["host_hours"]);
    assert!(passed > 1.9 && passed < 2.1, "{later}");
    assert_eq!(later["used"]["instances_started"], 0);
    let list = get(&site, "member", "/v1/leases").await;
    assert!(list["leases"][0].get("usage").is_none(), "lists stay fast");
    let short = get(&site, "member", path.trim_end_matches("?detail=true")).await;
    assert!(short["lease"].get("usage").is_none(), "stock clients print all that there is");
}

#[tokio::test]
async fn cls_12_a_lease_that_waits_shows_what_is_foreseen() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 13:00")).await;
    let path = format!("/v1/leases/{}?detail=true", lease["id"].as_str().expect("text"));
    let usage = site.get(&path).await.ok(200)["lease"]["usage"].clone();
    assert_eq!(usage["reserved"]["host_hours"], 3.0);
    assert_eq!(usage["reserved"]["core_hours"], 48.0);
    assert_eq!(usage["reserved_so_far"]["host_hours"], 0.0);
}

#[tokio::test]
async fn usage_e_is_asked_by_what_one_wants_as_json_or_as_a_table() {
    let (site, lease) = used(Site::guarded().await).await;
    an_hour_later(&site).await;
    let whole = get(&site, "admin", "/v1/usage?start=2030-01-01").await;
    let sum = number(&whole["usage"][0]["reserved"]["host_hours"]);
    assert!(sum > 1.9 && sum < 2.1, "{whole}");
    assert_eq!(whole["usage"][0]["leases_started"], 1);
    assert!(whole["usage"][0].get("project_id").is_none());
    let parts = get(&site, "admin", "/v1/usage?start=2030-01-01&group_by=hour,project,pool,lease").await;
    let parts = parts["usage"].as_array().expect("a list");
    let hosts = parts.iter().filter(|part| part["pool"] == "freepool");
    let parted: f64 = hosts.clone().map(|part| number(&part["reserved"]["host_hours"])).sum();
    assert!((parted - sum).abs() < 1e-5, "{parted} {sum}");
    assert!(hosts.count() >= 2, "{parts:?}");
    assert!(parts.iter().all(|part| part["lease_id"] == lease["id"] && part["project_id"] == "p"));
    let table = "/v1/usage?start=2030-01-01&group_by=project,user&format=csv";
    let table = site.send_as("admin", Method::GET, table, None).await;
    assert_eq!(table.status, 200);
    let lines: Vec<&str> = table.text.lines().collect();
    assert!(lines[0].starts_with("start,end,project_id,user_id,leases_started,host_hours,"), "{lines:?}");
    assert!(lines.len() == 2 && lines[1].contains(",p,member,1,"), "{lines:?}");
    for wrong in [
        "group_by=colour",
        "group_by=day,month",
        "format=xml",
        "start=yesterday",
        "end=2029-01-01&start=2030-01-01",
        "lease_id=x",
        "start=1990-01-01&group_by=hour",
    ] {
        let answer = site.send_as("admin", Method::GET, &format!("/v1/usage?{wrong}"), None).await;
        assert_eq!(answer.status, 400, "{wrong}: {}", answer.text);
    }
}

#[tokio::test]
async fn usage_e_what_is_still_to_come_is_not_counted() {
    let (site, _) = used(Site::guarded().await).await;
    let future = get(&site, "admin", "/v1/usage?start=2030-01-01&end=2031-01-01").await;
    assert!(number(&future["usage"][0]["reserved"]["host_hours"]) < 0.1, "{future}");
    assert!(future["end"].as_str().expect("text").starts_with("2030-01-01T10:0"), "{future}");
    let later = get(&site, "admin", "/v1/usage?start=2030-06-01&end=2031-01-01").await;
    assert_eq!(later["usage"], json!([]));
}

#[tokio::test]
async fn usage_is_seen_by_its_project_and_by_administrators() {
    let (site, lease) = used(Site::guarded().await).await;
    an_hour_later(&site).await;
    let id = lease["id"].as_str().expect("text");
    for path in ["/v1/usage?start=2030-01-01", "/v1/usage/billing?start=2030-01-01", "/v1/usage/events?"] {
        let count = async |who: &str, more: &str| {
            let body = get(&site, who, &format!("{path}{more}")).await;
            let list = ["usage", "billing", "events"].iter().find_map(|name| body[*name].as_array());
            list.expect("a list").len()
        };
        assert!(count("member", "").await > 0 && count("reader", "").await > 0, "{path}");
        assert_eq!(count("foreign", "").await, 0, "{path}");
        assert_eq!(count("foreign", &format!("&lease_id={id}")).await, 0, "{path}");
        assert!(count("admin", "&project_id=p").await > 0, "{path}");
        assert_eq!(count("admin", "&project_id=q").await, 0, "{path}");
        let others = site.send_as("member", Method::GET, &format!("{path}&project_id=q"), None).await;
        assert_eq!(others.status, 403, "{path}");
    }
}

#[tokio::test]
async fn usage_a_events_are_read_one_after_the_other() {
    let (site, lease) = used(Site::guarded().await).await;
    let id = lease["id"].as_str().expect("text").to_owned();
    let put = json!({"end_date": "2030-01-01 13:00"});
    site.send_as("member", Method::PUT, &format!("/v1/leases/{id}"), Some(&put)).await.ok(200);
    let mut after = 0;
    let mut names = Vec::new();
    loop {
        let page = get(&site, "member", &format!("/v1/usage/events?limit=1&after={after}")).await;
        let Some(event) = page["events"].as_array().expect("a list").first() else { break };
        assert_eq!((&event["lease_id"], &event["project_id"]), (&json!(id), &json!("p")));
        assert_eq!(event["lease_type"], "SCHEDULE");
        assert_eq!(event["hosts"], json!([]), "which hosts is for administrators");
        names.push(event["event"].as_str().expect("text").to_owned());
        after = page["last"].as_u64().expect("a number");
    }
    assert_eq!(names, ["lease.created", "lease.starting", "lease.started", "lease.extended"]);
    let only = get(&site, "admin", "/v1/usage/events?event=lease.extended").await;
    assert_eq!(only["events"][0]["end_date"], "2030-01-01T13:00:00Z");
    assert_eq!(only["events"][0]["hosts"].as_array().expect("a list").len(), 2);
    let before = get(&site, "admin", "/v1/usage/events?end=2030-01-01T10:00:00Z").await;
    assert_eq!(before["events"], json!([]));
    for wrong in ["event=lease.dance", "after=x", "limit=0", "start=2031-01-01&end=2030-01-01"] {
        let answer = site.send_as("admin", Method::GET, &format!("/v1/usage/events?{wrong}"), None).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn usage_b_leases_are_billed_flat_and_by_instance() {
    let price = |text: &str| text.parse::<Decimal>().expect("a price");
    let prices = Prices {
        currency: "EUR".into(),
        lease: price("10").into(),
        host_hour: price("0.5").into(),
        instance_hour: price("0.25").into(),
        ..Prices::default()
    };
    let settings = Settings { prices, ..Settings::default() };
    let site = Site::of_settings(settings).await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 12:00")).await;
    let lease = site.until("2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let body = json!({"name": "web", "vcpus": 1, "memory_mb": 1, "disk_gb": 1,
        "scheduler_hints": {"lease": lease["id"]}});
    site.post("/v1/instances", &body).await.ok(201);
    site.pass(jiff::SignedDuration::from_mins(1)).await;
    site.pass(jiff::SignedDuration::from_hours(4)).await;
    site.until("2030-01-01T14:10:00Z", &lease, "TERMINATED").await;
    let bill = site.get("/v1/usage/billing?start=2030-01-01").await.ok(200);
    let line = |item: &str| {
        let lines = bill["billing"].as_array().expect("a list");
        lines.iter().find(|line| line["item"] == item).cloned().unwrap_or_else(|| panic!("{item}: {bill}"))
    };
    let decimal = |value: &Value| price(value.as_str().expect("text")).millionths;
    assert_eq!((&bill["currency"], &line("lease")["amount"]), (&json!("EUR"), &json!("10")));
    let host = line("host");
    assert_eq!((&host["unit"], &host["unit_price"]), (&json!("host-hour"), &json!("0.5")));
    assert_eq!(host["lease_name"], lease["name"]);
    let hours = decimal(&host["quantity"]);
    assert!(hours > 1_950_000 && hours < 2_000_000, "until its end: {host}");
    assert!(decimal(&host["amount"]).abs_diff(hours / 2) <= 1, "{host}");
    assert!(decimal(&line("instance")["amount"]) < 500_000, "a premium until the end of the lease");
    let sum: u128 = ["lease", "host", "instance"].iter().map(|item| decimal(&line(item)["amount"])).sum();
    assert_eq!(decimal(&bill["total"]), sum);
    let table = site.get("/v1/usage/billing?start=2030-01-01&interval=hour&format=csv").await.text;
    assert!(table.lines().count() > 4 && table.contains(",host-hour,0.5,"), "{table}");
}

#[tokio::test]
async fn usage_e_leases_count_where_their_hosts_are_and_nothing_has_no_row() {
    let site = Site::guarded().await;
    let pool = json!({"name": "fast"});
    site.send_as("admin", Method::POST, "/v1/freepools", Some(&pool)).await.ok(201);
    for id in ["1", "2"] {
        let body = json!({ "id": id });
        site.send_as("admin", Method::POST, "/v1/freepools/fast/hosts", Some(&body)).await.ok(201);
    }
    let host = json!({"id": "3"});
    site.send_as("admin", Method::POST, "/v1/os-hosts", Some(&host)).await.ok(201);
    let lease = hosts_lease(3, 3, "now", "2030-01-01 12:00");
    let lease =
        site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201)["lease"].clone();
    site.until_as("member", "2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    an_hour_later(&site).await;
    let rows = async |query: &str| {
        get(&site, "admin", &format!("/v1/usage?{query}")).await["usage"].as_array().expect("a list").clone()
    };
    let shown = |rows: &[Value]| -> Vec<(Value, Value)> {
        rows.iter().map(|row| (row["pool"].clone(), row["leases_started"].clone())).collect()
    };
    let by_pool = rows("group_by=pool").await;
    assert_eq!(
        shown(&by_pool),
        [(json!("fast"), json!(1)), (json!("freepool"), json!(0))],
        "most of its hosts are of the pool fast: {by_pool:?}"
    );
    assert!(by_pool.iter().all(|row| number(&row["reserved"]["host_hours"]) > 0.9));
    assert_eq!(shown(&rows("group_by=pool&pool=fast").await), [(json!("fast"), json!(1))]);
    for query in ["group_by=pool,lease_type", "group_by=lease_type", "group_by=pool,lease_type,hour"] {
        for row in rows(query).await {
            assert_eq!(row["lease_type"], "SCHEDULE", "{row}");
            assert!(number(&row["reserved"]["host_hours"]) > 0.0, "{row}");
        }
    }
}

#[tokio::test]
async fn a_dry_run_says_what_a_lease_would_cost() {
    let price = |text: &str| text.parse::<Decimal>().expect("a price");
    let prices = Prices {
        currency: "EUR".to_owned(),
        lease: price("10").into(),
        host_hour: price("0.5").into(),
        ..Prices::default()
    };
    let site = Site::of_settings(Settings { prices, ..Settings::default() }).await;
    site.add_hosts(2).await;
    let lease = hosts_lease(2, 2, "2030-01-02 10:00", "2030-01-02 13:00");
    let cost = |answer: &Value| answer["lease"]["cost"].clone();
    let dry = site.post("/v1/leases?dry_run=true", &lease).await.ok(200);
    assert_eq!(cost(&dry), json!({"amount": "13", "currency": "EUR"}), "a lease, and six host-hours");
    let made = site.lease(&lease).await;
    assert!(made.get("cost").is_none(), "clients of Blazar print all fields that they get: {made}");
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("text"));
    let longer = json!({"end_date": "2030-01-02 14:00"});
    assert_eq!(cost(&site.put(&format!("{path}?dry_run=true"), &longer).await.ok(200))["amount"], "14");
    assert_eq!(cost(&site.get(&format!("{path}?detail=true")).await.ok(200))["amount"], "13");
    let free = Site::open().await;
    free.add_hosts(2).await;
    let dry = free.post("/v1/leases?dry_run=true", &lease).await.ok(200);
    assert_eq!(cost(&dry), Value::Null, "nothing has a price");
}

#[tokio::test]
async fn prices_differ_by_pool_and_preemptible_instances_are_billed_to_their_owner() {
    let price = |text: &str| text.parse::<Decimal>().expect("a price");
    let prices = Prices {
        host_hour: Scoped::from(price("0.5")).with(Scope::pool("freepool"), price("2")),
        core_hour: price("0.4").into(),
        preemptible: price("0.25").into(),
        ..Prices::default()
    };
    let mut settings = Settings { prices, ..Settings::default() };
    settings.preemption.allowed = true;
    let site = Site::of_settings(settings).await;
    site.add_hosts(2).await;
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 13:00");
    let dry = site.post("/v1/leases?dry_run=true", &lease).await.ok(200);
    assert_eq!(dry["lease"]["cost"]["amount"], "6", "three hours of a host of that pool");
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 12:00")).await;
    site.until("2030-01-01T10:00:40Z", &lease, "ACTIVE").await;
    let body = json!({"name": "job", "vcpus": 2, "memory_mb": 1024, "disk_gb": 1,
        "scheduler_hints": {"preemptible": true}});
    site.post("/v1/instances", &body).await.ok(201);
    site.pass(jiff::SignedDuration::from_mins(1)).await;
    site.pass(jiff::SignedDuration::from_hours(1)).await;
    let bill = site.get("/v1/usage/billing?start=2030-01-01").await.ok(200);
    let line = |item: &str| {
        let lines = bill["billing"].as_array().expect("a list");
        lines.iter().find(|line| line["item"] == item).cloned().unwrap_or_else(|| panic!("{item}: {bill}"))
    };
    assert_eq!((&line("host")["unit_price"], &line("host")["lease_id"]), (&json!("2"), &lease["id"]));
    let core = line("preemptible-core");
    assert_eq!((&core["unit_price"], &core["unit"]), (&json!("0.1"), &json!("core-hour")));
    assert!(core.get("lease_id").is_none() && core["project_id"].is_string(), "{core}");
    assert!(price(core["amount"].as_str().expect("text")) > Decimal::ZERO, "{core}");
    let table = site.get("/v1/usage/billing?start=2030-01-01&format=csv").await.text;
    assert!(table.contains(",,preemptible-core,"), "{table}");
}
