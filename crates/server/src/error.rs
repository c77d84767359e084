//! Error responses: status, message and body as clients expect them (API-errors).

use std::time::Duration;

use api::v1::{ErrorBody, Offer, RequestError};
use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use leases::admission::{Refusal, Resource};
use leases::enforcement::EnforcementError;
use leases::preemption::NotPreemptible;
use leases::terms::TermsError;
use leases::text::Quoted;
use serde::{Deserialize, Serialize};
use service::ServiceError;
use utoipa::ToSchema;

use crate::policy::Rule;

/// Response to a request that didn't reach a handler: unknown path, or unsupported version.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct FrameworkErrorBody {
    /// HTTP status.
    pub error: u16,
    /// Description of the error.
    pub error_message: String,
}

/// Response to a request without valid credentials, in the format of Keystone's middleware.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuthErrorBody {
    /// The error.
    pub error: AuthError,
    /// Login methods for the console, in responses about sessions: `token`, `password`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub login: Vec<String>,
}

/// Error of authentication.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuthError {
    /// HTTP status.
    pub code: u16,
    /// Reason phrase of the HTTP status.
    pub title: String,
    /// Description of the error.
    pub message: String,
}

/// Maximum length of a message or hint in characters, including anything it quotes. The service's own texts
/// are shorter.
const MOST_CHARACTERS: usize = 2000;

/// Truncates a text to the maximum length.
fn bounded(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_CHARACTERS) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Error of a request that had no effect.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    hint: Option<String>,
    offers: Vec<Offer>,
    /// Login methods of the console.
    logins: &'static [&'static str],
    shape: Shape,
    /// Seconds until the client can retry.
    retry_after: Option<u64>,
    /// Reports too little capacity. The operator can configure the status of such errors.
    shortage: bool,
    /// Keystone's challenge for `WWW-Authenticate`.
    keystone: Option<Box<HeaderValue>>,
}

/// Response extension of an error that reports too little capacity. The error is written again with the
/// configured status.
#[derive(Clone, Debug)]
struct Shortage(ApiError);

/// Format of the body.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Application,
    Framework,
    Auth { basic: bool },
}

