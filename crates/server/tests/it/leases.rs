//! Leases.

use ambient::Clock;
use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};

use crate::site::{Site, hosts_lease};

const START: &str = "2030-01-02 10:00";
const END: &str = "2030-01-02 12:00";

fn path_of(lease: &Value) -> String {
    format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"))
}

#[tokio::test]
async fn a_lease_is_made_shown_changed_and_deleted() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 2, START, END)).await;
    assert_eq!(lease["status"], "PENDING");
    assert_eq!(lease["start_date"], "2030-01-02T10:00:00.000000");
    assert_eq!(lease["created_at"], "2030-01-01 10:00:30");
    assert_eq!(lease["reservations"][0]["resource_type"], "physical:host");
    assert_eq!(lease["events"].as_array().map(Vec::len), Some(3));
    let path = path_of(&lease);
    assert_eq!(site.get(&path).await.ok(200)["lease"], lease);
    let mut listed = lease.clone();
    listed.as_object_mut().expect("a lease").remove("usage");
    assert_eq!(
        site.get("/v1/leases").await.ok(200)["leases"],
        json!([listed]),
        "what it comes to is not listed"
    );
    assert_eq!(site.put(&path, &json!({})).await.ok(200)["lease"]["status"], "PENDING");
    let renamed = site.put(&path, &json!({"name": "m"})).await.ok(200);
    assert_eq!(renamed["lease"]["name"], "m");
    let deleted = site.delete(&path).await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
}

#[tokio::test]
async fn a_lease_becomes_active_and_ends() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(2, 2, "now", "2030-01-01 12:00")).await;
    let active = site.until("2030-01-01T10:01:00Z", &lease, "ACTIVE").await;
    assert_eq!(active["reservations"][0]["status"], "active");
    let over = site.until("2030-01-01T12:00:00Z", &lease, "TERMINATED").await;
    assert_eq!(over["reservations"][0]["status"], "deleted");
    assert!(over["events"].as_array().expect("a list").iter().all(|event| event["status"] == "DONE"));
}

#[tokio::test]
async fn what_there_is_not_is_not_found() {
    let site = Site::open().await;
    for id in ["nosuch", "ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753"] {
        let text = format!("Object with {{'lease_id': '{id}'}} not found");
        for answer in [
            site.get(&format!("/v1/leases/{id}")).await,
            site.put(&format!("/v1/leases/{id}"), &json!({"name": "x"})).await,
            site.delete(&format!("/v1/leases/{id}")).await,
        ] {
            assert_eq!(answer.error(), (404, text.clone()));
        }
    }
}

#[tokio::test]
async fn w7_a_repeated_request_with_the_same_key_makes_one_lease() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let (start, end) = ("2030-01-01 20:00", "2030-01-01 22:00");
    let send = async |key: &str, body: &Value| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/v1/leases")
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Body::from(body.to_string()));
        site.send(request.expect("a request")).await
    };
    let body = hosts_lease(1, 1, start, end);
    let first = send("a", &body).await;
    let again = send("a", &body).await;
    assert!(!first.headers.contains_key("idempotency-replayed"));
    assert_eq!(again.headers["idempotency-replayed"], "true");
    let lease = first.ok(201)["lease"].clone();
    assert_eq!(again.ok(201)["lease"], lease);
    assert_ne!(send("b", &body).await.ok(201)["lease"]["id"], lease["id"]);
    let other = send("a", &hosts_lease(1, 2, start, end)).await;
    assert_eq!(other.status, 422, "{}", other.text);
    assert_eq!(send("", &body).await.status, 400);
    // The key still works after the start date, when such a lease could no longer be created.
    site.clock.set("2030-01-01T20:30:00Z".parse().expect("an instant"));
    assert_eq!(send("a", &body).await.ok(201)["lease"]["id"], lease["id"]);
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn w7_a_repeated_request_is_answered_whatever_has_changed_since() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let flavor = json!({"id": "f", "name": "f", "vcpus": 1, "ram": 1024, "disk": 10});
    site.post("/v1/flavors", &flavor).await.ok(201);
    let send = async |body: String| {
        let request = Request::builder()
            .method(Method::POST)
            .uri("/v1/leases")
            .header("content-type", "application/json")
            .header("idempotency-key", "a")
            .body(Body::from(body));
        site.send(request.expect("a request")).await
    };
    let body = json!({
        "name": "l", "start_date": "now", "end_date": "2030-01-01 11:00",
        "reservations": [{"resource_type": "flavor:instance", "flavor_id": "f", "amount": 1,
            "affinity": "None"}],
    });
    let lease = send(body.to_string()).await.ok(201)["lease"]["id"].clone();
    // The flavor is deleted, and the end date has passed.
    site.delete("/v1/flavors/f").await.ok(204);
    site.clock.set("2030-01-01T12:00:00Z".parse().expect("an instant"));
    let again = send(body.to_string()).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(again.ok(201)["lease"]["id"], lease);
    // A body with different bytes is a different request, whether it is the same JSON or invalid.
    assert_eq!(send(format!("{body} ")).await.status, 422);
    assert_eq!(send("{".to_owned()).await.status, 422);
}

