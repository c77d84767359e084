//! API of the local Keystone (API-logins): the part that clients with the auth type `password` need.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use leases::text::quoted;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use service::cost;

use super::versions::base_url;
use crate::app::{App, LoginFailure, Session};
use crate::auth::local_keystone::{Issued, LocalKeystone, LoginError, LoginRequest};
use crate::error::ApiError;
use crate::extract::{Body, Origin};
use crate::middleware::authenticate::{admit, refuse, session};
use crate::rate::Client;
use crate::request::peer;

const SUBJECT: HeaderName = HeaderName::from_static("x-subject-token");
const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// The local Keystone, or 404 if it is off.
fn keystone(app: &App) -> Result<Arc<LocalKeystone>, ApiError> {
    let keystone = app.access().authentication.local_keystone.clone();
    keystone.ok_or_else(|| ApiError::identity(StatusCode::NOT_FOUND, "There is no login here."))
}

fn version(app: &App, headers: &HeaderMap) -> Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/identity/v3/", base_url(app, headers))}],
        "media-types": [{
            "base": "application/json",
            "type": "application/vnd.openstack.identity-v3+json",
        }],
    })
}

/// List versions of the local Keystone.
#[utoipa::path(
    get, path = "/identity", tag = "identity", operation_id = "identity_versions",
    responses((status = 300, body = Object), (status = 404, description = "Logins are disabled", body = crate::error::AuthErrorBody))
)]
pub(crate) async fn versions(State(app): State<App>, headers: HeaderMap) -> Result<Response, ApiError> {
    keystone(&app)?;
    let body = json!({"versions": {"values": [version(&app, &headers)]}});
    Ok((StatusCode::MULTIPLE_CHOICES, Json(body)).into_response())
}

/// Show the version of the local Keystone.
#[utoipa::path(
    get, path = "/identity/v3", tag = "identity", operation_id = "identity_version",
    responses((status = 200, body = Object), (status = 404, description = "Logins are disabled", body = crate::error::AuthErrorBody))
)]
pub(crate) async fn version_3(State(app): State<App>, headers: HeaderMap) -> Result<Json<Value>, ApiError> {
    keystone(&app)?;
    Ok(Json(json!({"version": version(&app, &headers)})))
}

/// Log in with a password.
///
/// The response has the token in the header `X-Subject-Token`.
#[utoipa::path(
    post, path = "/identity/v3/auth/tokens", tag = "identity", operation_id = "log_in",
    request_body = Object,
    responses(
        (status = 201, body = Object),
        (status = 400, body = crate::error::AuthErrorBody),
        (status = 401, body = crate::error::AuthErrorBody),
        (status = 404, description = "Logins are disabled", body = crate::error::AuthErrorBody),
    )
)]
pub(crate) async fn log_in(
    State(app): State<App>,
    origin: Origin,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let keystone = keystone(&app)?;
    let unreadable = |error: &dyn std::fmt::Display| {
        ApiError::identity(StatusCode::BAD_REQUEST, quoted(&error.to_string()))
    };
    let body = body.passing().map_err(|error| unreadable(&error))?;
    let request: LoginRequest = serde_json::from_value(body).map_err(|error| unreadable(&error))?;
    let Origin { peer, request_id } = &origin;
    let (method, name) = ("local-keystone", request.user());
    let failure = LoginFailure { method, name, reason: "", peer: *peer, request_id };
    let (token, issued) = keystone.log_in(&request, *peer).await.map_err(|error| match error {
        LoginError::Denied(denial) => refuse(&app, denial, &failure, ApiError::unauthorized(false)),
        LoginError::Method => {
            let message = "The only way to log in is by the method \"password\".";
            ApiError::identity(StatusCode::UNAUTHORIZED, message)
        }
        LoginError::NoKey(error) => ApiError::from(error),
    })?;
    app.inner.limiters.take(&issued.identity).map_err(ApiError::too_many)?;
    let mut response = (StatusCode::CREATED, Json(document(&app, &headers, &issued))).into_response();
    let mut value = HeaderValue::try_from(token.expose_secret()).map_err(|_| ApiError::internal())?;
    value.set_sensitive(true);
    response.headers_mut().insert(SUBJECT, value);
    Ok(response)
}

/// The token in the header, if it is text.
fn token(headers: &HeaderMap, name: HeaderName) -> Option<SecretString> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(SecretString::from)
}

