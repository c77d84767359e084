//! Requests to the service, and what becomes of them.

use std::cell::Cell;
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

/// Until the connection stands.
const CONNECT: Duration = Duration::from_secs(10);
/// From the beginning to the end of an answer. Deletions wait for hosts to be taken back.
const TOTAL: Duration = Duration::from_mins(2);
/// Longer answers are refused: 100,000 leases have about 100 MB.
const MOST_BYTES: usize = 1 << 30;
/// How often a request that carries a key is made before its fate is given up on.
const ATTEMPTS: u32 = 3;

/// Where the service is if nobody says so: where `allot serve` and `allot demo` are.
const DEFAULT_URL: &str = "http://127.0.0.1:1234";

/// Where the service is.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Target {
    /// Address of the service, with http:// if it names none; if none is given, the one in Keystone's catalogue, or <http://127.0.0.1:1234>
    #[arg(long, global = true, env = "ALLOT_URL", value_name = "URL")]
    pub url: Option<String>,
    /// File with certificates (PEM) of authorities to trust instead of the system's
    #[arg(long, global = true, env = "ALLOT_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// The same; the variable is that of other clients
    #[arg(long, global = true, env = "OS_CACERT", value_name = "FILE")]
    pub os_cacert: Option<PathBuf>,
    /// File with a certificate of one's own and its key (PEM), for a service that wants one of its clients
    #[arg(long, global = true, env = "ALLOT_CLIENT_CERTIFICATE", value_name = "FILE")]
    pub client_certificate: Option<PathBuf>,
}

/// A connection to the service.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    base: String,
    login: Login,
    /// Whether answers are for a program, and are as they came.
    raw: bool,
    /// Time of the last answer, by the service's clock.
    answered: Cell<Option<Timestamp>>,
}

impl Connection {
    /// Logs in, if that takes a request. Texts of answers are escaped, unless they are to be `raw`.
    pub(crate) async fn open(target: Target, login: Login, raw: bool) -> Result<Self, ClientError> {
        let authorities = target.ca_file.or(target.os_cacert);
        let client = client(authorities.as_deref(), target.client_certificate.as_deref())?;
        let url = match (&login, target.url) {
            (Login::Keystone(keystone), named) => {
                let address = keystone.log_in(&client).await?;
                named.or(address).ok_or_else(|| {
                    let missing =
                        "Keystone's catalogue has no reservation service of that region and interface";
                    ClientError::Usage(format!("{missing}; say with --url where it is"))
                })?
            }
            (_, named) => named.unwrap_or_else(|| DEFAULT_URL.to_owned()),
        };
        let url = if url.contains("://") { url } else { format!("http://{url}") };
        let trimmed = url.trim_end_matches('/');
        // The catalogue's address ends in /v1, the one in the browser does not; both are meant.
        let base = trimmed.strip_suffix("/v1").unwrap_or(trimmed).to_owned();
        Ok(Self { client, base, login, raw, answered: Cell::default() })
    }

    /// Where the service is, without `/v1`.
    pub(crate) fn url(&self) -> &str {
        &self.base
    }

    /// Time of the last answer, by the service's clock.
    pub(crate) fn answered(&self) -> Option<Timestamp> {
        self.answered.get()
    }

    /// The time that the service goes by, to the second; absent if it does not answer.
    pub(crate) async fn time(&self) -> Option<Timestamp> {
        let answer = self.request(Method::GET, "/healthz").timeout(CONNECT).send().await.ok()?;
        date_of(&answer)
    }

    /// Gets a document.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, String)]) -> Result<Value, ClientError> {
        let mut path = path.to_owned();
        for (number, (name, value)) in query.iter().enumerate() {
            let separator = if number == 0 { '?' } else { '&' };
            path.push(separator);
            path.extend([name, "=", &segment(value)]);
        }
        let request = || self.request(Method::GET, &path);
        // Waits for news on purpose.
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

    /// What Keystone says of the projects that the user has a role in; `None` without a login there.
    pub(crate) async fn keystone_projects(&self) -> Option<Value> {
        let Login::Keystone(keystone) = &self.login else { return None };
        let request = self.client.get(keystone.projects_url()).header(ACCEPT, "application/json");
        self.send_once(self.login.sign(request)).await.ok()
    }

    /// Makes something.
    pub(crate) async fn post(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::POST, path, body).await
    }

    /// Makes something once, however often the request has to be sent: the key tells the service that it is
    /// the same request.
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

    /// Changes something.
    pub(crate) async fn put(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::PUT, path, body).await
    }

    /// Changes a part of something.
    pub(crate) async fn patch(&self, path: &str, body: &impl Serialize) -> Result<Value, ClientError> {
        self.send_body(Method::PATCH, path, body).await
    }

    /// Takes something away.
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

    /// Sends a request, and shows on a terminal that an answer takes long.
    async fn send(&self, make: &dyn Fn() -> RequestBuilder, attempts: u32) -> Result<Value, ClientError> {
        let _progress = Progress::start("Waiting for the service");
        self.attempt(make, attempts).await
    }

    /// Sends a request; once more if the answer was lost and sending it twice does no harm.
    async fn attempt(&self, make: &dyn Fn() -> RequestBuilder, attempts: u32) -> Result<Value, ClientError> {
        let mut attempt = 1;
        let mut renewed = false;
        loop {
            match (self.send_once(self.login.sign(make())).await, &self.login) {
                (Err(ClientError::Lost { .. }), _) if attempt < attempts => attempt += 1,
                // The token has ended, and nothing was done.
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

    /// Whether a request that failed can have had an effect.
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
    // Fails only if a provider was installed before; it is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        // A redirect would take the token elsewhere.
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

/// A body as it is sent.
fn json(body: &impl Serialize) -> Result<String, ClientError> {
    serde_json::to_string(body).map_err(|error| ClientError::Usage(format!("that is no request: {error}")))
}

fn with_body(request: RequestBuilder, body: &str) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_owned())
}

/// A name as a part of an address.
pub(crate) fn segment(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(escaped).collect()
}

/// Time of an answer, by the service's clock.
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
