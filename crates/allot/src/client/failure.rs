//! Errors of commands, with their exit statuses and hints.

use std::io;

use leases::text::escaped;
use reqwest::StatusCode;
use serde_json::{Value, json};
use thiserror::Error;

use super::{options, policy};
use crate::shown;

/// Exit status if the service refuses a request.
pub(super) const REFUSED: u8 = 1;
/// Exit status if the command line is invalid.
const USAGE: u8 = 2;
/// Exit status if the service is unreachable or its response is invalid.
const UNREACHABLE: u8 = 3;

/// Reason for the failure of a command.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    /// The service refused the request.
    #[error("{message}")]
    Refused { status: u16, message: String, hint: Option<String> },
    /// The service refused the request and offered alternatives.
    #[error("{message}")]
    Offered { message: String, hint: Option<String>, offers: Vec<Value> },
    /// The refusal was already reported, and none of its offers was accepted.
    #[error("no offer was accepted")]
    Declined,
    /// The service can't be reached, so the request had no effect.
    #[error("cannot reach the service at {url}: {reason}")]
    Unreachable { url: String, reason: String },
    /// A read got no response. It had no effect.
    #[error("no response from the service at {url}: {reason}")]
    Silent { url: String, reason: String },
    /// The response was lost, so the outcome is unknown.
    #[error(
        "the response of the service at {url} was lost; check whether the request was carried out: {reason}"
    )]
    Lost { url: String, reason: String },
    /// The response isn't from a leasing service.
    #[error("invalid response from {url}: {reason}")]
    Nonsense { url: String, reason: String },
    /// An argument is invalid.
    #[error("{0}")]
    Usage(String),
    /// The command didn't reach its goal, for example because waiting failed or the user didn't confirm.
    #[error("{0}")]
    WithoutResult(String),
    /// Waiting reached its time limit.
    #[error("{message}")]
    Overdue { message: String, hint: Option<String> },
    /// Some of several operations failed.
    #[error("{} of {of} failed", .failed.len())]
    Several { of: usize, failed: Vec<(String, ClientError)> },
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

impl ClientError {
    /// Applies `change` to each text from the service.
    pub(super) fn with_texts(self, change: &impl Fn(String) -> String) -> Self {
        match self {
            Self::Refused { status, message, hint } => {
                Self::Refused { status, message: change(message), hint: hint.map(change) }
            }
            Self::Offered { message, hint, offers } => {
                Self::Offered { message: change(message), hint: hint.map(change), offers }
            }
            Self::Several { of, failed } => {
                let failed = failed.into_iter().map(|(name, error)| (name, error.with_texts(change)));
                Self::Several { of, failed: failed.collect() }
            }
            other => other,
        }
    }

    /// Exit status for this error.
    pub(super) fn status(&self) -> u8 {
        match self {
            Self::Refused { .. }
            | Self::Offered { .. }
            | Self::Declined
            | Self::WithoutResult(_)
            | Self::Overdue { .. }
            | Self::Output(_) => REFUSED,
            Self::Usage(_) => USAGE,
            Self::Several { failed, .. } => {
                failed.iter().map(|(_, error)| error.status()).max().unwrap_or(REFUSED)
            }
            Self::Unreachable { .. } | Self::Silent { .. } | Self::Lost { .. } | Self::Nonsense { .. } => {
                UNREACHABLE
            }
        }
    }

    /// The error as JSON: `message`, `hint` if there is one, `http_status` of a refusal, `exit_status`, and
    /// for several operations the ones that `failed`.
    pub(super) fn document(&self) -> Value {
        let mut document = json!({"message": self.to_string(), "exit_status": self.status()});
        if let Some(hint) = self.hint() {
            document["hint"] = json!(hint);
        }
        match self {
            Self::Refused { status, .. } => document["http_status"] = json!(status),
            Self::Several { failed, .. } => {
                let failed =
                    failed.iter().map(|(name, error)| json!({"name": name, "error": error.document()}));
                document["failed"] = failed.collect();
            }
            _ => {}
        }
        document
    }

    /// Advice for the user, if any.
    pub(super) fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint: Some(hint), .. }
            | Self::Offered { hint: Some(hint), .. }
            | Self::Overdue { hint: Some(hint), .. } => Some(hint),
            Self::Silent { reason, .. } | Self::Lost { reason, .. }
                if reason.contains("CertificateRequired") =>
            {
                Some("the service requires a client certificate: set --client-certificate")
            }
            Self::Unreachable { .. } => Some("start one with `allot serve`, or set another URL with --url"),
            _ => None,
        }
    }
}

