//! A cloud in memory: Keystone's login, and the parts of Nova, Placement, Neutron and Glance that the driver
//! uses. The test `recorded` compares its answers with a real cloud's answers.

mod glance;
pub mod migrations;
mod neutron;
mod nova;
mod placement;
mod state;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ambient::{ManualClock, SeededIds};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use fleet::hooks::{PowerConfig, PowerHooks};
use fleet_openstack::{Fence, OpenStackFleet, Settings};
use jiff::SignedDuration;
use leases::preemption::Mark;
use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, Session, User};
use secrecy::SecretString;
use serde_json::{Value, json};

pub use self::migrations::{Confirmations, Migration};
pub use self::neutron::NETWORK;
pub use self::state::{Aggregate, FREE_POOL, Isolation, Provider, State};

/// A request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub method: String,
    /// Name of the service, then the path below the service's address, then the query.
    pub path: String,
    pub version: String,
    pub body: Value,
    pub status: u16,
    pub answer: Value,
}

/// A request as handlers see it.
pub struct Asked<'a> {
    pub method: &'a Method,
    /// Parts of the path below the service's address.
    pub path: Vec<&'a str>,
    pub query: BTreeMap<String, String>,
    /// The query, with repeated keys.
    pub pairs: Vec<(String, String)>,
    pub version: &'a str,
    pub body: Value,
}

/// Status and body of an answer.
pub type Reply = (u16, Value);

/// Requests that aren't served: their number, and a pattern for them.
#[derive(Clone, Debug)]
struct Fault {
    method: Method,
    part: String,
    status: u16,
    left: usize,
    effect: Effect,
}

/// Effect of a fault on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The request isn't served.
    Broken,
    /// The request is served, but its answer is lost.
    AnswerLost,
    /// The request is served. The fault is meant for a later one.
    None,
}

/// A cloud in memory.
#[derive(Clone)]
pub struct Standin {
    url: String,
    fence: Fence,
    state: Arc<Mutex<State>>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    faults: Arc<Mutex<Vec<Fault>>>,
}

impl Standin {
    /// A cloud with this number of compute hosts, named `host1` and so on and numbered from 1.
    pub async fn start(hosts: u64) -> Self {
        Self::with(hosts, Fence::BlazarFilter).await
    }

    /// The same as `start`, for drivers with that fence.
    pub async fn with(hosts: u64, fence: Fence) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::new(Mutex::new(State::new(hosts)));
        let this = Self { url, fence, state, exchanges: Arc::default(), faults: Arc::default() };
        let app = Router::new().fallback(answer).with_state(this.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        this
    }

    /// A driver without memory.
    pub fn fleet(&self) -> OpenStackFleet {
        driver_with(&self.url, self.fence.clone())
    }

    /// A driver without memory that uses that clock.
    pub fn fleet_by(&self, clock: Arc<ManualClock>) -> OpenStackFleet {
        driver_by(&self.url, self.fence.clone(), clock)
    }

    /// Hooks that switch the cloud's hosts by requests to the cloud itself.
    pub fn power(&self) -> PowerHooks {
        let hook = |way: &str| json!({"webhook": format!("{}/power/{way}", self.url)});
        let hooks = json!({"hooks": {"on_power_on": hook("on"), "on_power_off": hook("off")}});
        let hooks: PowerConfig = serde_json::from_value(hooks).expect("two hooks");
        PowerHooks::new(&hooks).expect("hooks")
    }

    /// A driver without memory that has another fence.
    pub fn fenced_by(&self, fence: Fence) -> OpenStackFleet {
        driver_with(&self.url, fence)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// The next `times` requests with that method and with `part` in their path are answered with that
    /// status.
    pub fn fail(&self, method: Method, part: &str, status: u16, times: usize) {
        self.add_fault(Fault { method, part: part.to_owned(), status, left: times, effect: Effect::Broken });
    }

    /// The next such request is served, but its answer is lost.
    pub fn lose_answer(&self, method: Method, part: &str) {
        self.add_fault(Fault {
            method,
            part: part.to_owned(),
            status: 500,
            left: 1,
            effect: Effect::AnswerLost,
        });
    }

    /// Serves `times` requests of that kind before faults that are added later hit any.
    pub fn pass(&self, method: Method, part: &str, times: usize) {
        self.add_fault(Fault { method, part: part.to_owned(), status: 0, left: times, effect: Effect::None });
    }

    /// Makes one request fail, or lose its answer, when requests like `asked` (methods and paths) are
    /// repeated: that with this number. Serves earlier ones of its kind, and returns a description of the
    /// request.
    pub fn break_request(&self, asked: &[(String, String)], number: usize, lost: bool) -> String {
        let (method, path) = &asked[number];
        let path = path.split('?').next().unwrap_or_default();
        let part = path.trim_end_matches(|c: char| c.is_ascii_digit());
        let part = if part.contains("/action") { "/action" } else { part };
        let before = asked[..number].iter().filter(|(m, p)| m == method && p.contains(part)).count();
        let name = Method::from_bytes(method.as_bytes()).expect("a method");
        self.pass(name.clone(), part, before);
        if lost {
            self.lose_answer(name, part);
        } else {
            self.fail(name, part, 500, 1);
        }
        format!("request {number}, {method} {path}, lost: {lost}")
    }

    fn add_fault(&self, fault: Fault) {
        self.faults.lock().expect("no panic").push(fault);
    }

    /// Requests since the last call.
    pub fn exchanges(&self) -> Vec<Exchange> {
        std::mem::take(&mut *self.exchanges.lock().expect("no panic"))
    }

    fn fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut faults = self.faults.lock().expect("no panic");
        let fault = faults
            .iter_mut()
            .find(|fault| fault.left > 0 && fault.method == *method && path.contains(&fault.part))?;
        fault.left -= 1;
        Some(fault.clone())
    }
}

