//! Failed logins, and logs of requests: they show the user and the address, and never a secret.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use ambient::SeededIds;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request};
use base64::Engine;
use serde_json::{Value, json};
use server::{AuthConfig, AuthMethod, Config};
use tracing::instrument::WithSubscriber;

use crate::site::{Answer, Site, TempFile};

/// Characters that are difficult for loggers and parsers.
const SECRET: &str = "s3cr3t-\n\"'\\%41\u{e9}\u{202e}\u{1f511}{}";

fn password_hash(password: &str) -> String {
    server::hash_password(&password.into(), &SeededIds::new(5)).expect("a hash")
}

fn files() -> (TempFile, TempFile) {
    let users = json!({"users": [
        {"name": "alice", "password_hash": password_hash(SECRET), "projects": {"p": ["member"]}},
        {"name": "bo", "password_hash": password_hash("bo"), "projects": {"p": ["admin"]}},
    ]});
    let sha256 = server::hash_token(&SECRET.into());
    let tokens =
        json!({"tokens": [{"sha256": sha256, "user": "robot", "project": "q", "roles": ["reader"]}]});
    (TempFile::new("yaml", &users.to_string()), TempFile::new("yaml", &tokens.to_string()))
}

async fn site(failed_logins: u32) -> Site {
    let (users, tokens) = files();
    let auth = AuthConfig {
        methods: vec![AuthMethod::Tokens, AuthMethod::Basic, AuthMethod::LocalKeystone],
        users_file: Some(users.0.clone()),
        tokens_file: Some(tokens.0.clone()),
        ..AuthConfig::default()
    };
    let mut config = Config { auth, ..Config::default() };
    config.limits.failed_logins = failed_logins;
    Site::with(config, None).await
}

fn basic(user: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {encoded}")
}

fn from(peer: [u8; 4], method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        // Headers can't contain newlines.
        let value = value.replace('\n', " ");
        let value = axum::http::HeaderValue::from_bytes(value.as_bytes()).expect("no control characters");
        builder = builder.header(*name, value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut request = builder.body(body).expect("a request");
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from((peer, 4000))));
    request
}

async fn try_basic(site: &Site, peer: [u8; 4], user: &str, password: &str) -> Answer {
    let header = basic(user, password);
    site.send(from(peer, Method::GET, "/v1/leases", &[("authorization", &header)], &Value::Null)).await
}

async fn try_keystone(site: &Site, peer: [u8; 4], user: &str, password: &str) -> Answer {
    let user = json!({"name": user, "password": password});
    let body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}});
    site.send(from(peer, Method::POST, "/identity/v3/auth/tokens", &[], &body)).await
}

/// Log output of `work`, as text and as JSON.
async fn logged(work: impl AsyncFn()) -> [String; 2] {
    let text = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_ansi(false);
    work()
        .with_subscriber(
            subscriber
                .with_writer({
                    let text = text.clone();
                    move || text.clone()
                })
                .finish(),
        )
        .await;
    let json = Log::default();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).json();
    work()
        .with_subscriber(
            subscriber
                .with_writer({
                    let json = json.clone();
                    move || json.clone()
                })
                .finish(),
        )
        .await;
    [text.text(), json.text()]
}

/// Captured log output.
#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()).expect("text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_log_says_who_asked_from_where_and_who_was_not_let_in() {
    let site = site(0).await;
    let [log, _] = logged(async || {
        assert_eq!(try_basic(&site, [192, 0, 2, 7], "alice", "wrong").await.status, 401);
        assert_eq!(try_basic(&site, [192, 0, 2, 7], "no\nbody\u{1b}[31m", "x").await.status, 401);
        assert_eq!(try_keystone(&site, [192, 0, 2, 8], "bo", "wrong").await.status, 401);
        let wrong = [("x-auth-token", "wrong")];
        let request = from([192, 0, 2, 9], Method::GET, "/v1/leases", &wrong, &Value::Null);
        assert_eq!(site.send(request).await.status, 401);
        assert_eq!(try_basic(&site, [192, 0, 2, 7], "alice", SECRET).await.status, 200);
        let header = basic("alice", SECRET);
        let headers = [("authorization", header.as_str())];
        let request = from([192, 0, 2, 7], Method::GET, "/v1/os-hosts", &headers, &Value::Null);
        assert_eq!(site.send(request).await.status, 403);
        for probe in ["/healthz", "/readyz", "/metrics"] {
            site.get(probe).await;
        }
    })
    .await;
    let lines =
        |words: &[&str]| log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(
        lines(&["WARN", "login failed", "basic", "user=\"alice\"", "192.0.2.7", "wrong password"]),
        1,
        "{log}"
    );
    assert_eq!(lines(&["WARN", "login failed", "no\\\\nbody", "192.0.2.7", "unknown user"]), 1, "{log}");
    assert_eq!(
        lines(&["WARN", "login failed", "local-keystone", "user=\"bo\"", "192.0.2.8", "wrong password"]),
        1,
        "{log}"
    );
    assert_eq!(lines(&["WARN", "login failed", "token", "192.0.2.9"]), 1, "{log}");
    for probe in ["/healthz", "/readyz", "/metrics"] {
        let route = format!("route=\"{probe}\"");
        assert_eq!(
            (lines(&["DEBUG", "served", &route]), lines(&["INFO", "served", &route])),
            (1, 0),
            "{log}"
        );
    }
    assert_eq!(
        lines(&["INFO", "served status=200", "user=\"alice\"", "project=\"p\"", "peer=\"192.0.2.7\""]),
        1,
        "{log}"
    );
    assert_eq!(
        lines(&["INFO", "refused by policy", "blazar:oshosts:get", "user=\"alice\"", "192.0.2.7"]),
        1,
        "{log}"
    );
    assert_eq!(lines(&["\u{1b}"]), 0, "nothing that a terminal obeys");
    let metrics = site.get("/metrics").await.text;
    for (method, count) in [("basic", 4), ("local-keystone", 2), ("token", 2)] {
        let line = format!("allot_logins_failed_total{{method=\"{method}\"}} {count}");
        assert!(metrics.contains(&line), "{line}");
    }
}

