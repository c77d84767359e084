//! Offers, flexible dates and the waitlist through the API (CLS-10).

use axum::http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use service::Settings;

use crate::site::{Site, hosts_lease};

const TEN: &str = "2030-01-02 10:00";
const ELEVEN: &str = "2030-01-02 11:00";

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

#[tokio::test]
async fn cls_10_b_a_refusal_says_what_could_be_had_instead() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let body = site.post("/v1/leases", &hosts_lease(2, 2, TEN, ELEVEN)).await.ok(400);
    assert_eq!(body["error_message"], "Not enough hosts available");
    let offers = body["offers"].as_array().expect("offers");
    let kinds: Vec<_> = offers.iter().map(|offer| text(&offer["kind"])).collect();
    assert_eq!(kinds, ["later_start", "fewer_hosts"]);
    assert!(offers.iter().all(|offer| offer["id"].is_null() && offer["expires_at"].is_null()));
    assert_eq!(offers[0]["lease"]["start_date"], "2030-01-02T11:00:00.000000");
    assert_eq!(offers[1]["lease"]["reservations"][0]["max"], 1);
    assert_eq!(site.get("/v1/offers").await.ok(200)["offers"], json!([]), "nothing is kept for anybody");
    let wrong = site.post("/v1/leases", &hosts_lease(2, 2, "2020-01-01 10:00", ELEVEN)).await;
    assert!(wrong.json()["offers"].is_null(), "{}", wrong.text);
}

#[tokio::test]
async fn cls_10_e_an_offer_that_is_held_is_shown_and_accepted_by_one_call() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let body = site.post("/v1/leases?hold_offers=true", &hosts_lease(1, 1, TEN, ELEVEN)).await.ok(400);
    let offer = &body["offers"][0];
    let path = format!("/v1/offers/{}", text(&offer["id"]));
    assert_eq!(offer["expires_at"], "2030-01-01T10:01:30Z");
    assert_eq!(&site.get(&path).await.ok(200)["offer"], offer);
    assert_eq!(site.get("/v1/offers").await.ok(200)["offers"], json!([offer]));
    assert_eq!(offer["host_ids"], json!(["1"]), "an administrator sees what is reserved");
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"].as_array().map(Vec::len), Some(1));
    let lease = site.post(&format!("{path}/accept"), &json!({})).await.ok(200)["lease"].clone();
    for field in ["id", "start_date", "end_date", "project_id"] {
        assert_eq!(lease[field], offer["lease"][field], "{field}");
    }
    assert_eq!(site.get(&format!("/v1/leases/{}", text(&lease["id"]))).await.ok(200)["lease"], lease);
    assert_eq!(site.get(&path).await.status, 404);
    assert_eq!(site.post(&format!("{path}/accept"), &json!({})).await.status, 404);
}

#[tokio::test]
async fn cls_10_e_offers_are_held_for_the_time_that_a_client_asks_for() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let refused = hosts_lease(1, 1, TEN, ELEVEN);
    let path = "/v1/leases?hold_offers=true&hold_for=10m";
    let body = site.post(path, &refused).await.ok(400);
    assert_eq!(body["offers"][0]["expires_at"], "2030-01-01T10:10:30Z");
    for path in ["/v1/leases?hold_offers=true&hold_for=16m", "/v1/leases?hold_for=16m"] {
        let answer = site.post(path, &refused).await;
        assert_eq!(answer.error(), (400, "Malformed parameter hold_for".to_owned()), "{path}");
        assert!(answer.text.contains("at most 15 minutes"), "{}", answer.text);
    }
    let said = site.post("/v1/leases?hold_for=10m", &refused).await.ok(400);
    assert!(said["offers"][0]["id"].is_null(), "nobody asked to hold them");
}

