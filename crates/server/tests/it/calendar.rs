//! The calendar of host reservations, and its stream of changes.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::{Method, Request};
use futures::StreamExt;
use serde_json::{Value, json};
use server::{Config, Limits};
use tower::ServiceExt;

use crate::site::{Answer, Site, hosts_lease, request};

const FROM: &str = "start=2030-01-02T00:00:00Z&end=2030-01-03T00:00:00Z";

async fn ask(site: &Site, who: &str, query: &str) -> Answer {
    site.send_as(who, Method::GET, &format!("/v1/calendar?{query}"), None).await
}

fn rooms(amount: u32, start: &str, end: &str) -> Value {
    json!({"name": "rooms", "start_date": start, "end_date": end, "reservations": [{
        "resource_type": "virtual:instance", "vcpus": 4, "memory_mb": 512, "disk_gb": 1, "amount": amount,
        "affinity": null, "resource_properties": ""}]})
}

#[tokio::test]
async fn bars_say_what_is_on_each_host_and_which_lease_it_is() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let calendar = ask(&site, "admin", FROM).await.ok(200)["calendar"].clone();
    assert_eq!(
        (&calendar["start"], &calendar["now"]),
        (&json!("2030-01-02T00:00:00Z"), &json!("2030-01-01T10:00:30Z"))
    );
    let hosts = calendar["hosts"].as_array().expect("a list");
    assert_eq!(
        (&hosts[0]["name"], &hosts[0]["status"], &hosts[0]["power"]),
        (&json!("r1-h01"), &json!("open"), &json!("on"))
    );
    let bars: Vec<&Value> = hosts.iter().flat_map(|host| host["bars"].as_array().expect("a list")).collect();
    let expected = json!({"kind": "lease", "start": "2030-01-02T10:00:00Z", "end": "2030-01-02T12:00:00Z",
        "lease": 0, "instances": null, "whole": true});
    assert_eq!(bars, [&expected]);
    let leases = calendar["leases"].as_array().expect("a list");
    assert_eq!((leases.len(), &leases[0]["id"], &leases[0]["mine"]), (1, &made["lease"]["id"], &json!(true)));
    assert_eq!((&leases[0]["status"], &leases[0]["project_id"]), (&json!("PENDING"), &json!("p")));
    assert_eq!(calendar["next"], Value::Null);
}

#[tokio::test]
async fn a_member_sees_when_hosts_are_taken_and_of_whom_only_the_own_project() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    for who in ["member", "foreign"] {
        site.send_as(who, Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    }
    let offered = hosts_lease(2, 2, "2030-01-02 10:00", "2030-01-02 11:00");
    site.send_as("member", Method::POST, "/v1/leases?hold_offers=true", Some(&offered)).await.ok(400);
    let kinds = |answer: &Value| {
        let hosts = answer["calendar"]["hosts"].as_array().expect("a list");
        let bars = hosts.iter().flat_map(|host| host["bars"].as_array().expect("a list"));
        bars.map(|bar| bar["kind"].as_str().expect("text").to_owned()).collect::<BTreeSet<_>>()
    };
    let named = |answer: &Value| {
        let hosts = answer["calendar"]["hosts"].as_array().expect("a list");
        hosts.iter().filter(|host| host["name"].is_string()).count()
    };
    let own = ask(&site, "reader", FROM).await.ok(200);
    assert!(
        kinds(&own).contains("lease") && kinds(&own).contains("other") && kinds(&own).contains("offer"),
        "{own}"
    );
    let foreign = ask(&site, "foreign", FROM).await;
    assert!(!foreign.text.contains("\"p\"") && !foreign.text.contains("offer"), "{}", foreign.text);
    let foreign = foreign.ok(200);
    assert_eq!(kinds(&foreign), ["lease", "other"].map(str::to_owned).into());
    assert_eq!((named(&own), named(&foreign)), (1, 1), "hosts of own leases have names");
    let hosts = foreign["calendar"]["hosts"].as_array().expect("a list");
    assert!(hosts.iter().all(|host| host["power"].is_null()));
    assert_eq!(foreign["calendar"]["leases"].as_array().map(Vec::len), Some(1));
    for hidden in ["hypervisor_hostname", "id", "service_name", "filter_tenant_id"] {
        let answer = ask(&site, "member", &format!("group_by={hidden}")).await;
        assert_eq!(answer.status, 400, "{hidden}");
    }
    assert_eq!(ask(&site, "other", FROM).await.status, 403);
    let by_name = ask(&site, "admin", "group_by=hypervisor_hostname").await.ok(200);
    assert_eq!(by_name["calendar"]["hosts"][0]["group"], "r1-h01");
}