#[tokio::test]
async fn no_secret_is_logged_wherever_it_is_sent() {
    let site = site(0).await;
    let encoded = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat();
    let logs = logged(async || {
        try_basic(&site, [192, 0, 2, 1], "alice", SECRET).await;
        try_basic(&site, [192, 0, 2, 1], "bo", SECRET).await;
        try_basic(&site, [192, 0, 2, 1], "nobody", SECRET).await;
        let right = try_keystone(&site, [192, 0, 2, 1], "alice", SECRET).await;
        let token = right.headers["x-subject-token"].to_str().expect("text").to_owned();
        try_keystone(&site, [192, 0, 2, 1], "bo", SECRET).await;
        let send = async |method: Method, path: &str, headers: &[(&str, &str)], body: &Value| {
            site.send(from([192, 0, 2, 1], method, path, headers, body)).await;
        };
        for secret in [SECRET, &token] {
            for header in
                ["x-auth-token", "x-subject-token", "authorization", "x-openstack-request-id", "user-agent"]
            {
                send(Method::GET, "/v1/leases", &[(header, secret)], &Value::Null).await;
            }
            let right = [("x-auth-token", token.as_str()), ("x-subject-token", token.as_str())];
            for body in
                [json!(secret), json!({"name": secret}), json!({secret: secret}), json!({"auth": secret})]
            {
                send(Method::POST, "/v1/leases", &right, &body).await;
                send(Method::POST, "/identity/v3/auth/tokens", &right, &body).await;
                send(Method::POST, "/v1/instances", &right, &body).await;
            }
        }
        for secret in [encoded.as_str(), &token] {
            for path in [
                "/v1/leases/S",
                "/v1/S",
                "/S",
                "/v1/leases?token=S",
                "/v1/leases?S",
                "/v1/flavors/S",
                "/v1/leases/S/plan",
                "/identity/v3/S",
                "/identity/v3/auth/tokens/S",
                "/v1/os-hosts/properties/S",
            ] {
                for headers in [&[][..], &[("x-auth-token", token.as_str())]] {
                    send(Method::GET, &path.replace('S', secret), headers, &Value::Null).await;
                }
            }
        }
    })
    .await;
    let basic = basic("alice", SECRET);
    for log in logs {
        assert!(log.contains("served"), "there is a log");
        for part in ["s3cr3t", "%73%33", "allot1.", basic.trim_start_matches("Basic ")] {
            let line = log.lines().find(|line| line.contains(part));
            assert_eq!(line, None, "{part}");
        }
    }
    let metrics = site.get("/metrics").await.text;
    let audit = site.send(from(
        [192, 0, 2, 1],
        Method::GET,
        "/v1/audit",
        &[("authorization", &self::basic("bo", "bo"))],
        &Value::Null,
    ));
    for text in [metrics, audit.await.text] {
        assert!(!text.contains("s3cr3t") && !text.contains("allot1."), "{text}");
    }
}

#[tokio::test]
async fn wrong_passwords_are_limited_and_keep_nobody_else_out() {
    let site = site(3).await;
    let eve = [192, 0, 2, 66];
    for _ in 0..3 {
        assert_eq!(try_keystone(&site, eve, "alice", "guess").await.status, 401);
    }
    let refused = try_keystone(&site, eve, "alice", SECRET).await;
    assert_eq!(refused.status, 429, "not even looked at");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(try_basic(&site, eve, "alice", SECRET).await.status, 429, "whichever way");
    assert_eq!(try_keystone(&site, [192, 0, 2, 1], "alice", SECRET).await.status, 201, "from elsewhere");
    assert_eq!(try_keystone(&site, eve, "alice", SECRET).await.status, 201, "it was right lately");
    assert_eq!(try_keystone(&site, eve, "bo", "bo").await.status, 201, "another user");
    for _ in 0..20 {
        assert_eq!(try_basic(&site, eve, "alice", SECRET).await.status, 200, "right ones are not counted");
    }
}

#[tokio::test]
async fn the_audit_log_has_failures_once_and_their_number() {
    let site = site(0).await;
    for _ in 0..20 {
        assert_eq!(try_basic(&site, [192, 0, 2, 66], "alice", "guess").await.status, 401);
    }
    let header = basic("bo", "bo");
    let path = "/v1/audit?action=login.fail";
    let mut found = Vec::new();
    // The record is written independently of the response.
    for _ in 0..10_000 {
        let answer =
            site.send(from([192, 0, 2, 1], Method::GET, path, &[("authorization", &header)], &Value::Null));
        found = answer.await.ok(200)["audit"].as_array().expect("records").clone();
        if !found.is_empty() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["user_id"], &found[0]["object_id"]), (&json!("alice"), &json!("192.0.2.66 1")));
}
