//! Logging in to the console and out. A cookie replaces the token (`auth::sessions`).

use std::sync::Arc;

use api::v1::body::SessionBody;
use api::v1::{RequestError, SessionOf};
use axum::Json;
use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use leases::text::quoted;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::access::Access;
use crate::app::{App, LoginFailure, Session};
use crate::auth::local_keystone::{LoginError, LoginRequest};
use crate::auth::{Attempt, Credentials, Identity, SessionError};
use crate::console_session::{cookies, is_of_console, name};
use crate::error::ApiError;
use crate::extract::{Body, Origin};
use crate::middleware::authenticate::{refuse, unauthorized_session};
use crate::policy::{Rule, Target};

const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// Data that a browser clears when a session ends: responses that it cached with an earlier version.
/// `"cookies"` would end sessions of other services on the host. `"storage"` would delete all data of the
/// origin; the console deletes its own.
const KEPT: HeaderValue = HeaderValue::from_static("\"cache\"");

/// Body of a login, which has one of three forms.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginBody {
    /// As in Keystone's API.
    #[serde(default)]
    auth: Option<serde_json::Value>,
    #[serde(default)]
    token: Option<SecretString>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    password: Option<SecretString>,
    #[serde(default)]
    project: Option<String>,
}

fn malformed(what: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, what)
}

impl LoginBody {
    /// Login attempt from the body, or from the headers if the body is empty.
    fn attempt(self, headers: &HeaderMap) -> Result<Attempt, ApiError> {
        let from_headers = || {
            let credentials = Credentials::of(headers, None);
            let (token, project) = (credentials.token.map(Attempt::Token), credentials.project);
            let password = credentials.password.map(|(name, password)| Attempt::Password {
                name: Some(name),
                id: None,
                password,
                project,
            });
            token.or(password)
        };
        match self {
            Self { auth: Some(auth), token: None, user: None, password: None, project: None } => {
                let unreadable = |error: &serde_json::Error| malformed(&quoted(&error.to_string()));
                let request: LoginRequest = serde_json::from_value(serde_json::json!({"auth": auth}))
                    .map_err(|error| unreadable(&error))?;
                request.attempt().map_err(|error| match error {
                    LoginError::NoKey(error) => error.into(),
                    LoginError::Method => malformed("auth.identity.methods may be \"password\" or \"token\""),
                    LoginError::Denied(_) => ApiError::unauthorized(false),
                })
            }
            Self { auth: None, token: Some(token), user: None, password: None, project: None } => {
                Ok(Attempt::Token(token))
            }
            Self { auth: None, token: None, user: Some(name), password: Some(password), project } => {
                let project = project.filter(|project| !project.is_empty());
                Ok(Attempt::Password { name: Some(name), id: None, password, project })
            }
            Self { auth: None, token: None, user: None, password: None, project: None } => {
                from_headers().ok_or_else(|| malformed("Missing parameter auth, token, or user and password"))
            }
            _ => Err(malformed("Give one of auth, token, and user with password")),
        }
    }
}

/// Log in to the console with a token or a password.
///
/// The response sets a cookie that replaces a token. Requests that use the cookie to change something need
/// the header `X-Allot-Console`, and so does this request.
#[utoipa::path(
    post, path = "/v1/session", tag = "session", operation_id = "begin_session",
    params(("X-Allot-Console" = String, Header, description = "Any value. Pages of other sites can't send \
            this header")),
    request_body = api::v1::body::SessionBegin,
    responses((status = 201, body = SessionBody))
)]
pub(crate) async fn begin(
    State(app): State<App>,
    origin: Origin,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    if !is_of_console(&headers) {
        return Err(malformed("A login needs the header X-Allot-Console: 1"));
    }
    let access = app.access();
    let authentication = &access.authentication;
    if authentication.open {
        let nobody = Credentials::default();
        let identity = authentication.authenticate(&nobody).await.map_err(|_| ApiError::internal())?;
        return Ok((StatusCode::CREATED, Json(shown(&access, &identity, "none", None))).into_response());
    }
    let body: LoginBody =
        serde_json::from_value(body.passing()?).map_err(|error| RequestError::Json(error.to_string()))?;
    let attempt = body.attempt(&headers)?;
    let Origin { peer, request_id } = &origin;
    let failure =
        LoginFailure { method: "session", name: attempt.name(), reason: "", peer: *peer, request_id };
    let credentials = Credentials { peer: *peer, ..Credentials::default() };
    let credentials = credentials.for_request(&Method::POST, "/v1/session");
    let (identity, login) = authentication
        .log_in(&attempt, &credentials)
        .await
        .map_err(|denial| refuse(&app, denial, &failure, unauthorized_session(authentication)))?;
    app.inner.limiters.take(&identity).map_err(ApiError::too_many)?;
    let (value, until) =
        authentication.sessions.begin(&identity, &login).await.map_err(|error| match error {
            SessionError::NoKey(error) => error.into(),
            SessionError::TooLong(_) => malformed(&error.to_string()),
            SessionError::Sealing => ApiError::internal(),
        })?;
    let (user, project) = (quoted(&identity.user.0), quoted(&identity.project.0));
    tracing::info!(user, project, "session started");
    let mut response =
        (StatusCode::CREATED, Json(shown(&access, &identity, login.name(), Some(until)))).into_response();
    let lasts = authentication.sessions.lifetime().as_secs();
    response.headers_mut().insert(SET_COOKIE, set_cookie(&app, value.expose_secret(), lasts)?);
    Ok(response)
}

