//! Authenticates requests. Every path that isn't public needs valid credentials, including paths without a
//! route, so a new route stays closed until it is made public.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use leases::text::quoted;
use secrecy::SecretString;

use crate::access::Access;
use crate::app::{App, LoginFailure, Session};
use crate::auth::{self, Authentication, Credentials, Denial, Identity, Names};
use crate::console_session::{cookies, is_meant_for, is_of_console};
use crate::error::ApiError;
use crate::middleware::charge;
use crate::public::{SESSION, limited, public};
use crate::rate::Client;
use crate::request::{RequestId, peer};

/// Whether the request logs in to the console. Its client has no identity yet.
fn begins_session(request: &Request) -> bool {
    request.uri().path() == SESSION && request.method() == Method::POST
}

/// Whether a load balancer checks that the service is up. kolla-ansible's `HAProxy` considers a backend up if
/// `OPTIONS /` without a token is answered with 401, as Keystone's middleware does in front of Blazar. The
/// check costs nothing and has the same address as all clients behind the load balancer, so it is not rate
/// limited.
fn health_check(request: &Request) -> bool {
    request.uri().path() == "/" && matches!(*request.method(), Method::OPTIONS | Method::HEAD)
}

fn spend(app: &App, address: Option<IpAddr>) -> Result<(), Duration> {
    address.map_or(Ok(()), |address| app.inner.limiters.take_of(address))
}

/// Checks that the address still has tokens before its password is verified, because verifying a password
/// takes time.
fn may_fail(app: &App, address: Option<IpAddr>) -> Result<(), Duration> {
    address.map_or(Ok(()), |address| app.inner.limiters.check(address))
}

/// A 401 response with the challenges of all login methods.
pub(crate) fn unauthorized(authentication: &Authentication) -> ApiError {
    let keystone = authentication.keystone.as_ref().map(|keystone| keystone.challenge());
    ApiError::unauthorized(authentication.basic).naming_keystone(keystone)
}

/// A 401 response for the console, which has its own login form. Without a challenge, the browser doesn't
/// open its login dialog.
pub(crate) fn unauthorized_session(authentication: &Authentication) -> ApiError {
    ApiError::unauthorized(false).with_logins(authentication.logins())
}

/// Response to a denied request: `unauthorized` if the denial has nothing more to say to the client. If the
/// client sent credentials, the failure is logged and counted, with the reason.
pub(crate) fn refuse(
    app: &App,
    denial: Denial,
    failure: &LoginFailure<'_>,
    unauthorized: ApiError,
) -> ApiError {
    let failed = |reason| app.login_failed(&LoginFailure { reason, ..*failure });
    match denial {
        Denial::Absent => unauthorized,
        Denial::Wrong(reason) => {
            failed(reason);
            unauthorized
        }
        Denial::Told(reason) => {
            failed(reason);
            unauthorized.saying(reason)
        }
        Denial::Forbidden(reason) => {
            failed(reason);
            ApiError::new(StatusCode::FORBIDDEN, reason)
        }
        Denial::TooMany(wait) => {
            failed("too many wrong passwords, or tokens at once");
            ApiError::too_many(wait)
        }
        Denial::Unavailable(wait) => ApiError::keystone_away(wait),
    }
}

/// Adds user and project to the request's span, so that all its log lines have them.
fn record(identity: &Identity) {
    let span = tracing::Span::current();
    span.record("user", quoted(&identity.user.0)).record("project", quoted(&identity.project.0));
    let Names { user, project } = &identity.names;
    for (field, name, id) in
        [("user_name", user, &identity.user.0), ("project_name", project, &identity.project.0)]
    {
        if !name.is_empty() && name != id {
            span.record(field, quoted(name));
        }
    }
}

/// Admits a request with valid credentials, within the user's limits.
pub(crate) fn admit(
    app: &App,
    access: Arc<Access>,
    identity: Identity,
    cookie: Option<SecretString>,
    request: &Request,
) -> Result<Session, ApiError> {
    app.inner.limiters.take(&identity).map_err(ApiError::too_many)?;
    let client = Client::User(identity.user.clone(), identity.project.clone());
    session(app, access, identity, cookie, request, client)
}

