//! Checks settings without starting a server.

use std::time::Duration;

use futures::future::join_all;

use crate::access::Access;
use crate::app::check_address;
use crate::auth;
use crate::certificates;
use crate::cloud_news::CloudNews;
use crate::config::{Config, MessageBusConfig};
use crate::config_error::ConfigError;
use crate::listeners;
use crate::message_bus::MessageBus;

/// Time limit for connecting to a broker of the message bus.
const BROKER_TIME: Duration = Duration::from_secs(5);

/// Maximum number of brokers to connect to.
const MOST_BROKERS: usize = 16;

/// Errors in the settings, and in the files that they name. Doesn't contact Keystone.
pub fn mistakes(config: &Config) -> Vec<ConfigError> {
    let mut found = auth::mistakes(&config.auth);
    found.extend(check_address(&config.auth.methods, config.listen).err());
    found.extend(Access::policy(config).err());
    found.extend(listeners::mistakes(config));
    found.extend(config.message_bus.as_deref().map(CloudNews::new).transpose().err());
    found.extend(config.message_bus.as_deref().map(MessageBus::mistakes).unwrap_or_default());
    found.extend(config.tls.iter().flat_map(certificates::mistakes));
    found
}

/// Connects to each broker of the message bus and logs in. Returns nothing if the settings are wrong.
pub async fn try_brokers(config: &MessageBusConfig) -> Vec<Result<(), String>> {
    let Ok(bus) = MessageBus::new(config) else { return Vec::new() };
    join_all((0..bus.brokers().min(MOST_BROKERS)).map(|turn| try_broker(&bus, turn))).await
}

async fn try_broker(bus: &MessageBus, turn: usize) -> Result<(), String> {
    let broker = bus.broker(turn);
    match tokio::time::timeout(BROKER_TIME, bus.publish(turn)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(reason)) => Err(format!("{broker} {reason}")),
        Err(_) => Err(format!("{broker} doesn't answer within {} s", BROKER_TIME.as_secs())),
    }
}

/// Warnings about the files of users and tokens. Files with mistakes are left out.
pub fn warnings(config: &Config) -> Vec<String> {
    let Ok(policy) = Access::policy(config) else { return Vec::new() };
    auth::warnings(&config.auth, &|role| policy.names_role(role))
}
