//! Tokens of the local Keystone. They are valid at every server on a store and after a restart, until they
//! expire or are revoked, or the user changes.

use std::sync::Arc;
use std::time::Duration;

use ambient::{Clock, ManualClock, SeededIds};
use axum::body::Body;
use axum::http::{Method, Request};
use fleet::simulated::{Layout, Model, SimulatedFleet};
use jiff::SignedDuration;
use leases::project::ProjectId;
use scratch_postgres::ScratchPostgres;
use serde_json::{Value, json};
use server::{App, AuthConfig, AuthMethod, Config, Difference, RateLimit};
use service::{Parts, Service, Settings};
use store::memory::MemoryStore;
use store::{Holder, Store};
use store_postgres::PostgresStore;
use tower::ServiceExt;

use crate::site::{NOW, TempFile};

const LOGIN: &str = "/identity/v3/auth/tokens";

/// A user in the users file.
struct User<'a> {
    name: &'a str,
    password: &'a str,
    more: Value,
}

fn users_text(users: &[User<'_>]) -> String {
    let entry = |user: &User<'_>| {
        let hash = server::hash_password(&user.password.into(), &SeededIds::new(7)).expect("a hash");
        let mut entry =
            json!({"name": user.name, "password_hash": hash, "projects": {"p": ["member"], "q": ["reader"]}});
        for (key, value) in user.more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        entry
    };
    json!({"users": users.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

fn user<'a>(name: &'a str, password: &'a str) -> User<'a> {
    User { name, password, more: Value::Null }
}

/// Alice, Bo and an administrator, each with their name as the password.
fn users_file() -> TempFile {
    let admin = User { more: json!({"projects": {"p": ["admin"]}}), ..user("root", "root") };
    TempFile::new("yaml", &users_text(&[user("alice", "alice"), user("bo", "bo"), admin]))
}

fn config(users: &TempFile) -> Config {
    let auth = AuthConfig {
        methods: vec![AuthMethod::LocalKeystone],
        users_file: Some(users.0.clone()),
        ..AuthConfig::default()
    };
    // Tests send requests as fast as they can.
    rate_limited(Config { auth, ..Config::default() }, 0, 1)
}

fn rate_limited(mut config: Config, per_second: u32, burst: u32) -> Config {
    config.limits.rate = RateLimit { per_second: Some(per_second), burst };
    config
}

/// One of several servers on a store.
struct Server {
    app: App,
    router: axum::Router,
}

impl Server {
    async fn new(store: Arc<dyn Store>, config: Config, seed: u64) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(NOW.parse().expect("an instant")));
        let layout = Layout::uniform(1, 1, &Model::of_size(16, 65_536, 1000));
        let ids = Arc::new(SeededIds::new(seed));
        let fleet = Arc::new(SimulatedFleet::new(Arc::clone(&clock), 1, &layout));
        let parts = Parts { store, fleet, clock, ids: Arc::<SeededIds>::clone(&ids), enforcer: None };
        let longest_clock_skew = SignedDuration::from_hours(24 * 365 * 100);
        let holder = Holder(seed.to_string());
        let settings = Settings { longest_clock_skew, holder, ..Settings::default() };
        let service = Service::open(parts, settings).await.expect("the store works");
        let app = App::new(service, ids, config).expect("the settings are sound");
        Self { router: server::router(app.clone()), app }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (u16, String) {
        let mut builder = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let request = builder.body(body).expect("a request");
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let token = response.headers().get("x-subject-token").map(|token| token.to_str().expect("text"));
        (response.status().as_u16(), token.unwrap_or_default().to_owned())
    }

    /// Logs in. Returns the token, or the status of the rejection.
    async fn try_log_in(&self, name: &str, password: &str, scope: &Value) -> Result<String, u16> {
        let user = json!({"name": name, "password": password});
        let mut body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}});
        if !scope.is_null() {
            body["auth"]["scope"] = scope.clone();
        }
        let (status, token) = self.send(Method::POST, LOGIN, &[], &body).await;
        if status == 201 { Ok(token) } else { Err(status) }
    }

    async fn log_in(&self, name: &str) -> String {
        self.try_log_in(name, name, &Value::Null).await.expect("the password is right")
    }

    async fn status(&self, token: &str) -> u16 {
        self.send(Method::GET, "/v1/leases", &[("x-auth-token", token)], &Value::Null).await.0
    }

    async fn revoke(&self, token: &str) -> u16 {
        let headers = [("x-auth-token", token), ("x-subject-token", token)];
        self.send(Method::DELETE, LOGIN, &headers, &Value::Null).await.0
    }

    /// Waits until the token is rejected.
    async fn refuses(&self, token: &str) {
        for _ in 0..600 {
            if self.status(token).await == 401 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the token is still taken");
    }
}