/// Parses a refusal in one of three known shapes (API-requests, API-errors). Its texts are always escaped for
/// people; its offers only unless `raw`, which is for programs. People also get the names of options.
pub(super) fn refusal(status: StatusCode, body: &[u8], raw: bool) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| {
        let text = value.as_str().map(escaped)?;
        Some(if raw { text } else { options::named(&text) })
    };
    let message = text(&document["error_message"])
        .or_else(|| text(&document["error"]["message"]))
        .or_else(|| text(&document["message"]))
        .unwrap_or_else(|| format!("the service responded with {status}"));
    let hint = text(&document["hint"]);
    match document["offers"].as_array() {
        Some(offers) if !offers.is_empty() => {
            let offers = offers.iter().cloned();
            let offers = offers.map(|offer| if raw { offer } else { shown::answer(offer) }).collect();
            ClientError::Offered { message, hint, offers }
        }
        _ => {
            let (message, hint) = match policy::refusal(&message) {
                Some((message, hint)) => (message, Some(hint)),
                None => (not_found(&message).unwrap_or(message), hint),
            };
            ClientError::Refused { status: status.as_u16(), message, hint }
        }
    }
}

/// Shorter message for Blazar's `Object with {'lease_id': 'ID'} not found`.
fn not_found(message: &str) -> Option<String> {
    let (kind, id) =
        message.strip_prefix("Object with {'")?.strip_suffix("'} not found")?.split_once("': '")?;
    Some(format!("there is no {} {id:?}", kind.strip_suffix("_id")?.replace('_', " ")))
}

/// Root cause, which the other errors only wrap.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> (u16, String, Option<String>) {
        let status = StatusCode::from_u16(status).expect("a status");
        match refusal(status, body.as_bytes(), false) {
            ClientError::Refused { status, message, hint } => (status, message, hint),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn each_shape_of_error_is_understood() {
        let body = r#"{"error_code":409,"error_message":"Not enough hosts available","error_name":409,"hint":"from 10:00"}"#;
        let hint = Some("from 10:00".to_owned());
        assert_eq!(refused(409, body), (409, "Not enough hosts available".to_owned(), hint));
        let body = r#"{"error":{"code":401,"title":"Unauthorized","message":"Who?"}}"#;
        assert_eq!(refused(401, body), (401, "Who?".to_owned(), None));
        let body = r#"{"error_message":"Object with {'lease_id': '4c3e1396'} not found"}"#;
        assert_eq!(refused(404, body), (404, "there is no lease \"4c3e1396\"".to_owned(), None));
        let body = r#"{"error":404,"error_message":"No such route"}"#;
        assert_eq!(refused(404, body), (404, "No such route".to_owned(), None));
    }

    #[test]
    fn people_get_the_names_of_options_and_programs_those_of_parameters() {
        let body = br#"{"error_message":"Malformed parameter repeat.every","hint":"see end_date"}"#;
        let told = |raw| {
            let error = refusal(StatusCode::BAD_REQUEST, body, raw);
            (error.to_string(), error.hint().map(str::to_owned))
        };
        let texts = |message: &str, hint: &str| (message.to_owned(), Some(hint.to_owned()));
        assert_eq!(told(false), texts("Malformed parameter --every", "see --end"));
        assert_eq!(told(true), texts("Malformed parameter repeat.every", "see end_date"));
    }

    #[test]
    fn programs_get_the_parts_of_an_error() {
        let body = r#"{"error_code":409,"error_message":"Not enough hosts available","hint":"from 10:00"}"#;
        let refused = || refusal(StatusCode::CONFLICT, body.as_bytes(), true);
        let wanted = json!({
            "message": "Not enough hosts available", "hint": "from 10:00", "http_status": 409, "exit_status": 1,
        });
        assert_eq!(refused().document(), wanted);
        let several = ClientError::Several { of: 2, failed: vec![("a".to_owned(), refused())] }.document();
        assert_eq!(several["failed"], json!([{"name": "a", "error": wanted}]));
    }

    #[test]
    fn an_error_that_is_not_json_is_still_reported() {
        assert_eq!(refused(502, "<html>").1, "the service responded with 502 Bad Gateway");
    }
}
