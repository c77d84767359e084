//! Permissions for every endpoint in the OpenAPI document, for each kind of caller. A new endpoint without a
//! row here fails the test.

use std::collections::BTreeMap;

use axum::http::Method;
use serde_json::{Value, json};

use crate::site::Site;

/// Callers that can use an endpoint: `admin`, `member` and `reader` of a project, a user with another role
/// there (`other`), and a member of another project (`foreign`), to whom objects look as if they didn't exist;
/// or everybody.
const MATRIX: [(&str, &str, &str); 101] = [
    ("GET", "/", "everybody"),
    ("GET", "/versions", "everybody"),
    ("GET", "/healthz", "everybody"),
    ("GET", "/readyz", "everybody"),
    ("GET", "/metrics", "everybody"),
    ("GET", "/identity", "everybody"),
    ("GET", "/identity/v3", "everybody"),
    ("POST", "/identity/v3/auth/tokens", "everybody"),
    ("GET", "/identity/v3/auth/tokens", "everybody"),
    ("DELETE", "/identity/v3/auth/tokens", "everybody"),
    ("GET", "/v1/leases", "admin member reader foreign"),
    ("POST", "/v1/leases", "admin member foreign"),
    ("GET", "/v1/leases/{lease_id}", "admin member reader"),
    ("GET", "/v1/leases/{lease_id}/plan", "admin member reader foreign"),
    ("GET", "/v1/leases/{lease_id}/occupancy", "admin member reader foreign"),
    ("PUT", "/v1/leases/{lease_id}", "admin member"),
    ("DELETE", "/v1/leases/{lease_id}", "admin member"),
    ("GET", "/v1/offers", "admin member reader foreign"),
    ("GET", "/v1/offers/{offer_id}", "admin member reader foreign"),
    ("POST", "/v1/offers/{offer_id}/accept", "admin member foreign"),
    ("DELETE", "/v1/offers/{offer_id}", "admin member foreign"),
    ("GET", "/v1/series/{series_id}", "admin member reader foreign"),
    ("DELETE", "/v1/series/{series_id}", "admin member foreign"),
    ("GET", "/v1/waitlist", "admin member reader foreign"),
    ("GET", "/v1/waitlist/{waitlist_entry_id}", "admin member reader foreign"),
    ("DELETE", "/v1/waitlist/{waitlist_entry_id}", "admin member foreign"),
    ("GET", "/v1/hints", "admin member reader foreign"),
    ("GET", "/v1/os-hosts", "admin"),
    ("POST", "/v1/os-hosts", "admin"),
    ("GET", "/v1/os-hosts/{host_id}", "admin"),
    ("PUT", "/v1/os-hosts/{host_id}", "admin"),
    ("DELETE", "/v1/os-hosts/{host_id}", "admin"),
    ("GET", "/v1/os-hosts/allocations", "admin"),
    ("GET", "/v1/os-hosts/{host_id}/allocation", "admin"),
    ("GET", "/v1/os-hosts/properties", "admin member reader foreign"),
    ("PATCH", "/v1/os-hosts/properties/{name}", "admin"),
    ("GET", "/v1/floatingips", "admin member reader foreign"),
    ("POST", "/v1/floatingips", "admin"),
    ("GET", "/v1/floatingips/{floatingip_id}", "admin member reader foreign"),
    ("DELETE", "/v1/floatingips/{floatingip_id}", "admin"),
    ("GET", "/v1/freepools", "admin"),
    ("POST", "/v1/freepools", "admin"),
    ("GET", "/v1/freepools/{freepool}", "admin"),
    ("PUT", "/v1/freepools/{freepool}", "admin"),
    ("DELETE", "/v1/freepools/{freepool}", "admin"),
    ("GET", "/v1/freepools/{freepool}/hosts", "admin"),
    ("POST", "/v1/freepools/{freepool}/hosts", "admin"),
    ("PUT", "/v1/freepools/{freepool}/hosts/{host_id}", "admin"),
    ("DELETE", "/v1/freepools/{freepool}/hosts/{host_id}", "admin"),
    ("GET", "/v1/leasepools", "admin member reader foreign"),
    ("POST", "/v1/leasepools", "admin member foreign"),
    ("GET", "/v1/leasepools/{leasepool_id}", "admin member reader foreign"),
    ("PUT", "/v1/leasepools/{leasepool_id}", "admin member foreign"),
    ("DELETE", "/v1/leasepools/{leasepool_id}", "admin member foreign"),
    ("GET", "/v1/leasepools/{leasepool_id}/hosts", "admin member reader foreign"),
    ("POST", "/v1/leasepools/{leasepool_id}/hosts", "admin member foreign"),
    ("POST", "/v1/leasepools/{leasepool_id}/swap", "admin member foreign"),
    ("POST", "/v1/maintenance", "admin"),
    ("GET", "/v1/flavors", "admin member reader foreign"),
    ("POST", "/v1/flavors", "admin"),
    ("GET", "/v1/flavors/{flavor_id}", "admin member reader foreign"),
    ("PUT", "/v1/flavors/{flavor_id}", "admin"),
    ("DELETE", "/v1/flavors/{flavor_id}", "admin"),
    ("GET", "/v1/instances", "admin member reader foreign"),
    ("POST", "/v1/instances", "admin member foreign"),
    ("POST", "/v1/instances/filter", "admin"),
    ("POST", "/v1/vendordata", "admin"),
    ("GET", "/v1/preemptible", "admin member reader foreign"),
    ("GET", "/v1/preemptible/projects", "admin"),
    ("PUT", "/v1/preemptible/projects/{pattern}", "admin"),
    ("DELETE", "/v1/preemptible/projects/{pattern}", "admin"),
    ("GET", "/v1/instances/{instance_id}", "admin member reader foreign"),
    ("DELETE", "/v1/instances/{instance_id}", "admin member foreign"),
    ("POST", "/v1/instances/{instance_id}/start", "admin member foreign"),
    ("GET", "/v1/notifications", "admin member reader foreign"),
    ("GET", "/v1/audit", "admin"),
    ("GET", "/v1/availability", "admin member reader foreign"),
    ("GET", "/v1/flavor-instances/availability", "admin member reader foreign"),
    ("GET", "/v1/calendar", "admin member reader foreign"),
    ("GET", "/v1/calendar/changes", "admin member reader foreign"),
    ("GET", "/v1/placement/clusters", "admin"),
    ("POST", "/v1/placement/balance", "admin member foreign"),
    ("POST", "/v1/placement/drain", "admin member foreign"),
    ("POST", "/v1/placement/whatif", "admin member foreign"),
    ("POST", "/v1/placement/fit", "admin member foreign"),
    ("POST", "/v1/session", "everybody"),
    ("GET", "/v1/session", "admin member reader other foreign"),
    ("DELETE", "/v1/session", "admin member reader other foreign"),
    ("GET", "/v1/settings", "admin"),
    ("GET", "/v1/names", "admin"),
    ("GET", "/v1/usage", "admin member reader foreign"),
    ("GET", "/v1/usage/billing", "admin member reader foreign"),
    ("GET", "/v1/usage/events", "admin member reader foreign"),
    ("GET", "/v1/capacity", "admin member reader foreign"),
    ("GET", "/v1/energy/plan", "admin"),
    ("GET", "/v1/energy/report", "admin"),
    ("GET", "/v1/energy/hosts", "admin"),
    ("GET", "/v1/drift", "admin"),
    ("POST", "/v1/drift/repair", "admin"),
    ("POST", "/v1/drift/accept-clock", "admin"),
    ("POST", "/v1/drift/accept-fleet", "admin"),
];

