//! A small client of the leasing service. It deals in URLs and JSON, and doesn't share the server's types: a
//! fault in those would go unnoticed.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::runtime::Runtime;

/// Default request timeout.
pub const LIMIT: Duration = Duration::from_mins(1);
/// Time after which an idle connection isn't reused.
pub const IDLE: Duration = Duration::from_secs(10);

/// A response.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// The body; null if it isn't JSON.
    pub body: Value,
}

impl Answer {
    /// The body, or an error if the status is another one.
    pub fn expect(self, status: u16) -> Result<Value> {
        if self.status == status {
            return Ok(self.body);
        }
        bail!("answered {} where {status} was expected: {}", self.status, self.body)
    }

    /// Whether the request failed because of a shortage of hosts. The status is configurable, so the message
    /// decides.
    pub fn is_shortage(&self) -> bool {
        self.status >= 400 && self.message() == "Not enough hosts available"
    }

    /// Error message of the service; empty without an error.
    pub fn message(&self) -> &str {
        self.body["error_message"].as_str().unwrap_or_default()
    }
}

/// A client for requests that [`Http`] can't send.
pub fn client(limit: Duration) -> Result<Client> {
    // Fails only if an earlier client has installed a provider, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Shorter than the service's own idle timeout, so that a request never meets a connection that is being
    // closed.
    let builder = Client::builder().timeout(limit).pool_idle_timeout(IDLE).no_proxy();
    builder.build().context("no HTTP client")
}

/// A connection pool to one service. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use]
pub struct Http {
    client: Client,
    base: String,
    token: Option<String>,
}

impl Http {
    /// `base` is the service's URL without `/v1`.
    pub fn new(base: &str, limit: Duration) -> Result<Self> {
        Ok(Self { client: client(limit)?, base: base.to_owned(), token: None })
    }

    /// Sends this token with each request (`X-Auth-Token`).
    pub fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// Sends a request to a path such as `/v1/leases`.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer> {
        let fetched = fetched(self.request(&method, path, body)).await;
        Ok(answer(fetched.with_context(|| format!("{method} {path}"))?))
    }

    /// Like [`Self::send`], with an `Idempotency-Key`: repetitions with the same key have no further effect.
    pub async fn send_once(&self, method: Method, path: &str, body: &Value, key: &str) -> Result<Answer> {
        let fetched = fetched(self.request(&method, path, Some(body)).header("idempotency-key", key)).await;
        Ok(answer(fetched.with_context(|| format!("{method} {path}"))?))
    }

    /// Sends a request, and returns the status and the raw body.
    pub async fn fetch(&self, method: Method, path: &str, body: Option<&Value>) -> Result<(u16, Vec<u8>)> {
        fetched(self.request(&method, path, body)).await.with_context(|| format!("{method} {path}"))
    }

    /// Sends a GET request that accepts compressed responses, as a browser does. Returns the status and the
    /// raw body.
    pub async fn fetch_compressed(&self, path: &str) -> Result<(u16, Vec<u8>)> {
        let request =
            self.request(&Method::GET, path, None).header("accept-encoding", "gzip, deflate, br, zstd");
        fetched(request).await.with_context(|| format!("GET {path}"))
    }

    fn request(&self, method: &Method, path: &str, body: Option<&Value>) -> RequestBuilder {
        let request = self.client.request(method.clone(), format!("{}{path}", self.base));
        let mut request = request.header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("x-auth-token", token);
        }
        match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        }
    }

    /// Like [`Self::send`], blocking.
    pub fn call(
        &self,
        runtime: &Runtime,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        runtime.block_on(self.send(method, path, body))
    }
}

async fn fetched(request: RequestBuilder) -> Result<(u16, Vec<u8>), reqwest::Error> {
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    Ok((status, answer.bytes().await?.to_vec()))
}

fn answer((status, body): (u16, Vec<u8>)) -> Answer {
    Answer { status, body: serde_json::from_slice(&body).unwrap_or(Value::Null) }
}

/// A blocking client.
#[derive(Debug)]
#[must_use]
pub struct Caller {
    runtime: Runtime,
    http: Http,
}

impl Caller {
    /// `base` is the service's URL without `/v1`.
    pub fn new(base: &str) -> Result<Self> {
        Self::impatient(base, LIMIT)
    }

    /// Like [`Self::new`], with a request timeout.
    pub fn impatient(base: &str, limit: Duration) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { runtime: runtime.context("no runtime")?, http: Http::new(base, limit)? })
    }

    /// Sends this token with each request (`X-Auth-Token`).
    pub fn with_token(self, token: &str) -> Self {
        Self { http: self.http.with_token(token), ..self }
    }

    /// The service's metrics, in Prometheus' text format.
    pub fn metrics(&self) -> Result<String> {
        let (_, figures) = self.wait(self.http.fetch(Method::GET, "/metrics", None))?;
        Ok(String::from_utf8_lossy(&figures).into_owned())
    }

    /// Value of a metric. `name` includes labels, as in the text format.
    pub fn figure(&self, name: &str) -> Result<f64> {
        let text = self.metrics()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.with_context(|| format!("there is no {name}"))?.parse().context("no number")
    }

    /// The asynchronous client, for concurrent requests.
    pub fn http(&self) -> &Http {
        &self.http
    }

    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn get(&self, path: &str) -> Result<Answer> {
        self.http.call(&self.runtime, Method::GET, path, None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.http.call(&self.runtime, Method::POST, path, Some(body))
    }

    pub fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        self.http.call(&self.runtime, Method::PUT, path, Some(body))
    }

    pub fn delete(&self, path: &str) -> Result<Answer> {
        self.http.call(&self.runtime, Method::DELETE, path, None)
    }

    pub fn lease(&self, id: &str) -> Result<Value> {
        Ok(self.get(&format!("/v1/leases/{id}"))?.expect(200)?["lease"].take())
    }

    pub fn leases(&self) -> Result<Vec<Value>> {
        list(self.get("/v1/leases")?.expect(200)?, "leases")
    }

    pub fn hosts(&self) -> Result<Vec<Value>> {
        list(self.get("/v1/os-hosts")?.expect(200)?, "hosts")
    }

    /// Polls a lease until it has that status. After `limit`, this is an error.
    pub fn until_lease_is(&self, id: &str, status: &str, limit: Duration) -> Result<Value> {
        let started = std::time::Instant::now();
        loop {
            let lease = self.lease(id)?;
            if lease["status"] == status {
                return Ok(lease);
            }
            if started.elapsed() > limit {
                bail!("the lease is not {status} after {} s, but: {lease}", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The array in the member `name` of an answer.
pub fn list(mut envelope: Value, name: &str) -> Result<Vec<Value>> {
    match envelope[name].take() {
        Value::Array(items) => Ok(items),
        _ => Err(anyhow!("no list '{name}' in the answer")),
    }
}

/// A member that must be a string.
pub fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str> {
    value[name].as_str().with_context(|| format!("no text '{name}' in {value}"))
}