#[tokio::test]
async fn cls_10_e_offers_are_numbered_for_their_user_the_newest_refusal_first() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let send = async |who: &str, method: Method, path: &str, body: Option<&Value>| {
        site.send_as(who, method, path, body).await
    };
    let numbers = |offers: &Value| -> Vec<Option<u64>> {
        offers.as_array().expect("offers").iter().map(|offer| offer["number"].as_u64()).collect()
    };
    let refused = async |who: &str, day: u32| {
        let hosts = |count| {
            let time = |hour: u32| format!("2030-02-{day:02} {hour}:00");
            hosts_lease(count, count, &time(10), &time(12))
        };
        send("admin", Method::POST, "/v1/leases", Some(&hosts(1))).await.ok(201);
        let path = "/v1/leases?hold_offers=true&hold_for=10m";
        send(who, Method::POST, path, Some(&hosts(2))).await.ok(400)["offers"].clone()
    };
    let first = refused("member", 1).await;
    assert_eq!(numbers(&first), [Some(1), Some(2)]);
    site.pass(SignedDuration::from_secs(1)).await;
    let second = refused("member", 2).await;
    assert_eq!(numbers(&second), [Some(1), Some(2)]);
    site.pass(SignedDuration::from_secs(1)).await;
    refused("foreign", 3).await;
    let listed = send("member", Method::GET, "/v1/offers", None).await.ok(200)["offers"].clone();
    assert_eq!(numbers(&listed), [Some(1), Some(2), Some(3), Some(4)]);
    for (at, offer) in [(0, &second[0]), (1, &second[1]), (2, &first[0]), (3, &first[1])] {
        assert_eq!((&listed[at]["id"], &listed[at]["kind"]), (&offer["id"], &offer["kind"]));
        let path = format!("/v1/offers/{}", text(&offer["id"]));
        assert_eq!(send("member", Method::GET, &path, None).await.ok(200)["offer"], listed[at]);
    }
    let all = send("admin", Method::GET, "/v1/offers", None).await.ok(200)["offers"].clone();
    assert_eq!(numbers(&all), [None; 6], "they are to others");
}

#[tokio::test]
async fn cls_10_e_an_offer_can_be_declined() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let body = site.post("/v1/leases?hold_offers=true", &hosts_lease(1, 1, TEN, ELEVEN)).await.ok(400);
    let path = format!("/v1/offers/{}", text(&body["offers"][0]["id"]));
    assert_eq!(site.delete(&path).await.status, 204);
    assert_eq!(site.delete(&path).await.status, 404);
}

#[tokio::test]
async fn cls_10_c_a_refused_change_says_what_the_lease_could_become() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    site.lease(&hosts_lease(1, 1, "2030-01-02 12:00", "2030-01-02 13:00")).await;
    let path = format!("/v1/leases/{}", text(&lease["id"]));
    let longer = json!({"end_date": "2030-01-02 12:30"});
    let said = site.put(&format!("{path}?dry_run=true"), &longer).await.ok(400);
    assert!(said["offers"][0]["id"].is_null());
    let held = site.put(&format!("{path}?hold_offers=true"), &longer).await.ok(400);
    let offers = held["offers"].as_array().expect("offers");
    let shorter = offers.iter().find(|offer| offer["kind"] == "shorter_duration").expect("until noon");
    assert_eq!((&shorter["lease_id"], &shorter["lease"]["id"]), (&lease["id"], &lease["id"]));
    assert_eq!(site.get(&path).await.ok(200)["lease"]["end_date"], lease["end_date"], "it is as it was");
    let accept = format!("/v1/offers/{}/accept", text(&shorter["id"]));
    let longer = site.post(&accept, &json!({})).await.ok(200)["lease"].clone();
    assert_eq!((&longer["id"], &longer["end_date"]), (&lease["id"], &json!("2030-01-02T12:00:00.000000")));
}

#[tokio::test]
async fn cls_10_f_a_lease_lies_anywhere_between_two_dates() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let mut flexible = hosts_lease(1, 1, "2030-01-02 09:30", "2030-01-02 14:00");
    flexible["duration"] = json!("2h");
    let lease = site.lease(&flexible).await;
    assert_eq!(lease["start_date"], "2030-01-02T11:00:00.000000");
    assert_eq!(lease["end_date"], "2030-01-02T13:00:00.000000");
    flexible["duration"] = json!("5h");
    let text = site.post("/v1/leases", &flexible).await.error().1;
    assert_eq!(text, "The duration must not be longer than the time from start_date to end_date");
}