/// A request about a token.
struct AboutToken {
    keystone: Arc<LocalKeystone>,
    /// Session of the caller, authenticated with `X-Auth-Token`.
    session: Session,
    /// The token in `X-Subject-Token`.
    issued: Issued,
}

/// Authenticates the caller and finds the token in `X-Subject-Token`, which must belong to the caller unless
/// the caller is an administrator.
async fn subject(app: &App, request: Request) -> Result<AboutToken, ApiError> {
    let keystone = keystone(app)?;
    let [caller, subject] = [TOKEN, SUBJECT].map(|name| token(request.headers(), name));
    let find = async |token: Option<SecretString>| match token {
        Some(token) => keystone.find(&token).await,
        None => None,
    };
    let caller = find(caller).await.ok_or_else(|| ApiError::unauthorized(false))?;
    let session = if request.method() == Method::DELETE {
        // Revoking counts toward the limits of the address. Otherwise a thief of a token could use up its
        // owner's limits and so prevent its revocation.
        let owner = || Client::User(caller.identity.user.clone(), caller.identity.project.clone());
        let client = peer(request.extensions()).map_or_else(owner, Client::Address);
        session(app, app.access(), caller.identity, None, &request, client)?
    } else {
        admit(app, app.access(), caller.identity, None, &request)?
    };
    app.service().charge_beside(&session.client, cost::FLAT);
    let missing = || ApiError::identity(StatusCode::NOT_FOUND, "Could not find token.");
    let issued = find(subject).await.ok_or_else(missing)?;
    let own = issued.identity.user == session.identity.user;
    // Tokens of other users look as if they didn't exist.
    if own || session.is_admin(app) { Ok(AboutToken { keystone, session, issued }) } else { Err(missing()) }
}

/// Show the user, project and roles of the token in `X-Subject-Token`.
#[utoipa::path(
    get, path = "/identity/v3/auth/tokens", tag = "identity", operation_id = "show_token",
    responses(
        (status = 200, body = Object),
        (status = 401, body = crate::error::AuthErrorBody),
        (status = 404, description = "Token not found", body = crate::error::AuthErrorBody),
    )
)]
pub(crate) async fn show_token(
    State(app): State<App>,
    headers: HeaderMap,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let AboutToken { issued, .. } = subject(&app, request).await?;
    Ok(Json(document(&app, &headers, &issued)))
}

/// Revoke the token in `X-Subject-Token`.
#[utoipa::path(
    delete, path = "/identity/v3/auth/tokens", tag = "identity", operation_id = "revoke_token",
    responses(
        (status = 204),
        (status = 401, body = crate::error::AuthErrorBody),
        (status = 404, description = "Token not found", body = crate::error::AuthErrorBody),
    )
)]
pub(crate) async fn revoke_token(State(app): State<App>, request: Request) -> Result<StatusCode, ApiError> {
    let AboutToken { keystone, session, issued } = subject(&app, request).await?;
    session.change(async move { keystone.revoke(&issued).await }).await??;
    Ok(StatusCode::NO_CONTENT)
}

fn document(app: &App, headers: &HeaderMap, issued: &Issued) -> Value {
    let domain = json!({"id": "default", "name": "Default"});
    let time = |instant: jiff::Timestamp| instant.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    let base = base_url(app, headers);
    let endpoints = |url: String| -> Vec<Value> {
        let of = |interface: &&str| {
            json!({
                "id": format!("{interface}-{url}"),
                "interface": interface,
                "region": "RegionOne",
                "region_id": "RegionOne",
                "url": url,
            })
        };
        ["public", "internal", "admin"].iter().map(of).collect()
    };
    let roles = issued.identity.roles.names().map(|name| json!({"id": name, "name": name}));
    let project = &issued.identity.project.0;
    json!({"token": {
        "methods": ["password"],
        "user": {
            "id": issued.identity.user.0,
            "name": issued.user_name,
            "domain": domain,
            "password_expires_at": null,
        },
        "project": {"id": project, "name": project, "domain": domain},
        "is_domain": false,
        "roles": roles.collect::<Vec<_>>(),
        "catalog": [
            {
                "type": "reservation", "name": "blazar", "id": "reservation",
                "endpoints": endpoints(format!("{base}/v1")),
            },
            {
                "type": "identity", "name": "keystone", "id": "identity",
                "endpoints": endpoints(format!("{base}/identity/v3")),
            },
        ],
        "issued_at": time(issued.since),
        "expires_at": time(issued.until),
        "audit_ids": [],
    }})
}
