//! The sections `[keystone]` and `[openstack]` of the settings: how the service logs in at a cloud.

use std::time::Duration;

use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, User};
use server::KeystoneConfig;

use super::error::AssemblyError;
use crate::config::{AuthChoice, CloudLogin, Configuration};

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
    login: &'a CloudLogin,
    interface: Interface,
    retry: Retry,
}

impl Section<'_> {
    /// The cloud, and the address of its Keystone as it was written.
    fn cloud(&self, region: Option<&String>) -> Result<(Cloud, String), AssemblyError> {
        let Self { name, needed_for, login, .. } = self;
        let missing = |what: &str| AssemblyError::Missing(format!("{needed_for} needs {what}"));
        let auth_url = login
            .auth_url
            .as_ref()
            .ok_or_else(|| missing(&format!("{name}.auth_url, as http://HOST:5000/v3")))?;
        let identity = openstack::identity_url(auth_url)
            .map_err(|reason| AssemblyError::Missing(format!("{name}.auth_url: {reason}")))?;
        let secret = login.secret_file.clone().ok_or_else(|| {
            missing(&format!(
                "{name}.secret_file, with the password of the service's user or the secret of its application credential"
            ))
        })?;
        let secret = Secret::File(secret);
        let domain = |name: &String| Domain::Name(name.clone());
        let who = match (&login.username, &login.application_credential) {
            (Some(user), None) => Login::Password {
                user: User::Name(user.clone(), domain(&login.user_domain)),
                password: secret,
                project: Project::Name(login.project.clone(), domain(&login.project_domain)),
            },
            (None, Some(id)) => Login::ApplicationCredential { id: id.clone(), secret },
            _ => {
                return Err(missing(&format!("either {name}.username or {name}.application_credential")));
            }
        };
        let authorities = login.ca_file.as_ref().map(|path| {
            std::fs::read(path).map_err(|error| AssemblyError::Unreadable { path: path.clone(), error })
        });
        let cloud = Cloud {
            identity,
            login: who,
            region: region.cloned(),
            interface: self.interface,
            authorities: authorities.transpose()?,
            timeout: login.timeout.max(Duration::from_millis(100)),
            retry: self.retry,
        };
        Ok((cloud, auth_url.clone()))
    }
}

/// The cloud whose Nova runs the machines. What its section does not say of Keystone, that of Keystone says.
pub(super) fn nova(configuration: &Configuration) -> Result<Cloud, AssemblyError> {
    let (keystone, own) = (&configuration.keystone.login, &configuration.openstack.login);
    let login = CloudLogin {
        auth_url: own.auth_url.clone().or_else(|| keystone.auth_url.clone()),
        ca_file: own.ca_file.clone().or_else(|| keystone.ca_file.clone()),
        ..own.clone()
    };
    let section = Section {
        name: "openstack",
        needed_for: "fleet: openstack",
        login: &login,
        interface: configuration.openstack.interface,
        retry: PATIENT,
    };
    Ok(section.cloud(configuration.service.rules.region.as_ref())?.0)
}

/// The Keystone that the settings name, if tokens of one are to be good here.
pub(super) fn of(configuration: &Configuration) -> Result<Option<KeystoneConfig>, AssemblyError> {
    if !configuration.auth.contains(&AuthChoice::Keystone) {
        return Ok(None);
    }
    let keystone = &configuration.keystone;
    let section = Section {
        name: "keystone",
        needed_for: "auth: keystone",
        login: &keystone.login,
        interface: Interface::Internal,
        retry: RETRY,
    };
    let (cloud, auth_url) = section.cloud(configuration.service.rules.region.as_ref())?;
    let www_authenticate_uri = keystone.www_authenticate_uri.clone().unwrap_or(auth_url);
    Ok(Some(KeystoneConfig { cloud, www_authenticate_uri, validation: keystone.validation }))
}
