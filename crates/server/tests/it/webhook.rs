//! Notifications pushed to a listener that fails, doesn't respond, and gets duplicates.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use server::{Config, ExecConfig, WebhookConfig};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::site::{Site, hosts_lease};

/// Behavior of the listener after it has read a request.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Responds with this status.
    Answers(u16),
    /// Never responds.
    Lags,
}

#[derive(Debug)]
struct Told {
    id: String,
    signature: Option<String>,
    notification: Value,
}

/// A listener that records notifications and behaves as planned. After the plan, it accepts every
/// notification.
struct Listener {
    url: String,
    told: mpsc::UnboundedReceiver<Told>,
}

#[derive(Clone)]
struct Desk {
    tell: mpsc::UnboundedSender<Told>,
    plan: Arc<Mutex<VecDeque<Manner>>>,
}

async fn take(State(desk): State<Desk>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).map(|value| value.to_str().expect("text").to_owned());
    let told = Told {
        id: header("webhook-id").expect("an identifier"),
        signature: header("webhook-signature"),
        notification: serde_json::from_slice(&body).expect("JSON"),
    };
    // The test might have stopped receiving.
    let _ = desk.tell.send(told);
    let manner = desk.plan.lock().expect("no panic").pop_front();
    match manner {
        None => StatusCode::NO_CONTENT,
        Some(Manner::Answers(status)) => StatusCode::from_u16(status).expect("a status"),
        Some(Manner::Lags) => {
            std::future::pending::<()>().await;
            StatusCode::NO_CONTENT
        }
    }
}

impl Listener {
    async fn start(plan: &[Manner]) -> Self {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/told", socket.local_addr().expect("an address"));
        let (tell, told) = mpsc::unbounded_channel();
        let desk = Desk { tell, plan: Arc::new(Mutex::new(plan.iter().copied().collect())) };
        let router = axum::Router::new().route("/told", axum::routing::post(take)).with_state(desk);
        tokio::spawn(async move { axum::serve(socket, router).await });
        Self { url, told }
    }

    async fn site(&self) -> Site {
        let webhook = WebhookConfig {
            secret: Some("hush".into()),
            timeout: Duration::from_secs(1),
            first_pause: Duration::from_millis(1),
            ..WebhookConfig::new(self.url.clone())
        };
        Site::with(Config { webhook: Some(webhook), ..Config::default() }, None).await
    }

    async fn next(&mut self) -> Told {
        self.told.recv().await.expect("the listener lives")
    }
}

/// Starts to push notifications. Returns the sender that stops the task, and the task.
fn push(site: &Site) -> (watch::Sender<bool>, JoinHandle<()>) {
    let (stop, stopped) = watch::channel(false);
    (stop, tokio::spawn(server::push_notifications(site.app.clone(), stopped)))
}

async fn make(site: &Site, name: &str) {
    make_on(site, name, 1).await;
}

async fn make_on(site: &Site, name: &str, day: usize) {
    let (start, end) = (format!("2030-01-{day:02} 20:00"), format!("2030-01-{day:02} 21:00"));
    let mut body = hosts_lease(1, 1, &start, &end);
    body["name"] = json!(name);
    site.post("/v1/leases", &body).await.ok(201);
}

