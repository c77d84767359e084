//! Sessions of the console, which use a cookie instead of a token.

use std::sync::Arc;

use ambient::{ManualClock, SeededIds};
use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine;
use serde_json::{Value, json};
use server::{App, AuthConfig, AuthMethod, Config};
use store::Store;
use store::memory::MemoryStore;

use crate::site::{Answer, NOW, Site, TempFile, tokens_file};

const CONSOLE: (&str, &str) = ("x-allot-console", "1");
const PATH: &str = "/v1/session";

struct Files {
    users: TempFile,
    tokens: TempFile,
}

impl Files {
    fn new() -> Self {
        let hash = server::hash_password(&"sesame".into(), &SeededIds::new(5)).expect("a hash");
        let text = format!(
            "[[users]]\nname = \"alice\"\nid = \"a1\"\npassword_hash = \"{hash}\"\ndefault_project = \"p\"\n\
             [users.projects]\np = [\"member\"]\nq = [\"reader\"]\n"
        );
        Self { users: TempFile::new("toml", &text), tokens: tokens_file() }
    }

    fn config(&self, methods: &[AuthMethod]) -> Config {
        let auth = AuthConfig {
            methods: methods.to_vec(),
            users_file: Some(self.users.0.clone()),
            tokens_file: Some(self.tokens.0.clone()),
            ..AuthConfig::default()
        };
        Config { auth, ..Config::default() }
    }
}

async fn send(site: &Site, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let builder = Request::builder().method(method).uri(path);
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, *value));
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    site.send(builder.body(body).expect("a request")).await
}

async fn log_in(site: &Site, body: &Value) -> Answer {
    send(site, Method::POST, PATH, &[CONSOLE], body).await
}

/// The cookie set by a response, in the form that is sent back.
fn cookie(answer: &Answer) -> String {
    let set = answer.headers["set-cookie"].to_str().expect("text");
    set.split(';').next().expect("a cookie").to_owned()
}

async fn status(site: &Site, cookie: &str) -> u16 {
    send(site, Method::GET, "/v1/leases", &[("cookie", cookie)], &Value::Null).await.status.as_u16()
}

#[tokio::test]
async fn a_token_begins_a_session_that_says_who_one_is_and_what_one_may_do() {
    let site = Site::guarded().await;
    let answer = log_in(&site, &json!({"token": "member"})).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.headers["cache-control"]),
        (201, &"private, no-store".parse().expect(""))
    );
    let set = answer.headers["set-cookie"].to_str().expect("text").to_owned();
    for attribute in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=43200"] {
        assert!(set.contains(attribute), "{set}");
    }
    assert!(!set.contains("Secure") && !set.contains("member") && !answer.text.contains("allot1c"), "{set}");
    let cookie = cookie(&answer);
    let shown = send(&site, Method::GET, PATH, &[("cookie", &cookie)], &Value::Null).await.ok(200);
    assert_eq!(shown, answer.ok(201));
    let session = &shown["session"];
    assert_eq!((&session["user"], &session["project_id"]), (&json!("member"), &json!("p")));
    assert_eq!(
        (&session["roles"], &session["authentication"]),
        (&json!(["member", "reader"]), &json!("token"))
    );
    let rules = &session["rules"];
    assert_eq!((&rules["blazar:leases:post"], &rules["blazar:oshosts:get"]), (&json!(true), &json!(false)));
    assert_eq!(rules.as_object().map(serde_json::Map::len), Some(server::Rule::ALL.len()));
    assert_eq!(status(&site, &cookie).await, 200);
    assert_eq!(status(&site, &format!("other=1; {cookie}; last=2")).await, 200);
}

#[tokio::test]
async fn a_session_changes_something_only_for_the_console() {
    let site = Site::guarded().await;
    let cookie = cookie(&log_in(&site, &json!({"token": "member"})).await);
    let body = json!({"name": "l", "start_date": "2030-01-02 10:00", "end_date": "2030-01-02 11:00"});
    let post = async |headers: &[(&str, &str)]| send(&site, Method::POST, "/v1/leases", headers, &body).await;
    let answer = post(&[("cookie", &cookie)]).await;
    assert_eq!(
        answer.error(),
        (403, "A session that changes something needs the header X-Allot-Console: 1".to_owned())
    );
    assert_eq!(post(&[("cookie", &cookie), CONSOLE]).await.status, 201);
    assert_eq!(
        post(&[("x-auth-token", "member")]).await.status,
        201,
        "a token cannot be sent by another site"
    );
    assert_eq!(post(&[("x-auth-token", "wrong"), ("cookie", &cookie), CONSOLE]).await.status, 401);
    let answer = send(&site, Method::POST, PATH, &[], &json!({"token": "member"})).await;
    assert_eq!(answer.status, 400, "nobody is logged in by another site: {}", answer.text);
    assert_eq!(send(&site, Method::DELETE, PATH, &[("cookie", &cookie)], &Value::Null).await.status, 403);
    assert_eq!(status(&site, &cookie).await, 200);
}

