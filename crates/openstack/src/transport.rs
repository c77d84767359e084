//! Sends one request and reads its response. The server isn't trusted: it has a time limit, the response a
//! size limit, and redirects aren't followed.

use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::call::{Answer, Call};
use crate::error::{self, Error, ErrorKind};
use crate::retry::{Failure, retry_after};

/// Limit on the size of an error response that is read for its message, in bytes.
const MOST_BYTES_OF_ERROR: usize = 64 * 1024;

/// Maximum length of a request identifier; longer ones are dropped.
const LONGEST_REQUEST_ID: usize = 64;

/// Maximum time limit for connecting.
const LONGEST_CONNECT: Duration = Duration::from_secs(3);

/// Header of the session's token.
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Sends requests.
#[derive(Debug)]
pub(crate) struct Transport {
    client: Client,
}

impl Transport {
    /// `timeout` applies to each request. `authorities` are CA certificates (PEM) that replace the system's.
    pub(crate) fn new(timeout: Duration, authorities: Option<&[u8]>) -> Result<Self, String> {
        // Fails only if a provider was installed before, which is the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connecting = timeout.min(LONGEST_CONNECT);
        let builder = Client::builder().timeout(timeout).connect_timeout(connecting);
        let mut builder = builder.redirect(Policy::none());
        if let Some(pem) = authorities {
            let certificates = Certificate::from_pem_bundle(pem).map_err(|error| reason(&error))?;
            if certificates.is_empty() {
                return Err("there is no certificate in it".to_owned());
            }
            builder = builder.tls_certs_only(certificates);
        }
        builder.build().map(|client| Self { client }).map_err(|error| reason(&error))
    }

    /// Makes one attempt.
    pub(crate) async fn send(
        &self,
        call: &Call,
        base: &Url,
        token: Option<&SecretString>,
    ) -> Result<Answer, (Error, Failure)> {
        let lost = |error: reqwest::Error| {
            let error = error.without_url();
            let (kind, failure) = if error.is_connect() {
                (ErrorKind::Unreachable(reason(&error)), Failure::NotSent)
            } else {
                (ErrorKind::NoAnswer(reason(&error)), Failure::NoAnswer)
            };
            (call.error(kind), failure)
        };
        // Retries can't help: the headers will be invalid again.
        let headers = headers(call, token).map_err(|error| (error, Failure::Status(400, None)))?;
        let mut request = self.client.request(call.method.clone(), address(call, base)).headers(headers);
        if let Some(body) = &call.body {
            let chosen = call.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
            request = if chosen { request } else { request.header(CONTENT_TYPE, "application/json") };
            request = request.body(body.to_string());
        }
        let mut answer = request.send().await.map_err(lost)?;
        let status = answer.status().as_u16();
        let good = (200..300).contains(&status);
        let limit = if good { call.most_bytes } else { MOST_BYTES_OF_ERROR };
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > limit {
                if good {
                    return Err((call.error(ErrorKind::TooLong(limit)), Failure::Status(status, None)));
                }
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let headers = std::mem::take(answer.headers_mut());
        if good {
            let service = call.api.service_type();
            return Ok(Answer { status, headers, body, service, call: call.name });
        }
        let wanted = headers.get(RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?));
        let secrets = token.into_iter().chain(call.secret.as_ref().map(|(_, secret)| secret));
        let secrets: Vec<&str> = secrets.map(SecretString::expose_secret).collect();
        let message = error::message(&body, &secrets);
        let conflict = if status == 409 { error::conflict(&body, &message) } else { None };
        let kind = conflict.unwrap_or(ErrorKind::Status { status, message, retry_after: wanted });
        let error = Error { request_id: request_id(&headers), ..call.error(kind) };
        Err((error, Failure::Status(status, wanted)))
    }
}

/// URL of a call, relative to the URL of its service.
fn address(call: &Call, base: &Url) -> Url {
    let mut url = base.clone();
    if let Ok(mut parts) = url.path_segments_mut() {
        parts.pop_if_empty().extend(&call.path);
    }
    if !call.query.is_empty() {
        url.query_pairs_mut().extend_pairs(&call.query);
    }
    url
}

fn headers(call: &Call, token: Option<&SecretString>) -> Result<HeaderMap, Error> {
    let unfit = |what: &dyn fmt::Display| {
        call.error(ErrorKind::Unreachable(format!("{what} cannot be sent in a header")))
    };
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(version) = call.api.version() {
        headers.insert(
            "openstack-api-version",
            HeaderValue::try_from(version).map_err(|_| unfit(&"a version"))?,
        );
    }
    for (name, value) in &call.headers {
        headers.insert(name.clone(), HeaderValue::try_from(value).map_err(|_| unfit(name))?);
    }
    let token = token.map(|token| (TOKEN, token));
    let secret = call.secret.as_ref().map(|(name, secret)| (name.clone(), secret));
    for (name, secret) in token.into_iter().chain(secret) {
        let mut value = HeaderValue::try_from(secret.expose_secret()).map_err(|_| unfit(&name))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Identifier of the request in the service's logs.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<String> {
    let names = ["x-openstack-request-id", "x-compute-request-id"];
    let id = names.iter().find_map(|name| headers.get(*name))?.to_str().ok()?;
    let plain = id.len() <= LONGEST_REQUEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
    plain.then(|| id.to_owned())
}

/// Message of the innermost cause, which is the most specific.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() { "it took too long".to_owned() } else { error::shown(&cause.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Api, Microversion};

    #[test]
    fn parts_of_a_path_and_a_query_are_encoded() {
        let base = Url::parse("http://h/identity/v3/").expect("an address");
        let call = Call::get(Api::Identity, "show", &["projects", "../a b?/c"]).with_query("name", "x&y");
        assert_eq!(
            address(&call, &base).as_str(),
            "http://h/identity/v3/projects/..%2Fa%20b%3F%2Fc?name=x%26y"
        );
    }

    #[test]
    fn a_call_has_its_microversion_and_secrets_are_marked() {
        let version = Microversion { major: 2, minor: 96 };
        let call = Call::get(Api::Compute(version), "list servers", &["servers"]);
        let call = call.with_secret(HeaderName::from_static("x-subject-token"), SecretString::from("s3cret"));
        assert!(!format!("{call:?}").contains("s3cret"));
        let headers = headers(&call, Some(&SecretString::from("t0ken"))).expect("headers");
        assert_eq!(headers["openstack-api-version"], "compute 2.96");
        assert!(headers["x-auth-token"].is_sensitive() && headers["x-subject-token"].is_sensitive());
        let shown = format!("{headers:?}");
        assert!(!shown.contains("t0ken") && !shown.contains("s3cret"), "{shown}");
    }
}
