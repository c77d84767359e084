//! A server for tests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ambient::{Clock, ManualClock, SeededIds};
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use fleet::simulated::{Layout, Model, SimulatedFleet};
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use server::{App, AuthConfig, AuthMethod, Config, Limits};
use service::{Enforcer, Parts, Service, Settings};
use store::Store;
use store::memory::MemoryStore;
use tokio::sync::watch;
use tower::ServiceExt;

/// Time of the test's clock at the start.
pub const NOW: &str = "2030-01-01T10:00:30Z";

/// A server with a fleet of four machines with 16 virtual CPUs each, which are not hosts yet.
pub struct Site {
    pub app: App,
    pub router: axum::Router,
    pub clock: Arc<ManualClock>,
    pub service: Arc<Service>,
    pub fleet: Arc<SimulatedFleet>,
    /// Stops the loop when it is dropped.
    _stop: watch::Sender<bool>,
}

/// A response whose body was read.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Status and message of an error.
    pub fn error(&self) -> (u16, String) {
        let body = self.json();
        let message = body["error_message"].as_str().or(body["error"]["message"].as_str());
        (self.status.as_u16(), message.unwrap_or_else(|| panic!("no error: {self:?}")).to_owned())
    }

    /// Returns the body. Fails unless the response has this status.
    #[track_caller]
    pub fn ok(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

impl Site {
    /// A site without authentication. Every caller is an administrator.
    pub async fn open() -> Self {
        Self::with(Config::default(), None).await
    }

    /// A site with this configuration.
    pub async fn with(config: Config, enforcer: Option<Arc<dyn Enforcer>>) -> Self {
        let store = Arc::new(MemoryStore::new());
        let (site, stopped) = Self::build(config, enforcer, store, at(NOW), Settings::default()).await;
        tokio::spawn(Arc::clone(&site.service).run(stopped));
        site
    }

    /// Like [`Self::open`], with these service settings.
    pub async fn of_settings(settings: Settings) -> Self {
        Self::of(Config::default(), settings).await
    }

    /// Like [`Self::guarded`], with these service settings.
    pub async fn guarded_of_settings(settings: Settings) -> Self {
        let file = tokens_file();
        Self::of(Config { auth: by_tokens(&file), ..Config::default() }, settings).await
    }

    async fn of(config: Config, settings: Settings) -> Self {
        let store = Arc::new(MemoryStore::new());
        let (site, stopped) = Self::build(config, None, store, at(NOW), settings).await;
        tokio::spawn(Arc::clone(&site.service).run(stopped));
        site
    }

    /// Like [`Self::of_settings`], but the loop runs only in [`Self::pass`].
    pub async fn still_of_settings(settings: Settings) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self::build(Config::default(), None, store, at(NOW), settings).await.0
    }

    /// Like [`Self::guarded`], on this store. The loop runs only in [`Self::pass`].
    pub async fn still(store: Arc<dyn Store>) -> Self {
        Self::still_at(store, at(NOW)).await
    }

    /// Like [`Self::still`], starting at another time.
    pub async fn still_at(store: Arc<dyn Store>, now: Timestamp) -> Self {
        let file = tokens_file();
        let limits = Limits { wait: Duration::ZERO, ..Limits::default() };
        let config = Config { auth: by_tokens(&file), limits, ..Config::default() };
        // A store can use the time of its machine, which differs from the test's.
        let longest_clock_skew = SignedDuration::from_hours(24 * 365 * 100);
        let settings = Settings { delete_wait: Duration::ZERO, longest_clock_skew, ..Settings::default() };
        Self::build(config, None, store, now, settings).await.0
    }

    /// Like [`Self::guarded`], with this store and clock.
    pub async fn guarded_on(store: Arc<dyn Store>, clock: Arc<ManualClock>) -> Self {
        let file = tokens_file();
        let config = Config { auth: by_tokens(&file), ..Config::default() };
        let built = Self::build_by(config, None, store, clock, Settings::default());
        let (site, stopped) = Box::pin(built).await;
        tokio::spawn(Arc::clone(&site.service).run(stopped));
        site
    }

    async fn build(
        config: Config,
        enforcer: Option<Arc<dyn Enforcer>>,
        store: Arc<dyn Store>,
        now: Timestamp,
        settings: Settings,
    ) -> (Self, watch::Receiver<bool>) {
        let clock = Arc::new(ManualClock::new(now));
        Box::pin(Self::build_by(config, enforcer, store, clock, settings)).await
    }

    async fn build_by(
        mut config: Config,
        enforcer: Option<Arc<dyn Enforcer>>,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        settings: Settings,
    ) -> (Self, watch::Receiver<bool>) {
        let shared: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let layout = Layout::uniform(2, 2, &Model::of_size(16, 65_536, 1000));
        let ids = Arc::new(SeededIds::new(1));
        let fleet = Arc::new(SimulatedFleet::new(Arc::clone(&shared), 1, &layout));
        let parts = Parts {
            store,
            fleet: Arc::<SimulatedFleet>::clone(&fleet),
            clock: shared,
            ids: Arc::<SeededIds>::clone(&ids),
            enforcer,
        };
        let service = Service::open(parts, settings).await.expect("an empty store opens");
        // Tests send requests as fast as they can.
        config.limits.rate.per_second.get_or_insert(0);
        let (stop, stopped) = watch::channel(false);
        let app = App::new(Arc::clone(&service), ids, config).expect("the settings are sound");
        (Self { router: server::router(app.clone()), app, clock, service, fleet, _stop: stop }, stopped)
    }

    /// A site with tokens named after roles in project `p`, and `foreign`, a member of project `q`.
    pub async fn guarded() -> Self {
        Self::guarded_with(Config::default()).await
    }

    /// Like [`Self::guarded`], with this configuration.
    pub async fn guarded_with(config: Config) -> Self {
        let file = tokens_file();
        Self::with(Config { auth: by_tokens(&file), ..config }, None).await
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().to_string());
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let endless = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let bytes = if endless {
            // Reads only the first event, because the stream might not end.
            body.into_data_stream().next().await.expect("an event").expect("a body")
        } else {
            axum::body::to_bytes(body, 1 << 24).await.expect("a body")
        };
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        crate::contract::check(method.as_str(), &path, parts.status.as_u16(), &text);
        crate::contract::check_headers(&path, &parts.headers);
        Answer { status: parts.status, headers: parts.headers, text }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, "any", None)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::POST, path, "any", Some(body))).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(request(Method::PUT, path, "any", Some(body))).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(request(Method::DELETE, path, "any", None)).await
    }

    /// Sends a request with this token.
    pub async fn send_as(&self, token: &str, method: Method, path: &str, body: Option<&Value>) -> Answer {
        self.send(request(method, path, token, body)).await
    }

    /// Adds the first `count` machines as hosts.
    pub async fn add_hosts(&self, count: u32) {
        self.add_hosts_as("any", count).await;
    }

    /// Like [`Self::add_hosts`], with this token.
    pub async fn add_hosts_as(&self, token: &str, count: u32) {
        for number in 1..=count {
            let host = json!({"id": number.to_string(), "rack": "r1"});
            self.send_as(token, Method::POST, "/v1/os-hosts", Some(&host)).await.ok(201);
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Advances the clock, then runs the loop until it is idle. For sites whose loop doesn't run by itself.
    pub async fn pass(&self, time: SignedDuration) {
        self.clock.set(self.now() + time);
        for _ in 0..1000 {
            let cycle = self.service.execution().cycle().await;
            let rests = cycle.tasks.is_empty() && cycle.wake_at > self.now();
            for task in cycle.tasks {
                self.service.execution().note(self.service.execution().perform(task).await);
            }
            if rests {
                assert!(!cycle.failed, "the store works");
                return;
            }
        }
        panic!("the loop does not come to rest");
    }

    /// Waits until the loop has observed at least `hosts` hosts.
    pub async fn seen(&self, hosts: usize) {
        for _ in 0..10_000 {
            if self.service.hosts().seen().await.expect("few hosts").len() >= hosts {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("the hosts are not seen");
    }

    /// Creates a lease and returns it.
    pub async fn lease(&self, body: &Value) -> Value {
        self.post("/v1/leases", body).await.ok(201)["lease"].clone()
    }

    /// Sets the clock to `instant`, and waits until the lease has this status. The loop runs between
    /// requests; no real time is measured.
    pub async fn until(&self, instant: &str, lease: &Value, status: &str) -> Value {
        self.until_as("any", instant, lease, status).await
    }

    /// Like [`Self::until`], with this token.
    pub async fn until_as(&self, token: &str, instant: &str, lease: &Value, status: &str) -> Value {
        self.clock.set(instant.parse().expect("an instant"));
        let path = format!("/v1/leases/{}", lease["id"].as_str().expect("an identifier"));
        for _ in 0..10_000 {
            let answer = self.send_as(token, Method::GET, &path, None).await;
            let now = answer.ok(200)["lease"].clone();
            if now["status"] == status {
                return now;
            }
            tokio::task::yield_now().await;
        }
        panic!("the lease does not become {status}: {path}");
    }
}

pub fn request(method: Method, path: &str, token: &str, body: Option<&Value>) -> Request<Body> {
    let mut builder = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        builder = builder.header("x-auth-token", token);
    }
    match body {
        None => builder.body(Body::empty()),
        Some(body) => builder.header("content-type", "application/json").body(Body::from(body.to_string())),
    }
    .expect("a request")
}

/// A valid lease of hosts, which tests can modify.
pub fn hosts_lease(min: u32, max: u32, start: &str, end: &str) -> Value {
    json!({
        "name": "l", "start_date": start, "end_date": end, "before_end_date": null, "events": [],
        "reservations": [{
            "resource_type": "physical:host", "min": min, "max": max,
            "hypervisor_properties": "", "resource_properties": "",
        }],
    })
}

/// A temporary file, which is deleted on drop.
pub struct TempFile(pub PathBuf);

impl TempFile {
    pub fn new(extension: &str, text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("allot-server-{}-{number}.{extension}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a temporary file");
        Self(path)
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // At worst, the file stays.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Settings that require a token from the file.
pub fn by_tokens(file: &TempFile) -> AuthConfig {
    AuthConfig {
        methods: vec![AuthMethod::Tokens],
        tokens_file: Some(file.0.clone()),
        ..AuthConfig::default()
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

/// A file of tokens, named after their roles in project `p`, and `foreign`.
pub fn tokens_file() -> TempFile {
    let rows = [
        ("admin", "p", "admin"),
        ("member", "p", "member"),
        ("reader", "p", "reader"),
        ("other", "p", "other"),
        ("foreign", "q", "member"),
    ];
    let entry = |(token, project, role): (&str, &str, &str)| {
        let sha256 = server::hash_token(&token.into());
        json!({"sha256": sha256, "user": token, "project": project, "roles": [role]})
    };
    // JSON is valid YAML.
    TempFile::new("yaml", &json!({"tokens": rows.map(entry)}).to_string())
}
