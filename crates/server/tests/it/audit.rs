//! The audit log.

use axum::http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use service::Settings;

use crate::site::Site;

fn column<'a>(answer: &'a Value, field: &str) -> Vec<&'a str> {
    let entries = answer["audit"].as_array().expect("a list");
    entries.iter().map(|entry| entry[field].as_str().expect("text")).collect()
}

#[tokio::test]
async fn an_administrator_sees_who_did_what_in_which_request() {
    let site = Site::guarded().await;
    let lease = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
    let host = json!({"id": "1"});
    site.send_as("admin", Method::POST, "/v1/os-hosts", Some(&host)).await.ok(201);
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await;
    let request = made.headers["x-openstack-request-id"].to_str().expect("text").to_owned();
    let id = made.ok(201)["lease"]["id"].as_str().expect("text").to_owned();
    // Rejected requests are not in the log.
    site.send_as("reader", Method::POST, "/v1/leases", Some(&lease)).await.ok(403);
    site.send_as("foreign", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    site.send_as("member", Method::DELETE, &format!("/v1/leases/{id}"), None).await.ok(204);

    let ask = async |query: &str| {
        site.send_as("admin", Method::GET, &format!("/v1/audit{query}"), None).await.ok(200)
    };
    let all = ask("").await;
    assert_eq!(column(&all, "action"), ["lease.delete", "lease.create", "lease.create", "host.create"]);
    assert_eq!(column(&all, "user_id"), ["member", "foreign", "member", "admin"]);
    assert_eq!(all["audit"][2]["request_id"], request);
    assert_eq!(all["audit"][2]["timestamp"], "2030-01-01T10:00:30Z");
    for (query, count) in [
        ("?user_id=member".to_owned(), 2),
        ("?project_id=q".to_owned(), 1),
        ("?action=lease.create".to_owned(), 2),
        (format!("?object_id={id}"), 2),
        (format!("?object_id={id}&action=lease.delete"), 1),
        (format!("?request_id={request}"), 1),
    ] {
        assert_eq!(column(&ask(&query).await, "action").len(), count, "{query}");
    }
}

#[tokio::test]
async fn the_record_of_changes_is_read_page_by_page() {
    let site = Site::open().await;
    for number in 1..=4 {
        site.post("/v1/os-hosts", &json!({"id": number.to_string()})).await.ok(201);
    }
    let mut path = "/v1/audit?limit=3&action=host.create".to_owned();
    let mut objects = Vec::new();
    loop {
        let page = site.get(&path).await.ok(200);
        objects.extend(column(&page, "object_id").into_iter().map(str::to_owned));
        match page["audit_links"][0]["href"].as_str() {
            Some(next) => next.clone_into(&mut path),
            None => break,
        }
    }
    assert_eq!(objects, ["4", "3", "2", "1"]);
    for wrong in ["limit=0", "limit=x", "marker=x"] {
        assert_eq!(site.get(&format!("/v1/audit?{wrong}")).await.status, 400, "{wrong}");
    }
}

/// Records of administrators and of failed logins aren't displaced either, whatever their project.
#[tokio::test]
async fn a_members_flood_displaces_no_records_of_others() {
    let settings = Settings { keep_bytes: 8000, ..Settings::default() };
    let site = Site::guarded_of_settings(settings).await;
    let lease = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
    site.send_as("foreign", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let made = site.send_as("member", Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
    let path = format!("/v1/leases/{}", made["lease"]["id"].as_str().expect("text"));
    site.send_as("admin", Method::PUT, &path, Some(&json!({"end_date": "2030-01-02 11:30"}))).await.ok(200);
    site.send_as("wrong", Method::GET, "/v1/leases", None).await.ok(401);
    for number in 0..60 {
        let change = json!({"end_date": format!("2030-01-02 12:{number:02}")});
        site.send_as("member", Method::PUT, &path, Some(&change)).await.ok(200);
    }
    let audited = async |query: &str| {
        let page = site.send_as("admin", Method::GET, &format!("/v1/audit?limit=1000&{query}"), None).await;
        page.ok(200)["audit"].as_array().expect("a list").clone()
    };
    let told = async |token: &str| {
        let page = site.send_as(token, Method::GET, "/v1/notifications?limit=1000", None).await.ok(200);
        page["notifications"].as_array().expect("a list").clone()
    };
    let others = async || {
        let queries = ["user_id=foreign", "user_id=admin", "action=login.fail"];
        let [foreign, admin, logins] = queries;
        [told("foreign").await, audited(foreign).await, audited(admin).await, audited(logins).await]
    };
    // Failed logins are recorded after the response is sent.
    let mut before = others().await;
    while before[3].is_empty() {
        tokio::task::yield_now().await;
        before = others().await;
    }
    assert_eq!(before.each_ref().map(Vec::len), [1, 1, 1, 1]);
    let (mine, done) = (told("member").await, audited("user_id=member").await);
    assert_eq!((mine.len(), done.len()), (62, 61));

    site.clock.set(site.now() + SignedDuration::from_mins(15));
    let (mut left, mut left_done) = (mine.clone(), done.clone());
    while left.len() == mine.len() || left_done.len() == done.len() {
        tokio::task::yield_now().await;
        (left, left_done) = (told("member").await, audited("user_id=member").await);
    }
    assert_eq!(others().await, before);
    assert!(!left.is_empty() && mine.ends_with(&left), "the newest stay");
    assert!(!left_done.is_empty() && done.starts_with(&left_done), "the newest stay");
}