#[tokio::test]
async fn the_present_of_a_request_is_when_it_came() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    // Both start in the minute of their request, and are decided in the next minute.
    let later = "2030-01-01T10:01:00Z".parse().expect("an instant");
    let body = hosts_lease(1, 1, "2030-01-01 10:00", "2030-01-01 12:00");
    let asked = site.clock.now();
    let mut request = Box::pin(site.post("/v1/leases", &body));
    assert!(futures::poll!(request.as_mut()).is_pending());
    site.clock.set(later);
    let lease = request.await.ok(201)["lease"].clone();
    assert_eq!(lease["created_at"], "2030-01-01 10:00:30");
    assert_eq!(site.post("/v1/leases", &body).await.status, 400);

    site.clock.set(asked);
    let coming = site.lease(&hosts_lease(1, 1, "2030-01-01 11:00", "2030-01-01 12:00")).await;
    let path = path_of(&coming);
    let sooner = json!({"start_date": "2030-01-01 10:00"});
    let mut request = Box::pin(site.put(&path, &sooner));
    assert!(futures::poll!(request.as_mut()).is_pending());
    site.clock.set(later);
    assert_eq!(request.await.ok(200)["lease"]["start_date"], "2030-01-01T10:00:00.000000");
}

#[tokio::test]
async fn w7_a_change_goes_on_when_its_client_goes_away() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let body = hosts_lease(1, 1, START, END);
    let mut request = Box::pin(site.post("/v1/leases", &body));
    // The request is polled once, and dropped before its response.
    let polled = std::future::poll_fn(|context| std::task::Poll::Ready(request.as_mut().poll(context))).await;
    drop(request);
    assert!(matches!(polled, std::task::Poll::Pending), "a decision is made elsewhere");
    for _ in 0..10_000 {
        if site.get("/v1/leases").await.ok(200)["leases"].as_array().map(Vec::len) == Some(1) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the lease is not made");
}

#[tokio::test]
async fn w8_a_request_cannot_set_what_belongs_to_the_service() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, START, END)).await;
    let own = ["id", "project_id", "user_id", "trust_id", "status", "degraded", "created_at"];
    for (day, field) in (3..).zip(own) {
        let (start, end) = (format!("2030-01-{day:02} 10:00"), format!("2030-01-{day:02} 12:00"));
        let mut body = hosts_lease(1, 1, &start, &end);
        body[field] = json!("x");
        assert_ne!(site.lease(&body).await[field], "x", "{field} is ignored");
    }
    for field in own.into_iter().chain(["nonsense"]) {
        let answer = site.put(&path_of(&lease), &json!({field: "x", "name": "y"})).await;
        assert_eq!(answer.error(), (400, format!("Unknown parameter {field}")));
        assert_eq!(answer.text.contains("is read-only"), field != "nonsense", "{}", answer.text);
    }
    let mut misspelt = hosts_lease(1, 1, START, END);
    misspelt["nonsense"] = json!("x");
    let text = "Unknown parameter nonsense".to_owned();
    assert_eq!(site.post("/v1/leases", &misspelt).await.error(), (400, text));
    for field in ["status", "lease_id", "resource_id", "missing_resources"] {
        let change = json!({"reservations": [{"id": lease["reservations"][0]["id"], field: "x"}]});
        let answer = site.put(&path_of(&lease), &change).await;
        assert_eq!(answer.error(), (400, format!("Unknown parameter reservations[0].{field}")));
    }
    assert_eq!(site.get(&path_of(&lease)).await.ok(200)["lease"], lease);
}

