//! Authentication methods and credentials.

use std::sync::Arc;

use ambient::SeededIds;
use axum::body::Body;
use axum::http::{Method, Request};
use base64::Engine;
use serde_json::{Value, json};
use server::{App, AuthConfig, AuthMethod, Config, ConfigError};

use crate::site::{Answer, Site, TempFile, tokens_file};

fn users_file() -> TempFile {
    let hash = server::hash_password(&"se:cret".into(), &SeededIds::new(5)).expect("a hash");
    let text = format!(
        "[[users]]\nname = \"alice\"\nid = \"a1\"\npassword_hash = \"{hash}\"\ndefault_project = \"p\"\n\
         [users.projects]\np = [\"member\"]\nq = [\"reader\"]\n"
    );
    TempFile::new("toml", &text)
}

async fn site(methods: &[AuthMethod]) -> Site {
    let (users, tokens) = (users_file(), tokens_file());
    let auth = AuthConfig {
        methods: methods.to_vec(),
        users_file: Some(users.0.clone()),
        tokens_file: Some(tokens.0.clone()),
        ..AuthConfig::default()
    };
    Site::with(Config { auth, ..Config::default() }, None).await
}

async fn send(site: &Site, method: Method, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut builder = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    site.send(builder.body(body).expect("a request")).await
}

fn basic(user: &str, password: &str) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    format!("Basic {encoded}")
}

#[tokio::test]
async fn everybody_on_this_machine_is_let_in_where_nobody_is_asked() {
    let site = Site::open().await;
    let get = async |headers: &[(&str, &str)]| {
        send(&site, Method::GET, "/v1/leases", headers, &Value::Null).await.status.as_u16()
    };
    assert_eq!(get(&[]).await, 200);
    assert_eq!(get(&[("x-auth-token", "notused"), ("host", "127.0.0.1:1234")]).await, 200);
    assert_eq!(get(&[("host", "evil.example")]).await, 403);
    assert_eq!(get(&[("host", "localhost"), ("origin", "https://evil.example")]).await, 403);
}

#[tokio::test]
async fn a_name_and_a_password_are_let_in() {
    let site = site(&[AuthMethod::Basic]).await;
    let get = async |authorization: &str, project: &str| {
        let headers = [("authorization", authorization), ("x-project-id", project)];
        let headers = if project.is_empty() { &headers[..1] } else { &headers[..] };
        send(&site, Method::POST, "/v1/leases", headers, &json!({})).await
    };
    let right = basic("alice", "se:cret");
    assert_eq!(get(&right, "").await.status, 400, "a member in the usual project");
    assert_eq!(get(&right, "").await.status, 400, "again, from memory");
    assert_eq!(get(&right, "q").await.status, 403, "a reader in the other");
    assert_eq!(get(&right, "r").await.status, 401, "nobody elsewhere");
    let wrong = get(&basic("alice", "secret"), "").await;
    assert_eq!(wrong.status, 401);
    assert_eq!(wrong.headers["www-authenticate"], "Basic realm=\"allot\"");
    assert_eq!(get(&basic("bob", "se:cret"), "").await.status, 401);
    assert_eq!(get("Bearer x", "").await.status, 401);
}

fn login(user: &Value, scope: &Value) -> Value {
    let mut body = json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}});
    if !scope.is_null() {
        body["auth"]["scope"] = scope.clone();
    }
    body
}