async fn on(store: &Arc<dyn Store>, users: &TempFile, seed: u64) -> Server {
    Server::new(Arc::clone(store), config(users), seed).await
}

/// Guarantees for servers that share a store.
async fn is_good_everywhere(store: Arc<dyn Store>) {
    let users = users_file();
    let (first, second) = (on(&store, &users, 1).await, on(&store, &users, 2).await);
    let (a, b) = tokio::join!(first.log_in("alice"), second.log_in("bo"));
    for token in [&a, &b] {
        assert_eq!((first.status(token).await, second.status(token).await), (200, 200));
    }
    // Many logins of one user don't displace the token of another.
    for _ in 0..300 {
        first.log_in("bo").await;
    }
    let third = on(&store, &users, 3).await;
    drop(first);
    assert_eq!(third.status(&a).await, 200, "after a restart");
    assert_eq!(third.revoke(&a).await, 204);
    assert_eq!(third.status(&a).await, 401);
    second.refuses(&a).await;
    assert_eq!((second.status(&b).await, third.status(&b).await), (200, 200));
    assert_eq!(on(&store, &users, 4).await.status(&a).await, 401, "after a restart as well");
}

#[tokio::test]
async fn a_token_is_good_at_every_server_on_a_store_and_after_a_restart() {
    is_good_everywhere(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_at_every_server_on_postgresql_and_after_a_restart() {
    let server = ScratchPostgres::start().expect("PostgreSQL is installed");
    let url = server.database(None).expect("a database");
    let store = PostgresStore::open(url.parse().expect("an address")).await.expect("a store");
    is_good_everywhere(Arc::new(store)).await;
}

#[tokio::test]
async fn a_token_that_was_made_up_or_altered_is_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let users = users_file();
    let server = on(&store, &users, 1).await;
    let token = server.log_in("alice").await;
    assert_eq!(server.status(&token).await, 200);
    for place in (0..token.len()).step_by(5).chain([token.len() - 2]) {
        let mut altered = token.clone().into_bytes();
        altered[place] = if altered[place] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).expect("ASCII");
        assert_eq!(server.status(&altered).await, 401, "{place}");
    }
    let long = format!("allot1.{}.x", "A".repeat(60_000));
    for made_up in ["allot1.", "allot1..", "allot1.e30.e30", "x", &token[..token.len() - 1], &long] {
        assert_eq!(server.status(made_up).await, 401, "{made_up}");
    }
    let elsewhere: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let stranger = on(&elsewhere, &users, 2).await.log_in("alice").await;
    assert_eq!(server.status(&stranger).await, 401, "signed with another key");
}

#[tokio::test]
async fn a_token_ends_with_its_lifetime() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let users = users_file();
    let mut config = config(&users);
    config.auth.token_lifetime = SignedDuration::ZERO;
    let server = Server::new(store, config, 1).await;
    let token = server.log_in("alice").await;
    assert_eq!(server.status(&token).await, 401);
}

#[tokio::test]
async fn a_user_who_is_another_loses_tokens_at_the_next_reload_and_others_keep_theirs() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    for (what, changed) in [
        ("removed", vec![user("bo", "bo")]),
        (
            "disabled",
            vec![User { more: json!({"disabled": true}), ..user("alice", "alice") }, user("bo", "bo")],
        ),
        ("password", vec![user("alice", "new"), user("bo", "bo")]),
        (
            "roles",
            vec![
                User { more: json!({"projects": {"p": ["reader"]}}), ..user("alice", "alice") },
                user("bo", "bo"),
            ],
        ),
        (
            "project",
            vec![
                User { more: json!({"projects": {"q": ["member"]}}), ..user("alice", "alice") },
                user("bo", "bo"),
            ],
        ),
    ] {
        let users = TempFile::new("yaml", &users_text(&[user("alice", "alice"), user("bo", "bo")]));
        let server = on(&store, &users, 1).await;
        let (alice, bo) = (server.log_in("alice").await, server.log_in("bo").await);
        let same = server.app.reload().expect("the file is sound");
        assert_eq!(same.users, Difference::default());
        assert_eq!(server.status(&alice).await, 200, "nothing has changed");
        std::fs::write(&users.0, users_text(&changed)).expect("a file");
        assert_eq!(server.status(&alice).await, 200, "nobody has said so yet");
        let reloaded = server.app.reload().expect("the file is sound");
        let expected = match what {
            "removed" => Difference { removed: 1, ..Difference::default() },
            _ => Difference { changed: 1, ..Difference::default() },
        };
        assert_eq!(reloaded.users, expected, "{what}");
        assert_eq!((server.status(&alice).await, server.status(&bo).await), (401, 200), "{what}");
        if what == "disabled" {
            assert_eq!(server.try_log_in("alice", "alice", &Value::Null).await, Err(401));
        }
    }
}