/// A driver without memory for the cloud at that address.
pub fn driver(url: &str) -> OpenStackFleet {
    driver_with(url, Fence::BlazarFilter)
}

fn driver_with(url: &str, fence: Fence) -> OpenStackFleet {
    driver_by(url, fence, Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH)))
}

fn driver_by(url: &str, fence: Fence, clock: Arc<ManualClock>) -> OpenStackFleet {
    let default = || Domain::Name("Default".to_owned());
    let cloud = Cloud {
        identity: openstack::identity_url(url).expect("an address"),
        login: Login::Password {
            user: User::Name("allot".to_owned(), default()),
            password: Secret::Text(SecretString::from("s3cret")),
            project: Project::Name("service".to_owned(), default()),
        },
        region: Some("RegionOne".to_owned()),
        interface: Interface::Internal,
        authorities: None,
        timeout: Duration::from_secs(30),
        retry: Retry { attempts: 1, ..Retry::default() },
    };
    let session = Session::new(cloud, Arc::new(SeededIds::new(1))).expect("a session");
    let settings = Settings {
        hints: fence.marks().contains(&Mark::Hint),
        fence,
        free_pool: FREE_POOL.to_owned(),
        settle: Duration::from_millis(1),
        failed_after: FAILED_AFTER,
        migration_time: MIGRATION_TIME,
        image_time: IMAGE_TIME,
    };
    OpenStackFleet::new(Arc::new(session), settings, clock)
}

/// The driver's user ID in the stand-in.
pub const OWN_USER: &str = "u1";

/// Time from Nova's read of the database to its write.
const LATENCY: Duration = Duration::from_millis(2);

/// Time for which a compute service must be down before its host has failed.
pub const FAILED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Time limit for live migrations.
pub const MIGRATION_TIME: SignedDuration = SignedDuration::from_mins(30);

/// Time limit for images.
pub const IMAGE_TIME: SignedDuration = SignedDuration::from_hours(1);

/// Keystone's description of a token of that user, with the catalog.
pub fn token(url: &str, user: &str) -> Value {
    let endpoints = |path: &str| json!([{"interface": "internal", "region_id": "RegionOne", "url": format!("{url}{path}")}]);
    json!({"token": {
        "methods": ["password"],
        "user": {"id": user, "name": "allot", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "service", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": "r1", "name": "admin"}],
        "issued_at": "2026-11-25T12:00:00.000000Z",
        "expires_at": "2026-11-26T12:00:00.000000Z",
        "catalog": [
            {"type": "compute", "name": "nova", "endpoints": endpoints("/compute")},
            {"type": "placement", "name": "placement", "endpoints": endpoints("/placement")},
            {"type": "network", "name": "neutron", "endpoints": endpoints("/network")},
            {"type": "image", "name": "glance", "endpoints": endpoints("/image")},
        ],
    }})
}

async fn answer(
    Shared(cloud): Shared<Standin>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if uri.path() == "/v3/auth/tokens" {
        if let Some(fault) = cloud.fault(&method, uri.path()) {
            let status = StatusCode::from_u16(fault.status).expect("a status");
            return (status, json!({"error": {"code": fault.status, "message": "No."}}).to_string())
                .into_response();
        }
        let header = [("x-subject-token", "token")];
        return (StatusCode::CREATED, header, token(&cloud.url, OWN_USER).to_string()).into_response();
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let query = uri.query().unwrap_or_default();
    let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
    let (service, path) = parts.split_first().expect("a service");
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let pairs: Vec<(String, String)> =
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let version = headers.get("openstack-api-version").and_then(|value| value.to_str().ok());
    let version = version.unwrap_or_default();
    let query = pairs.iter().cloned().collect();
    let asked = Asked { method: &method, path: path.to_vec(), query, pairs, version, body: body.clone() };
    let fault = cloud.fault(&method, uri.path()).filter(|fault| fault.effect != Effect::None);
    let serve = |asked: &Asked<'_>| {
        let mut state = cloud.state();
        let answer = match *service {
            "compute" => nova::answer(&mut state, asked),
            "network" => neutron::answer(&mut state, asked),
            "image" => glance::answer(&mut state, asked),
            "power" => state.switch(asked.path[0] == "on", &asked.body),
            _ => placement::answer(&mut state, asked),
        };
        state.watch();
        answer
    };
    // Concurrent requests don't see each other's changes.
    let found = match (*service, path) {
        ("compute", ["os-aggregates", id, "action"]) => {
            let found = cloud.state().as_found(id);
            tokio::time::sleep(LATENCY).await;
            found
        }
        _ => None,
    };
    let creates = *service == "compute" && method == Method::POST && nova::creates(path);
    let existed = creates && nova::exists(&cloud.state(), path, &body);
    if creates {
        tokio::time::sleep(LATENCY).await;
    }
    let (status, reply) = match &fault {
        Some(fault) => {
            if fault.effect == Effect::AnswerLost {
                serve(&asked);
            }
            (fault.status, json!({"computeFault": {"code": fault.status, "message": "It broke."}}))
        }
        None => serve(&asked),
    };
    let lost_race = creates && !existed && status == 409;
    let (status, reply) = if lost_race { nova::duplicate() } else { (status, reply) };
    if let Some((id, hosts)) = found
        && status == 200
    {
        cloud.state().tell(id, hosts, &body);
    }
    cloud.exchanges.lock().expect("no panic").push(Exchange {
        method: method.to_string(),
        path: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        version: version.to_owned(),
        body,
        status,
        answer: reply.clone(),
    });
    let text = if reply.is_null() { String::new() } else { reply.to_string() };
    (StatusCode::from_u16(status).expect("a status"), text).into_response()
}
