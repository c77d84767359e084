//! Who did what.

use axum::http::Method;
use serde_json::{Value, json};

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
    // What is refused is not done.
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
