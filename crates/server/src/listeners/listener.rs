//! What a listener is, and why it may not be told.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use service::ServiceError;
use store::Notification;
use thiserror::Error;

use crate::message_bus::PublishError;

/// Who is told of everything that happens.
#[async_trait]
pub(crate) trait Listener: fmt::Debug + Send + Sync {
    /// One of [`NAMES`](super::NAMES).
    fn name(&self) -> &'static str;

    /// How long it is left alone after a first failure; each time twice as long.
    fn first_pause(&self) -> Duration;

    /// Whether it also gets notifications for meters, and samples.
    fn is_metered(&self) -> bool {
        false
    }

    /// Tells it of one. It has taken the notification if there is no error.
    async fn tell(&self, notification: &Notification) -> Result<(), TellError>;
}

/// Why a notification was not delivered.
#[derive(Debug, Error)]
pub(crate) enum TellError {
    /// The web hook does not answer.
    #[error("the listener does not answer: {0}")]
    NoAnswer(reqwest::Error),
    /// It answers something else than 2xx.
    #[error("the listener answers {0}")]
    Refused(StatusCode),
    /// The message bus does not take it.
    #[error("broker {broker} {error}")]
    Broker {
        /// Which of its brokers.
        broker: String,
        /// What that has done.
        error: PublishError,
    },
    /// The program fails, or takes too long.
    #[error("{program}: {reason}")]
    Program {
        /// The program, as configured.
        program: String,
        /// How it ended, and the last line that it wrote.
        reason: String,
        /// It has ended with the exit status of a rejection.
        rejected: bool,
    },
    /// What is to be sent cannot be written.
    #[error("the notification cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The store does not work.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// Telling it panicked; the log says where.
    #[error("internal error, see the log")]
    Panic,
}

impl TellError {
    /// Whether the listener rejects this notification, and not the service or everything: the same one is likely to be
    /// rejected again.
    pub(crate) fn is_rejection(&self) -> bool {
        match self {
            Self::Refused(status) => [400, 413, 415, 422].contains(&status.as_u16()),
            Self::Broker { error, .. } => matches!(error, PublishError::Rejected(_)),
            Self::Program { rejected, .. } => *rejected,
            Self::NoAnswer(_) | Self::Json(_) | Self::Service(_) | Self::Panic => false,
        }
    }
}
