//! What is said of a request that failed.

use leases::text::escaped;
use reqwest::StatusCode;
use serde_json::Value;

use super::ClientError;
use crate::shown;

/// What the service says when it says no. Three shapes of errors are known (API-requests, API-errors).
/// Its words are for a person in any case, the offers for a program if they are to be `raw`.
pub(super) fn refusal(status: StatusCode, body: &[u8], raw: bool) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(escaped);
    let message = text(&document["error_message"])
        .or_else(|| text(&document["error"]["message"]))
        .or_else(|| text(&document["message"]))
        .unwrap_or_else(|| format!("the service answered {status}"));
    let hint = text(&document["hint"]);
    match document["offers"].as_array() {
        Some(offers) if !offers.is_empty() => {
            let offers = offers.iter().cloned();
            let offers = offers.map(|offer| if raw { offer } else { shown::answer(offer) }).collect();
            ClientError::Offered { message, hint, offers }
        }
        _ => ClientError::Refused { status: status.as_u16(), message, hint },
    }
}

/// The cause that the others only wrap.
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
        let body = r#"{"error":404,"error_message":"No such route"}"#;
        assert_eq!(refused(404, body), (404, "No such route".to_owned(), None));
    }

    #[test]
    fn an_error_that_is_not_json_is_still_reported() {
        assert_eq!(refused(502, "<html>").1, "the service answered 502 Bad Gateway");
    }
}