/// Session of a request that counts toward the concurrent requests of `client`.
pub(crate) fn session(
    app: &App,
    access: Arc<Access>,
    identity: Identity,
    cookie: Option<SecretString>,
    request: &Request,
    client: Client,
) -> Result<Session, ApiError> {
    let asked = app.inner.unanswered.ask(client).ok_or_else(ApiError::too_many_at_once)?;
    let request_id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    let client = charge::client(&identity, request);
    Ok(Session { identity, request_id, access, asked, cookie, client })
}

/// Serves the request with its session, or rejects it.
pub(crate) async fn authenticate(State(app): State<App>, request: Request, next: Next) -> Response {
    let access = app.access();
    let authentication = &access.authentication;
    if authentication.open && !auth::says_local(request.headers()) {
        let message = "This service is open to its own machine only: ask for localhost.";
        return ApiError::new(StatusCode::FORBIDDEN, message).into_response();
    }
    let peer = peer(request.extensions());
    let credentials = Credentials::of(request.headers(), peer);
    let credentials = credentials.for_request(request.method(), request.uri().path());
    if health_check(&request) && !authentication.open && credentials.is_empty() {
        return unauthorized(authentication).into_response();
    }
    if public(request.uri().path()) || begins_session(&request) {
        if !limited(request.uri().path()) {
            return next.run(request).await;
        }
        if let Err(wait) = spend(&app, peer) {
            return ApiError::too_many(wait).into_response();
        }
        let asked = peer.map(|address| app.inner.unanswered.ask(Client::Address(address)));
        if let Some(None) = asked {
            return ApiError::too_many_at_once().into_response();
        }
        return next.run(request).await;
    }
    if credentials.password.is_some()
        && let Err(wait) = may_fail(&app, peer)
    {
        return ApiError::too_many(wait).into_response();
    }
    let cookies = if credentials.is_empty() && !authentication.open {
        cookies(request.headers(), app.is_encrypted())
    } else {
        Vec::new()
    };
    let authenticated = if cookies.is_empty() {
        authentication.authenticate(&credentials).await.map(|identity| (identity, None))
    } else {
        let found = authentication.of_sessions(cookies, &credentials).await;
        found.map(|(identity, cookie)| (identity, Some(cookie)))
    };
    let (identity, cookie) = match authenticated {
        Ok(authenticated) => authenticated,
        Err(denial) => {
            let (method, name) = match &credentials.password {
                Some((name, _)) => ("basic", Some(name.as_str())),
                None => ("token", None),
            };
            let request_id = request.extensions().get::<RequestId>().map_or("", |id| &id.0);
            let failure = LoginFailure { method, name, reason: "", peer, request_id };
            let unauthorized = match is_of_console(request.headers()) {
                _ if request.uri().path() == SESSION => unauthorized_session(authentication),
                true => ApiError::unauthorized(false),
                false => unauthorized(authentication),
            };
            let unauthorized = match authentication.instead_of_password() {
                Some(message) if credentials.password.is_some() => unauthorized.saying(message),
                _ => unauthorized,
            };
            let error = refuse(&app, denial, &failure, unauthorized);
            // An unavailable Keystone is not the client's fault.
            if !matches!(denial, Denial::Unavailable(_) | Denial::TooMany(_))
                && let Err(wait) = spend(&app, peer)
            {
                return ApiError::too_many(wait).into_response();
            }
            return error.into_response();
        }
    };
    if cookie.is_some() && !request.method().is_safe() && !is_of_console(request.headers()) {
        let message = "A session that changes something needs the header X-Allot-Console: 1";
        return ApiError::new(StatusCode::FORBIDDEN, message).into_response();
    }
    record(&identity);
    app.inner.names.note(&identity);
    let session = match admit(&app, access, identity, cookie, &request) {
        Ok(session) => session,
        Err(error) => return error.into_response(),
    };
    if !is_meant_for(request.headers(), &session.identity) {
        let message =
            "The request was made for another user or project than the one signed in now; it had no effect";
        return ApiError::new(StatusCode::PRECONDITION_FAILED, message).into_response();
    }
    charge::serve(&app, session, request, next).await
}
