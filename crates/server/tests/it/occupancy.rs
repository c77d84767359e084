//! Instances observed on the hosts of a lease, as members and administrators can see them.

use std::sync::Arc;

use axum::http::Method;
use jiff::SignedDuration;
use leases::ids::{GuestId, HostId};
use leases::plan::GuestOwner;
use serde_json::{Value, json};
use store::memory::MemoryStore;

use crate::site::{Site, hosts_lease};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// A running lease of project `p` with an instance of its own. When the lease started, another instance was
/// on its host.
async fn occupied() -> (Site, String, [GuestId; 2]) {
    let site = Site::still(Arc::new(MemoryStore::new())).await;
    site.add_hosts_as("admin", 1).await;
    site.pass(SignedDuration::ZERO).await;
    let other = site.fleet.start_guest(HostId(1), GuestOwner::Preemptible, None).expect("a free host");
    let body = hosts_lease(1, 1, "2030-01-01 10:05", "2030-01-01 12:00");
    let lease = site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.ok(201);
    let id = lease["lease"]["id"].as_str().expect("text").to_owned();
    for _ in 0..6 {
        site.pass(MINUTE).await;
    }
    let owner = GuestOwner::Lease(api::v1::lease_id(&id).expect("a UUID"));
    let own = site.fleet.start_guest(HostId(1), owner, None).expect("its own host");
    site.pass(MINUTE).await;
    (site, id, [other, own])
}

async fn ask(site: &Site, who: &str, lease: &str, query: &str) -> Value {
    let path = format!("/v1/leases/{lease}/occupancy{query}");
    site.send_as(who, Method::GET, &path, None).await.ok(200)
}

fn of_kind<'a>(answer: &'a Value, kind: &str) -> &'a Value {
    let all = answer["occupancy"].as_array().expect("a list");
    all.iter().find(|interval| interval["kind"] == kind).unwrap_or_else(|| panic!("no {kind}: {answer}"))
}

#[tokio::test]
async fn members_see_their_own_instances_and_that_there_were_others() {
    let (site, lease, [other, own]) = occupied().await;
    for who in ["member", "reader"] {
        let answer = ask(&site, who, &lease, "").await;
        let foreign = of_kind(&answer, "foreign_instance");
        assert_eq!((&foreign["instance_id"], &foreign["project_id"]), (&Value::Null, &Value::Null));
        assert!(foreign["end"].is_string() && foreign["host_id"] == "1", "{answer}");
        let owned = of_kind(&answer, "instance");
        assert_eq!((&owned["instance_id"], &owned["project_id"]), (&json!(own.to_string()), &json!("p")));
        assert_eq!((&owned["end"], of_kind(&answer, "held")["end"].is_null()), (&Value::Null, true));
        let text = answer.to_string();
        assert!(!text.contains(&other.to_string()) && !text.contains("somebody"), "{text}");
    }
    let answer = ask(&site, "admin", &lease, "").await;
    let foreign = of_kind(&answer, "foreign_instance");
    assert_eq!(foreign["instance_id"], other.to_string());
    assert_eq!(foreign["project_id"], "somebody");
    assert!(answer["seen_until"].as_str().is_some_and(|until| until >= "2030-01-01T10:06"), "{answer}");
}

#[tokio::test]
async fn intervals_are_read_page_by_page() {
    let (site, lease, _) = occupied().await;
    let all = ask(&site, "member", &lease, "").await["occupancy"].clone();
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = ask(&site, "member", &lease, &format!("?limit=2&after={after}")).await;
        let intervals = page["occupancy"].as_array().expect("a list").clone();
        after = page["last"].as_u64().expect("a number");
        if intervals.is_empty() {
            break;
        }
        found.extend(intervals);
    }
    assert!(found.len() > 3 && found[0]["begins"] == true, "{found:?}");
    assert_eq!(json!(found), all);
    let wrong =
        site.send_as("member", Method::GET, &format!("/v1/leases/{lease}/occupancy?after=x"), None).await;
    assert_eq!(wrong.error(), (400, "Malformed parameter after".to_owned()));
}

#[tokio::test]
async fn records_of_a_lease_that_is_gone_are_its_projects() {
    let (site, lease, _) = occupied().await;
    let path = format!("/v1/leases/{lease}/occupancy");
    let get = async |who: &str, path: &str| site.send_as(who, Method::GET, path, None).await;
    assert_eq!(get("foreign", &path).await.status, 404, "as if it were not there");
    site.send_as("member", Method::DELETE, &format!("/v1/leases/{lease}"), None).await.ok(204);
    site.pass(MINUTE).await;
    assert_eq!(get("member", &format!("/v1/leases/{lease}")).await.status, 404, "it is gone");
    for who in ["member", "reader", "admin"] {
        let answer = get(who, &path).await.ok(200);
        assert!(of_kind(&answer, "released")["end"].is_string(), "{answer}");
        let last = answer["last"].as_u64().expect("a number");
        let rest = get(who, &format!("{path}?after={last}")).await.ok(200);
        assert_eq!(rest["occupancy"], json!([]));
    }
    assert_eq!(get("foreign", &path).await.status, 404, "as if it had never been");
    let never = "/v1/leases/00000000-0000-4000-8000-000000000000/occupancy";
    assert_eq!(get("member", never).await.status, 404);
    assert_eq!(get("member", "/v1/leases/x/occupancy").await.status, 404);
}