const CALLERS: [&str; 5] = ["foreign", "other", "reader", "member", "admin"];

/// All endpoints in the OpenAPI document.
pub fn endpoints() -> Vec<(String, String)> {
    let document = serde_json::to_value(server::openapi()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths").clone();
    let of = |(path, item): (String, Value)| {
        let methods: Vec<String> = item.as_object().expect("an item").keys().cloned().collect();
        let methods = methods.into_iter().filter(|name| {
            ["get", "put", "post", "delete", "patch", "head", "options", "trace"].contains(&name.as_str())
        });
        methods.map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.into_iter().flat_map(of).collect()
}

/// A site with an object of each kind, and their names by the variable in paths.
pub async fn furnished() -> (Site, BTreeMap<&'static str, String>) {
    let site = Site::guarded().await;
    let names = furnish(&site).await;
    (site, names)
}

/// Creates an object of each kind. Returns their names by the variable in paths.
pub async fn furnish(site: &Site) -> BTreeMap<&'static str, String> {
    let post = async |path: &str, token: &str, body: Value| {
        site.send_as(token, Method::POST, path, Some(&body)).await.ok(201)
    };
    let host = post("/v1/os-hosts", "admin", json!({"id": "1", "rack": "r1"})).await;
    let ip = json!({"floating_network_id": "public", "floating_ip_address": "203.0.113.200"});
    let ip = post("/v1/floatingips", "admin", ip).await;
    let flavor = json!({"id": "f1", "name": "f", "vcpus": 1, "ram": 1, "disk": 1});
    post("/v1/flavors", "admin", flavor).await;
    post("/v1/freepools", "admin", json!({"name": "fast"})).await;
    let lease = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
    let lease = post("/v1/leases", "member", lease).await;
    site.seen(1).await;
    let instance = post("/v1/instances", "member", json!({"name": "i", "vcpus": 1, "memory_mb": 1})).await;
    let hosts = crate::site::hosts_lease(1, 1, "2030-02-02 10:00", "2030-02-02 11:00");
    post("/v1/leases", "member", hosts.clone()).await;
    let series = json!({"name": "s", "start_date": "2030-01-02 10:00", "duration": "1h",
        "repeat": {"every": "1w", "times": 2}});
    let series = post("/v1/leases", "member", series).await;
    let mut waits = hosts.clone();
    waits["waitlist"] = json!(true);
    let waits = site.send_as("member", Method::POST, "/v1/leases", Some(&waits)).await.ok(202);
    let held =
        site.send_as("member", Method::POST, "/v1/leases?hold_offers=true", Some(&hosts)).await.ok(400);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    BTreeMap::from([
        ("{lease_id}", text(&lease["lease"]["id"])),
        ("{host_id}", text(&host["host"]["id"])),
        ("{floatingip_id}", text(&ip["floatingip"]["id"])),
        ("{flavor_id}", "f1".to_owned()),
        ("{pattern}", "spot-*".to_owned()),
        ("{freepool}", "fast".to_owned()),
        ("{leasepool_id}", text(&lease["lease"]["id"])),
        ("{instance_id}", text(&instance["instance"]["id"])),
        ("{offer_id}", text(&held["offers"][0]["id"])),
        ("{series_id}", text(&series["series"]["id"])),
        ("{waitlist_entry_id}", text(&waits["waitlist_entry"]["id"])),
        ("{name}", "rack".to_owned()),
    ])
}

#[tokio::test]
async fn every_endpoint_lets_in_whom_it_should_and_nobody_else() {
    let rows: BTreeMap<_, _> = MATRIX.iter().map(|(method, path, who)| ((*method, *path), *who)).collect();
    for (method, path) in endpoints() {
        let who = rows.get(&(method.as_str(), path.as_str()));
        let who = who.unwrap_or_else(|| panic!("{method} {path} has no row in the matrix"));
        let (mut site, mut names) = furnished().await;
        let named = |names: &BTreeMap<_, String>| {
            names.iter().fold(path.clone(), |path, (name, value)| path.replace(name, value))
        };
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let nobody = site.send_as("", method.clone(), &named(&names), None).await;
        let wrong = site.send_as("wrong", method.clone(), &named(&names), None).await;
        if *who == "everybody" {
            assert!(!nobody.text.contains("Policy") && nobody.status != 403, "{method} {path}");
            continue;
        }
        let expected = json!({"error": {"code": 401, "title": "Unauthorized",
            "message": "The request you have made requires authentication."}});
        for answer in [nobody, wrong] {
            // The console's session endpoint also lists the login methods.
            assert_eq!(answer.ok(401)["error"], expected["error"], "{method} {path}");
        }
        for caller in CALLERS {
            let answer = site.send_as(caller, method.clone(), &named(&names), None).await;
            if answer.status == 204 {
                // The object was deleted, so the next callers need a new one.
                (site, names) = furnished().await;
            }
            let refused = answer.text.contains("Policy doesn't allow blazar:");
            assert!(!refused || answer.status == 403, "{method} {path}");
            let allowed = who.split(' ').any(|name| name == caller);
            assert_eq!(!refused, allowed, "{caller} {method} {path}: {}", answer.text);
            // Allowed callers have reached the handler, past authentication.
            assert!(!allowed || answer.status != 401, "{caller} {method} {path}");
        }
    }
    assert_eq!(endpoints().len(), rows.len(), "a row for an endpoint that there is not");
}

#[tokio::test]
async fn what_is_not_said_to_be_public_is_closed() {
    let site = Site::guarded().await;
    for path in ["/nosuch", "/v1", "/v1/nosuch", "/v2", "/identityx", "/versions/", "/openapi.json/"] {
        assert_eq!(site.send_as("", Method::GET, path, None).await.status, 401, "{path}");
    }
    assert_eq!(site.send_as("", Method::OPTIONS, "/v1/leases", None).await.status, 401);
}
