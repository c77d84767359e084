//! The section `[keystone]` of the settings.

use std::time::Duration;

use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, User};
use server::KeystoneConfig;

use super::AssemblyError;
use crate::config::{AuthChoice, Configuration};

/// Few and fast: a client waits for it.
const RETRY: Retry =
    Retry { attempts: 2, first_pause: Duration::from_millis(100), longest_pause: Duration::from_millis(500) };

/// The Keystone that the settings name, if tokens of one are to be good here.
pub(super) fn of(configuration: &Configuration) -> Result<Option<KeystoneConfig>, AssemblyError> {
    if !configuration.auth.contains(&AuthChoice::Keystone) {
        return Ok(None);
    }
    let missing = |what: &'static str| AssemblyError::Contradiction(what);
    let auth_url = configuration.keystone_auth_url.as_ref();
    let auth_url =
        auth_url.ok_or(missing("auth: keystone needs keystone.auth_url, as http://HOST:5000/v3"))?;
    let identity = openstack::identity_url(auth_url)
        .map_err(|reason| server::ConfigError::Keystone(format!("auth_url: {reason}")))?;
    let secret = configuration.keystone_secret_file.clone();
    let secret = secret.ok_or(missing(
        "auth: keystone needs keystone.secret_file, with the password of the service's user or the secret of its \
         application credential",
    ))?;
    let secret = Secret::File(secret);
    let login = match (&configuration.keystone_username, &configuration.keystone_application_credential) {
        (Some(name), None) => Login::Password {
            user: User::Name(name.clone(), Domain::Name(configuration.keystone_user_domain.clone())),
            password: secret,
            project: Project::Name(
                configuration.keystone_project.clone(),
                Domain::Name(configuration.keystone_project_domain.clone()),
            ),
        },
        (None, Some(id)) => Login::ApplicationCredential { id: id.clone(), secret },
        _ => {
            return Err(missing(
                "auth: keystone needs either keystone.username or keystone.application_credential",
            ));
        }
    };
    let authorities = configuration.keystone_ca_file.as_ref().map(|path| {
        std::fs::read(path).map_err(|error| AssemblyError::Unreadable { path: path.clone(), error })
    });
    let cloud = Cloud {
        identity,
        login,
        region: configuration.region.clone(),
        interface: Interface::Internal,
        authorities: authorities.transpose()?,
        timeout: configuration.keystone_timeout.unsigned().max(Duration::from_millis(100)),
        retry: RETRY,
    };
    let www_authenticate_uri = configuration.keystone_www_authenticate_uri.clone();
    Ok(Some(KeystoneConfig {
        cloud,
        www_authenticate_uri: www_authenticate_uri.unwrap_or_else(|| auth_url.clone()),
        cache_time: configuration.keystone_cache_time.unsigned(),
        cached_tokens: configuration.keystone_cached_tokens,
        outage_time: configuration.keystone_outage_time.unsigned(),
        validations_at_once: configuration.keystone_validations_at_once,
    }))
}