/// Clients of a fork of Blazar can create and change leases despite the fork's own fields.
#[tokio::test]
async fn unknown_fields_of_reservations_are_ignored() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let mut body = hosts_lease(1, 1, START, END);
    body["reservations"][0]["on_start"] = json!({"script": ["x"]});
    let preview = site.post("/v1/leases?dry_run=true", &body).await.ok(200)["lease"].clone();
    assert!(preview["reservations"][0].get("on_start").is_none(), "{preview}");
    let lease = site.lease(&body).await;
    assert!(lease["reservations"][0].get("on_start").is_none(), "{lease}");
    let id = lease["reservations"][0]["id"].clone();
    let only = json!({"reservations": [{"id": id, "on_start": null}]});
    let changed = site.put(&path_of(&lease), &only).await.ok(200)["lease"].clone();
    assert_eq!(changed["reservations"][0]["hosts"], lease["reservations"][0]["hosts"]);
    let more = json!({"reservations": [{"id": id, "on_start": null, "max": 2, "min": 2}]});
    let changed = site.put(&path_of(&lease), &more).await.ok(200)["lease"].clone();
    assert_eq!(changed["reservations"][0]["hosts"].as_array().map(Vec::len), Some(2));
    let wrong = json!({"reservations": [{"id": id, "on_start": null, "lease_id": "x"}]});
    let text = "Unknown parameter reservations[0].lease_id".to_owned();
    assert_eq!(site.put(&path_of(&lease), &wrong).await.error(), (400, text));
}

#[tokio::test]
async fn w9_a_refused_update_changes_nothing() {
    let site = Site::open().await;
    site.add_hosts(2).await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-01 10:05", "2030-01-01 12:00")).await;
    for (body, status) in [
        (json!({"before_end_date": "2029-01-01 00:00", "name": "x"}), 403),
        (json!({"end_date": "2030-01-01 13:00", "start_date": "2029-01-01 00:00"}), 400),
        (json!({"reservations": [{"id": lease["reservations"][0]["id"], "max": 9, "min": 9}]}), 400),
    ] {
        assert_eq!(site.put(&path_of(&lease), &body).await.status, status, "{body}");
        assert_eq!(site.get(&path_of(&lease)).await.ok(200)["lease"], lease);
    }
    site.until("2030-01-01T10:05:00Z", &lease, "ACTIVE").await;
}

#[tokio::test]
async fn w13_events_that_a_client_sends_are_passed_over() {
    let site = Site::open().await;
    let mut body = hosts_lease(1, 1, START, END);
    body["reservations"] = json!([]);
    body["events"] = json!([
        {"event_type": "start_lease", "event_date": "2030-01-02 10:30"},
        {"event_type": "x", "time": "2030-01-02 10:30"},
    ]);
    let lease = site.lease(&body).await;
    let kinds: Vec<_> =
        lease["events"].as_array().expect("a list").iter().map(|e| &e["event_type"]).collect();
    assert_eq!(kinds, ["start_lease", "before_end_lease", "end_lease"]);
    assert_eq!(site.delete(&path_of(&lease)).await.status, 204);
    body["events"] = json!("x");
    assert_eq!(site.post("/v1/leases", &body).await.error(), (400, "Malformed parameter events".to_owned()));
}

