//! HTTP requests to the service and their responses.

use std::cell::Cell;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use htools::progress::Progress;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Serialize;
use serde_json::Value;

use super::failure::{ClientError, innermost, refusal};
use super::login::Login;
use crate::shown;

/// Timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout for a whole request, up to the end of the response. Deletions wait for hosts to be released.
const TOTAL: Duration = Duration::from_mins(2);
/// Maximum size of a response. 100,000 leases take about 100 MB.
const MOST_BYTES: usize = 1 << 30;
/// Attempts for requests that are safe to repeat: reads, and requests with an idempotency key.
const ATTEMPTS: u32 = 3;

/// Default URL, which is also the default address of `allot serve` and `allot demo`.
const DEFAULT_URL: &str = "http://127.0.0.1:1234";

/// Address and certificates of the service.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Target {
    /// URL of the service, with http:// if no scheme is given; by default the URL in Keystone's catalog, or
    /// <http://127.0.0.1:1234>
    #[arg(long, global = true, env = "ALLOT_URL", value_name = "URL")]
    pub url: Option<String>,
    /// File with CA certificates (PEM) to trust instead of the system's
    #[arg(long, global = true, env = "ALLOT_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Same as --ca-file, for the variable of OpenStack's clients
    #[arg(long, global = true, env = "OS_CACERT", value_name = "FILE")]
    pub os_cacert: Option<PathBuf>,
    /// File with a client certificate and its key (PEM), for a service that requires one
    #[arg(long, global = true, env = "ALLOT_CLIENT_CERTIFICATE", value_name = "FILE")]
    pub client_certificate: Option<PathBuf>,
}

/// HTTP client for one service, with its login.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    base: String,
    login: Login,
    /// Whether responses go to a program and are left unescaped.
    raw: bool,
    answered: Cell<Option<Timestamp>>,
}

impl Connection {
    /// Connects to the service, and logs in if that takes a request. Texts in responses are escaped unless
    /// `raw`.
    pub(crate) async fn open(target: Target, login: Login, raw: bool) -> Result<Self, ClientError> {
        let authorities = target.ca_file.or(target.os_cacert);
        let client = client(authorities.as_deref(), target.client_certificate.as_deref())?;
        let url = match (&login, target.url) {
            (Login::Keystone(keystone), named) => {
                let address = keystone.log_in(&client).await?;
                named.or(address).ok_or_else(|| {
                    let missing =
                        "Keystone's catalog has no reservation service for this region and interface";
                    ClientError::Usage(format!("{missing}; set its URL with --url"))
                })?
            }
            (_, named) => named.unwrap_or_else(|| DEFAULT_URL.to_owned()),
        };
        let url = if url.contains("://") { url } else { format!("http://{url}") };
        let trimmed = url.trim_end_matches('/');
        // The catalog's URL ends in /v1 and the one in the browser doesn't. Accept both.
        let base = trimmed.strip_suffix("/v1").unwrap_or(trimmed).to_owned();
        Ok(Self { client, base, login, raw, answered: Cell::default() })
    }

    /// Base URL of the service, without `/v1`.
    pub(crate) fn url(&self) -> &str {
        &self.base
    }

    /// Whether the service accepts requests without a login, which only a service on this machine can.
    pub(crate) async fn is_open(&self) -> bool {
        let url = reqwest::Url::parse(&self.base).ok();
        let Some(host) = url.as_ref().and_then(reqwest::Url::host_str) else { return false };
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        if host != "localhost" && !address.is_ok_and(|address| address.is_loopback()) {
            return false;
        }
        let answer = self.send_once(self.request(Method::GET, "/v1/session")).await;
        answer.is_ok_and(|answer| answer["session"]["authentication"] == "none")
    }

    /// Time of the last response, by the service's clock.
    pub(crate) fn answered(&self) -> Option<Timestamp> {
        self.answered.get()
    }

    /// Current time by the service's clock, to the second. `None` if it doesn't answer.
    pub(crate) async fn time(&self) -> Option<Timestamp> {
        let answer = self.request(Method::GET, "/healthz").timeout(CONNECT).send().await.ok()?;
        date_of(&answer)
    }

    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, ClientError> {
        let mut path = path.to_owned();
        for (number, (name, value)) in query.iter().enumerate() {
            let separator = if number == 0 { '?' } else { '&' };
            path.push(separator);
            path.extend([name, "=", &segment(value)]);
        }
        let request = || self.request(Method::GET, &path);
        // The service delays this response on purpose, so no progress is shown.
        let answer = if query.iter().any(|(name, _)| *name == "wait") {
            self.attempt(&request, ATTEMPTS).await
        } else {
            self.send(&request, ATTEMPTS).await
        };
        answer.map_err(|error| match error {
            ClientError::Lost { url, reason } => ClientError::Silent { url, reason },
            error => error,
        })
    }