#[tokio::test]
async fn the_local_keystone_gives_a_token_for_a_password() {
    let site = site(&[AuthMethod::LocalKeystone]).await;
    let host = ("host", "leases.example");
    let version = send(&site, Method::GET, "/identity/v3", &[host], &Value::Null).await.ok(200);
    assert_eq!(version["version"]["links"][0]["href"], "http://leases.example/identity/v3/");
    assert_eq!(send(&site, Method::GET, "/identity/v3/", &[host], &Value::Null).await.ok(200), version);
    let domain = json!({"id": "default"});
    let user = json!({"name": "alice", "password": "se:cret", "domain": {"name": "Default"}});
    let scope = json!({"project": {"name": "q", "domain": domain}});
    let answer = send(&site, Method::POST, "/identity/v3/auth/tokens", &[host], &login(&user, &scope)).await;
    let token = answer.headers["x-subject-token"].to_str().expect("text").to_owned();
    let body = answer.ok(201);
    assert_eq!((&body["token"]["user"]["id"], &body["token"]["project"]["id"]), (&json!("a1"), &json!("q")));
    assert_eq!(body["token"]["roles"], json!([{"id": "reader", "name": "reader"}]));
    let endpoint = &body["token"]["catalog"][0];
    assert_eq!(
        (&endpoint["type"], &endpoint["endpoints"][0]["url"]),
        (&json!("reservation"), &json!("http://leases.example/v1"))
    );

    let headers = [("x-auth-token", token.as_str()), ("x-subject-token", token.as_str())];
    assert_eq!(send(&site, Method::GET, "/v1/leases", &headers, &Value::Null).await.status, 200);
    let path = "/identity/v3/auth/tokens";
    assert_eq!(
        send(&site, Method::GET, path, &headers, &Value::Null).await.ok(200)["token"]["project"]["id"],
        "q"
    );
    assert_eq!(send(&site, Method::HEAD, path, &headers, &Value::Null).await.status, 200);
    assert_eq!(send(&site, Method::GET, path, &headers[..1], &Value::Null).await.status, 404);
    assert_eq!(send(&site, Method::DELETE, path, &headers, &Value::Null).await.status, 204);
    assert_eq!(send(&site, Method::GET, "/v1/leases", &headers, &Value::Null).await.status, 401);
}

#[tokio::test]
async fn a_password_that_is_only_good_for_tokens_is_answered_with_the_way_to_log_in() {
    let basic = [("authorization", "Basic YWxpY2U6c2U6Y3JldA==")];
    for (method, way) in [(AuthMethod::LocalKeystone, "/identity/v3"), (AuthMethod::Tokens, "--token")] {
        let site = site(&[method]).await;
        let answer = send(&site, Method::GET, "/v1/leases", &basic, &Value::Null).await;
        let text = answer.ok(401).to_string();
        assert!(text.contains(way), "{text}");
    }
}

#[tokio::test]
async fn the_local_keystone_gives_no_token_for_anything_else() {
    let site = site(&[AuthMethod::LocalKeystone]).await;
    let log_in =
        async |body: &Value| send(&site, Method::POST, "/identity/v3/auth/tokens", &[], body).await.status;
    let alice = json!({"name": "alice", "password": "se:cret"});
    let no_scope = Value::Null;
    assert_eq!(log_in(&login(&alice, &no_scope)).await, 201);
    assert_eq!(log_in(&login(&alice, &json!("unscoped"))).await, 201);
    assert_eq!(log_in(&login(&json!({"id": "a1", "password": "se:cret"}), &no_scope)).await, 201);
    for (user, scope) in [
        (json!({"name": "alice", "password": "x"}), no_scope.clone()),
        (json!({"name": "bob", "password": "se:cret"}), no_scope.clone()),
        (json!({"name": "alice", "password": "se:cret", "domain": {"name": "other"}}), no_scope),
        (alice.clone(), json!({"project": {"name": "r"}})),
        (alice, json!({"project": {"id": "p", "domain": {"id": "other"}}})),
    ] {
        assert_eq!(log_in(&login(&user, &scope)).await, 401, "{user} {scope}");
    }
    let by_token = json!({"auth": {"identity": {"methods": ["token"], "token": {"id": "x"}}}});
    assert_eq!(log_in(&by_token).await, 401);
    assert_eq!(log_in(&json!({})).await, 400);
}