#[tokio::test]
async fn hosts_come_by_group_and_page_by_page_and_the_pages_are_the_whole() {
    let site = Site::open().await;
    site.add_hosts(4).await;
    site.put("/v1/os-hosts/1", &json!({"rack": "r9"})).await.ok(200);
    site.put("/v1/os-hosts/2", &json!({"rack": null})).await.ok(200);
    site.put("/v1/os-hosts/3", &json!({"reservable": false})).await.ok(200);
    site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    for (order, expected) in [("", ["1", "2", "3", "4"]), ("&group_by=rack", ["3", "4", "1", "2"])] {
        let whole = ask(&site, "any", &format!("{FROM}{order}")).await.ok(200)["calendar"]["hosts"].clone();
        let ids: Vec<&str> =
            whole.as_array().expect("a list").iter().map(|host| host["id"].as_str().expect("text")).collect();
        assert_eq!(ids, expected, "{order}");
        let (mut pages, mut marker) = (Vec::new(), String::new());
        loop {
            let page = ask(&site, "any", &format!("{FROM}{order}&limit=1{marker}")).await.ok(200);
            let hosts = page["calendar"]["hosts"].as_array().expect("a list").clone();
            assert_eq!(hosts.len(), 1);
            pages.extend(hosts);
            let Some(next) = page["calendar"]["next"].as_str() else { break };
            marker = format!("&marker={next}");
        }
        assert_eq!(Value::from(pages), whole, "{order}");
    }
    let groups = ask(&site, "any", "group_by=rack").await.ok(200)["calendar"]["hosts"].clone();
    assert_eq!((&groups[0]["group"], &groups[3]["group"]), (&json!("r1"), &Value::Null));
    assert_eq!((&groups[0]["status"], &groups[1]["status"]), (&json!("closed"), &json!("open")));
    let pool = ask(&site, "any", "pool=freepool").await.ok(200);
    assert_eq!(pool["calendar"]["hosts"].as_array().map(Vec::len), Some(4));
    assert_eq!(pool["calendar"]["hosts"][0]["pool"], "freepool");
}

#[tokio::test]
async fn what_is_past_is_shown_from_its_beginning_and_after_its_end() {
    let site = Site::still_of_settings(service::Settings::default()).await;
    site.add_hosts(2).await;
    site.pass(jiff::SignedDuration::from_secs(60)).await;
    let one = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 11:00")).await;
    let two = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 14:00")).await;
    site.pass(jiff::SignedDuration::from_mins(5)).await;
    site.pass(jiff::SignedDuration::from_mins(120)).await;
    let calendar = ask(&site, "any", "").await.ok(200)["calendar"].clone();
    assert_eq!(
        (&calendar["start"], &calendar["end"]),
        (&json!("2030-01-01T00:00:00Z"), &json!("2030-01-15T00:00:00Z"))
    );
    let statuses: Vec<(&Value, &Value)> = calendar["leases"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|lease| (&lease["id"], &lease["status"]))
        .collect();
    assert!(statuses.contains(&(&one["id"], &json!("TERMINATED"))), "{calendar}");
    assert!(statuses.contains(&(&two["id"], &json!("ACTIVE"))), "{calendar}");
    let bars = |calendar: &Value| {
        let hosts = calendar["hosts"].as_array().expect("a list").clone();
        let bars = hosts.iter().flat_map(|host| host["bars"].as_array().expect("a list").clone());
        let mut ends: Vec<String> = bars.map(|bar| bar["end"].as_str().expect("text").to_owned()).collect();
        ends.sort();
        ends
    };
    assert_eq!(bars(&calendar), ["2030-01-01T11:00:00Z", "2030-01-01T14:00:00Z"]);
    let past = ask(&site, "any", "start=2030-01-01T10:30:00Z&end=2030-01-01T10:45:00Z").await.ok(200);
    assert_eq!(bars(&past["calendar"]).len(), 2, "both had begun");
    let later = ask(&site, "any", "start=now").await.ok(200);
    assert_eq!(bars(&later["calendar"]), ["2030-01-01T14:00:00Z"]);
}

#[tokio::test]
async fn room_for_instances_is_a_share_of_the_host_and_a_count_of_bars() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&rooms(2, "2030-01-02 00:00", "2030-01-02 12:00")).await;
    let near = ask(&site, "any", FROM).await.ok(200)["calendar"].clone();
    let bar = &near["hosts"][0]["bars"][0];
    assert_eq!((&bar["instances"], &bar["whole"], &bar["kind"]), (&json!(2), &json!(false), &json!("lease")));
    let far = ask(&site, "any", &format!("{FROM}&bucket=720")).await.ok(200)["calendar"].clone();
    assert_eq!(
        (&far["hosts"][0]["buckets"], &far["bucket_minutes"]),
        (&json!([500, 0]), &json!(720)),
        "8 of 16 vCPUs"
    );
    assert!(far["hosts"][0].get("bars").is_none() && far["leases"] == json!([]));
}