#[tokio::test]
async fn w17_an_expression_of_any_form_chooses_the_hosts_it_describes() {
    let site = Site::open().await;
    for (id, num) in [("1", "8"), ("2", "10")] {
        site.post("/v1/os-hosts", &json!({"id": id, "num": num})).await.ok(201);
    }
    let allocated = async |expression: &str| {
        let mut body = hosts_lease(1, 1, START, END);
        body["reservations"][0]["resource_properties"] = json!(expression);
        let lease = site.lease(&body).await;
        let path = format!("/v1/os-hosts/allocations?lease_id={}", lease["id"].as_str().expect("text"));
        let all = site.get(&path).await.ok(200)["allocations"].clone();
        let hosts = all.as_array().expect("a list").iter();
        let hosts = hosts.filter(|host| host["reservations"] != json!([]));
        let hosts: Vec<String> = hosts.map(|host| host["resource_id"].to_string()).collect();
        assert_eq!(site.delete(&path_of(&lease)).await.status, 204);
        hosts.join(",")
    };
    assert_eq!(allocated(r#"[">=", "$num", 10]"#).await, "\"2\"");
    assert_eq!(allocated(r#"["<", "$num", "10"]"#).await, "\"1\"");
    assert_eq!(allocated(r#"["not", ["in", "$num", "8"]]"#).await, "\"2\"");
    assert_eq!(allocated(r#"["or", ["==", "$nosuch", "x"], ["==", "$num", 8]]"#).await, "\"1\"");
    let nested = r#"["and", ["and", [">", "$num", 1], ["<", "$num", 9]], [">=", "$vcpus", "16"]]"#;
    assert_eq!(allocated(nested).await, "\"1\"");
}

#[tokio::test]
async fn w23_an_update_answers_with_the_real_status() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 12:00")).await;
    let lease = site.until("2030-01-01T10:01:00Z", &lease, "ACTIVE").await;
    let updated = site.put(&path_of(&lease), &json!({"end_date": "2030-01-01 13:00"})).await.ok(200);
    assert_eq!(updated["lease"]["status"], "ACTIVE");
    assert_eq!(site.put(&path_of(&lease), &json!({"name": "n"})).await.ok(200)["lease"]["status"], "ACTIVE");
}

#[tokio::test]
async fn the_end_action_is_what_was_asked_for() {
    let site = Site::open().await;
    let mut body = json!({"name": "l", "start_date": START, "end_date": END});
    assert_eq!(site.lease(&body).await["end_action"], "delete");
    body["end_action"] = json!("keep");
    assert_eq!(site.lease(&body).await["end_action"], "keep");
    body["end_action"] = json!("burn");
    assert_eq!(
        site.post("/v1/leases", &body).await.error(),
        (400, "Malformed parameter end_action".to_owned())
    );
}

#[tokio::test]
async fn the_end_action_is_changed_until_the_lease_has_ended() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let lease = site.lease(&hosts_lease(1, 1, "now", "2030-01-01 11:00")).await;
    let lease = site.until("2030-01-01T10:01:00Z", &lease, "ACTIVE").await;
    let path = path_of(&lease);
    let asked = json!({"end_action": "keep"});
    let tried = site.put(&format!("{path}?dry_run=true"), &asked).await.ok(200);
    assert_eq!(tried["lease"]["end_action"], "keep");
    assert_eq!(site.get(&path).await.ok(200)["lease"]["end_action"], "delete", "it was only tried");
    let changed = site.put(&path, &asked).await.ok(200)["lease"].clone();
    assert_eq!((&changed["end_action"], &changed["status"]), (&json!("keep"), &json!("ACTIVE")));
    let hosts = |lease: &Value| lease["reservations"][0]["hosts"].clone();
    assert_eq!(hosts(&changed), hosts(&lease), "it keeps what it has");
    let wrong = site.put(&path, &json!({"end_action": "burn"})).await.error();
    assert_eq!(wrong, (400, "Malformed parameter end_action".to_owned()));
    // Repeating the current value is not a change, whatever the state.
    site.until("2030-01-01T11:01:00Z", &lease, "TERMINATED").await;
    site.put(&path, &asked).await.ok(200);
    let late = site.put(&path, &json!({"end_action": "delete"})).await;
    assert_eq!(late.status, 400, "its guests are kept by now: {}", late.text);
}

#[tokio::test]
async fn guests_of_shared_hosts_are_neither_imaged_nor_moved_by_a_change() {
    let site = Site::open().await;
    site.add_hosts(1).await;
    let body = json!({"name": "l", "start_date": START, "end_date": END, "reservations": [
        {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 64, "disk_gb": 0,
         "affinity": null, "resource_properties": ""}]});
    let path = path_of(&site.lease(&body).await);
    for action in ["snapshot", "migrate"] {
        let refused = site.put(&path, &json!({"end_action": action})).await.error();
        assert_eq!(refused, (400, "Malformed parameter end_action".to_owned()), "{action}");
    }
    let kept = site.put(&path, &json!({"end_action": "keep"})).await.ok(200);
    assert_eq!(kept["lease"]["end_action"], "keep");
}

#[tokio::test]
async fn lists_are_filtered_and_come_in_pages() {
    let site = Site::open().await;
    for name in ["a", "b", "c", "b"] {
        site.lease(&json!({"name": name, "start_date": START, "end_date": END})).await;
        site.clock.advance(jiff::SignedDuration::from_secs(1));
    }
    let names = async |query: &str| {
        let body = site.get(&format!("/v1/leases?{query}")).await.ok(200);
        let leases = body["leases"].as_array().expect("a list").clone();
        let names: Vec<_> =
            leases.iter().map(|lease| lease["name"].as_str().unwrap_or("?").to_owned()).collect();
        (names.concat(), body["leases_links"][0]["href"].as_str().map(str::to_owned))
    };
    assert_eq!(names("").await, ("abcb".to_owned(), None));
    assert_eq!(names("name=b").await.0, "bb");
    assert_eq!(names("status=PENDING").await.0, "abcb");
    assert_eq!(names("status=ACTIVE").await.0, "");
    assert_eq!(names("project_id=admin").await.0, "abcb");
    assert_eq!(names("project_id=other").await.0, "");
    assert_eq!(names("colour=red&detail=").await.0, "abcb", "what is not known is passed over");
    let (first, next) = names("limit=2&name=b").await;
    assert_eq!((first.as_str(), next), ("bb", None));
    let (first, next) = names("limit=3").await;
    let next = next.expect("a link to the next page");
    assert_eq!(first, "abc");
    let rest = names(next.split_once('?').expect("a query").1).await;
    assert_eq!(rest, ("b".to_owned(), None));
    for wrong in ["limit=0", "limit=x", "limit=-1", "marker=x", "status=nonsense"] {
        assert_eq!(site.get(&format!("/v1/leases?{wrong}")).await.status, 400, "{wrong}");
    }
    let unknown = "marker=ecdcc9ea-d38d-4032-a9e3-3a8dbcc06753";
    assert_eq!(site.get(&format!("/v1/leases?{unknown}")).await.status, 400);
}

#[tokio::test]
async fn a_project_sees_its_own_leases_only() {
    let site = Site::guarded().await;
    let body = json!({"name": "l", "start_date": START, "end_date": END});
    let lease =
        site.send_as("member", Method::POST, "/v1/leases", Some(&body)).await.ok(201)["lease"].clone();
    assert_eq!((&lease["project_id"], &lease["user_id"]), (&json!("p"), &json!("member")));
    let count = async |token: &str, query: &str| {
        let answer = site.send_as(token, Method::GET, &format!("/v1/leases{query}"), None).await;
        answer.json()["leases"].as_array().map(Vec::len)
    };
    assert_eq!(count("reader", "").await, Some(1));
    assert_eq!(count("foreign", "").await, Some(0));
    assert_eq!(count("admin", "").await, Some(1));
    assert_eq!(count("admin", "?project_id=q").await, Some(0));
    assert_eq!(count("reader", "?project_id=p").await, Some(1));
    assert_eq!(count("foreign", "?project_id=p").await, None, "403");
    let text = "Policy doesn't allow blazar:leases:get to be performed";
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let answer = site.send_as("foreign", method, &path_of(&lease), Some(&json!({}))).await;
        assert_eq!(answer.error(), (403, text.to_owned()));
    }
}

#[tokio::test]
async fn cls_10_a_dry_run_says_what_would_be_and_does_nothing() {
    let site = Site::guarded().await;
    site.add_hosts_as("admin", 2).await;
    let send =
        async |method, path: &str, body: &Value| site.send_as("member", method, path, Some(body)).await;
    let dry = "/v1/leases?dry_run=true";
    let many = hosts_lease(3, 3, "2030-01-02 10:00", "2030-01-02 11:00");
    assert_eq!(send(Method::POST, dry, &many).await.status, 400, "there are two");
    let fits = hosts_lease(2, 2, "2030-01-02 10:00", "2030-01-02 11:00");
    let would = send(Method::POST, dry, &fits).await.ok(200)["lease"].clone();
    assert_eq!(
        (&would["status"], &would["end_date"]),
        (&json!("PENDING"), &json!("2030-01-02T11:00:00.000000"))
    );
    let all = site.send_as("admin", Method::GET, "/v1/leases", None).await.ok(200);
    assert_eq!(all["leases"], json!([]), "nothing was made");
    let made = send(Method::POST, "/v1/leases?dry_run=false", &fits).await.ok(201)["lease"].clone();
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("an id"));
    let dry = format!("{path}?dry_run=1");
    let longer = json!({"end_date": "2030-01-02 12:00"});
    let would = send(Method::PUT, &dry, &longer).await.ok(200)["lease"].clone();
    assert_eq!(would["end_date"], "2030-01-02T12:00:00.000000");
    let backwards = send(Method::PUT, &dry, &json!({"end_date": "2030-01-02 09:00"})).await;
    assert_eq!(backwards.status, 400, "{}", backwards.text);
    let is = site.send_as("member", Method::GET, &path, None).await.ok(200)["lease"].clone();
    assert_eq!(is, made, "nothing was changed");
    assert_eq!(send(Method::PUT, &format!("{path}?dry_run=maybe"), &longer).await.status, 400);
}