#[tokio::test]
async fn who_logs_out_has_no_session_at_any_service_on_the_store() {
    let files = Files::new();
    let config = files.config(&[AuthMethod::Tokens]);
    let site = Site::with(config.clone(), None).await;
    let app = App::new(Arc::clone(&site.service), Arc::new(SeededIds::new(77)), config).expect("sound");
    let mut other = Site::with(Config::default(), None).await;
    (other.router, other.app) = (server::router(app.clone()), app);
    let (one, two) = (
        cookie(&log_in(&site, &json!({"token": "member"})).await),
        cookie(&log_in(&site, &json!({"token": "member"})).await),
    );
    assert_ne!(one, two);
    assert_eq!((status(&other, &one).await, status(&other, &two).await), (200, 200));
    let out = send(&site, Method::DELETE, PATH, &[("cookie", &one), CONSOLE], &Value::Null).await;
    assert_eq!(out.status, 204);
    let set = out.headers["set-cookie"].to_str().expect("text");
    assert!(set.starts_with("allot_session=; ") && set.contains("Max-Age=0"), "{set}");
    assert_eq!(out.headers["clear-site-data"], "\"cache\"");
    assert_eq!((status(&site, &one).await, status(&site, &two).await), (401, 200));
    // The other service polls for revoked sessions every two seconds.
    for _ in 0..100 {
        if status(&other, &one).await == 401 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!((status(&other, &one).await, status(&other, &two).await), (401, 200));
    assert_eq!(
        send(&site, Method::GET, "/v1/leases", &[("x-auth-token", "member")], &Value::Null).await.status,
        200
    );
}

#[tokio::test]
async fn a_password_begins_a_session_for_the_project_that_is_named() {
    let files = Files::new();
    for method in [AuthMethod::Basic, AuthMethod::LocalKeystone] {
        let site = Site::with(files.config(&[method]), None).await;
        let basic = base64::engine::general_purpose::STANDARD.encode("alice:sesame");
        let basic = format!("Basic {basic}");
        let of_keystone = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": {"name": "alice", "password": "sesame"}}},
            "scope": {"project": {"name": "q"}}}});
        for (body, headers, project) in [
            (json!({"user": "alice", "password": "sesame"}), vec![CONSOLE], "p"),
            (json!({"user": "alice", "password": "sesame", "project": "q"}), vec![CONSOLE], "q"),
            (of_keystone, vec![CONSOLE], "q"),
            (json!({}), vec![CONSOLE, ("authorization", &*basic)], "p"),
        ] {
            let answer = send(&site, Method::POST, PATH, &headers, &body).await;
            let cookie = cookie(&answer);
            let session = &answer.ok(201)["session"];
            assert_eq!((&session["user"], &session["project_id"]), (&json!("a1"), &json!(project)), "{body}");
            assert_eq!(session["authentication"], "password");
            assert_eq!(session["projects"], json!(["p", "q"]));
            assert_eq!(status(&site, &cookie).await, 200);
        }
    }
}

