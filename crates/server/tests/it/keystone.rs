//! Tokens of a cloud's Keystone: accepted callers, the number of requests to Keystone, and outages.

use std::collections::HashMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ambient::SeededIds;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Method, Request, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, User};
use serde_json::{Value, json};
use server::{App, AuthConfig, AuthMethod, Config, ConfigError, KeystoneConfig, TokenValidation};

use crate::site::{Answer, Site, TempFile, hosts_lease, tokens_file};

const URI: &str = "http://keystone.example/v3";

/// A fake Keystone.
#[derive(Clone, Default)]
struct Keystone(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Validation responses by token.
    tokens: HashMap<String, Value>,
    /// Number of validations by token.
    asked: HashMap<String, usize>,
    logins: usize,
    /// Status of all responses during an outage.
    broken: Option<u16>,
    /// Failures to simulate, by token.
    provoked: HashMap<String, Provoked>,
    /// Existing projects, in addition to the service's own. `None` if listing projects is forbidden.
    projects: Option<Vec<&'static str>>,
    /// Number of open requests, and its maximum so far.
    open: usize,
    most: usize,
}

/// Failure of Keystone, or of a proxy in front of it, for a token.
#[derive(Clone, Copy, Debug)]
enum Provoked {
    /// Responds with this status.
    Status(u16),
    /// Closes the connection.
    Closes,
    /// Doesn't respond.
    Hangs,
}

impl Keystone {
    fn provoke(&self, token: &str, provoked: Provoked) {
        self.lock().provoked.insert(token.to_owned(), provoked);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().expect("no panic")
    }

