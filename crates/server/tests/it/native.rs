//! Features that Blazar lacks or implements differently: floating IPs, flavors, notifications, metrics.

use axum::body::Body;
use axum::http::Request;
use serde_json::json;

use crate::site::Site;

#[tokio::test]
async fn a_floating_ip_is_entered_shown_and_taken_away() {
    let site = Site::open().await;
    let body = json!({"floating_network_id": "public", "floating_ip_address": "203.0.113.200"});
    let ip = site.post("/v1/floatingips", &body).await.ok(201)["floatingip"].clone();
    assert_eq!(ip["floating_ip_address"], "203.0.113.200");
    let path = format!("/v1/floatingips/{}", ip["id"].as_str().expect("text"));
    assert_eq!(site.get(&path).await.ok(200)["floatingip"], ip);
    assert_eq!(site.get("/v1/floatingips").await.ok(200)["floatingips"], json!([ip]));
    assert_eq!(site.post("/v1/floatingips", &body).await.status, 409);
    for (network, address, status) in [
        ("public", "203.0.113.50", 400),
        ("public", "192.0.2.1", 404),
        ("nosuch", "203.0.113.201", 400),
        ("public", "x", 400),
    ] {
        let body = json!({"floating_network_id": network, "floating_ip_address": address});
        assert_eq!(site.post("/v1/floatingips", &body).await.status, status, "{body}");
    }
    let missing = site.post("/v1/floatingips", &json!({})).await.error();
    assert_eq!(missing, (400, "Missing parameter floating_network_id,floating_ip_address".to_owned()));
    assert_eq!(site.delete(&path).await.status, 204);
    assert_eq!(
        site.get("/v1/floatingips/nosuch").await.error(),
        (404, "Floating IP nosuch not found.".to_owned())
    );
}

#[tokio::test]
async fn a_reserved_floating_ip_stays() {
    let site = Site::open().await;
    let body = json!({"floating_network_id": "public", "floating_ip_address": "203.0.113.200"});
    let ip = site.post("/v1/floatingips", &body).await.ok(201)["floatingip"].clone();
    let lease = site
        .lease(&json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00",
            "reservations": [{"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1,
                "required_floatingips": ["203.0.113.200"]}]}))
        .await;
    assert_eq!(lease["reservations"][0]["required_floatingips"], json!(["203.0.113.200"]));
    let error = site.delete(&format!("/v1/floatingips/{}", ip["id"].as_str().expect("text"))).await.error();
    assert!(error.0 == 409 && error.1.contains("is allocated by reservations."), "{error:?}");
}

#[tokio::test]
async fn a_flavor_is_entered_reserved_and_taken_away() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let body = json!({"id": "f1", "name": "m1.small", "vcpus": 2, "ram": 2048, "disk": 10});
    let flavor = site.post("/v1/flavors", &body).await.ok(201)["flavor"].clone();
    assert_eq!(flavor["OS-FLV-EXT-DATA:ephemeral"], 0);
    assert_eq!(site.post("/v1/flavors", &body).await.status, 409);
    assert_eq!(
        site.put("/v1/flavors/f1", &flavor).await.ok(200)["flavor"],
        flavor,
        "answers can be sent back"
    );
    assert_eq!(site.get("/v1/flavors").await.ok(200)["flavors"], json!([flavor]));
    let lease = site
        .lease(&json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00",
            "reservations": [{"resource_type": "flavor:instance", "flavor_id": "f1", "amount": 3,
                "affinity": "None"}]}))
        .await;
    let reservation = &lease["reservations"][0];
    let text = reservation["resource_properties"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).expect("JSON"), flavor);
    assert_eq!((&reservation["vcpus"], &reservation["amount"]), (&json!(2), &json!(3)));
    assert_eq!(reservation["flavor_id"], reservation["id"]);
    assert_eq!(site.delete("/v1/flavors/f1").await.status, 204);
    assert_eq!(site.get("/v1/flavors/f1").await.status, 404);
    let unsupported =
        json!({"name": "x", "vcpus": 1, "ram": 1, "disk": 0, "extra_specs": {"resources1:VGPU": "1"}});
    assert_eq!(site.post("/v1/flavors", &unsupported).await.status, 400);
}