impl ApiError {
    /// An error in the service's own format.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        // The store and the fleet usually recover by themselves.
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(5);
        Self {
            status,
            message: bounded(message.into()),
            hint: None,
            offers: Vec::new(),
            logins: &[],
            shape: Shape::Application,
            retry_after,
            shortage: false,
            keystone: None,
        }
    }

    /// An error of a request that has not reached a handler.
    pub fn framework(status: StatusCode, message: impl Into<String>) -> Self {
        Self { shape: Shape::Framework, ..Self::new(status, message) }
    }

    /// Missing or invalid credentials. If `basic` is set, browsers ask for a password.
    pub fn unauthorized(basic: bool) -> Self {
        let message = "The request you have made requires authentication.";
        Self { shape: Shape::Auth { basic }, ..Self::new(StatusCode::UNAUTHORIZED, message) }
    }

    /// Adds the login methods of the console.
    pub fn with_logins(self, logins: &'static [&'static str]) -> Self {
        Self { logins, ..self }
    }

    /// Replaces the message.
    pub fn saying(self, message: &str) -> Self {
        Self { message: bounded(message.to_owned()), ..self }
    }

    /// Adds a challenge that tells clients where to get a token.
    pub fn naming_keystone(self, challenge: Option<&HeaderValue>) -> Self {
        Self { keystone: challenge.cloned().map(Box::new), ..self }
    }

    /// Keystone is unavailable, so the caller can't be identified.
    pub fn keystone_away(wait: Duration) -> Self {
        let message = "Keystone cannot be asked whether the token is valid; try again later";
        Self {
            retry_after: Some(wait.as_secs().max(1)),
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }

    /// An error of the local Keystone, in Keystone's format.
    pub fn identity(status: StatusCode, message: impl Into<String>) -> Self {
        Self { shape: Shape::Auth { basic: false }, ..Self::new(status, message) }
    }

    /// The policy denies the request.
    pub fn forbidden(rule: Rule) -> Self {
        let message = format!("Policy doesn't allow {} to be performed", rule.name());
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// No object of this kind has this identifier, which can be malformed.
    pub fn not_found(kind: &str, id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Object with {{'{kind}': '{}'}} not found", Quoted(id)))
    }

    /// The client exceeds its rate limit.
    pub fn too_many(wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let message = format!("Too many requests: the next is answered in {seconds} s");
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// The client has too many concurrent requests.
    pub fn too_many_at_once() -> Self {
        let message = "Too many requests at once: wait for answers";
        Self { retry_after: Some(1), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// The client's requests and responses take too much memory.
    pub fn too_many_bytes() -> Self {
        let message =
            "Too many large requests or unread responses at once: read the responses, then try again";
        Self { retry_after: Some(1), ..Self::new(StatusCode::TOO_MANY_REQUESTS, message) }
    }

    /// An internal error. Details are only in the log.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error")
    }

    /// Too little capacity. The status is the default of [`crate::Config::shortage_status`], until the
    /// configured one replaces it.
    pub fn shortage(message: impl Into<String>) -> Self {
        Self { shortage: true, ..Self::new(StatusCode::BAD_REQUEST, message) }
    }

    /// Adds alternatives to the request.
    pub fn with_offers(self, offers: Vec<Offer>) -> Self {
        Self { offers, ..self }
    }

    /// Prefixes the message with the date that the error concerns.
    pub fn on(self, date: &str) -> Self {
        Self { message: format!("{date}: {}", self.message), ..self }
    }

    /// Appends a hint, if there is one.
    pub fn adding_hint(self, more: Option<String>) -> Self {
        let hint = [self.hint.clone(), more].into_iter().flatten().collect::<Vec<_>>().join("; ");
        self.with_hint((!hint.is_empty()).then_some(hint))
    }

    fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint: hint.map(bounded), ..self }
    }

    /// Error of the creation of a lease.
    pub fn of_creation(error: ServiceError) -> Self {
        match error {
            // As in Blazar, a new lease that exceeds a limit is forbidden, and such a change is malformed.
            ServiceError::Refused(Refusal::Enforcement(limit)) => {
                Self::new(StatusCode::FORBIDDEN, limit.to_string()).with_hint(Some(limit.hint()))
            }
            error => Self::from(error),
        }
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
        Self::new(status, error.to_string()).with_hint(error.hint())
    }
}

/// Preemptible instances that aren't allowed are forbidden, and contradictory requests are malformed.
fn not_preemptible(why: &NotPreemptible) -> StatusCode {
    match why {
        NotPreemptible::NotAllowed | NotPreemptible::MarkNotAllowed(_) => StatusCode::FORBIDDEN,
        NotPreemptible::Contradiction { .. }
        | NotPreemptible::NoSuchClass { .. }
        | NotPreemptible::NotOfClass(_)
        | NotPreemptible::InLease(_) => StatusCode::BAD_REQUEST,
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        match &error {
            ServiceError::Refused(refusal) => {
                let text = refusal.to_string();
                let error = if is_shortage(refusal) {
                    Self::shortage(text)
                } else {
                    Self::new(refused(refusal), text)
                };
                error.with_hint(refusal.hint())
            }
            ServiceError::NotFound(what) => Self::new(StatusCode::NOT_FOUND, what.to_string()),
            ServiceError::Denied(why) | ServiceError::Invalid(why) => {
                Self::new(StatusCode::BAD_REQUEST, why.clone())
            }
            ServiceError::TooLarge(why) => {
                Self::new(StatusCode::BAD_REQUEST, why.to_string()).with_hint(Some(why.hint().to_owned()))
            }
            ServiceError::NotPreemptible(why) => Self::new(not_preemptible(why), why.to_string()),
            ServiceError::OverQuota(why) => Self::new(StatusCode::FORBIDDEN, why.to_string()),
            ServiceError::OverUsage(why) => Self::new(StatusCode::FORBIDDEN, why.to_string()),
            ServiceError::NoHost(why) => Self::new(StatusCode::CONFLICT, why.to_string()),
            ServiceError::NotStarted(_) => Self::shortage(error.to_string()),
            ServiceError::Conflict(why) => Self::new(StatusCode::CONFLICT, why.clone()),
            ServiceError::KeyReused(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
            ServiceError::Store(store::StoreError::Corrupt(_)) => {
                tracing::error!(%error, "store corrupt");
                Self::internal()
            }
            ServiceError::Gone => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
            ServiceError::Store(_) | ServiceError::Fleet(_) => {
                tracing::warn!(%error, "request failed");
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
        }
    }
}

/// Whether a refusal reports too little capacity, or that the decision exceeded its work limit before it
/// could tell. Blazar answers 500. For floating IPs it answers 400, so they aren't included.
fn is_shortage(refusal: &Refusal) -> bool {
    match refusal {
        Refusal::NotEnough { resource: Resource::Hosts(_) | Resource::Slots(_), .. }
        | Refusal::WouldLoseHosts(_)
        | Refusal::WouldGiveBackHosts { .. }
        | Refusal::TooCostly(_) => true,
        Refusal::NoHunt { refusal, .. } | Refusal::EndsTooLate { refusal, .. } => is_shortage(refusal),
        _ => false,
    }
}

/// Status of a refusal for another reason than capacity.
fn refused(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Terms(TermsError::BeforeEndOutOfLimits)
        | Refusal::Quota(_)
        | Refusal::QuotaAndLack { .. } => StatusCode::FORBIDDEN,
        Refusal::NoHunt { refusal, .. } | Refusal::EndsTooLate { refusal, .. } => refused(refusal),
        // The client has disconnected.
        Refusal::Canceled => StatusCode::SERVICE_UNAVAILABLE,
        Refusal::Busy
        | Refusal::ResourceType(_)
        | Refusal::OnlyAmount(_)
        | Refusal::WouldLoseSlots(_)
        | Refusal::FlavorIsFixed(_) => StatusCode::CONFLICT,
        Refusal::Terms(_)
        | Refusal::Region { .. }
        | Refusal::FilterLeftOut { .. }
        | Refusal::Hints(_)
        | Refusal::Enforcement(
            EnforcementError::TooLong { .. }
            | EnforcementError::Stacked { .. }
            | EnforcementError::TooEarlyToExtend { .. },
        )
        | Refusal::StartInPast
        | Refusal::OfferedStartPassed(_)
        | Refusal::DeadlineInPast
        | Refusal::StartAfterDeadline
        | Refusal::NotEnough { .. }
        | Refusal::WouldLoseHosts(_)
        | Refusal::WouldGiveBackHosts { .. }
        | Refusal::TooCostly(_)
        | Refusal::FloatingIpTaken(_)
        | Refusal::Started
        | Refusal::Over
        | Refusal::EndInPast
        | Refusal::UnknownReservations(_)
        | Refusal::FloatingIps { .. } => StatusCode::BAD_REQUEST,
    }
}

/// If the response reports too little capacity, writes it again with the configured status.
pub(crate) fn with_shortage_status(response: Response, status: StatusCode) -> Response {
    match response.extensions().get::<Shortage>() {
        Some(Shortage(error)) if error.status != status => {
            ApiError { status, shortage: false, ..error.clone() }.into_response()
        }
        _ => response,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let shortage = self.shortage.then(|| Shortage(self.clone()));
        let (code, message) = (self.status.as_u16(), self.message);
        let mut response = match self.shape {
            Shape::Application => {
                let body = ErrorBody {
                    error_code: code,
                    error_message: message,
                    error_name: code,
                    hint: self.hint,
                    offers: self.offers,
                };
                (self.status, Json(body)).into_response()
            }
            Shape::Framework => {
                (self.status, Json(FrameworkErrorBody { error: code, error_message: message }))
                    .into_response()
            }
            Shape::Auth { .. } => {
                let title = self.status.canonical_reason().unwrap_or_default().to_owned();
                let login = self.logins.iter().map(ToString::to_string).collect();
                let body = AuthErrorBody { error: AuthError { code, title, message }, login };
                (self.status, Json(body)).into_response()
            }
        };
        if let Shape::Auth { basic: true } = self.shape {
            response
                .headers_mut()
                .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"allot\""));
        }
        if let Some(challenge) = self.keystone {
            response.headers_mut().append(WWW_AUTHENTICATE, *challenge);
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(shortage) = shortage {
            response.extensions_mut().insert(shortage);
        }
        response
    }
}
