//! Checks settings without serving.

use std::sync::Arc;

use ambient::{Ids, unusable_program};
use service::Service;

use crate::access::Access;
use crate::app::App;
use crate::certificates::tls_config;
use crate::cloud_news::CloudNews;
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::listeners;

/// Mistakes in the settings, and in the files that they name. `service` can be an empty one.
pub fn mistakes(service: Arc<Service>, ids: Arc<dyn Ids>, mut config: Config) -> Vec<ConfigError> {
    let mut found = Vec::new();
    found.extend(Access::policy(&config).err());
    found.extend(listeners::of(&config).err());
    found.extend(config.exec.as_ref().and_then(|config| {
        let program = config.program.clone();
        unusable_program(&program).map(|reason| ConfigError::Exec { program, reason })
    }));
    found.extend(config.message_bus.as_deref().map(CloudNews::new).transpose().err());
    found.extend(config.tls.as_ref().map(tls_config).transpose().err());
    // These were checked above, so `App::new` must not report them again.
    config.policy_file = None;
    config.webhook = None;
    config.message_bus = None;
    let listen = config.listen;
    let app = App::new(service, ids, config);
    found.extend(app.and_then(|app| app.check_address(listen)).err());
    found
}
