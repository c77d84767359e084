//! A stub of a cloud: Keystone's login, and the responses that a test sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ambient::SeededIds;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, Session, User};
use secrecy::SecretString;
use serde_json::{Value, json};

/// A received request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The response of a stub.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Reply {
    pub fn new(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("x-openstack-request-id", "req-stub".to_owned())],
            body: body.to_string(),
        }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let mut response = (StatusCode::from_u16(self.status).expect("a status"), self.body).into_response();
        for (name, value) in self.headers {
            response.headers_mut().append(name, value.parse().expect("a value"));
        }
        response
    }
}

type Answers = Box<dyn Fn(&Asked, usize) -> Option<Reply> + Send + Sync>;

/// A running stub.
#[derive(Clone)]
pub struct Stub {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: Arc<Answers>,
}

impl Stub {
    /// Starts a stub that responds with the result of `answers`. Its second argument is the number of earlier
    /// requests with the same method and path. If it returns `None` for a login, the login succeeds with the
    /// token `token-N`.
    pub async fn start(answers: impl Fn(&Asked, usize) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let this = Self { url, asked: Arc::default(), answers: Arc::new(Box::new(answers)) };
        let app = Router::new().fallback(answer).with_state(this.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        this
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Number of requests by `METHOD PATH`.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for asked in self.asked() {
            *counts.entry(format!("{} {}", asked.method, asked.path)).or_default() += 1;
        }
        counts
    }

    /// Settings of a session with the stub.
    pub fn cloud(&self) -> Cloud {
        let default = || Domain::Name("Default".to_owned());
        Cloud {
            identity: openstack::identity_url(&self.url).expect("an address"),
            login: Login::Password {
                user: User::Name("allot".to_owned(), default()),
                password: Secret::Text(SecretString::from("s3cret")),
                project: Project::Name("service".to_owned(), default()),
            },
            region: Some("RegionOne".to_owned()),
            interface: Interface::Internal,
            authorities: None,
            timeout: Duration::from_secs(30),
            retry: Retry {
                attempts: 3,
                first_pause: Duration::from_millis(1),
                longest_pause: Duration::from_millis(2),
            },
        }
    }

    pub fn session(&self) -> Arc<Session> {
        session(self.cloud())
    }

    /// Keystone's description of a token with this lifetime.
    pub fn token(&self, seconds: i64) -> Value {
        let endpoint = |path: &str| {
            json!([
                {"interface": "public", "region_id": "RegionOne", "region": "RegionOne", "url": "http://public.invalid"},
                {"interface": "internal", "region_id": "RegionOne", "url": format!("{}{path}", self.url)},
            ])
        };
        let issued = jiff::Timestamp::from_second(1_800_000_000).expect("a time");
        json!({"token": {
            "methods": ["password"],
            "user": {"id": "u1", "name": "allot", "domain": {"id": "default", "name": "Default"}},
            "project": {"id": "p1", "name": "service", "domain": {"id": "default", "name": "Default"}},
            "roles": [{"id": "r1", "name": "service"}],
            "issued_at": issued.to_string(),
            "expires_at": (issued + jiff::SignedDuration::from_secs(seconds)).to_string(),
            "catalog": [
                {"type": "compute", "name": "nova", "endpoints": endpoint("/compute/v2.1")},
                {"type": "placement", "name": "placement", "endpoints": endpoint("/placement")},
            ],
        }})
    }
}

pub fn session(cloud: Cloud) -> Arc<Session> {
    Arc::new(Session::new(cloud, Arc::new(SeededIds::new(1))).expect("a session"))
}

pub fn is_login(asked: &Asked) -> bool {
    asked.method == Method::POST && asked.path == "/v3/auth/tokens"
}

async fn answer(
    State(stub): State<Stub>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let (path, query) = (uri.path().to_owned(), uri.query().unwrap_or_default().to_owned());
    let asked = Asked { method, path, query, headers, body };
    let before = {
        let mut all = stub.asked.lock().expect("no panic");
        let before =
            all.iter().filter(|other| other.method == asked.method && other.path == asked.path).count();
        all.push(asked.clone());
        before
    };
    let standard = || {
        is_login(&asked).then(|| {
            Reply::new(201, &stub.token(3600)).with("x-subject-token", &format!("token-{}", before + 1))
        })
    };
    let missing = || Reply::new(404, &json!({"error": {"code": 404, "message": "There is nothing here."}}));
    (stub.answers)(&asked, before).or_else(standard).unwrap_or_else(missing).into_response()
}
