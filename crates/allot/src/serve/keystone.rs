//! The sections `[keystone]` and `[openstack]` of the settings: how the service logs in at a cloud.

use std::path::PathBuf;
use std::time::Duration;

use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, User};
use server::KeystoneConfig;

use super::error::AssemblyError;
use crate::config::{AuthChoice, Configuration, Span};

/// Few and fast: a client waits for it.
const RETRY: Retry =
    Retry { attempts: 2, first_pause: Duration::from_millis(100), longest_pause: Duration::from_millis(500) };

/// The same for work that nobody waits for: what fails for longer is tried again by the loop.
const PATIENT: Retry =
    Retry { attempts: 3, first_pause: Duration::from_millis(250), longest_pause: Duration::from_secs(5) };

/// A section of settings that say how to log in at a cloud.
struct Section<'a> {
    /// Its name, and what it is needed for.
    name: &'static str,
    needed_for: &'static str,
    auth_url: Option<&'a String>,
    username: Option<&'a String>,
    user_domain: &'a str,
    project: &'a str,
    project_domain: &'a str,
    application_credential: Option<&'a String>,
    secret_file: Option<&'a PathBuf>,
    ca_file: Option<&'a PathBuf>,
    timeout: Span,
    interface: Interface,
    retry: Retry,
}

impl Section<'_> {
    /// The cloud, and the address of its Keystone as it was written.
    fn cloud(&self, region: Option<&String>) -> Result<(Cloud, String), AssemblyError> {
        let Self { name, needed_for, .. } = self;
        let missing = |what: &str| AssemblyError::Missing(format!("{needed_for} needs {what}"));
        let auth_url =
            self.auth_url.ok_or_else(|| missing(&format!("{name}.auth_url, as http://HOST:5000/v3")))?;
        let identity = openstack::identity_url(auth_url)
            .map_err(|reason| AssemblyError::Missing(format!("{name}.auth_url: {reason}")))?;
        let secret = self.secret_file.cloned().ok_or_else(|| {
            missing(&format!(
                "{name}.secret_file, with the password of the service's user or the secret of its application credential"
            ))
        })?;
        let secret = Secret::File(secret);
        let domain = |name: &str| Domain::Name(name.to_owned());
        let login = match (self.username, self.application_credential) {
            (Some(user), None) => Login::Password {
                user: User::Name(user.clone(), domain(self.user_domain)),
                password: secret,
                project: Project::Name(self.project.to_owned(), domain(self.project_domain)),
            },
            (None, Some(id)) => Login::ApplicationCredential { id: id.clone(), secret },
            _ => {
                return Err(missing(&format!("either {name}.username or {name}.application_credential")));
            }
        };
        let authorities = self.ca_file.map(|path| {
            std::fs::read(path).map_err(|error| AssemblyError::Unreadable { path: path.clone(), error })
        });
        let cloud = Cloud {
            identity,
            login,
            region: region.cloned(),
            interface: self.interface,
            authorities: authorities.transpose()?,
            timeout: self.timeout.unsigned().max(Duration::from_millis(100)),
            retry: self.retry,
        };
        Ok((cloud, auth_url.clone()))
    }
}

/// The cloud whose Nova runs the machines.
pub(super) fn nova(configuration: &Configuration) -> Result<Cloud, AssemblyError> {
    let section = Section {
        name: "openstack",
        needed_for: "fleet: openstack",
        auth_url: configuration.openstack_auth_url.as_ref().or(configuration.keystone_auth_url.as_ref()),
        username: configuration.openstack_username.as_ref(),
        user_domain: &configuration.openstack_user_domain,
        project: &configuration.openstack_project,
        project_domain: &configuration.openstack_project_domain,
        application_credential: configuration.openstack_application_credential.as_ref(),
        secret_file: configuration.openstack_secret_file.as_ref(),
        ca_file: configuration.openstack_ca_file.as_ref().or(configuration.keystone_ca_file.as_ref()),
        timeout: configuration.openstack_timeout,
        interface: configuration.openstack_interface,
        retry: PATIENT,
    };
    Ok(section.cloud(configuration.region.as_ref())?.0)
}

/// The Keystone that the settings name, if tokens of one are to be good here.
pub(super) fn of(configuration: &Configuration) -> Result<Option<KeystoneConfig>, AssemblyError> {
    if !configuration.auth.contains(&AuthChoice::Keystone) {
        return Ok(None);
    }
    let section = Section {
        name: "keystone",
        needed_for: "auth: keystone",
        auth_url: configuration.keystone_auth_url.as_ref(),
        username: configuration.keystone_username.as_ref(),
        user_domain: &configuration.keystone_user_domain,
        project: &configuration.keystone_project,
        project_domain: &configuration.keystone_project_domain,
        application_credential: configuration.keystone_application_credential.as_ref(),
        secret_file: configuration.keystone_secret_file.as_ref(),
        ca_file: configuration.keystone_ca_file.as_ref(),
        timeout: configuration.keystone_timeout,
        interface: Interface::Internal,
        retry: RETRY,
    };
    let (cloud, auth_url) = section.cloud(configuration.region.as_ref())?;
    let www_authenticate_uri = configuration.keystone_www_authenticate_uri.clone();
    Ok(Some(KeystoneConfig {
        cloud,
        www_authenticate_uri: www_authenticate_uri.unwrap_or(auth_url),
        cache_time: configuration.keystone_cache_time.unsigned(),
        cached_tokens: configuration.keystone_cached_tokens,
        outage_time: configuration.keystone_outage_time.unsigned(),
        validations_at_once: configuration.keystone_validations_at_once,
    }))
}
