//! Quotas: limits on the sum of a project's leases.

use leases::quota::LeaseQuota;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Answer, Site, hosts_lease};

async fn site(quota: LeaseQuota) -> Site {
    let mut settings = Settings::default();
    settings.rules.enforcement.quota = quota;
    let site = Site::guarded_of_settings(settings).await;
    site.add_hosts_as("admin", 4).await;
    site
}

async fn ask(site: &Site, token: &str, body: &Value) -> Answer {
    site.send_as(token, axum::http::Method::POST, "/v1/leases", Some(body)).await
}

fn lease(hosts: u32, day: u32) -> Value {
    hosts_lease(hosts, hosts, &format!("2030-02-{day:02} 10:00"), &format!("2030-02-{day:02} 12:00"))
}

#[tokio::test]
async fn a_project_has_so_many_leases_and_another_has_its_own() {
    let site = site(LeaseQuota { leases: Some(2), ..LeaseQuota::default() }).await;
    let first = ask(&site, "member", &lease(1, 1)).await.ok(201)["lease"].clone();
    ask(&site, "member", &lease(1, 2)).await.ok(201);
    let refused = ask(&site, "member", &lease(1, 3)).await.error();
    let text = "Quota exceeded for leases: 2 of 2 leases are in use, and 1 are asked for";
    assert_eq!(refused, (403, text.to_owned()));
    ask(&site, "foreign", &lease(1, 3)).await.ok(201);
    let path = format!("/v1/leases/{}", first["id"].as_str().expect("an identifier"));
    let renamed = json!({"name": "other"});
    site.send_as("member", axum::http::Method::PUT, &path, Some(&renamed)).await.ok(200);
    site.send_as("member", axum::http::Method::DELETE, &path, None).await.ok(204);
    ask(&site, "member", &lease(1, 3)).await.ok(201);
}

#[tokio::test]
async fn a_change_and_a_series_count_as_well() {
    let quota = LeaseQuota { hosts: Some(3), host_hours: Some(9), ..LeaseQuota::default() };
    let site = site(quota).await;
    let made = ask(&site, "member", &lease(2, 1)).await.ok(201)["lease"].clone();
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("an identifier"));
    let longer = json!({"end_date": "2030-02-01 15:00"});
    let refused = site.send_as("member", axum::http::Method::PUT, &path, Some(&longer)).await.error();
    let text = "Quota exceeded for leases: 0 of 9 host-hours are in use, and 10 are asked for";
    assert_eq!(refused, (403, text.to_owned()));
    let refused = ask(&site, "member", &lease(4, 2)).await.error();
    let text = "Quota exceeded for leases: 0 of 3 hosts at one time are in use, and 4 are asked for";
    assert_eq!(refused, (403, text.to_owned()));
    let mut series = lease(1, 5);
    series["repeat"] = json!({"every": "1d", "times": 3});
    let (status, message) = ask(&site, "member", &series).await.error();
    assert_eq!(status, 403, "{message}");
    assert!(message.contains("8 of 9 host-hours"), "{message}");
    series["repeat"]["times"] = json!(2);
    ask(&site, "member", &series).await.ok(201);
}

#[tokio::test]
async fn what_neither_the_quota_nor_the_hosts_allow_is_refused_for_both() {
    let quota = LeaseQuota { hosts: Some(2), ..LeaseQuota::default() };
    let site = site(quota).await;
    ask(&site, "foreign", &lease(2, 1)).await.ok(201);
    let of_quota = "Quota exceeded for leases: 0 of 2 hosts at one time are in use, and 3 are asked for";
    let both = |refused: &Value| {
        let message = refused["error_message"].as_str().expect("a message");
        assert!(message.ends_with(of_quota), "{message}");
        let hint = refused["hint"].as_str().expect("a hint");
        assert!(hint.starts_with("beside the quota: Not enough hosts available: 3 hosts needed"), "{hint}");
    };
    for path in ["/v1/leases", "/v1/leases?dry_run=true"] {
        let refused =
            site.send_as("member", axum::http::Method::POST, path, Some(&lease(3, 1))).await.ok(403);
        both(&refused);
        let kinds = refused["offers"].as_array().expect("offers").iter().map(|offer| offer["kind"].clone());
        assert_eq!(kinds.collect::<Vec<_>>(), [json!("fewer_hosts")], "what the quota allows");
    }
    let mut series = lease(3, 1);
    series["repeat"] = json!({"every": "1w", "times": 2});
    both(&ask(&site, "member", &series).await.ok(403));
    let made = ask(&site, "member", &lease(1, 1)).await.ok(201)["lease"].clone();
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("an identifier"));
    let reservation = &made["reservations"][0]["id"];
    let change = json!({"reservations": [{"id": reservation, "min": 3, "max": 3}]});
    both(&site.send_as("member", axum::http::Method::PUT, &path, Some(&change)).await.ok(403));
    let mut waits = lease(3, 1);
    waits["waitlist"] = json!(true);
    ask(&site, "member", &waits).await.ok(202);
}

