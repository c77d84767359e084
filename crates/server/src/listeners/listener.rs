//! The trait of listeners, and delivery errors.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use service::ServiceError;
use store::Notification;
use thiserror::Error;

use crate::message_bus::PublishError;

/// A receiver of notifications.
#[async_trait]
pub(crate) trait Listener: fmt::Debug + Send + Sync {
    /// One of [`NAMES`](super::NAMES).
    fn name(&self) -> &'static str;

    /// Pause after a first failure. It doubles with each further failure.
    fn first_pause(&self) -> Duration;

    /// Whether the listener also gets notifications for meters, and samples.
    fn is_metered(&self) -> bool {
        false
    }

    /// Delivers a notification. `Ok` means that the listener has accepted it.
    async fn tell(&self, notification: &Notification) -> Result<(), TellError>;
}

/// Reason that a notification was not delivered.
#[derive(Debug, Error)]
pub(crate) enum TellError {
    /// No response from the web hook.
    #[error("the listener does not answer: {0}")]
    NoAnswer(reqwest::Error),
    /// Response of the web hook other than 2xx.
    #[error("the listener answers {0}")]
    Refused(StatusCode),
    /// Failure to publish on the message bus.
    #[error("broker {broker} {error}")]
    Broker { broker: String, error: PublishError },
    /// Failure or timeout of the program.
    #[error("{program}: {reason}")]
    Program {
        program: String,
        /// How it ended, and its last line of output.
        reason: String,
        /// Whether its exit status means a rejection of the notification.
        rejected: bool,
    },
    #[error("the notification cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Panic of the listener. The log has its location.
    #[error("internal error, see the log")]
    Panic,
}

impl TellError {
    /// Whether the listener rejects this particular notification, so that it is likely to reject it again.
    /// False if it rejects the service, or everything.
    pub(crate) fn is_rejection(&self) -> bool {
        match self {
            Self::Refused(status) => [400, 413, 415, 422].contains(&status.as_u16()),
            Self::Broker { error, .. } => matches!(error, PublishError::Rejected(_)),
            Self::Program { rejected, .. } => *rejected,
            Self::NoAnswer(_) | Self::Json(_) | Self::Service(_) | Self::Panic => false,
        }
    }
}
