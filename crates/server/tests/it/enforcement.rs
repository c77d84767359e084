//! Limits on leases, and the external service that can reject them (API-enforcement).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use jiff::SignedDuration;
use leases::scoped::Scope;
use serde_json::{Value, json};
use server::{Config, ExternalService, ExternalServiceConfig};
use service::Settings;

use crate::site::{Site, hosts_lease};

/// Path, token and body of a request.
type Question = (String, Option<String>, Value);

/// Requests that the test's external service has received, and its response.
#[derive(Clone, Default)]
struct Asked {
    requests: Arc<Mutex<Vec<Question>>>,
    answer: Arc<Mutex<(u16, String)>>,
}

impl Asked {
    fn answers(&self, status: u16, body: &str) {
        *self.answer.lock().expect("no panic") = (status, body.to_owned());
    }

    fn take(&self) -> Vec<Question> {
        std::mem::take(&mut self.requests.lock().expect("no panic"))
    }
}

async fn answer(
    State(asked): State<Asked>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    assert_eq!(headers["content-type"], "application/json");
    let token = headers.get("x-auth-token").map(|token| token.to_str().expect("text").to_owned());
    let body = serde_json::from_str(&body).expect("JSON");
    asked.requests.lock().expect("no panic").push((uri.path().to_owned(), token, body));
    let (status, text) = asked.answer.lock().expect("no panic").clone();
    (StatusCode::from_u16(status).expect("a status"), text)
}

fn external(base: &str) -> ExternalServiceConfig {
    ExternalServiceConfig {
        token: Some("secret".into()),
        auth_url: Some("http://keystone".to_owned()),
        region_name: Some("r".to_owned()),
        ..ExternalServiceConfig::new(base.to_owned())
    }
}

/// A site that uses the test's external service.
async fn site() -> (Site, Asked) {
    let asked = Asked::default();
    asked.answers(204, "");
    let app = axum::Router::new().fallback(answer).with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}/usage/", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let enforcer = ExternalService::new(&external(&base)).expect("settings");
    let site = Site::with(Config::default(), Some(Arc::new(enforcer))).await;
    site.add_hosts(2).await;
    (site, asked)
}

#[tokio::test]
async fn the_external_service_is_asked_in_blazars_form() {
    let (site, asked) = site().await;
    let lease = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await;
    let [(path, token, body)] = <[_; 1]>::try_from(asked.take()).expect("one request");
    assert_eq!((path.as_str(), token.as_deref()), ("/usage/check-create", Some("secret")));
    let context = json!({
        "user_id": "admin", "project_id": "admin", "auth_url": "http://keystone", "region_name": "r",
    });
    assert_eq!(body["context"], context);
    let told = &body["lease"];
    assert_eq!((&told["name"], &told["status"]), (&json!("l"), &json!("CREATING")));
    assert_eq!(told["start_date"], "2030-01-02T10:00:00");
    let reservation = &told["reservations"][0];
    assert_eq!((&reservation["min"], &reservation["resource_type"]), (&json!(1), &json!("physical:host")));
    assert_eq!(reservation["allocations"][0]["rack"], "r1", "hosts with all their capabilities");
    assert!(reservation.get("id").is_none());

    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("text"));
    site.put(&path, &json!({"end_date": "2030-01-02 13:00"})).await.ok(200);
    let [(asked_path, _, body)] = <[_; 1]>::try_from(asked.take()).expect("one request");
    assert_eq!(asked_path, "/usage/check-update");
    assert_eq!(body["current_lease"]["id"], lease["id"]);
    assert_eq!(body["current_lease"]["end_date"], "2030-01-02T12:00:00");
    assert_eq!(body["lease"]["end_date"], "2030-01-02T13:00:00");
    assert!(body["lease"].get("name").is_none(), "it does not change");
    assert_eq!(body["lease"]["reservations"][0]["allocations"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_the_external_service_refuses_is_not_done() {
    let (site, asked) = site().await;
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    let generic = "External service enforcement filter denied the request.";
    for (status, text, message) in [
        (403, "{\"message\": \"No budget\"}", "No budget"),
        (403, "no JSON", generic),
        (200, "", generic),
        (500, "", generic),
        (302, "", generic),
    ] {
        asked.answers(status, text);
        assert_eq!(site.post("/v1/leases", &body).await.error(), (400, message.to_owned()));
    }
    assert_eq!(site.get("/v1/leases").await.ok(200)["leases"], json!([]));
    asked.answers(204, "");
    let lease = site.lease(&body).await;
    asked.answers(403, "{\"message\": \"No budget\"}");
    let path = format!("/v1/leases/{}", lease["id"].as_str().expect("text"));
    let error = site.put(&path, &json!({"end_date": "2030-01-02 13:00"})).await.error();
    assert_eq!(error, (400, "No budget".to_owned()));
    assert_eq!(site.get(&path).await.ok(200)["lease"], lease);
}

#[tokio::test]
async fn w27_an_external_service_that_does_not_answer_in_time_allows_nothing() {
    // Accepts connections, but never responds.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut config = external(&format!("http://{address}"));
    config.timeout = Duration::ZERO;
    let enforcer = ExternalService::new(&config).expect("settings");
    let site = Site::with(Config::default(), Some(Arc::new(enforcer))).await;
    site.add_hosts(1).await;
    let error =
        site.post("/v1/leases", &hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00")).await.error();
    assert_eq!(error, (400, "External service enforcement filter denied the request.".to_owned()));
}

#[tokio::test]
async fn a_lease_that_is_too_long_is_forbidden_and_an_extension_refused() {
    let mut settings = Settings::default();
    settings.rules.enforcement.max_lease_duration = Some(SignedDuration::from_hours(24)).into();
    let site = Site::of_settings(settings).await;
    let text = "Lease duration of 104400 seconds must be less than or equal to the maximum lease duration of \
                86400 seconds.";
    let lease = |end: &str| json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": end});
    let error = site.post("/v1/leases", &lease("2030-01-03 15:00")).await.error();
    assert_eq!(error, (403, text.to_owned()));
    let made = site.lease(&lease("2030-01-03 10:00")).await;
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("text"));
    let error = site.put(&path, &json!({"end_date": "2030-01-03 15:00"})).await.error();
    assert_eq!(error, (400, text.to_owned()));
}

#[tokio::test]
async fn the_limit_of_a_free_pool_holds_for_new_leases_for_series_and_for_extensions() {
    let mut settings = Settings::default();
    let limits = &mut settings.rules.enforcement.max_lease_duration;
    limits.insert(Scope::pool("freepool"), Some(SignedDuration::from_hours(24)));
    let site = Site::of_settings(settings).await;
    site.add_hosts(1).await;
    let text = "Lease duration of 104400 seconds must be less than or equal to the maximum lease duration of \
                86400 seconds for its free pool (leases.max_duration).";
    let long = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-03 15:00");
    for path in ["/v1/leases", "/v1/leases?dry_run=true"] {
        assert_eq!(site.post(path, &long).await.error(), (403, text.to_owned()), "{path}");
    }
    let mut weekly = long;
    weekly["repeat"] = json!({"every": "1w", "times": 3});
    let answer = site.post("/v1/leases", &weekly).await;
    assert!(answer.status.is_client_error() && answer.text.contains(text), "{}", answer.text);
    let made = site.lease(&hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-03 10:00")).await;
    let path = format!("/v1/leases/{}", made["id"].as_str().expect("text"));
    let error = site.put(&path, &json!({"end_date": "2030-01-03 15:00"})).await.error();
    assert_eq!(error, (400, text.to_owned()));
}
