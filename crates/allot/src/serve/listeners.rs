//! Receivers of notifications, and the external service that can refuse leases, from the settings.

use secrecy::SecretString;
use server::{ExecConfig, ExternalServiceConfig, MessageBusConfig, WebhookConfig};

use super::error::{AssemblyError, read};
use crate::config::Configuration;

pub(super) fn webhook(configuration: &Configuration) -> Result<Option<WebhookConfig>, AssemblyError> {
    if configuration.webhook.url.is_empty() {
        return Ok(None);
    }
    let secret = configuration.webhook_secret_file.as_deref();
    let secret = secret.map(|path| read("notifications.secret_file", path)).transpose()?;
    let secret = secret.map(|secret| SecretString::from(secret.trim()));
    Ok(Some(WebhookConfig { secret, ..configuration.webhook.clone() }))
}

/// The program that receives notifications, if there is one.
pub(super) fn exec(configuration: &Configuration) -> Option<ExecConfig> {
    let (program, arguments) = configuration.exec.split_first()?;
    let timeout = configuration.webhook.timeout;
    Some(ExecConfig { timeout, ..ExecConfig::new(program.clone(), arguments.to_vec()) })
}

pub(super) fn message_bus(configuration: &Configuration) -> Result<Option<MessageBusConfig>, AssemblyError> {
    let Some(path) = &configuration.message_bus_url_file else { return Ok(None) };
    let url = SecretString::from(read("message_bus.url_file", path)?.trim());
    Ok(Some(MessageBusConfig { url, ..configuration.message_bus.clone() }))
}

/// The external service that can refuse leases, if there is one. Fails if its endpoints are set without its
/// URL.
pub(super) fn external_service(
    configuration: &Configuration,
) -> Result<Option<ExternalServiceConfig>, AssemblyError> {
    let service = &configuration.external_service;
    if service.base_endpoint.is_empty() {
        let endpoints = [
            ("enforcement.check_create_url", &service.check_create_endpoint),
            ("enforcement.check_update_url", &service.check_update_endpoint),
            ("enforcement.on_end_url", &service.on_end_endpoint),
        ];
        let given = endpoints.into_iter().filter(|(_, endpoint)| endpoint.is_some());
        let mistakes = given.map(|(setting, _)| format!("{setting}: set enforcement.url as well"));
        AssemblyError::check(mistakes.collect())?;
        return Ok(None);
    }
    let token = configuration.external_service_token_file.as_deref();
    let token = token.map(|path| read("enforcement.token_file", path)).transpose()?;
    let token = token.map(|token| SecretString::from(token.trim()));
    Ok(Some(ExternalServiceConfig { token, ..configuration.external_service.clone() }))
}