#[tokio::test]
async fn a_wrong_login_is_refused_and_what_one_can_log_in_with_is_said() {
    let files = Files::new();
    let site = Site::with(files.config(&[AuthMethod::Tokens, AuthMethod::Basic]), None).await;
    for body in [
        json!({"token": "wrong"}),
        json!({"user": "alice", "password": "wrong"}),
        json!({"user": "bob", "password": "sesame"}),
        json!({"user": "alice", "password": "sesame", "project": "r"}),
    ] {
        let answer = log_in(&site, &body).await;
        assert!(
            !answer.headers.contains_key("set-cookie") && !answer.headers.contains_key("www-authenticate")
        );
        assert_eq!(answer.ok(401)["login"], json!(["token", "password"]), "{body}");
    }
    let nobody = send(&site, Method::GET, PATH, &[CONSOLE], &Value::Null).await;
    assert!(!nobody.headers.contains_key("www-authenticate"), "the browser shows no window of its own");
    assert_eq!(nobody.ok(401)["login"], json!(["token", "password"]));
    let api = send(&site, Method::GET, "/v1/leases", &[], &Value::Null).await;
    assert!(api.headers.contains_key("www-authenticate"));
    assert_eq!(api.ok(401).get("login"), None, "elsewhere it is Keystone's answer");
    for body in [
        json!({}),
        json!({"token": "member", "user": "alice"}),
        json!({"user": "alice"}),
        json!({"x": 1}),
        json!([1]),
    ] {
        assert_eq!(log_in(&site, &body).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn wrong_passwords_of_a_login_are_limited_as_all_are() {
    let files = Files::new();
    let mut config = files.config(&[AuthMethod::Basic]);
    config.limits.failed_logins = 2;
    let site = Site::with(config, None).await;
    let wrong = async || {
        let body = json!({"user": "alice", "password": "wrong"});
        let builder = Request::builder().method(Method::POST).uri(PATH).header(CONSOLE.0, CONSOLE.1);
        let address: std::net::SocketAddr = ([192, 0, 2, 1], 1).into();
        let builder = builder.extension(axum::extract::ConnectInfo(address));
        site.send(builder.body(Body::from(body.to_string())).expect("a request")).await.status.as_u16()
    };
    assert_eq!((wrong().await, wrong().await, wrong().await), (401, 401, 429));
}

#[tokio::test]
async fn a_cookie_that_was_made_up_altered_or_is_too_old_is_nobodys() {
    let site = Site::guarded().await;
    let good = cookie(&log_in(&site, &json!({"token": "admin"})).await);
    let (last, rest) = (good.chars().last().expect("long"), &good[..good.len() - 1]);
    let altered = format!("{rest}{}", if last == 'A' { 'B' } else { 'A' });
    let other_key = good.replacen("allot1c.s1.", "allot1c.s2.", 1);
    assert_ne!(other_key, good);
    for bad in [
        altered.as_str(),
        &other_key,
        &good[..good.len() / 2],
        "allot_session=",
        "allot_session=admin",
        "allot_session=allot1c.s1.",
        "allot_session=allot1c.f00.AAAA",
        &format!("allot_session={}", "x".repeat(5000)),
        &format!("allot_session=allot1c.s1.{}", "A".repeat(3000)),
    ] {
        assert_eq!(status(&site, bad).await, 401, "{bad}");
    }
    assert_eq!(status(&site, &good).await, 200);
    let files = Files::new();
    let mut config = files.config(&[AuthMethod::Tokens]);
    config.auth.session_lifetime = jiff::SignedDuration::ZERO;
    let short = Site::with(config, None).await;
    assert_eq!(status(&short, &cookie(&log_in(&short, &json!({"token": "admin"})).await)).await, 401);
}

#[tokio::test]
async fn a_session_ends_with_the_token_or_the_entry_that_it_was_begun_with() {
    let files = Files::new();
    let site = Site::with(files.config(&[AuthMethod::Tokens, AuthMethod::Basic]), None).await;
    let by_token = cookie(&log_in(&site, &json!({"token": "member"})).await);
    let by_password = cookie(&log_in(&site, &json!({"user": "alice", "password": "sesame"})).await);
    assert_eq!((status(&site, &by_token).await, status(&site, &by_password).await), (200, 200));
    let users = std::fs::read_to_string(&files.users.0).expect("it is there");
    std::fs::write(&files.users.0, users.replace("p = [\"member\"]", "p = [\"reader\"]")).expect("a file");
    let tokens = std::fs::read_to_string(&files.tokens.0).expect("it is there");
    let removed = server::hash_token(&"member".into());
    std::fs::write(&files.tokens.0, tokens.replace(&removed, &"0".repeat(64))).expect("a file");
    site.app.reload().expect("sound");
    assert_eq!((status(&site, &by_token).await, status(&site, &by_password).await), (401, 401));
    let again = log_in(&site, &json!({"user": "alice", "password": "sesame"})).await;
    assert_eq!(again.json()["session"]["rules"]["blazar:leases:post"], false);
}

#[tokio::test]
async fn where_nobody_is_asked_everybody_is_the_administrator_without_a_cookie() {
    let site = Site::open().await;
    let answer = log_in(&site, &json!({})).await;
    assert!(!answer.headers.contains_key("set-cookie"));
    let shown = answer.ok(201);
    assert_eq!(
        (&shown["session"]["user"], &shown["session"]["authentication"]),
        (&json!("admin"), &json!("none"))
    );
    assert_eq!(shown["session"]["may_log_in_with"], json!(["none"]));
    assert!(shown["session"]["projects"].is_null());
    assert_eq!(send(&site, Method::GET, PATH, &[], &Value::Null).await.ok(200), shown);
    let elsewhere = [("origin", "https://evil.example"), CONSOLE];
    assert_eq!(send(&site, Method::POST, PATH, &elsewhere, &json!({})).await.status, 403);
}

#[tokio::test]
async fn where_the_network_is_encrypted_the_cookie_is_sent_nowhere_else() {
    let files = Files::new();
    let config = files.config(&[AuthMethod::Tokens]);
    let config = Config { public_url: Some("https://leases.example".to_owned()), ..config };
    let site = Site::with(config, None).await;
    let answer = log_in(&site, &json!({"token": "member"})).await;
    let set = answer.headers["set-cookie"].to_str().expect("text");
    assert!(set.starts_with("__Host-allot_session=") && set.ends_with("; Secure"), "{set}");
    assert!(set.contains("; Path=/;") && !set.contains("Domain"), "{set}");
    let cookie = cookie(&answer);
    assert_eq!(status(&site, &cookie).await, 200);
    // Another host of the domain can set a cookie with this name.
    let plain = cookie.strip_prefix("__Host-").expect("the prefix");
    assert_eq!(status(&site, plain).await, 401);
    assert_eq!(status(&site, &format!("allot_session=planted; {cookie}")).await, 200);
}

#[tokio::test]
async fn a_cookie_that_another_host_planted_ends_no_session() {
    let site = Site::guarded().await;
    let good = cookie(&log_in(&site, &json!({"token": "member"})).await);
    let ended = cookie(&log_in(&site, &json!({"token": "admin"})).await);
    let out = send(&site, Method::DELETE, PATH, &[("cookie", &ended), CONSOLE], &Value::Null).await;
    assert_eq!(out.status, 204);
    for planted in ["allot_session=planted", "allot_session=", &ended] {
        for both in [format!("{planted}; {good}"), format!("{good}; {planted}")] {
            assert_eq!(status(&site, &both).await, 200, "{both}");
            let shown = send(&site, Method::GET, PATH, &[("cookie", &both)], &Value::Null).await.ok(200);
            assert_eq!(shown["session"]["user"], "member");
            assert_eq!(shown["session"]["authentication"], "token");
        }
    }
    assert_eq!(status(&site, &"allot_session=planted; ".repeat(100)).await, 401);
    let both = format!("allot_session=planted; {good}");
    let out = send(&site, Method::DELETE, PATH, &[("cookie", &both), CONSOLE], &Value::Null).await;
    assert_eq!((out.status.as_u16(), status(&site, &good).await), (204, 401));
}

#[tokio::test]
async fn a_logout_with_many_cookies_writes_once() {
    let store = Arc::new(MemoryStore::new());
    let clock = Arc::new(ManualClock::new(NOW.parse().expect("an instant")));
    let site = Site::guarded_on(Arc::<MemoryStore>::clone(&store), clock).await;
    let mut all = Vec::new();
    for _ in 0..16 {
        all.push(cookie(&log_in(&site, &json!({"token": "member"})).await));
    }
    let out = send(&site, Method::DELETE, PATH, &[("cookie", &all.join("; ")), CONSOLE], &Value::Null).await;
    assert_eq!(out.status, 204);
    assert_eq!(store.tokens().await.expect("works").revoked.len(), 1);
    for cookie in &all {
        assert_eq!(status(&site, cookie).await, 401);
    }
}

#[tokio::test]
async fn administrators_see_names_of_who_was_there_and_of_who_is_in_the_file() {
    let files = Files::new();
    let config = files.config(&[AuthMethod::Tokens, AuthMethod::Basic]);
    let site = Site::with(config, None).await;
    let names = site.send_as("admin", Method::GET, "/v1/names", None).await.ok(200);
    assert_eq!(
        names,
        json!({"users": {"a1": "alice"}, "projects": {}}),
        "those of the file are known at once"
    );
    let basic = base64::engine::general_purpose::STANDARD.encode("alice:sesame");
    let answer =
        send(&site, Method::GET, PATH, &[("authorization", &format!("Basic {basic}"))], &Value::Null).await;
    let session = answer.ok(200)["session"].clone();
    assert_eq!((&session["user"], &session["user_name"]), (&json!("a1"), &json!("alice")));
    let names = site.send_as("admin", Method::GET, "/v1/names", None).await.ok(200);
    assert_eq!(names, json!({"users": {"a1": "alice"}, "projects": {"p": "p"}}));
    for who in ["member", "reader"] {
        assert_eq!(site.send_as(who, Method::GET, "/v1/names", None).await.status, 403);
        assert_eq!(site.send_as(who, Method::GET, "/v1/settings", None).await.status, 403);
    }
}