#[tokio::test]
async fn notifications_can_be_followed() {
    let site = Site::open().await;
    let nothing = site.get("/v1/notifications").await.ok(200);
    assert_eq!(nothing, json!({"notifications": [], "last": 0}));
    let waiting = async { site.get("/v1/notifications?after=0&wait=60").await.ok(200) };
    let making = async {
        site.lease(&json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00"}))
            .await
    };
    let (seen, lease) = tokio::join!(waiting, making);
    let first = &seen["notifications"][0];
    assert_eq!((&first["event_type"], &first["lease_id"]), (&json!("lease.create"), &lease["id"]));
    assert_eq!(first["payload"]["name"], "l");
    let after = format!("/v1/notifications?after={}", seen["last"]);
    assert_eq!(site.get(&after).await.ok(200)["notifications"], json!([]));
    assert_eq!(site.get("/v1/notifications?after=x").await.status, 400);
}

#[tokio::test]
async fn a_project_is_told_of_its_own_leases_only() {
    let site = Site::guarded().await;
    let body = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-03 10:00"});
    site.send_as("member", axum::http::Method::POST, "/v1/leases", Some(&body)).await.ok(201);
    let count = async |token: &str| {
        let answer = site.send_as(token, axum::http::Method::GET, "/v1/notifications", None).await.ok(200);
        (answer["notifications"].as_array().map(Vec::len), answer["last"].as_u64())
    };
    assert_eq!(count("reader").await, (Some(1), Some(1)));
    assert_eq!(count("admin").await, (Some(1), Some(1)));
    assert_eq!(count("foreign").await, (Some(0), Some(1)), "what was passed over is not looked at again");
}

#[tokio::test]
async fn the_server_says_how_it_is() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    assert_eq!(site.get("/healthz").await.text, "ok\n");
    tokio::task::yield_now().await;
    assert_eq!(site.get("/readyz").await.text, "ready\n");
    site.fleet.set_obstacle(Some("the service's own user can't log in to Keystone"));
    let degraded = site.get("/readyz").await;
    assert_eq!(degraded.status, 200, "requests are served all the same");
    let text = "degraded: the service's own user can't log in to Keystone, so no lease can start or end\n";
    assert_eq!(degraded.text, text);
    site.fleet.set_obstacle(None);
    assert_eq!(site.get("/readyz").await.text, "ready\n");
    let figures = [
        "allot_hosts 2",
        "allot_http_requests_total{method=\"POST\",route=\"/v1/os-hosts\",status=\"201\"} 2",
        "allot_http_request_duration_seconds_count{method=\"POST\",route=\"/v1/os-hosts\"} 2",
    ];
    let older = site.get("/metrics").await;
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    let request = Request::get("/metrics").header("accept", accept).body(Body::empty()).expect("a request");
    let newer = site.send(request).await;
    for (answer, content_type, counter) in [
        (&older, "text/plain; version=0.0.4; charset=utf-8", "# TYPE allot_cycles_total counter\n"),
        (
            &newer,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "# TYPE allot_cycles counter\n",
        ),
    ] {
        assert_eq!(answer.headers["content-type"], content_type);
        for line in figures.into_iter().chain([counter]) {
            assert!(answer.text.contains(line), "{line} is not in:\n{}", answer.text);
        }
    }
    assert!(newer.text.ends_with("# EOF\n") && !older.text.contains("# EOF"));
    // Each sample has a description under its name in that format.
    let described = |name: &str| older.text.contains(&format!("# HELP {name} "));
    for line in older.text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().expect("a name");
        let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end));
        assert!(described(name) || of_histogram.is_some_and(described), "{line}");
    }
}
