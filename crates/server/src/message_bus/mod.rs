//! The message bus of an OpenStack cloud, which is RabbitMQ: its address, publishing and subscribing.

mod amqp;
mod hearing;
mod publishing;
mod transport_url;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::ExposeSecret;
use tokio_rustls::TlsConnector;

use self::amqp::Line;
pub(crate) use self::hearing::Hearing;
pub(crate) use self::publishing::{PublishError, Publishing, Queues, Route};
use self::transport_url::{Broker, LONGEST_NAME, TransportUrl};
use crate::certificates::authorities;
use crate::config::MessageBusConfig;
use crate::config_error::ConfigError;

/// Key of the setting with the path of the file that has the bus's URL.
pub(crate) const URL_FILE: &str = "message_bus.url_file";

/// A message bus with one or more brokers.
pub(crate) struct MessageBus {
    url: TransportUrl,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for MessageBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBus").field("brokers", &self.url.brokers).finish_non_exhaustive()
    }
}

impl MessageBus {
    /// The bus in the settings. Doesn't connect yet.
    pub fn new(config: &MessageBusConfig) -> Result<Self, ConfigError> {
        let url = TransportUrl::read(config.url.expose_secret(), config.tls)
            .map_err(|error| wrong(URL_FILE, &error))?;
        let tls = if url.tls {
            Some(connector(config.ca_file.as_deref()).map_err(|what| wrong("message_bus.ca_file", &what))?)
        } else {
            None
        };
        Ok(Self { url, tls })
    }

    /// Errors in the URL and in the file of certificate authorities.
    pub fn mistakes(config: &MessageBusConfig) -> Vec<ConfigError> {
        let url = TransportUrl::read(config.url.expose_secret(), config.tls);
        // If the URL is wrong, it may still need TLS.
        let authorities = config.ca_file.as_deref().filter(|_| url.as_ref().map_or(true, |url| url.tls));
        let authorities = authorities.map(|path| connector(Some(path))).transpose();
        let url = url.err().map(|error| wrong(URL_FILE, &error));
        let authorities = authorities.err().map(|what| wrong("message_bus.ca_file", &what));
        url.into_iter().chain(authorities).collect()
    }

    /// Number of brokers.
    pub fn brokers(&self) -> usize {
        self.url.brokers.len()
    }

    /// Name of the broker for this attempt. Successive attempts use the brokers in turn.
    pub fn broker(&self, turn: usize) -> impl fmt::Display {
        self.at(turn)
    }

    /// Connects to a broker for publishing.
    pub async fn publish(&self, turn: usize) -> Result<Publishing, String> {
        Publishing::begin(self.connect(turn).await?).await
    }

    /// Connects to a broker and subscribes to messages of the exchange with one of the routing keys.
    pub async fn hear(&self, turn: usize, exchange: &str, keys: &[String]) -> Result<Hearing, String> {
        Hearing::begin(self.connect(turn).await?, exchange, keys).await
    }

    fn at(&self, turn: usize) -> &Broker {
        &self.url.brokers[turn % self.url.brokers.len()]
    }

    async fn connect(&self, turn: usize) -> Result<Line, String> {
        Line::open(self.at(turn), &self.url.virtual_host, self.tls.as_ref()).await
    }
}

/// A configuration error for the setting.
pub(crate) fn wrong(setting: &'static str, reason: &dyn fmt::Display) -> ConfigError {
    ConfigError::for_setting(setting, reason.to_string())
}

/// Rejects names of exchanges and queues that are empty or longer than AMQP allows.
pub(crate) fn check_names<'n>(
    setting: &'static str,
    names: impl IntoIterator<Item = &'n String>,
) -> Result<(), ConfigError> {
    if names.into_iter().any(|name| name.is_empty() || name.len() > LONGEST_NAME) {
        let reason = format!(
            "topics and exchanges may have 1 to {LONGEST_NAME} bytes, with the priority that is appended to topics"
        );
        return Err(wrong(setting, &reason));
    }
    Ok(())
}

/// Trusts the certificate authorities in `ca_file`, or the system's if `None`.
fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    // Fails only if the process already has a default provider, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = ClientConfig::builder();
    let config = match ca_file {
        None => builder.with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth(),
        Some(path) => {
            let roots = authorities(path).map_err(|what| format!("cannot read {what}"))?;
            if roots.is_empty() {
                return Err(format!("cannot read {}: there is no certificate in it", path.display()));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