#[tokio::test]
async fn an_offer_is_accepted_within_the_quota_only() {
    let site = site(LeaseQuota { leases: Some(1), ..LeaseQuota::default() }).await;
    ask(&site, "foreign", &lease(4, 1)).await.ok(201);
    let path = "/v1/leases?hold_offers=true";
    let post = axum::http::Method::POST;
    let held = site.send_as("member", post.clone(), path, Some(&lease(1, 1))).await.ok(400);
    let offer = held["offers"][0]["id"].as_str().expect("an offer that is held");
    let made = ask(&site, "member", &lease(1, 3)).await.ok(201)["lease"].clone();
    let accept = format!("/v1/offers/{offer}/accept");
    let full = site.send_as("member", post.clone(), &accept, Some(&json!({}))).await.error();
    assert_eq!(full.0, 403, "it would be the second lease: {}", full.1);
    let refused = site.send_as("member", post.clone(), path, Some(&lease(1, 1))).await.ok(403);
    assert!(refused["offers"].is_null(), "nothing is offered that the quota has no room for: {refused}");
    let delete = format!("/v1/leases/{}", made["id"].as_str().expect("an identifier"));
    site.send_as("member", axum::http::Method::DELETE, &delete, None).await.ok(204);
    let held = site.send_as("member", post.clone(), path, Some(&lease(1, 1))).await.ok(400);
    let accept = format!("/v1/offers/{}/accept", held["offers"][0]["id"].as_str().expect("an offer"));
    site.send_as("member", post, &accept, Some(&json!({}))).await.ok(200);
    let full = ask(&site, "member", &lease(1, 3)).await.error();
    assert_eq!(full.0, 403, "what was accepted counts: {}", full.1);
}

#[tokio::test]
async fn who_waits_is_served_once_the_quota_has_room() {
    let site = site(LeaseQuota { leases: Some(1), ..LeaseQuota::default() }).await;
    let full = ask(&site, "foreign", &lease(4, 2)).await.ok(201)["lease"].clone();
    let mut waits = lease(1, 2);
    waits["waitlist"] = json!(true);
    ask(&site, "member", &waits).await.ok(202);
    let own = ask(&site, "member", &lease(1, 3)).await.ok(201)["lease"].clone();
    let path = |lease: &Value| format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
    let delete = async |token: &str, lease: &Value| {
        site.send_as(token, axum::http::Method::DELETE, &path(lease), None).await.ok(204);
        site.pass(jiff::SignedDuration::from_secs(1)).await;
    };
    let leases = async || {
        let all = site.send_as("member", axum::http::Method::GET, "/v1/leases", None).await.ok(200);
        all["leases"].as_array().expect("a list").len()
    };
    delete("foreign", &full).await;
    assert_eq!(leases().await, 1, "there are hosts, and no room in the quota");
    delete("member", &own).await;
    assert_eq!(leases().await, 1, "what waited is a lease now");
}

#[tokio::test]
async fn users_that_act_for_many_may_have_ten_times_the_usual_number_of_leases() {
    let site = Site::guarded_of_settings(Settings { usual_leases: Some(1), ..Settings::default() }).await;
    site.add_hosts_as("admin", 1).await;
    for day in 1..=10 {
        ask(&site, "admin", &lease(1, day)).await.ok(201);
    }
    let full = |limit: u32| {
        format!("Quota exceeded for leases: 10 of {limit} leases are in use, and 1 are asked for")
    };
    assert_eq!(ask(&site, "admin", &lease(1, 11)).await.error(), (403, full(10)));
    assert_eq!(ask(&site, "member", &lease(1, 11)).await.error(), (403, full(1)));
}

#[tokio::test]
async fn a_quota_that_is_set_counts_instead_of_the_usual_number_and_for_everybody() {
    let mut settings = Settings { usual_leases: Some(1), ..Settings::default() };
    settings.rules.enforcement.quota.leases = Some(2);
    let site = Site::guarded_of_settings(settings).await;
    site.add_hosts_as("admin", 1).await;
    ask(&site, "member", &lease(1, 1)).await.ok(201);
    ask(&site, "admin", &lease(1, 2)).await.ok(201);
    for token in ["member", "admin"] {
        assert_eq!(ask(&site, token, &lease(1, 3)).await.status, 403, "{token}");
    }
}
