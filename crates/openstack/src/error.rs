//! What went wrong, where, and by which name the cloud's operator finds it in the cloud's logs.

use std::time::Duration;

use thiserror::Error;

/// Most characters of a service's message that are quoted.
const QUOTED: usize = 250;

/// A call that failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{service}: {call}: {kind}{}", request_id.as_deref().map(|id| format!(" ({id})")).unwrap_or_default())]
pub struct Error {
    /// The type of the service that was asked: `compute`.
    pub service: &'static str,
    /// What was asked: `list servers`.
    pub call: &'static str,
    /// The request's identifier in the service's logs, `req-...`, if there was an answer that has one.
    pub request_id: Option<String>,
    /// What went wrong.
    pub kind: ErrorKind,
}

/// What went wrong with a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ErrorKind {
    /// No connection, or none that is secure.
    #[error("cannot connect: {0}")]
    Unreachable(String),
    /// Something was sent, and no whole answer came.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// An answer with a status that is no success.
    #[error("answered {status}{}", quoted(message))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The service's message, shortened, or nothing.
        message: String,
        /// When the service wants to be asked again, from then on.
        retry_after: Option<Duration>,
    },
    /// Placement's 409 `placement.concurrent_update`: what was changed was another generation by then. Read it again,
    /// decide again, and send the new generation.
    #[error("somebody else changed it meanwhile (409 placement.concurrent_update){}", quoted(.0))]
    GenerationConflict(String),
    /// Placement's 409 `placement.inventory.inuse`: servers have some of what is to be taken away.
    #[error("it is in use (409 placement.inventory.inuse){}", quoted(.0))]
    InUse(String),
    /// The answer is longer than it may be, bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Malformed(String),
    /// The catalog has no such endpoint.
    #[error("{0}")]
    NoEndpoint(String),
    /// Keystone refuses the session's own credentials.
    #[error("Keystone refuses the login of the service's own user: check its name, secret, domains and project{}", quoted(.0))]
    LoginRefused(String),
    /// The secret to log in with cannot be read.
    #[error("{0}")]
    Secret(String),
}

fn quoted(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl Error {
    /// The HTTP status of the answer, if there was one that says so.
    pub fn status(&self) -> Option<u16> {
        match &self.kind {
            ErrorKind::Status { status, .. } => Some(*status),
            ErrorKind::GenerationConflict(_) | ErrorKind::InUse(_) => Some(409),
            _ => None,
        }
    }

    /// When the service wants to be asked again, from the answer on.
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            ErrorKind::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// A foreign text, in one line, printable and not too long.
pub(crate) fn shown(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_debug().collect() } else { c.to_string() };
    let mut shown: String = text.trim().chars().take(QUOTED).map(escape).collect();
    if text.trim().chars().nth(QUOTED).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The message of an error's body, whatever service it comes from, without the secrets that it may repeat.
pub(crate) fn message(body: &[u8], secrets: &[&str]) -> String {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(body) else { return String::new() };
    // Keystone and Nova: {"error": {"message": ..}}, {"badRequest": {"message": ..}}; Placement: {"errors": [{"detail": ..}]};
    // Neutron: {"NeutronError": {"message": ..}}.
    let of = |value: &serde_json::Value| {
        ["message", "detail"].iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned))
    };
    let inner = document.as_object().and_then(|fields| {
        fields.values().find_map(|value| of(value).or_else(|| value.as_array()?.first().and_then(of)))
    });
    shown(&hide(&of(&document).or(inner).unwrap_or_default(), secrets))
}

/// A text without secrets that it repeats.
pub(crate) fn hide(text: &str, secrets: &[&str]) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
}

/// What the body of a 409 says, with that message, if it has one of Placement's codes.
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
