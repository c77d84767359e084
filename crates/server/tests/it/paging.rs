//! The pages of a list add up to the list.

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::Site;

/// The list as `who` sees it, read by following links from page to page, with at most `limit` items on each.
async fn in_pages(site: &Site, who: &str, path: &str, field: &str, limit: usize) -> Vec<Value> {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut next = format!("{path}{separator}limit={limit}");
    let mut listed = Vec::new();
    loop {
        let body = site.send_as(who, Method::GET, &next, None).await.ok(200);
        let page = body[field].as_array().expect("a list");
        assert!(page.len() <= limit, "{next}");
        listed.extend(page.iter().cloned());
        let link = &body[format!("{field}_links")][0];
        if link.is_null() {
            return listed;
        }
        assert_eq!((&link["rel"], page.is_empty()), (&json!("next"), false), "{next}");
        link["href"].as_str().expect("an address").clone_into(&mut next);
    }
}

/// A site with several objects of each paged kind, in two projects.
async fn furnished() -> Site {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 4).await;
    for last in [200, 201, 202] {
        let address = format!("203.0.113.{last}");
        let ip = json!({"floating_network_id": "public", "floating_ip_address": address});
        site.send_as("admin", Method::POST, "/v1/floatingips", Some(&ip)).await.ok(201);
    }
    for (who, body) in [
        ("member", json!({"name": "one", "host_count": 1, "duration": "1h"})),
        ("foreign", json!({"name": "two", "host_count": 1, "duration": "1h"})),
        ("member", json!({"name": "three", "host_count": 1, "duration": "1h"})),
    ] {
        site.send_as(who, Method::POST, "/v1/leasepools", Some(&body)).await.ok(201);
    }
    site.seen(4).await;
    for (who, name) in [("member", "a"), ("foreign", "a"), ("member", "b"), ("member", "a")] {
        let lease = json!({"name": name, "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
        site.send_as(who, Method::POST, "/v1/leases", Some(&lease)).await.ok(201);
        let instance = json!({"name": name, "vcpus": 1, "memory_mb": 1});
        site.send_as(who, Method::POST, "/v1/instances", Some(&instance)).await.ok(201);
        site.clock.advance(jiff::SignedDuration::from_millis(10));
    }
    site
}

#[tokio::test]
async fn pages_of_every_list_are_the_whole_list() {
    let site = furnished().await;
    let lists = [
        ("/v1/leases", "leases", 7),
        ("/v1/leases?status=PENDING", "leases", 4),
        ("/v1/leases?name=a", "leases", 3),
        ("/v1/leases?name=a&status=PENDING&project_id=p", "leases", 2),
        ("/v1/leasepools", "leasepools", 3),
        ("/v1/instances", "instances", 4),
        ("/v1/os-hosts", "hosts", 4),
        ("/v1/os-hosts/allocations", "allocations", 4),
        ("/v1/floatingips", "floatingips", 3),
    ];
    for (path, field, count) in lists {
        let whole = site.send_as("admin", Method::GET, path, None).await.ok(200);
        assert!(whole[format!("{field}_links")].is_null(), "nothing comes after all of {path}");
        let whole = whole[field].as_array().expect("a list").clone();
        assert_eq!(whole.len(), count, "{path}");
        for limit in [1, 2, count, count + 1] {
            assert_eq!(in_pages(&site, "admin", path, field, limit).await, whole, "{path} by {limit}");
        }
        for wrong in ["limit=0", "limit=x", "marker=nosuch", "marker=ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753"] {
            let separator = if path.contains('?') { '&' } else { '?' };
            let answer = site.send_as("admin", Method::GET, &format!("{path}{separator}{wrong}"), None).await;
            assert_eq!(answer.status, 400, "{path} {wrong}");
        }
    }
}

#[tokio::test]
async fn pages_of_a_project_have_what_is_its_own_and_take_no_marker_of_another() {
    let site = furnished().await;
    for (path, field, count) in
        [("/v1/leases", "leases", 5), ("/v1/leasepools", "leasepools", 2), ("/v1/instances", "instances", 3)]
    {
        let own = in_pages(&site, "member", path, field, 1).await;
        assert_eq!(own.len(), count, "{path}");
        let theirs = in_pages(&site, "foreign", path, field, 1).await;
        let marker = match field {
            "leasepools" => &theirs[0]["lease_id"],
            _ => &theirs[0]["id"],
        };
        let path = format!("{path}?marker={}", marker.as_str().expect("an id"));
        assert_eq!(site.send_as("foreign", Method::GET, &path, None).await.status, 200, "{path}");
        assert_eq!(site.send_as("member", Method::GET, &path, None).await.status, 400, "{path}");
    }
}