/// Show the caller's identity, permissions and session.
#[utoipa::path(
    get, path = "/v1/session", tag = "session", operation_id = "show_session",
    responses((status = 200, body = SessionBody))
)]
pub(crate) async fn show(session: Session, headers: HeaderMap) -> Json<SessionBody> {
    let authentication = &session.access.authentication;
    let opened = match &session.cookie {
        Some(cookie) => authentication.sessions.open(cookie).await,
        None => None,
    };
    let how = match &opened {
        _ if authentication.open => "none",
        Some(opened) => opened.login.name(),
        None if headers.contains_key("x-auth-token") => "token",
        None => "password",
    };
    let until = opened.map(|opened| opened.until);
    Json(shown(&session.access, &session.identity, how, until))
}

/// Log out of the console.
///
/// The cookie becomes invalid for all services that share the store.
#[utoipa::path(
    delete, path = "/v1/session", tag = "session", operation_id = "end_session",
    responses((status = 204))
)]
pub(crate) async fn end(
    State(app): State<App>,
    session: Session,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sessions = &session.access.authentication.sessions;
    let mut own = Vec::new();
    for cookie in cookies(&headers, app.is_encrypted()) {
        let opened = sessions.open(&cookie).await;
        own.extend(opened.filter(|opened| opened.user == session.identity.user));
    }
    own.sort_by_key(|opened| opened.id);
    own.dedup_by_key(|opened| opened.id);
    if !own.is_empty() {
        let sessions = Arc::clone(sessions);
        session.change(async move { sessions.end(&own).await }).await??;
        tracing::info!("session ended");
    }
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, set_cookie(&app, "", 0)?), (CLEAR_SITE_DATA, KEPT)])
        .into_response())
}

/// Header that sets the cookie for a number of seconds.
fn set_cookie(app: &App, value: &str, seconds: i64) -> Result<HeaderValue, ApiError> {
    let encrypted = app.is_encrypted();
    let (name, secure) = (name(encrypted), if encrypted { "; Secure" } else { "" });
    let text = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let mut header = HeaderValue::try_from(text).map_err(|_| ApiError::internal())?;
    header.set_sensitive(true);
    Ok(header)
}

fn shown(access: &Access, identity: &Identity, how: &str, until: Option<Timestamp>) -> SessionBody {
    let name = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
    let may = |rule: Rule| access.policy.allows(rule, identity, &Target::caller(identity));
    SessionBody {
        session: SessionOf {
            user: identity.user.0.clone(),
            user_name: name(&identity.names.user),
            project_id: identity.project.0.clone(),
            project_name: name(&identity.names.project),
            projects: access.authentication.projects_of(&identity.user),
            roles: identity.roles.names().map(str::to_owned).collect(),
            authentication: how.to_owned(),
            expires_at: until.map(|until| until.to_string()),
            may_log_in_with: access.authentication.logins().iter().map(ToString::to_string).collect(),
            rules: Rule::ALL.into_iter().map(|rule| (rule.name().to_owned(), may(rule))).collect(),
        },
    }
}
