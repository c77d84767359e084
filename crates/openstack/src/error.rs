//! Errors of calls. They name the service, the call, and the request identifier by which the cloud's operator
//! finds the request in the logs.

use std::time::Duration;

use thiserror::Error;

/// Maximum length of a quoted message from a service, in characters.
const QUOTED: usize = 250;

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{service}: {call}: {kind}{}", request_id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default())]
pub struct Error {
    /// Type of the service: `compute`.
    pub service: &'static str,
    /// Purpose of the call: `list servers`.
    pub call: &'static str,
    /// Identifier of the request in the service's logs, `req-...`. `None` if there was no response or it has
    /// no identifier.
    pub request_id: Option<String>,
    pub kind: ErrorKind,
}

/// Kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// No connection, or no secure one.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// The request was sent, and there was no complete response.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// A response with an error status.
    #[error("answered {status}{}", quoted(message))]
    Status {
        status: u16,
        /// Message from the service, shortened; can be empty.
        message: String,
        /// Value of `Retry-After`, counted from the response.
        retry_after: Option<Duration>,
    },
    /// Placement's 409 `placement.concurrent_update`: the object has a newer generation. Read it again,
    /// decide again, and send the new generation.
    #[error("another client changed it (409 placement.concurrent_update){}", quoted(.0))]
    GenerationConflict(String),
    /// Placement's 409 `placement.inventory.inuse`: servers use some of the inventory that would be removed.
    #[error("it is in use (409 placement.inventory.inuse){}", quoted(.0))]
    InUse(String),
    /// The response exceeds this limit, in bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The response is invalid.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// The catalog doesn't have the endpoint.
    #[error("{0}")]
    NoEndpoint(String),
    /// Keystone rejected the session's own credentials.
    #[error("Keystone refuses the login of the service's own user: check its name, secret, domains and project{}", quoted(.0))]
    LoginRefused(String),
    /// The secret for the login can't be read.
    #[error("{0}")]
    Secret(String),
}

fn quoted(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl Error {
    /// HTTP status of the response. `None` if there was no response with an error status.
    pub fn status(&self) -> Option<u16> {
        match &self.kind {
            ErrorKind::Status { status, .. } => Some(*status),
            ErrorKind::GenerationConflict(_) | ErrorKind::InUse(_) => Some(409),
            _ => None,
        }
    }

    /// Value of `Retry-After`, counted from the response.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ErrorKind::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// A text from outside as one printable line of limited length.
pub(crate) fn shown(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_debug().collect() } else { c.to_string() };
    let mut shown: String = text.trim().chars().take(QUOTED).map(escape).collect();
    if text.trim().chars().nth(QUOTED).is_some() {
        shown.push_str("...");
    }
    shown
}

/// Message in an error response of any service. Secrets that it repeats are removed.
pub(crate) fn message(body: &[u8], secrets: &[&str]) -> String {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else { return String::new() };
    // Keystone and Nova: {"error": {"message": ..}}, {"badRequest": {"message": ..}}; Placement: {"errors":
    // [{"detail": ..}]}; Neutron: {"NeutronError": {"message": ..}}.
    let of = |value: &serde_json::Value| {
        ["message", "detail"].iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned))
    };
    let inner = document.as_object().and_then(|fields| {
        fields.values().find_map(|value| of(value).or_else(|| value.as_array()?.first().and_then(of)))
    });
    shown(&hide(&of(&document).or(inner).unwrap_or_default(), secrets))
}

/// Replaces secrets in a text.
pub(crate) fn hide(text: &str, secrets: &[&str]) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
}

/// The error for a 409 response with one of Placement's codes. `None` for any other response.
pub(crate) fn conflict(body: &[u8], message: &str) -> Option<ErrorKind> {
    let document = serde_json::from_slice::<serde_json::Value>(body).ok()?;
    let errors = document.get("errors")?.as_array()?.iter();
    let mut codes = errors.filter_map(|error| error.get("code")?.as_str());
    codes.find_map(|code| match code {
        "placement.concurrent_update" => Some(ErrorKind::GenerationConflict(message.to_owned())),
        "placement.inventory.inuse" => Some(ErrorKind::InUse(message.to_owned())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_service_call_status_and_request() {
        let error = Error {
            service: "compute",
            call: "list servers",
            request_id: Some("req-1".to_owned()),
            kind: ErrorKind::Status { status: 503, message: "No.".to_owned(), retry_after: None },
        };
        assert_eq!(error.to_string(), "compute: list servers: answered 503: No. (req-1)");
    }

    #[test]
    fn messages_of_all_services_are_found_in_one_line_and_without_secrets() {
        for (body, expected) in [
            (
                r#"{"error": {"code": 404, "message": "Could not find token: t0ken.\n"}}"#,
                "Could not find token: [secret].",
            ),
            (r#"{"badRequest": {"code": 400, "message": "Bad\u001b[31m"}}"#, "Bad\\u{1b}[31m"),
            (
                r#"{"errors": [{"status": 409, "detail": "Conflict", "code": "placement.concurrent_update"}]}"#,
                "Conflict",
            ),
            (r#"{"NeutronError": {"type": "X", "message": "No network", "detail": ""}}"#, "No network"),
            ("<html>", ""),
            ("[1]", ""),
        ] {
            assert_eq!(message(body.as_bytes(), &["t0ken", ""]), expected, "{body}");
        }
        assert_eq!(shown(&"x".repeat(1000)).len(), QUOTED + 3);
    }

    #[test]
    fn conflicts_are_known_by_placements_codes() {
        let of = |code: &str| conflict(format!(r#"{{"errors": [{{"code": "{code}"}}]}}"#).as_bytes(), "Why.");
        let why = || "Why.".to_owned();
        assert_eq!(of("placement.concurrent_update"), Some(ErrorKind::GenerationConflict(why())));
        assert_eq!(of("placement.inventory.inuse"), Some(ErrorKind::InUse(why())));
        assert_eq!(
            [of("placement.undefined_code"), conflict(b"{}", ""), conflict(b"nothing", "")],
            [None, None, None]
        );
    }
}
