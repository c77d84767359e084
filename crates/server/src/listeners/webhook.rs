//! Sends each notification to a web hook with a POST request.
//!
//! Requests are signed according to the Standard Webhooks specification: `webhook-id`, `webhook-timestamp`
//! and `webhook-signature`, which is an HMAC-SHA256 of `id.timestamp.body`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ambient::{Clock, SystemClock};
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Url};
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};
use store::Notification;

use super::listener::{Listener, TellError};
use crate::config::{LEAST_PAUSE, LONGEST_ANSWER, WebhookConfig};
use crate::config_error::ConfigError;

pub(super) const NAME: &str = "webhook";

/// Prefix of secrets in base64.
const ENCODED: &str = "whsec_";

/// A listener that is a web hook.
pub(crate) struct Webhook {
    client: Client,
    url: Url,
    key: Option<hmac::Key>,
    first_pause: Duration,
    /// Source of timestamps. Receivers compare them with their own clock, so they can't use the clock of
    /// leases.
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs of web hooks often contain secrets.
        f.debug_struct("Webhook").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Checks the settings. Doesn't connect yet.
    pub fn new(config: &WebhookConfig) -> Result<Self, ConfigError> {
        let wrong =
            |reason: &dyn fmt::Display| ConfigError::for_setting("notifications.url", reason.to_string());
        let url = Url::parse(&config.url).map_err(|error| wrong(&error))?;
        if !["http", "https"].contains(&url.scheme()) {
            return Err(wrong(&"give an address that begins with http:// or https://"));
        }
        let key = config.secret.as_ref().map(key).transpose()?;
        // Fails only if the process already has a default provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let timeout = config.timeout.min(LONGEST_ANSWER);
        // A redirect would send notifications to a server that isn't configured.
        let client = Client::builder().timeout(timeout).redirect(reqwest::redirect::Policy::none()).build();
        Ok(Self {
            client: client.map_err(|error| wrong(&error))?,
            url,
            key,
            first_pause: config.first_pause.max(LEAST_PAUSE),
            clock: Arc::new(SystemClock),
        })
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
            // Always valid: letters, digits and some punctuation.
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

#[async_trait]
impl Listener for Webhook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn first_pause(&self) -> Duration {
        self.first_pause
    }

    async fn tell(&self, notification: &Notification) -> Result<(), TellError> {
        let body = serde_json::to_string(&api::v1::Notification::from(notification))?;
        let id = format!("notification-{}", notification.number);
        let headers = self.headers(&id, self.clock.now().as_second(), &body);
        let request = self.client.post(self.url.clone()).headers(headers).body(body);
        let answer = request.send().await.map_err(|error| TellError::NoAnswer(error.without_url()))?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(TellError::Refused(status)) }
    }
}

fn key(secret: &SecretString) -> Result<hmac::Key, ConfigError> {
    let wrong = |reason: String| ConfigError::for_setting("notifications.secret_file", reason);
    let text = secret.expose_secret();
    let bytes = match text.strip_prefix(ENCODED) {
        None => text.as_bytes().to_vec(),
        Some(encoded) => STANDARD
            .decode(encoded)
            .map_err(|_| wrong(format!("the secret must have base64 after {ENCODED}")))?,
    };
    if bytes.is_empty() {
        return Err(wrong("the secret is empty".to_owned()));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
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
        // Example from the reference libraries of the specification.
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