    /// Keystone's list of projects in which the user has a role. `None` without a Keystone login, or if the
    /// request fails.
    pub(crate) async fn keystone_projects(&self) -> Option<Value> {
        let Login::Keystone(keystone) = &self.login else { return None };
        let request = self.client.get(keystone.projects_url()).header(ACCEPT, "application/json");
        self.send_once(self.login.sign(request)).await.ok()
    }

    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::POST, path, body).await
    }

    /// Creates something once, even if the request has to be sent several times. The service recognizes
    /// repeats by `key`.
    pub(crate) async fn post_once(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> Result<Value, ClientError> {
        let body = json(body)?;
        let request = || with_body(self.request(Method::POST, path), &body).header("Idempotency-Key", key);
        self.send(&request, ATTEMPTS).await
    }

    pub(crate) async fn put(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::PUT, path, body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::PATCH, path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.send(&|| self.request(Method::DELETE, path), 1).await.map(drop)
    }

    async fn send_body(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value, ClientError> {
        let body = json(body)?;
        self.send(&|| with_body(self.request(method.clone(), path), &body), 1).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header(ACCEPT, "application/json")
    }

    /// Sends a request, and shows on a terminal that a response takes long.
    async fn send(&self, make: &dyn Fn() -> RequestBuilder, attempts: u32) -> Result<Value, ClientError> {
        let _progress = Progress::start("Waiting for the service");
        self.attempt(make, attempts).await
    }

    /// Sends a request, and repeats it after a lost response. Only requests that are safe to repeat have more
    /// than one attempt.
    async fn attempt(&self, make: &dyn Fn() -> RequestBuilder, attempts: u32) -> Result<Value, ClientError> {
        let mut attempt = 1;
        let mut renewed = false;
        loop {
            match (self.send_once(self.login.sign(make())).await, &self.login) {
                (Err(ClientError::Lost { .. }), _) if attempt < attempts => attempt += 1,
                // The token has expired, and the request had no effect.
                (Err(ClientError::Refused { status: 401, .. }), Login::Keystone(keystone)) if !renewed => {
                    keystone.log_in(&self.client).await?;
                    renewed = true;
                }
                (answer, login) => return answer.map_err(|error| login.explain(error)),
            }
        }
    }

    async fn send_once(&self, request: RequestBuilder) -> Result<Value, ClientError> {
        let mut response = request.timeout(TOTAL).send().await.map_err(|error| self.failed(&error))?;
        self.answered.set(date_of(&response));
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let table = kind.is_some_and(|kind| kind.starts_with("text/csv"));
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(self.nonsense(format!("it is longer than {MOST_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            return Err(refusal(status, &body, self.raw));
        }
        if body.is_empty() {
            return Ok(Value::Null);
        }
        if table {
            return Ok(Value::String(shown::table(&String::from_utf8_lossy(&body))));
        }
        let document = serde_json::from_slice(&body).map_err(|error| self.nonsense(error.to_string()))?;
        Ok(if self.raw { document } else { shown::answer(document) })
    }

    /// Error of a request without a response: `Unreachable` if it can't have had an effect, otherwise `Lost`.
    fn failed(&self, error: &reqwest::Error) -> ClientError {
        let (url, reason) = (self.base.clone(), innermost(error));
        if error.is_connect() || error.is_builder() {
            ClientError::Unreachable { url, reason }
        } else {
            ClientError::Lost { url, reason }
        }
    }

    fn nonsense(&self, reason: String) -> ClientError {
        ClientError::Nonsense { url: self.base.clone(), reason }
    }
}

fn client(authorities: Option<&Path>, certificate: Option<&Path>) -> Result<Client, ClientError> {
    // Only fails if a provider was installed before, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        // A redirect would send the token to another server.
        .redirect(Policy::none());
    if let Some(path) = authorities {
        let wrong =
            |reason: String| ClientError::Usage(format!("authorities in {}: {reason}", path.display()));
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let authorities =
            reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| wrong(error.to_string()))?;
        builder = builder.tls_certs_only(authorities);
    }
    if let Some(path) = certificate {
        let wrong =
            |reason: String| ClientError::Usage(format!("--client-certificate {}: {reason}", path.display()));
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        builder =
            builder.identity(reqwest::Identity::from_pem(&pem).map_err(|error| wrong(innermost(&error)))?);
    }
    builder.build().map_err(|error| ClientError::Usage(innermost(&error)))
}

fn json(body: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(body).map_err(|error| ClientError::Usage(format!("invalid request: {error}")))
}

fn with_body(request: RequestBuilder, body: &str) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_owned())
}

/// Percent-encodes a name for a path segment or query value.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(escaped).collect()
}

fn date_of(answer: &Response) -> Option<Timestamp> {
    http_date(answer.headers().get(DATE)?.to_str().ok()?)
}

fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT").map(|date| date.to_string());
        assert_eq!(date.as_deref(), Some("1994-11-06T08:49:37Z"));
        assert_eq!(http_date("yesterday"), None);
    }
}