#[tokio::test]
async fn there_is_no_login_unless_it_is_chosen() {
    let site = site(&[AuthMethod::Tokens]).await;
    for path in ["/identity", "/identity/v3"] {
        assert_eq!(send(&site, Method::GET, path, &[], &Value::Null).await.status, 404);
    }
}

#[tokio::test]
async fn several_ways_in_work_beside_each_other() {
    let site = site(&[AuthMethod::Tokens, AuthMethod::Basic]).await;
    assert_eq!(site.send_as("reader", Method::GET, "/v1/leases", None).await.status, 200);
    let password = basic("alice", "se:cret");
    let headers = [("authorization", password.as_str()), ("x-auth-token", "wrong")];
    assert_eq!(send(&site, Method::GET, "/v1/leases", &headers, &Value::Null).await.status, 200);
}

#[tokio::test]
async fn a_server_that_is_open_to_everybody_does_not_listen_to_the_world() {
    let site = Site::open().await;
    let app = |config| App::new(Arc::clone(&site.service), Arc::new(SeededIds::new(1)), config);
    let config = Config { listen: "0.0.0.0:0".parse().expect("an address"), ..Config::default() };
    let error = server::bind(&app(config).expect("an app")).expect_err("refused").to_string();
    assert!(error.contains("0.0.0.0:0") && error.contains("loopback"), "{error}");
    let config = Config { listen: "127.0.0.1:0".parse().expect("an address"), ..Config::default() };
    assert!(server::bind(&app(config).expect("an app")).is_ok());
}

#[tokio::test]
async fn settings_that_let_nobody_or_everybody_in_by_mistake_are_refused() {
    let site = Site::open().await;
    let app = |auth: AuthConfig| {
        let config = Config { auth, ..Config::default() };
        App::new(Arc::clone(&site.service), Arc::new(SeededIds::new(1)), config).map(|_| ())
    };
    let methods = |methods: &[AuthMethod]| AuthConfig { methods: methods.to_vec(), ..AuthConfig::default() };
    assert!(matches!(app(methods(&[])), Err(ConfigError::NoMethod)));
    let both = methods(&[AuthMethod::Tokens, AuthMethod::None]);
    assert!(app(both).is_err());
    let unnamed = app(methods(&[AuthMethod::Basic])).expect_err("no file").to_string();
    assert_eq!(unnamed, "auth: basic needs auth.users_file");
    let file =
        TempFile::new("toml", "[[tokens]]\nsha256 = \"x\"\nuser = \"u\"\nproject = \"p\"\nroles = []\n");
    let auth = AuthConfig { tokens_file: Some(file.0.clone()), ..methods(&[AuthMethod::Tokens]) };
    let error = app(auth).expect_err("no hash").to_string();
    assert!(error.contains("64 hexadecimal digits"), "{error}");
    let plain = TempFile::new("toml", "[[users]]\nname = \"u\"\npassword_hash = \"secret\"\nprojects = {}\n");
    let auth = AuthConfig { users_file: Some(plain.0.clone()), ..methods(&[AuthMethod::Basic]) };
    let error = app(auth).expect_err("no hash").to_string();
    assert!(error.contains("argon2") && !error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_policy_file_opens_the_calendar_to_users() {
    let file = TempFile::new("yaml", "blazar:oshosts:get_allocations: rule:project_reader_or_admin\n");
    let tokens = tokens_file();
    let auth = AuthConfig {
        methods: vec![AuthMethod::Tokens],
        tokens_file: Some(tokens.0.clone()),
        ..AuthConfig::default()
    };
    let site =
        Site::with(Config { auth, policy_file: Some(file.0.clone()), ..Config::default() }, None).await;
    assert_eq!(site.send_as("reader", Method::GET, "/v1/os-hosts/allocations", None).await.status, 200);
    assert_eq!(site.send_as("reader", Method::GET, "/v1/os-hosts", None).await.status, 403);
}