    /// Issues a token with these roles. The fields in `more` are added to its validation response.
    fn issue(&self, token: &str, roles: &[&str], more: &Value) {
        let domain = json!({"id": "default", "name": "Default"});
        let roles: Vec<_> =
            roles.iter().map(|role| json!({"id": format!("id-{role}"), "name": role})).collect();
        let mut said = json!({
            "user": {"id": format!("id-of-{token}"), "name": format!("name-of-{token}"), "domain": domain},
            "project": {"id": "project-id", "name": "physics", "domain": {"id": "d2", "name": "lab"}},
            "roles": roles,
            "issued_at": "2026-11-25T16:00:00.000000Z",
            "expires_at": "2199-11-25T17:00:00.000000Z",
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            said[name] = value.clone();
        }
        self.lock().tokens.insert(token.to_owned(), json!({"token": said}));
    }

    fn revoke(&self, token: &str) {
        self.lock().tokens.remove(token);
    }

    fn break_with(&self, status: Option<u16>) {
        self.lock().broken = status;
    }

    fn asked(&self, token: &str) -> usize {
        self.lock().asked.get(token).copied().unwrap_or(0)
    }

    async fn serve(&self) -> String {
        let app = Router::new().fallback(answer).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        url
    }
}

async fn answer(State(keystone): State<Keystone>, method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let (said, provoked) = {
        let mut inner = keystone.lock();
        if let Some(status) = inner.broken {
            return StatusCode::from_u16(status).expect("a status").into_response();
        }
        if method == Method::POST {
            inner.logins += 1;
            let body = json!({"token": {
                "user": {"id": "allot", "name": "allot"},
                "project": {"id": "service", "name": "service"},
                "roles": [{"name": "service"}],
                "issued_at": "2026-11-25T16:00:00.000000Z",
                "expires_at": "2026-11-25T17:00:00.000000Z",
                "catalog": [],
            }});
            return (StatusCode::CREATED, [("x-subject-token", "own")], body.to_string()).into_response();
        }
        assert_eq!(headers["x-auth-token"], "own");
        if let Some(project) = uri.path().strip_prefix("/v3/projects/") {
            return match &inner.projects {
                None => StatusCode::FORBIDDEN,
                Some(there) if there.contains(&project) || project == "service" => StatusCode::OK,
                Some(_) => StatusCode::NOT_FOUND,
            }
            .into_response();
        }
        let token = headers["x-subject-token"].to_str().expect("text").to_owned();
        *inner.asked.entry(token.clone()).or_default() += 1;
        inner.open += 1;
        inner.most = inner.most.max(inner.open);
        (inner.tokens.get(&token).cloned(), inner.provoked.get(&token).copied())
    };
    // Lets more requests arrive.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    keystone.lock().open -= 1;
    match provoked {
        None => {}
        Some(Provoked::Status(status)) => {
            return StatusCode::from_u16(status).expect("a status").into_response();
        }
        Some(Provoked::Closes) => {
            let broken = futures::stream::iter([Err::<&str, _>(std::io::Error::other("closed"))]);
            return Body::from_stream(broken).into_response();
        }
        Some(Provoked::Hangs) => std::future::pending().await,
    }
    match said {
        Some(said) => (StatusCode::OK, said.to_string()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn settings(url: &str) -> KeystoneConfig {
    let default = || Domain::Name("Default".to_owned());
    KeystoneConfig {
        cloud: Cloud {
            identity: openstack::identity_url(url).expect("an address"),
            login: Login::Password {
                user: User::Name("allot".to_owned(), default()),
                password: Secret::Text("s3cret".into()),
                project: Project::Name("service".to_owned(), default()),
            },
            region: None,
            interface: Interface::Internal,
            authorities: None,
            timeout: Duration::from_secs(30),
            retry: Retry { attempts: 1, ..Retry::default() },
        },
        www_authenticate_uri: URI.to_owned(),
        validation: TokenValidation {
            cache_time: Duration::from_hours(1),
            cached_tokens: 1000,
            outage_time: Duration::from_hours(1),
            validations_at_once: 4,
        },
    }
}

fn config(keystone: KeystoneConfig) -> Config {
    let methods = vec![AuthMethod::Keystone];
    Config {
        auth: AuthConfig { methods, keystone: Some(keystone), ..AuthConfig::default() },
        ..Config::default()
    }
}

/// A service that accepts tokens of a Keystone, which has a member `ann` and an administrator `root`.
async fn site(change: impl FnOnce(&mut KeystoneConfig)) -> (Site, Keystone) {
    let keystone = Keystone::default();
    keystone.issue("ann", &["member", "reader"], &Value::Null);
    keystone.issue("root", &["admin", "manager", "member", "reader"], &Value::Null);
    let mut settings = settings(&keystone.serve().await);
    change(&mut settings);
    (Site::with(config(settings), None).await, keystone)
}

async fn ask(site: &Site, method: Method, path: &str, token: &str, body: &Value) -> Answer {
    ask_from([192, 0, 2, 1], site, method, path, token, body).await
}

async fn ask_from(
    address: [u8; 4],
    site: &Site,
    method: Method,
    path: &str,
    token: &str,
    body: &Value,
) -> Answer {
    let mut builder = Request::builder().method(method).uri(path).header("content-type", "application/json");
    if !token.is_empty() {
        builder = builder.header("x-auth-token", token);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let mut request = builder.body(body).expect("a request");
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from((address, 4000))));
    site.send(request).await
}

async fn leases(site: &Site, token: &str) -> Answer {
    ask(site, Method::GET, "/v1/leases", token, &Value::Null).await
}

#[tokio::test]
async fn a_token_of_the_cloud_is_who_keystone_says_with_the_roles_that_it_says() {
    let (site, keystone) = site(|_| ()).await;
    for host in ["r1-h01", "r1-h02"] {
        ask(&site, Method::POST, "/v1/os-hosts", "root", &json!({"name": host})).await.ok(201);
    }
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    let lease = ask(&site, Method::POST, "/v1/leases", "ann", &body).await.ok(201);
    let lease = &lease["lease"];
    assert_eq!((&lease["user_id"], &lease["project_id"]), (&json!("id-of-ann"), &json!("project-id")));
    let refused = ask(&site, Method::GET, "/v1/os-hosts", "ann", &Value::Null).await.error();
    assert_eq!(refused, (403, "Policy doesn't allow blazar:oshosts:get to be performed".to_owned()));
    keystone.issue("robot", &["auditor"], &Value::Null);
    assert_eq!(leases(&site, "robot").await.status, 403, "a role that no rule names");
    assert_eq!(keystone.lock().logins, 1);
}

#[tokio::test]
async fn whoever_has_no_valid_token_is_told_where_to_get_one() {
    let (site, keystone) = site(|_| ()).await;
    for token in ["", "nonsense"] {
        let answer = leases(&site, token).await;
        assert_eq!(answer.headers["www-authenticate"], format!("Keystone uri=\"{URI}\""));
        assert_eq!(answer.error(), (401, "The request you have made requires authentication.".to_owned()));
    }
    let probe = ask(&site, Method::OPTIONS, "/", "", &Value::Null).await;
    assert_eq!((probe.status.as_u16(), probe.headers.contains_key("www-authenticate")), (401, true));
    for (token, scope) in [
        ("unscoped", json!({"project": null})),
        ("of-a-domain", json!({"project": null, "domain": {"id": "d"}})),
    ] {
        keystone.issue(token, &["admin"], &scope);
        for _ in 0..2 {
            let (status, message) = leases(&site, token).await.error();
            assert!(status == 401 && message.contains("is for no project"), "{status} {message}");
        }
        assert_eq!(keystone.asked(token), 1);
    }
    for (length, asked) in [(2048, 1), (2049, 0), (8190, 0)] {
        let long = "x".repeat(length);
        assert_eq!(leases(&site, &long).await.status, 401);
        assert_eq!(keystone.asked(&long), asked, "{length}");
    }
    for (token, more) in [
        ("of-a-blank-project", json!({"project": {"id": " ", "name": "physics"}})),
        ("of-an-empty-project", json!({"project": {"id": "", "name": "physics"}})),
        ("over", json!({"expires_at": "2020-01-01T00:00:00.000000Z"})),
    ] {
        keystone.issue(token, &["admin"], &more);
        assert_eq!(leases(&site, token).await.status, 401, "{token}");
    }
    // Users log in at the cloud's Keystone. The service has no login of its own.
    for path in ["/identity", "/identity/v3", "/identity/v3/auth/tokens"] {
        let method = if path.ends_with("tokens") { Method::POST } else { Method::GET };
        assert_eq!(ask(&site, method, path, "ann", &json!({"auth": {}})).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn keystone_is_asked_once_about_a_token_however_many_requests_have_it() {
    let (site, keystone) = site(|_| ()).await;
    for token in ["ann", "wrong"] {
        let answers = futures::future::join_all((0..50).map(|_| leases(&site, token))).await;
        let status = if token == "ann" { 200 } else { 401 };
        assert!(answers.iter().all(|answer| answer.status == status));
        assert_eq!(leases(&site, token).await.status, status);
        assert_eq!(keystone.asked(token), 1, "{token}");
    }
    let figures = ask(&site, Method::GET, "/metrics", "", &Value::Null).await.text;
    for (outcome, count) in [("valid", 1), ("refused", 1), ("failed", 0)] {
        let line = format!("allot_keystone_tokens_total{{outcome=\"{outcome}\"}} {count}");
        assert!(figures.contains(&line), "{line}: {figures}");
    }
}

#[tokio::test]
async fn a_token_that_is_revoked_is_refused_after_the_time_that_is_set() {
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    keystone.revoke("ann");
    assert_eq!(leases(&site, "ann").await.status, 401);
    keystone.break_with(Some(503));
    assert_eq!(leases(&site, "ann").await.status, 401, "it does not come back while Keystone is away");
}

#[tokio::test]
async fn while_keystone_is_away_valid_tokens_go_on_and_others_wait() {
    for status in [500, 502, 503, 403] {
        let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
        assert_eq!(leases(&site, "ann").await.status, 200);
        keystone.break_with(Some(status));
        for _ in 0..3 {
            assert_eq!(leases(&site, "ann").await.status, 200, "{status}");
            for unknown in ["root", "nonsense"] {
                let answer = leases(&site, unknown).await;
                assert_eq!(answer.headers["retry-after"], "5");
                let error = answer.error();
                assert!(error.0 == 503 && error.1.starts_with("Keystone cannot be asked"), "{error:?}");
            }
        }
        let absent = leases(&site, "").await;
        assert_eq!(absent.status, 401);
    }
}

#[tokio::test]
async fn an_answer_that_a_token_provokes_concerns_its_client_only() {
    use Provoked::{Closes, Status};
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    let provoked = [400, 401, 403, 429, 500, 502, 503, 504].map(Status).into_iter().chain([Closes]);
    for (number, provoked) in provoked.enumerate() {
        for token in ["first", "second", "third"] {
            let token = format!("{token}-{number}");
            keystone.provoke(&token, provoked);
            assert_eq!(leases(&site, &token).await.status, 503, "{provoked:?}");
        }
        let new = format!("new-{number}");
        keystone.issue(&new, &["reader"], &Value::Null);
        for token in ["ann", &new] {
            let asked = keystone.asked(token);
            assert_eq!(leases(&site, token).await.status, 200, "{provoked:?}");
            assert_eq!(keystone.asked(token), asked + 1, "there is no outage: {provoked:?}");
        }
    }
    assert_eq!(keystone.lock().logins, 1, "the service's own token is as good as before");
    assert!(
        keystone.asked("own") <= 1 + keystone.asked("ann"),
        "few questions about the service's own token"
    );
}

#[tokio::test]
async fn tokens_that_keystone_does_not_answer_leave_places_to_others() {
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    let site = Arc::new(site);
    let hanging: Vec<_> = (0..20)
        .map(|number| {
            let token = format!("slow-{number}");
            keystone.provoke(&token, Provoked::Hangs);
            let site = Arc::clone(&site);
            tokio::spawn(async move { leases(&site, &token).await.status })
        })
        .collect();
    while keystone.lock().asked.keys().filter(|token| token.starts_with("slow")).count() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other = ask_from([192, 0, 2, 2], &site, Method::GET, "/v1/leases", "root", &Value::Null).await;
    assert_eq!(other.status, 200, "a new token of another address");
    assert_eq!(leases(&site, "ann").await.status, 200, "a token of the same address that was valid before");
    let slow = keystone.lock().asked.keys().filter(|token| token.starts_with("slow")).count();
    assert_eq!(slow, 2, "half of the places");
    assert!(hanging.iter().all(|request| !request.is_finished()));
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn an_outage_is_probed_with_the_services_own_token_only() {
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    keystone.provoke("own", Provoked::Status(502));
    keystone.provoke("odd", Provoked::Status(400));
    assert_eq!(leases(&site, "odd").await.status, 503);
    // The outage has begun. Requests of clients neither end nor prolong it.
    let asked = (keystone.asked("ann"), keystone.asked("odd"));
    for _ in 0..20 {
        assert_eq!(leases(&site, "ann").await.status, 200);
        assert_eq!(leases(&site, "odd").await.status, 503);
    }
    assert_eq!((keystone.asked("ann"), keystone.asked("odd")), asked);
    keystone.lock().provoked.remove("own");
    while leases(&site, "root").await.status != 200 {
        assert_eq!(leases(&site, "odd").await.status, 503);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_token_goes_on_no_longer_than_is_set_and_a_service_comes_up_without_keystone() {
    let (site, keystone) = site(|settings| {
        settings.validation.cache_time = Duration::ZERO;
        settings.validation.outage_time = Duration::ZERO;
    })
    .await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    keystone.break_with(Some(503));
    assert_eq!(leases(&site, "ann").await.status, 503);

    // Keystone is unreachable from the start.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let site = Site::with(config(settings(&url)), None).await;
    site.app.look_at_keystone().await;
    assert_eq!(leases(&site, "ann").await.status, 503);
    assert_eq!(ask(&site, Method::GET, "/healthz", "", &Value::Null).await.status, 200);
}

#[tokio::test]
async fn keystone_that_comes_back_is_asked_again_by_one_request() {
    let (site, keystone) = site(|_| ()).await;
    keystone.break_with(Some(503));
    assert_eq!(leases(&site, "ann").await.status, 503);
    keystone.break_with(None);
    // One of these requests probes Keystone at intervals. How soon doesn't matter here.
    while leases(&site, "ann").await.status != 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(keystone.asked("ann"), 1, "the others did not wait for it");
}

#[tokio::test]
async fn a_flood_of_wrong_tokens_asks_keystone_few_at_once_and_keeps_nobody_out() {
    let (site, keystone) = site(|settings| settings.validation.cached_tokens = 10).await;
    assert_eq!(leases(&site, "ann").await.status, 200);
    let tokens: Vec<String> = (0..200).map(|number| format!("wrong-{number}")).collect();
    let answers = futures::future::join_all(tokens.iter().map(|token| leases(&site, token))).await;
    assert!(answers.iter().all(|answer| answer.status == 401));
    assert!(keystone.lock().most <= 4, "{}", keystone.lock().most);
    assert_eq!(leases(&site, "ann").await.status, 200);
    assert_eq!(keystone.asked("ann"), 1, "wrong tokens displace no valid one");
}

#[tokio::test]
async fn an_application_credential_is_good_for_what_its_access_rules_allow() {
    let (site, keystone) = site(|_| ()).await;
    let rule = json!({"id": "r1", "service": "reservation", "method": "GET", "path": "/v1/leases"});
    let of = |rules: Value| json!({"application_credential": {"id": "c", "restricted": true, "access_rules": rules}});
    keystone.issue("narrow", &["member"], &of(json!([rule])));
    keystone.issue(
        "for-nova",
        &["member"],
        &of(json!([{"service": "compute", "method": "GET", "path": "/**"}])),
    );
    keystone.issue(
        "wide",
        &["member", "reader"],
        &json!({"application_credential": {"id": "c", "restricted": true}}),
    );
    assert_eq!(
        leases(&site, "narrow").await.status,
        403,
        "a member without reader: the policy is asked as well"
    );
    keystone.issue("narrow-reader", &["reader", "member"], &of(json!([rule])));
    leases(&site, "narrow-reader").await.ok(200);
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    let (status, message) = ask(&site, Method::POST, "/v1/leases", "narrow-reader", &body).await.error();
    assert!(status == 403 && message.contains("access rules"), "{status} {message}");
    assert_eq!(leases(&site, "for-nova").await.status, 403);
    leases(&site, "wide").await.ok(200);
}

#[tokio::test]
async fn a_session_of_the_console_lasts_as_long_as_the_token_that_it_was_begun_with() {
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    let send = async |method: Method, path: &str, cookie: &str, body: &Value| {
        let builder = Request::builder().method(method).uri(path).header("x-allot-console", "1");
        let builder = builder.header("content-type", "application/json").header("cookie", cookie);
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        site.send(builder.body(body).expect("a request")).await
    };
    let begin = async |token: &str| send(Method::POST, "/v1/session", "", &json!({"token": token})).await;
    let begun = begin("ann").await;
    let cookie =
        begun.headers["set-cookie"].to_str().expect("text").split(';').next().expect("a pair").to_owned();
    assert_eq!(begun.ok(201)["session"]["user"], "id-of-ann");
    let leases = async || send(Method::GET, "/v1/leases", &cookie, &Value::Null).await.status.as_u16();
    assert_eq!(leases().await, 200);
    keystone.break_with(Some(503));
    assert_eq!(leases().await, 200, "Keystone is away");
    keystone.break_with(None);
    // A token for another purpose must not get around its access rules.
    let rule = json!({"service": "reservation", "method": "GET", "path": "/v1/leases"});
    let rules = json!({"application_credential": {"id": "c", "access_rules": [rule]}});
    keystone.issue("narrow", &["reader", "member"], &rules);
    keystone.revoke("ann");
    while leases().await == 200 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(leases().await, 401, "it is revoked");
    assert_eq!(begin("narrow").await.status, 403);
    assert_eq!(begin("nonsense").await.status, 401);
}

#[tokio::test]
async fn names_are_logged_beside_identifiers_and_tokens_never() {
    let (site, keystone) = site(|settings| settings.validation.cache_time = Duration::ZERO).await;
    keystone.issue("t0ken-0ne", &["reader"], &Value::Null);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    // Applies to this thread, which runs all tasks of the test.
    let logging = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    site.app.look_at_keystone().await;
    leases(&site, "t0ken-0ne").await.ok(200);
    leases(&site, "t0ken-tw0").await;
    keystone.break_with(Some(500));
    leases(&site, "t0ken-three").await;
    keystone.break_with(Some(503));
    leases(&site, "t0ken-f0ur").await;
    drop(logging);
    let text = log.text();
    for shown in
        ["user=\"id-of-t0ken-0ne\"", "project_name=\"physics@lab\"", "Keystone unavailable", "login failed"]
    {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    // Names and identifiers in this Keystone contain tokens.
    let text = text.replace("id-of-t0ken-0ne", "").replace("name-of-t0ken-0ne", "");
    for secret in ["t0ken", "s3cret", "\"own\""] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(!format!("{:?}", site.app).contains("s3cret"));
}

#[tokio::test]
async fn identifiers_and_names_that_are_too_long_are_logged_in_part() {
    let (site, keystone) = site(|_| ()).await;
    let long = |letter: &str| letter.repeat(700);
    let user = json!({"id": long("u"), "name": long("n"), "domain": {"name": long("d")}});
    let project = json!({"id": long("p"), "name": long("m"), "domain": {"name": long("e")}});
    keystone.issue("long", &[&long("r"), "reader"], &json!({"user": user, "project": project}));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    let logging = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
    leases(&site, "long").await.ok(200);
    let method = Method::from_bytes(long("X").as_bytes()).expect("a method");
    assert_eq!(ask(&site, method, "/v1/leases", "long", &Value::Null).await.status, 405);
    let body = json!({"token": "long"});
    let begun = ask(&site, Method::POST, "/v1/session", "", &body).await;
    assert!([201, 400].contains(&begun.status.as_u16()), "{}", begun.text);
    drop(logging);
    let text = log.text();
    assert!(text.contains("(700 characters)"), "{text}");
    for letter in ["u", "n", "d", "p", "m", "e", "r", "X"] {
        assert!(!text.contains(&letter.repeat(256)), "{letter}: {text}");
    }
}

#[tokio::test]
async fn tokens_of_a_file_are_nothing_to_keystone() {
    let keystone = Keystone::default();
    let tokens = tokens_file();
    let mut config = config(settings(&keystone.serve().await));
    config.auth.methods = vec![AuthMethod::Keystone, AuthMethod::Tokens];
    config.auth.tokens_file = Some(tokens.0.clone());
    let site = Site::with(config, None).await;
    assert_eq!(leases(&site, "reader").await.status, 200);
    assert_eq!(keystone.asked("reader"), 0);
    keystone.break_with(Some(503));
    assert_eq!(leases(&site, "reader").await.status, 200);
    assert_eq!(leases(&site, "nonsense").await.status, 503, "it may be one of Keystone's");
}

#[tokio::test]
async fn leases_of_projects_that_keystone_does_not_have_are_found_and_deleted_on_request() {
    let (site, keystone) = site(|_| ()).await;
    ask(&site, Method::POST, "/v1/os-hosts", "root", &json!({"name": "r1-h01"})).await.ok(201);
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    ask(&site, Method::POST, "/v1/leases", "ann", &body).await.ok(201);
    let drift =
        async || ask(&site, Method::GET, "/v1/drift", "root", &Value::Null).await.ok(200)["drift"].clone();
    assert_eq!(drift().await, json!([]), "Keystone tells nothing");
    keystone.lock().projects = Some(vec!["project-id"]);
    assert_eq!(drift().await, json!([]));
    keystone.lock().projects = Some(Vec::new());
    let found = drift().await;
    assert_eq!((&found[0]["kind"], &found[0]["repairable"]), (&json!("ownerless"), &json!(true)), "{found}");
    let refused = ask(&site, Method::POST, "/v1/drift/repair", "ann", &Value::Null).await;
    assert_eq!(refused.status, 403);
    assert_eq!(leases(&site, "ann").await.ok(200)["leases"].as_array().map(Vec::len), Some(1));
    let left = ask(&site, Method::POST, "/v1/drift/repair", "root", &Value::Null).await.ok(200);
    assert_eq!(left["drift"], json!([]));
    assert_eq!(leases(&site, "ann").await.ok(200)["leases"], json!([]));
}

#[tokio::test]
async fn where_others_come_in_too_keystone_is_not_asked_which_projects_there_are() {
    let keystone = Keystone::default();
    keystone.lock().projects = Some(Vec::new());
    let tokens = tokens_file();
    let mut config = config(settings(&keystone.serve().await));
    config.auth.methods = vec![AuthMethod::Keystone, AuthMethod::Tokens];
    config.auth.tokens_file = Some(tokens.0.clone());
    let site = Site::with(config, None).await;
    ask(&site, Method::POST, "/v1/os-hosts", "admin", &json!({"name": "r1-h01"})).await.ok(201);
    let body = hosts_lease(1, 1, "2030-01-02 10:00", "2030-01-02 12:00");
    ask(&site, Method::POST, "/v1/leases", "admin", &body).await.ok(201);
    assert_eq!(ask(&site, Method::GET, "/v1/drift", "admin", &Value::Null).await.ok(200)["drift"], json!([]));
}

#[tokio::test]
async fn settings_that_do_not_go_together_are_refused() {
    let site = Site::open().await;
    let app = |auth: AuthConfig| {
        let config = Config { auth, ..Config::default() };
        App::new(Arc::clone(&site.service), Arc::new(SeededIds::new(1)), config).map(|_| ())
    };
    let unnamed = AuthConfig { methods: vec![AuthMethod::Keystone], ..AuthConfig::default() };
    assert!(matches!(app(unnamed), Err(ConfigError::KeystoneNotNamed)));
    let hash = server::hash_password(&"secret".into(), &SeededIds::new(5)).expect("a hash");
    let user =
        format!("[[users]]\nname = \"u\"\npassword_hash = \"{hash}\"\nprojects = {{ p = [\"reader\"] }}\n");
    let users = TempFile::new("toml", &user);
    let both = AuthConfig {
        methods: vec![AuthMethod::LocalKeystone, AuthMethod::Keystone],
        users_file: Some(users.0.clone()),
        keystone: Some(settings("http://127.0.0.1:1")),
        ..AuthConfig::default()
    };
    assert!(matches!(app(both), Err(ConfigError::TwoKeystones)));
    let mut broken = settings("http://127.0.0.1:1");
    broken.cloud.authorities = Some(b"no certificate".to_vec());
    let error = app(config(broken).auth).expect_err("no authority").to_string();
    assert!(error.starts_with("keystone: authorities of certificates"), "{error}");
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