#[tokio::test]
async fn an_answer_that_is_known_is_not_sent_again_until_something_changes() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let conditional = async |who: &str, query: &str, tag: &str| {
        let mut request = request(Method::GET, &format!("/v1/calendar?{query}"), who, None);
        request.headers_mut().insert("if-none-match", tag.parse().expect("a value"));
        site.send(request).await
    };
    let first = ask(&site, "admin", FROM).await;
    let tag = first.headers["etag"].to_str().expect("text").to_owned();
    assert!(tag.starts_with("W/\""));
    let again = conditional("admin", FROM, &tag).await;
    assert_eq!(
        (again.status.as_u16(), again.text.as_str(), &again.headers["etag"]),
        (304, "", &first.headers["etag"])
    );
    assert_eq!(conditional("member", FROM, &tag).await.status, 200, "somebody else may know less");
    assert_eq!(conditional("admin", &format!("{FROM}&bucket=60"), &tag).await.status, 200);
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let after = conditional("admin", FROM, &tag).await;
    assert_eq!(after.status, 200);
    assert_ne!(after.json()["calendar"]["revision"], first.json()["calendar"]["revision"]);
}

#[tokio::test]
async fn what_cannot_be_asked_of_the_calendar_is_refused_by_name() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    for (query, message) in [
        ("start=2030-01-03&end=2030-01-02", "The end must not be before the start"),
        ("start=2030-01-01&end=2032-01-01", "Malformed parameter end: the calendar shows 400 days at most"),
        ("end=9999-01-01", "Malformed parameter end: the calendar shows 400 days at most"),
        ("bucket=0", "Malformed parameter bucket"),
        (
            "bucket=1",
            "Malformed parameter bucket: there would be more than 2000 in that time; give a longer one",
        ),
        ("limit=0", "Malformed parameter limit"),
        ("marker=99", "marker 99 is not in the list"),
        ("marker=x", "Malformed parameter marker"),
        ("pool=nosuch", "Malformed parameter pool: there is no nosuch"),
    ] {
        assert_eq!(ask(&site, "any", query).await.error(), (400, message.to_owned()), "{query}");
    }
    let empty = ask(&site, "any", "start=2030-01-02&end=2030-01-02&bucket=10").await.ok(200);
    assert_eq!(empty["calendar"]["hosts"][0]["buckets"], json!([]));
}

/// A stream of change events.
struct Events(axum::body::BodyDataStream);

impl Events {
    async fn follow(site: &Site, who: &str, known: &str) -> Result<Self, u16> {
        let builder = Request::builder().uri("/v1/calendar/changes").header("x-auth-token", who);
        let request = builder.header("last-event-id", known).header("accept-encoding", "gzip, zstd");
        let request = request.body(Body::empty()).expect("a request");
        let response = site.router.clone().oneshot(request).await.expect("infallible");
        if response.status() != 200 {
            return Err(response.status().as_u16());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(!response.headers().contains_key("content-encoding"), "events arrive at once");
        Ok(Self(response.into_body().into_data_stream()))
    }

    /// The revision of the next event.
    async fn next(&mut self) -> Option<String> {
        let event = self.0.next().await?.expect("a body");
        let event = String::from_utf8(event.to_vec()).expect("text");
        let line = |name: &str| {
            event.lines().find_map(|line| line.strip_prefix(name)).map(|text| text.trim().to_owned())
        };
        assert_eq!(line("event:").as_deref(), Some("revision"), "{event}");
        let data: Value = serde_json::from_str(&line("data:").expect("data")).expect("JSON");
        assert_eq!(data["revision"], line("id:").expect("an identifier"), "{event}");
        line("id:")
    }
}

#[tokio::test]
async fn changes_are_told_as_they_happen_and_a_client_goes_on_where_it_was() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 1).await;
    let revision = async || {
        let answer = ask(&site, "member", FROM).await.ok(200);
        answer["calendar"]["revision"].as_str().expect("text").to_owned()
    };
    let mut events = Events::follow(&site, "member", "").await.expect("there is room");
    let mut told = events.next().await.expect("an event");
    // The loop can change something in between, which causes another event.
    while told != revision().await {
        told = events.next().await.expect("an event");
    }
    let mut resumed = Events::follow(&site, "member", &told).await.expect("there is room");
    let lease = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    site.send_as("foreign", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let (one, other) = (events.next().await.expect("an event"), resumed.next().await.expect("an event"));
    assert!(one != told && other != told, "{told} {one} {other}");
}

#[tokio::test]
async fn a_user_has_a_limited_number_of_streams_and_each_ends() {
    let limits = Limits {
        streams_per_user: 2,
        streams: 3,
        stream_time: std::time::Duration::from_secs(1),
        ..Limits::default()
    };
    let site = Site::guarded_with(Config { limits, ..Config::default() }).await;
    let one = Events::follow(&site, "member", "").await.expect("there is room");
    let mut two = Events::follow(&site, "member", "").await.expect("there is room");
    assert_eq!(Events::follow(&site, "member", "").await.err(), Some(429));
    let three = Events::follow(&site, "foreign", "").await.expect("others have theirs");
    assert_eq!(Events::follow(&site, "admin", "").await.err(), Some(429), "and all together have so many");
    drop((one, three));
    assert!(Events::follow(&site, "member", "").await.is_ok());
    while two.next().await.is_some() {}
    assert_eq!(Events::follow(&site, "", "").await.err(), Some(401));
}