#[tokio::test]
async fn cls_10_g_a_request_that_waits_is_shown_and_can_be_withdrawn() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    site.lease(&hosts_lease(1, 1, TEN, ELEVEN)).await;
    let mut wish = hosts_lease(1, 1, TEN, ELEVEN);
    wish["waitlist"] = json!(true);
    let entry = site.post("/v1/leases", &wish).await.ok(202)["waitlist_entry"].clone();
    assert_eq!((&entry["place"], &entry["expires_at"]), (&json!(1), &json!("2030-01-02T10:00:00Z")));
    let path = format!("/v1/waitlist/{}", text(&entry["id"]));
    assert_eq!(site.get(&path).await.ok(200)["waitlist_entry"], entry);
    assert_eq!(site.get("/v1/waitlist").await.ok(200)["waitlist"], json!([entry]));
    assert_eq!(site.get(&format!("/v1/leases/{}", text(&entry["id"]))).await.status, 404);
    assert_eq!(site.delete(&path).await.status, 204);
    assert_eq!(site.get(&path).await.status, 404);
    wish["waitlist"] = json!("perhaps");
    assert_eq!(site.post("/v1/leases", &wish).await.error().1, "Malformed parameter waitlist");
}

#[tokio::test]
async fn cls_10_h_a_refused_series_says_if_there_is_no_time_for_cleaning_between_its_leases() {
    let settings = Settings { cleaning_time: SignedDuration::from_mins(10), ..Settings::default() };
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    let mut days = hosts_lease(1, 1, "2030-03-01 00:00", "2030-03-02 00:00");
    days["repeat"] = json!({"every": "1d", "times": 3});
    let answer = site.post("/v1/leases", &days).await;
    assert!(answer.text.contains("hosts are cleaned after each lease"), "{}", answer.text);
}

#[tokio::test]
async fn cls_10_h_leases_that_recur_are_made_listed_and_deleted_together() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let mut weekly = hosts_lease(1, 1, TEN, ELEVEN);
    weekly["repeat"] = json!({"every": "1w", "times": 3});
    let would = site.post("/v1/leases?dry_run=true", &weekly).await.ok(200);
    assert_eq!(would["series"]["leases"].as_array().map(Vec::len), Some(3));
    let series = site.post("/v1/leases", &weekly).await.ok(201)["series"].clone();
    let starts: Vec<_> =
        series["leases"].as_array().expect("leases").iter().map(|lease| text(&lease["start_date"])).collect();
    let expected = ["2030-01-02T10:00:00.000000", "2030-01-09T10:00:00.000000", "2030-01-16T10:00:00.000000"];
    assert_eq!(starts, expected);
    let id = text(&series["id"]);
    let listed = site.get(&format!("/v1/leases?series_id={id}")).await.ok(200);
    assert!(listed["leases"].as_array().expect("leases").iter().all(|lease| lease["series_id"] == id));
    assert_eq!(site.get(&format!("/v1/series/{id}")).await.ok(200)["series"]["id"], id);
    let answer = site.post("/v1/leases", &weekly).await;
    let refused = "2030-01-02T10:00:00.000000: Not enough hosts available".to_owned();
    assert_eq!(answer.error(), (400, refused));
    assert!(answer.text.contains("--skip-unavailable"), "{}", answer.text);
    let mut overlapping = hosts_lease(1, 1, "2030-03-01 09:00", "2030-03-02 11:00");
    overlapping["repeat"] = json!({"every": "1d", "times": 3});
    let answer = site.post("/v1/leases", &overlapping).await;
    assert!(answer.text.contains("overlap each other"), "{}", answer.text);
    overlapping["repeat"] = json!({"every": "1d", "until": "2030-03-01"});
    let answer = site.post("/v1/leases", &overlapping).await;
    assert_eq!(answer.error(), (400, "Malformed parameter repeat.until".to_owned()));
    overlapping["repeat"] = json!({"every": "1d", "times": 3, "skip_unavailable": true});
    overlapping["reservations"][0]["resource_properties"] = json!("[\"==\", \"$gpu\", \"a\"]");
    let answer = site.post("/v1/leases", &overlapping).await;
    assert!(!answer.text.contains("skip"), "{}", answer.text);
    assert_eq!(site.delete(&format!("/v1/series/{id}")).await.status, 204);
    assert_eq!(site.get(&format!("/v1/series/{id}")).await.status, 404);
    weekly["waitlist"] = json!(true);
    assert_eq!(site.post("/v1/leases", &weekly).await.error().1, "Malformed parameter repeat");
}
