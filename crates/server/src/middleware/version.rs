//! Negotiates the API version and checks the media type of request bodies (API-requests, API-answers).

use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leases::text::Quoted;

use crate::error::ApiError;

const VERSION: HeaderName = HeaderName::from_static("openstack-api-version");

/// Rejects unsupported API versions and media types. Version 1.0 is the only one.
pub(crate) async fn version(request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/v1/") {
        return next.run(request).await;
    }
    if let Err(error) = check_version(request.headers()) {
        return error.into_response();
    }
    let mut response = match check_content_type(&request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(VERSION, HeaderValue::from_static("reservation 1.0"));
    headers.insert(VARY, HeaderValue::from_static("OpenStack-API-Version"));
    response
}

/// The header lists versions by service. Entries for other services, or without a service, are ignored.
fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    let values = headers.get_all(VERSION).iter().filter_map(|value| value.to_str().ok());
    for wanted in values.flat_map(|value| value.split(',')) {
        let mut words = wanted.split_whitespace();
        if words.next() != Some("reservation") {
            continue;
        }
        let version = words.next().unwrap_or_default();
        if version == "latest" {
            continue;
        }
        let numbers = version.split_once('.').and_then(|(major, minor)| {
            let number =
                |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u32>().ok());
            Some((number(major)??, number(minor)??))
        });
        match numbers {
            Some((1, 0)) if words.next().is_none() => {}
            Some(_) => {
                let message = format!(
                    "Version {} is not supported by the API. Minimum is 1.0 and maximum is 1.0.",
                    Quoted(version)
                );
                return Err(ApiError::framework(StatusCode::NOT_ACCEPTABLE, message));
            }
            None => {
                let message = format!(
                    "API Version String '{}' is of invalid format. It must be of format Major.Minor.",
                    Quoted(version)
                );
                return Err(ApiError::framework(StatusCode::BAD_REQUEST, message));
            }
        }
    }
    Ok(())
}

fn check_content_type(request: &Request) -> Result<(), ApiError> {
    if !matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH) {
        return Ok(());
    }
    let content_type = request.headers().get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
    if media_type.is_empty() || media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let message = format!("Content type '{}' isn't supported", Quoted(media_type));
    Err(ApiError::new(StatusCode::BAD_REQUEST, message))
}
