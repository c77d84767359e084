//! The message bus of an OpenStack cloud, which is RabbitMQ: where it is, and what is published and heard there.

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

/// Key of the setting that names the file with the address.
pub(crate) const URL_FILE: &str = "message_bus.url_file";

/// A message bus, by the addresses of its brokers.
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
    /// The one that the settings name. It is not connected to yet.
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

    /// What the broker is called whose turn it is: they are asked one after the other.
    pub fn broker(&self, turn: usize) -> impl fmt::Display {
        self.at(turn)
    }

    /// Connects to a broker, to publish.
    pub async fn publish(&self, turn: usize) -> Result<Publishing, String> {
        Publishing::begin(self.connect(turn).await?).await
    }

    /// Connects to a broker, to hear what is published on that exchange with one of those keys.
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

/// A mistake in a setting.
pub(crate) fn wrong(setting: &'static str, reason: &dyn fmt::Display) -> ConfigError {
    ConfigError::for_setting(setting, reason.to_string())
}

/// Refuses names of exchanges and queues that AMQP has no room for.
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

/// What TLS is spoken with: certificates are of these authorities, or of the system's.
fn connector(ca_file: Option<&Path>) -> Result<TlsConnector, String> {
    // Fails only if some part of the process has chosen a provider already, which is as good.
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
