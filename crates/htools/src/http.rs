//! HTTP client for documents of Ganeti's remote API and its monitoring daemons.
//!
//! Servers are not trusted: they can answer late, endlessly, or not at all, so time and size are limited.

#[cfg(test)]
pub(crate) mod fake;

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Time until the connection is established, including TLS.
    pub(crate) connect: Duration,
    /// Time from the start of the request to the last byte of the answer.
    pub(crate) total: Duration,
    /// Maximum size of an answer.
    pub(crate) most_bytes: usize,
}

/// Certificates to accept on encrypted connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// Any certificate, like the reference: Ganeti's own certificates are not signed by an authority.
    Anybody,
    /// Certificates that are signed by an authority in this PEM file, and issued for the requested host.
    Authorities(&'a Path),
}

/// Failed request for a document. The `Curl…` names are those that the reference prints.
#[derive(Debug, Error)]
pub enum HttpError {
    /// Connection refused, or host unreachable.
    #[error("CurlCouldntConnect")]
    Connect,
    #[error("CurlCouldntResolveHost")]
    Resolve,
    /// TLS handshake failed.
    #[error("CurlSSLConnectError")]
    Tls,
    /// A time limit was exceeded.
    #[error("CurlOperationTimeout")]
    TimedOut,
    /// The server returned an error status.
    #[error("CurlHttpReturnedError (HTTP status {0})")]
    Status(u16),
    /// The server redirects, which is not followed.
    #[error("CurlHttpReturnedError (HTTP status {0}, a redirection, which is not followed)")]
    Redirection(u16),
    /// The answer is an HTML page.
    #[error("the answer is a page of HTML, not a document of the remote API (HTTP status 200)")]
    Page,
    /// The connection was closed within the answer.
    #[error("CurlPartialFile")]
    CutOff,
    /// The connection was closed before the answer.
    #[error("CurlGotNothing")]
    Nothing,
    /// The answer isn't HTTP, or the address has an unsupported scheme.
    #[error("CurlUnspportedProtocol")]
    Protocol,
    /// Invalid address.
    #[error("CurlUrlMalformat")]
    Address,
    /// Any other failure of the connection.
    #[error("CurlRecvError")]
    Receive,
    /// The server's certificate is not accepted.
    #[error("{}", refused(.0))]
    Certificate(rustls::Error),
    /// The answer exceeds the size limit, in bytes, which no real answer does.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

/// Error that prevents all requests.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The file of authorities cannot be read.
    #[error("{path}: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file of authorities has no usable certificate.
    #[error("{path}: {reason}")]
    Authorities { path: PathBuf, reason: String },
    /// The operating system refused to create sockets or threads.
    #[error("cannot ask over the network: {0}")]
    System(String),
}

/// HTTP client with its own single-threaded runtime.
pub(crate) struct Http {
    client: Client,
    /// `Some` until the client is dropped.
    runtime: Option<Runtime>,
    most_bytes: usize,
}

