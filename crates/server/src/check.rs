//! Checks settings without starting a server.

use crate::access::Access;
use crate::app::check_address;
use crate::auth;
use crate::certificates;
use crate::cloud_news::CloudNews;
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::listeners;

/// Errors in the settings, and in the files that they name. Doesn't contact Keystone.
pub fn mistakes(config: &Config) -> Vec<ConfigError> {
    let mut found = auth::mistakes(&config.auth);
    found.extend(check_address(&config.auth.methods, config.listen).err());
    found.extend(Access::policy(config).err());
    found.extend(listeners::mistakes(config));
    found.extend(config.message_bus.as_deref().map(CloudNews::new).transpose().err());
    found.extend(config.tls.iter().flat_map(certificates::mistakes));
    found
}

/// Warnings about the files of users and tokens. Files with mistakes are left out.
pub fn warnings(config: &Config) -> Vec<String> {
    let Ok(policy) = Access::policy(config) else { return Vec::new() };
    auth::warnings(&config.auth, &|role| policy.names_role(role))
}
