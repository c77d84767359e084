//! Getting documents over HTTP: from Ganeti's remote API and from its monitoring daemons.
//!
//! Nobody on the other side is trusted to answer in time, or at a sensible length, or at all.

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

/// How much patience there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Until the connection stands, TLS included.
    pub(crate) connect: Duration,
    /// From the beginning to the last byte of the answer.
    pub(crate) total: Duration,
    /// Longer answers are refused.
    pub(crate) most_bytes: usize,
}

/// Whose certificates are good, where the connection is encrypted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// Anybody's, as with the reference: Ganeti's own certificates are signed by nobody.
    Anybody,
    /// Only those signed by an authority in this PEM file, and only for the host that is asked.
    Authorities(&'a Path),
}

/// Why a document was not got. The first names are those that the reference prints.
#[derive(Debug, Error)]
pub enum HttpError {
    /// Nobody listens there, or nobody can be reached.
    #[error("CurlCouldntConnect")]
    Connect,
    /// The host's name is unknown.
    #[error("CurlCouldntResolveHost")]
    Resolve,
    /// TLS did not come about.
    #[error("CurlSSLConnectError")]
    Tls,
    /// It took too long.
    #[error("CurlOperationTimeout")]
    TimedOut,
    /// The server refused, or failed.
    #[error("CurlHttpReturnedError (HTTP status {0})")]
    Status(u16),
    /// The server sends elsewhere.
    #[error("CurlHttpReturnedError (HTTP status {0}, a redirection, which is not followed)")]
    Redirection(u16),
    /// The answer is a page for people.
    #[error("the answer is a page of HTML, not a document of the remote API (HTTP status 200)")]
    Page,
    /// The connection ended within the answer.
    #[error("CurlPartialFile")]
    CutOff,
    /// The connection ended before the answer.
    #[error("CurlGotNothing")]
    Nothing,
    /// The answer is not HTTP, or the address names another protocol.
    #[error("CurlUnspportedProtocol")]
    Protocol,
    /// That is no address.
    #[error("CurlUrlMalformat")]
    Address,
    /// The connection broke otherwise.
    #[error("CurlRecvError")]
    Receive,
    /// The certificate is not one of those wanted.
    #[error("{}", refused(.0))]
    Certificate(rustls::Error),
    /// The answer is longer than any real one.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

/// Why no request can be made at all.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The file of authorities cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file of authorities holds no usable certificate.
    #[error("{path}: {reason}")]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system gives no sockets or threads.
    #[error("cannot ask over the network: {0}")]
    System(String),
}

/// A client with its own, single-threaded runtime.
pub(crate) struct Http {
    client: Client,
    /// Present until the client is dropped.
    runtime: Option<Runtime>,
    most_bytes: usize,
}

impl Http {
    pub(crate) fn new(limits: Limits, trust: Trust<'_>) -> Result<Self, SetupError> {
        // Fails only if a provider was installed before, by an earlier client; it is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .connect_timeout(limits.connect)
            .timeout(limits.total)
            // Ganeti closes its connections after an answer; one that is about to be closed is of no use.
            .pool_max_idle_per_host(0)
            // The reference follows none either: what redirects is not a cluster.
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

    /// Gets one document.
    pub(crate) fn get(&self, url: &str) -> Result<Vec<u8>, HttpError> {
        let Some(runtime) = &self.runtime else { return Err(HttpError::Connect) };
        runtime.block_on(get(self.client.clone(), url.to_owned(), self.most_bytes))
    }

    /// Gets several documents, at most `at_once` at the same time; the answers are in the order of the addresses.
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
                    // A task that panicked leaves the answer as if there had been none.
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
        // Looking a name up cannot be interrupted; nobody waits for it any longer.
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

/// What is wrong with a certificate, and what to do about those that Ganeti makes for itself.
fn refused(error: &rustls::Error) -> String {
    let text = format!("the server's certificate is refused: {error}");
    if ["UnsupportedCertVersion", "CaUsedAsEndEntity"].iter().any(|what| text.contains(what)) {
        text + "; one that Ganeti made for itself names no host and cannot be verified: give RAPI one that an \
                authority has signed"
    } else {
        text
    }
}

/// The text of the error at the bottom of all others.
fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// An error and all that caused it, outermost first.
fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| {
        let cause = *cause;
        // An error within an error of input or output is not its source.
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

/// What happened, in the reference's words.
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
        // Once there is a connection, only TLS can still go wrong with connecting.
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