#[tokio::test]
async fn revocations_of_a_user_are_bounded_and_none_is_forgotten() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let users = users_file();
    let server = on(&store, &users, 1).await;
    let (kept, bo) = (server.log_in("alice").await, server.log_in("bo").await);
    let mut revoked = Vec::new();
    for _ in 0..100 {
        let token = server.log_in("alice").await;
        assert_eq!(server.revoke(&token).await, 204);
        revoked.push(token);
    }
    for token in &revoked {
        assert_eq!(server.status(token).await, 401);
    }
    assert!(store.tokens().await.expect("works").revoked.len() <= 33);
    assert_eq!(server.status(&kept).await, 401, "so many at once are all of the user's");
    assert_eq!(server.status(&bo).await, 200);
    let next = server.log_in("alice").await;
    assert_eq!(server.status(&next).await, 200);
}

#[tokio::test]
async fn keys_of_a_file_sign_instead_and_are_changed_one_after_the_other() {
    let (old, new) = ("o".repeat(32), "n".repeat(32));
    let users = users_file();
    let keys = TempFile::new("keys", &format!("# the old one\n{old}\n"));
    let mut config = config(&users);
    config.auth.token_key_file = Some(keys.0.clone());
    let stores: [Arc<dyn Store>; 2] = [Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new())];
    let first = Server::new(Arc::clone(&stores[0]), config.clone(), 1).await;
    let second = Server::new(Arc::clone(&stores[1]), config, 2).await;
    let token = first.log_in("alice").await;
    assert_eq!(second.status(&token).await, 200, "whatever store it is");
    assert!(stores[0].tokens().await.expect("works").keys.is_empty());
    std::fs::write(&keys.0, format!("{new}\n{old}\n")).expect("a file");
    first.app.reload().expect("the file is sound");
    assert_eq!(first.status(&token).await, 200, "the old one is still accepted");
    let signed_again = first.log_in("alice").await;
    std::fs::write(&keys.0, format!("{new}\n")).expect("a file");
    first.app.reload().expect("the file is sound");
    assert_eq!((first.status(&token).await, first.status(&signed_again).await), (401, 200));
    std::fs::write(&keys.0, format!("{new}\nhunter2\n")).expect("a file");
    let error = first.app.reload().expect_err("too short").to_string();
    assert!(error.contains("line 2") && !error.contains("hunter2"), "{error}");
    assert_eq!(first.status(&signed_again).await, 200, "nothing has changed");
}

#[tokio::test]
async fn scopes_that_are_no_project_are_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let users = users_file();
    let server = on(&store, &users, 1).await;
    for scope in [
        json!({"system": {"all": true}}),
        json!({"domain": {"id": "default"}}),
        json!({"OS-TRUST:trust": {"id": "x"}}),
        json!({"project": {"id": "p"}, "system": {"all": true}}),
    ] {
        assert_eq!(server.try_log_in("root", "root", &scope).await, Err(401), "{scope}");
    }
    assert!(server.try_log_in("root", "root", &json!({"project": {"id": "p"}})).await.is_ok());
}

#[tokio::test]
async fn a_revocation_is_charged_to_the_project_of_its_user() {
    /// Cost of writing a row.
    const ROW: u64 = 10_000;
    let server = on(&(Arc::new(MemoryStore::new()) as Arc<dyn Store>), &users_file(), 1).await;
    let token = server.log_in("alice").await;
    let charged = || server.app.service().charged(&ProjectId("p".to_owned()));
    let before = charged();
    assert_eq!(server.revoke(&token).await, 204);
    assert!(charged() - before >= ROW, "{}", charged() - before);
}

#[tokio::test]
async fn requests_about_tokens_and_logins_count_towards_the_limit_of_their_user() {
    let users = users_file();
    let server = Server::new(Arc::new(MemoryStore::new()), rate_limited(config(&users), 1, 4), 1).await;
    let token = server.log_in("alice").await;
    let headers = [("x-auth-token", &*token), ("x-subject-token", &*token)];
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(server.send(Method::GET, LOGIN, &headers, &Value::Null).await.0);
    }
    // Tokens of the limit refill during the test, so a slow run allows a few more.
    assert!(statuses[0] == 200 && statuses.contains(&429), "{statuses:?}");
    assert_eq!(server.revoke(&token).await, 204, "a stolen token can be revoked while somebody uses it");
    let mut logins = Vec::new();
    for _ in 0..30 {
        logins.push(server.try_log_in("bo", "bo", &Value::Null).await.err());
    }
    assert!(logins[0].is_none() && logins.contains(&Some(429)), "{logins:?}");
    server.log_in("root").await;
}