#[tokio::test]
async fn a_listener_that_fails_and_lags_is_told_everything_in_order_and_nobody_else_waits() {
    use Manner::{Answers, Lags};
    let mut listener = Listener::start(&[Answers(500), Answers(500), Lags]).await;
    let site = listener.site().await;
    site.add_hosts(3).await;
    let _push = push(&site);
    for name in ["a", "b", "c"] {
        make(&site, name).await;
    }
    // The listener has read a notification without acknowledging it, so it is sent again with the same
    // identifier.
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(listener.next().await);
    }
    let names: Vec<&str> =
        told.iter().map(|told| told.notification["payload"]["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["a", "a", "a", "a", "b", "c"]);
    let ids: Vec<&str> = told.iter().map(|told| told.id.as_str()).collect();
    assert!(ids[..4].iter().all(|id| *id == ids[0]), "{ids:?}");
    assert!(ids[4] != ids[0] && ids[5] != ids[4]);
    assert!(told.iter().all(|told| told.signature.as_ref().is_some_and(|text| text.starts_with("v1,"))));
}

#[tokio::test]
async fn a_listener_is_told_what_the_list_of_notifications_shows() {
    let mut listener = Listener::start(&[]).await;
    let site = listener.site().await;
    site.add_hosts(1).await;
    make(&site, "a").await;
    let _push = push(&site);
    let told = listener.next().await;
    assert_eq!(json!([told.notification]), site.get("/v1/notifications").await.ok(200)["notifications"]);
    assert_eq!(told.id, format!("notification-{}", told.notification["number"]));
}

#[tokio::test]
async fn pushing_goes_on_where_it_was_when_it_stopped() {
    let mut listener = Listener::start(&[]).await;
    let site = listener.site().await;
    site.add_hosts(2).await;
    make(&site, "a").await;
    let (stop, pushing) = push(&site);
    assert_eq!(listener.next().await.notification["payload"]["name"], "a");
    while site.service.notifications().delivered("webhook").await.expect("a store") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.send_replace(true);
    pushing.await.expect("no panic");
    make(&site, "b").await;
    let _push = push(&site);
    assert_eq!(listener.next().await.notification["payload"]["name"], "b");
}

#[tokio::test]
async fn pushes_are_counted() {
    let mut listener = Listener::start(&[Manner::Answers(500)]).await;
    let site = listener.site().await;
    site.add_hosts(1).await;
    make(&site, "a").await;
    let _push = push(&site);
    listener.next().await;
    listener.next().await;
    while site.service.notifications().delivered("webhook").await.expect("a store") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let metrics = site.get("/metrics").await.text;
    for outcome in ["delivered", "failed"] {
        let line =
            format!("allot_notification_pushes_total{{listener=\"webhook\",outcome=\"{outcome}\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_notification_that_is_rejected_three_times_is_recorded_and_passed_over() {
    let rejections = [400, 413, 415, 422];
    let mut plan: Vec<Manner> = rejections.iter().flat_map(|status| [Manner::Answers(*status); 3]).collect();
    // Other failures in between don't count as rejections.
    plan.extend([413, 503, 413, 401, 422].map(Manner::Answers));
    let mut listener = Listener::start(&plan).await;
    let site = listener.site().await;
    site.add_hosts(1).await;
    for name in 0..6 {
        make_on(&site, &name.to_string(), name + 1).await;
    }
    let _push = push(&site);
    let mut told = Vec::new();
    while told.last().is_none_or(|name| name != "5") {
        let notification = listener.next().await.notification;
        told.push(notification["payload"]["name"].as_str().expect("a name").to_owned());
    }
    let count = |name: &str| told.iter().filter(|told| *told == name).count();
    assert_eq!(["0", "1", "2", "3", "4", "5"].map(count), [3, 3, 3, 3, 5, 1]);
    let audit = site.get("/v1/audit?action=notification.refuse").await.ok(200);
    let found: Vec<&str> = audit["audit"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["object_id"].as_str())
        .collect();
    assert_eq!(found.len(), 5, "{audit}");
    assert!(found[4].starts_with("webhook ") && found[4].contains("answers 400"), "{found:?}");
    let metrics = site.get("/metrics").await.text;
    let figure = "allot_notification_pushes_total{listener=\"webhook\",outcome=\"refused\"} 5\n";
    assert!(metrics.contains(figure), "{metrics}");
}

#[tokio::test]
async fn every_other_failure_waits_and_is_tried_again() {
    let statuses = [401, 403, 404, 408, 429, 500, 502, 503, 301];
    let four = |status: &u16| [*status, *status, *status, *status, 204].map(Manner::Answers);
    let plan: Vec<Manner> = statuses.iter().flat_map(four).collect();
    let mut listener = Listener::start(&plan).await;
    let site = listener.site().await;
    site.add_hosts(1).await;
    for name in 0..statuses.len() {
        make_on(&site, &name.to_string(), name + 1).await;
    }
    let _push = push(&site);
    for name in 0..statuses.len() {
        for attempt in 0..5 {
            let told = listener.next().await.notification;
            assert_eq!(told["payload"]["name"], name.to_string(), "attempt {attempt}");
        }
    }
}

#[tokio::test]
async fn a_program_is_told_in_order_and_again_if_it_fails_beside_a_listener_that_does_not_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    // Fails the first time, after it has recorded its input.
    let script =
        r#"cd "$1" || exit 9; cat >> told; echo >> told; [ -e failed ] || { touch failed; exit 1; }"#;
    let place = directory.path().to_str().expect("text").to_owned();
    let arguments = vec!["-c".to_owned(), script.to_owned(), "sh".to_owned(), place];
    let exec =
        ExecConfig { first_pause: Duration::from_millis(1), ..ExecConfig::new("sh".to_owned(), arguments) };
    let webhook = WebhookConfig::new("http://127.0.0.1:1/".to_owned());
    let config = Config { webhook: Some(webhook), exec: Some(exec), ..Config::default() };
    let site = Site::with(config, None).await;
    site.add_hosts(2).await;
    make(&site, "a").await;
    make(&site, "b").await;
    let _push = push(&site);
    let all = site.get("/v1/notifications").await.ok(200)["notifications"].clone();
    let all = all.as_array().expect("a list").clone();
    let last = all.last().expect("two")["number"].as_u64();
    while Some(site.service.notifications().delivered("exec").await.expect("a store")) != last {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let told = std::fs::read_to_string(directory.path().join("told")).expect("it was told");
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(told[0], told[1], "it is told again");
    assert_eq!(told[1..], all[..]);
}
