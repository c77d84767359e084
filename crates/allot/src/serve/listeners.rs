//! Who is told of everything that happens, as the settings say.

use secrecy::SecretString;
use server::{MessageBusConfig, WebhookConfig};

use super::error::{AssemblyError, read};
use crate::config::Configuration;

/// The web hook, if there is one.
pub(super) fn webhook(configuration: &Configuration) -> Result<Option<WebhookConfig>, AssemblyError> {
    let Some(url) = &configuration.notifications_url else { return Ok(None) };
    let secret = configuration.notifications_secret_file.as_deref().map(read).transpose()?;
    Ok(Some(WebhookConfig {
        secret: secret.map(|secret| SecretString::from(secret.trim())),
        timeout_seconds: configuration.notifications_timeout.seconds(),
        ..WebhookConfig::new(url.clone())
    }))
}

/// The message bus, if there is one.
pub(super) fn message_bus(configuration: &Configuration) -> Result<Option<MessageBusConfig>, AssemblyError> {
    let Some(path) = &configuration.message_bus_url_file else { return Ok(None) };
    Ok(Some(MessageBusConfig {
        tls: configuration.message_bus_tls,
        ca_file: configuration.message_bus_ca_file.clone(),
        exchange: configuration.message_bus_exchange.clone(),
        topics: configuration.message_bus_topics.clone(),
        publisher_id: configuration.message_bus_publisher_id.clone(),
        durable_queues: configuration.message_bus_durable_queues,
        quorum_queues: configuration.message_bus_quorum_queues,
        nova_exchange: configuration.message_bus_nova_exchange.clone(),
        nova_topics: configuration.message_bus_nova_topics.clone(),
        timeout_seconds: configuration.message_bus_timeout.seconds(),
        ..MessageBusConfig::new(SecretString::from(read(path)?.trim()))
    }))
}
