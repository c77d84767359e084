//! Pushes notifications to a listener: each by a POST of its own, in their order, at least once.
//!
//! How far the listener has been told is in the store, and moves on when it has answered; so after a crash, a lost
//! answer or an outage it is told again, under the same identifier, and nothing is left out. While it does not
//! answer, the rest waits, here and not in the service. Of several services that share a store one tells.
//!
//! Requests are signed as the Standard Webhooks specification has it: `webhook-id`, `webhook-timestamp` and
//! `webhook-signature`, the last an HMAC-SHA256 of `id.timestamp.body`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ambient::{Clock, Stopwatch, SystemClock};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use service::{Service, ServiceError};
use thiserror::Error;
use tokio::sync::watch;

use crate::app::App;
use crate::config::{ConfigError, WebhookConfig};
use crate::metrics::Metrics;

/// The listener's name in the store.
const LISTENER: &str = "webhook";

/// The longest time that a listener is given to answer.
const LONGEST_ANSWER: Duration = Duration::from_mins(1);

/// How long one of several services that share a store is the one that tells. It is longer than a push may take.
const TERM: SignedDuration = SignedDuration::from_mins(2);

/// How often the others look whether it is their turn.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many notifications are read from the store at once.
const BATCH: u32 = 100;

/// The longest pause before the listener is tried again.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// What a secret begins with whose bytes are written as base64.
const ENCODED: &str = "whsec_";

/// A listener.
pub(crate) struct Webhook {
    client: Client,
    url: Url,
    key: Option<hmac::Key>,
    first_pause: Duration,
    /// What listeners compare with their own clock, whatever clock leases go by.
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses of web hooks often have a secret in them.
        f.debug_struct("Webhook").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// Why a notification was not delivered.
#[derive(Debug, Error)]
enum PushError {
    /// The listener does not answer.
    #[error("the listener does not answer: {0}")]
    NoAnswer(reqwest::Error),
    /// It answers something else than 2xx.
    #[error("the listener answers {0}")]
    Refused(StatusCode),
    /// What is to be sent cannot be written.
    #[error("the notification cannot be written: {0}")]
    Json(#[from] serde_json::Error),
    /// The store does not work.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

impl Webhook {
    /// With these settings. Nobody is told anything yet.
    pub fn new(config: &WebhookConfig) -> Result<Self, ConfigError> {
        let wrong = |what: &dyn fmt::Display| ConfigError::Webhook(what.to_string());
        let url = Url::parse(&config.url).map_err(|error| wrong(&error))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong(&"give an address that begins with http:// or https://"));
        }
        let key = config.secret.as_ref().map(key).transpose()?;
        // Fails only if some part of the process has chosen a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeout = Duration::from_secs(config.timeout_seconds.into()).min(LONGEST_ANSWER);
        // Who redirects is not who was configured.
        let client = Client::builder().timeout(timeout).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self {
            client: client.map_err(|error| wrong(&error))?,
            url,
            key,
            first_pause: Duration::from_millis(config.retry_milliseconds.max(1).into()),
            clock: Arc::new(SystemClock),
        })
    }

    /// Tells the listener everything, forever.
    async fn push_all(&self, service: &Service, metrics: &Metrics) {
        let mut pause = self.first_pause;
        let mut told = None;
        loop {
            match self.push_next(service, metrics, &mut told).await {
                Ok(()) => pause = self.first_pause,
                Err(error) => {
                    metrics.pushed(false);
                    let seconds = pause.as_secs_f64();
                    tracing::warn!(%error, seconds, "notification not delivered, retrying");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Waits until there is something to tell, and tells it, if no other service does.
    async fn push_next(
        &self,
        service: &Service,
        metrics: &Metrics,
        told: &mut Option<u64>,
    ) -> Result<(), PushError> {
        if !service.lead(LISTENER, TERM).await? {
            *told = None;
            tokio::time::sleep(PATIENCE).await;
            return Ok(());
        }
        let last = match *told {
            Some(last) => last,
            None => service.delivered(LISTENER).await?,
        };
        *told = Some(last);
        // Not for longer than the term: it has to be prolonged.
        let _ = tokio::time::timeout(PATIENCE, service.notified(last)).await;
        let since = Stopwatch::start();
        for notification in service.notifications(last, BATCH).await? {
            let body = serde_json::to_string(&api::v1::Notification::from(&notification))?;
            self.push(notification.number, body).await?;
            metrics.pushed(true);
            *told = Some(notification.number);
            service.set_delivered(LISTENER, notification.number).await?;
            if since.elapsed() > PATIENCE {
                break;
            }
        }
        Ok(())
    }

    async fn push(&self, number: u64, body: String) -> Result<(), PushError> {
        let id = format!("notification-{number}");
        let headers = self.headers(&id, self.clock.now().as_second(), &body);
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let answer = request.send().await.map_err(|error| PushError::NoAnswer(error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(PushError::Refused(status)) }
    }

    fn headers(&self, id: &str, timestamp: i64, body: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let signature = self.key.as_ref().map(|key| {
            let tag = hmac::sign(key, format!("{id}.{timestamp}.{body}").as_bytes());
            format!("v1,{}", STANDARD.encode(tag))
        });
        let own = [
            ("webhook-id", Some(id.to_owned())),
            ("webhook-timestamp", Some(timestamp.to_string())),
            ("webhook-signature", signature),
        ];
        for (name, value) in own {
            // All of them are letters, digits and a few signs.
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

fn key(secret: &SecretString) -> Result<hmac::Key, ConfigError> {
    let text = secret.expose_secret();
    let bytes = match text.strip_prefix(ENCODED) {
        None => text.as_bytes().to_vec(),
        Some(encoded) => STANDARD.decode(encoded).map_err(|_| {
            ConfigError::Webhook(format!("what follows {ENCODED} in the secret has to be base64"))
        })?,
    };
    if bytes.is_empty() {
        return Err(ConfigError::Webhook("the secret is empty".to_owned()));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Pushes notifications to the listener that the settings name, if they name one, until `stop` becomes true. A
/// push that is under way then is given up, and made again after the next start.
pub async fn push_notifications(app: App, mut stop: watch::Receiver<bool>) {
    let Some(webhook) = &app.inner.webhook else { return };
    tokio::select! {
        () = webhook.push_all(&app.inner.service, &app.inner.metrics) => {}
        // If nobody is left to say so, that is a stop as well.
        _ = stop.wait_for(|stop| *stop) => {}
    }
    // Another need not wait until the term is over. If this fails, it does.
    let _ = app.inner.service.lead(LISTENER, SignedDuration::ZERO).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(secret: &str) -> Result<Webhook, ConfigError> {
        let secret = Some(secret.into());
        Webhook::new(&WebhookConfig { secret, ..WebhookConfig::new("http://127.0.0.1:1/".to_owned()) })
    }

    #[test]
    fn a_signature_is_that_of_the_standard() {
        // The example of the specification's reference libraries.
        let webhook = webhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a secret");
        let headers =
            webhook.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_cannot_be_a_listener_is_said_before_anything_starts() {
        for wrong in ["ftp://x/", "nowhere"] {
            assert!(Webhook::new(&WebhookConfig::new(wrong.to_owned())).is_err(), "{wrong}");
        }
        assert!(webhook("").is_err());
        assert!(webhook("whsec_!").is_err());
        let shown = format!("{:?}", webhook("hush").expect("a secret"));
        assert!(!shown.contains("hush"), "{shown}");
    }
}