impl Http {
    pub(crate) fn new(limits: Limits, trust: Trust<'_>) -> Result<Self, SetupError> {
        // Fails only if an earlier client already installed the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .connect_timeout(limits.connect)
            .timeout(limits.total)
            // Ganeti closes its connections after an answer, so an idle connection is useless.
            .pool_max_idle_per_host(0)
            // The reference doesn't follow redirects either: a server that redirects is not a cluster.
            .redirect(Policy::none());
        let builder = match trust {
            Trust::Anybody => builder.tls_danger_accept_invalid_certs(true),
            Trust::Authorities(path) => builder.tls_certs_only(authorities(path)?),
        };
        let client = builder.build().map_err(|error| SetupError::System(innermost(&error)))?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| SetupError::System(error.to_string()))?;
        Ok(Self { client, runtime: Some(runtime), most_bytes: limits.most_bytes })
    }

    pub(crate) fn get(&self, url: &str) -> Result<Vec<u8>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err(HttpError::Connect) };
        runtime.block_on(get(self.client.clone(), url.to_owned(), self.most_bytes))
    }

    /// Fetches several documents, at most `at_once` at a time. The answers are in the order of `urls`.
    pub(crate) fn get_all(&self, urls: &[String], at_once: usize) -> Vec<Result<Vec<u8>, HttpError>> {
        let mut answers: Vec<_> = urls.iter().map(|_| Err(HttpError::Connect)).collect();
        let Some(runtime) = &self.runtime else { return answers };
        runtime.block_on(async {
            let mut waiting = urls.iter().enumerate();
            let mut asked = JoinSet::new();
            loop {
                while asked.len() < at_once.max(1)
                    && let Some((position, url)) = waiting.next()
                {
                    let one = get(self.client.clone(), url.clone(), self.most_bytes);
                    asked.spawn(async move { (position, one.await) });
                }
                match asked.join_next().await {
                    Some(Ok((position, answer))) => answers[position] = answer,
                    // The task panicked: the answer stays a connection error.
                    Some(Err(_)) => {}
                    None => return,
                }
            }
        });
        answers
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // A name lookup cannot be interrupted. Don't wait for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, SetupError> {
    let path = path.to_owned();
    let pem = match std::fs::read(&path) {
        Ok(pem) => pem,
        Err(source) => return Err(SetupError::Unreadable { path, source }),
    };
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if certificates.is_empty() => {
            Err(SetupError::Authorities { path, reason: "holds no certificate in PEM form".to_owned() })
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(SetupError::Authorities { path, reason: innermost(&error) }),
    }
}

async fn get(client: Client, url: String, most_bytes: usize) -> Result<Vec<u8>, HttpError> {
    let mut answer = client.get(url).send().await.map_err(|error| classify(&error))?;
    match answer.status().as_u16() {
        status @ 300..400 => return Err(HttpError::Redirection(status)),
        status @ 400.. => return Err(HttpError::Status(status)),
        _ => {}
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| classify(&error))? {
        if body.len() + chunk.len() > most_bytes {
            return Err(HttpError::TooLong(most_bytes));
        }
        body.extend_from_slice(&chunk);
    }
    if body.trim_ascii_start().starts_with(b"<") { Err(HttpError::Page) } else { Ok(body) }
}

/// The certificate's error, with a hint for certificates that Ganeti generates for itself.
fn refused(error: &rustls::Error) -> String {
    let text = format!("the server's certificate is refused: {error}");
    if ["UnsupportedCertVersion", "CaUsedAsEndEntity"].iter().any(|what| text.contains(what)) {
        text + "; certificates that Ganeti generated contain no host name and cannot be verified: configure \
                RAPI with a certificate from a CA"
    } else {
        text
    }
}

/// Text of the innermost error.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Causes of an error, outermost first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| {
        let cause = *cause;
        // The error inside an I/O error isn't its `source`.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner {
            Some(inner) => Some(inner as &(dyn std::error::Error + 'static)),
            None => cause.source(),
        }
    })
}

fn find<E: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&E> {
    causes(error).find_map(|cause| cause.downcast_ref::<E>())
}

/// Classifies an error by the reference's names.
fn classify(error: &reqwest::Error) -> HttpError {
    if error.is_builder() {
        let has_host = error.url().is_some_and(reqwest::Url::has_host);
        return if has_host { HttpError::Protocol } else { HttpError::Address };
    }
    if error.is_timeout() {
        return HttpError::TimedOut;
    }
    if error.is_dns() {
        return HttpError::Resolve;
    }
    match find::<rustls::Error>(error) {
        Some(refused @ rustls::Error::InvalidCertificate(_)) => {
            return HttpError::Certificate(refused.clone());
        }
        Some(_) => return HttpError::Tls,
        None => {}
    }
    if error.is_connect() {
        // Once the TCP connection exists, only the TLS handshake can still fail.
        let broken = |cause: &(dyn std::error::Error + 'static)| {
            let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            matches!(kind, Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset))
        };
        return if causes(error).any(broken) { HttpError::Tls } else { HttpError::Connect };
    }
    if error.is_body() || error.is_decode() {
        return HttpError::CutOff;
    }
    let told: Vec<String> = causes(error).map(ToString::to_string).collect();
    let says = |what: &str| told.iter().any(|text| text.contains(what));
    if says("before message completed") || says("reset by peer") {
        HttpError::Nothing
    } else if says("invalid HTTP") {
        HttpError::Protocol
    } else {
        HttpError::Receive
    }
}
