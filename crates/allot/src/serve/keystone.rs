//! Login of the service at a cloud, from the sections `[keystone]` and `[openstack]` of the settings.

use std::time::Duration;

use openstack::{Cloud, Domain, Interface, Login, Project, Retry, Secret, User};
use server::KeystoneConfig;

use super::error::AssemblyError;
use crate::config::{AuthChoice, CloudLogin, Configuration};

/// Few and fast attempts, because a client waits for them.
const RETRY: Retry =
    Retry { attempts: 2, first_pause: Duration::from_millis(100), longest_pause: Duration::from_millis(500) };

/// For background work. If it fails for longer, the loop tries it again.
const PATIENT: Retry =
    Retry { attempts: 3, first_pause: Duration::from_millis(250), longest_pause: Duration::from_secs(5) };

/// A section of settings with the login at a cloud.
struct Section<'a> {
    /// Name of the section, and the setting that needs it.
    name: &'static str,
    needed_for: &'static str,
    /// Key of the setting that names the file with certificate authorities.
    ca_setting: &'static str,
    login: &'a CloudLogin,
    interface: Interface,
    retry: Retry,
}

impl Section<'_> {
    /// The cloud, and the URL of its Keystone as it was written. The error has all mistakes of the section.
    fn cloud(&self, region: Option<&String>) -> Result<(Cloud, String), AssemblyError> {
        let Self { name, needed_for, ca_setting, login, .. } = self;
        let missing = |what: String| format!("{needed_for} needs {what}");
        let identity = match &login.auth_url {
            Some(url) => openstack::identity_url(url)
                .map(|identity| (identity, url.clone()))
                .map_err(|reason| format!("{name}.auth_url: {reason}")),
            None => Err(missing(format!("{name}.auth_url, as http://HOST:5000/v3"))),
        };
        let secret = login.secret_file.clone().ok_or_else(|| {
            missing(format!(
                "{name}.secret_file, with the password of the service's user or the secret of its application credential"
            ))
        });
        let who = match (&login.username, &login.application_credential) {
            (Some(user), None) => Ok(Who::User(user.clone())),
            (None, Some(id)) => Ok(Who::ApplicationCredential(id.clone())),
            _ => Err(missing(format!("either {name}.username or {name}.application_credential"))),
        };
        let authorities = login.ca_file.as_ref().map(|path| {
            std::fs::read(path)
                .map_err(|error| format!("{ca_setting}: cannot read {}: {error}", path.display()))
        });
        match (identity, secret, who, authorities.transpose()) {
            (Ok((identity, auth_url)), Ok(secret), Ok(who), Ok(authorities)) => {
                let cloud = Cloud {
                    identity,
                    login: who.login(login, Secret::File(secret)),
                    region: region.cloned(),
                    interface: self.interface,
                    authorities,
                    timeout: login.timeout,
                    retry: self.retry,
                };
                Ok((cloud, auth_url))
            }
            (identity, secret, who, authorities) => {
                let mistakes = [identity.err(), secret.err(), who.err(), authorities.err()];
                Err(AssemblyError::Settings(mistakes.into_iter().flatten().collect()))
            }
        }
    }
}

/// Identity that the service logs in with.
enum Who {
    /// The name of a user.
    User(String),
    /// The identifier of an application credential.
    ApplicationCredential(String),
}

impl Who {
    fn login(self, settings: &CloudLogin, secret: Secret) -> Login {
        let domain = |name: &String| Domain::Name(name.clone());
        match self {
            Self::User(user) => Login::Password {
                user: User::Name(user, domain(&settings.user_domain)),
                password: secret,
                project: Project::Name(settings.project.clone(), domain(&settings.project_domain)),
            },
            Self::ApplicationCredential(id) => Login::ApplicationCredential { id, secret },
        }
    }
}

/// The cloud with the Nova that runs the machines. If `[openstack]` lacks Keystone's URL or the authorities,
/// they come from `[keystone]`.
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
        ca_setting: if own.ca_file.is_some() { "openstack.ca_file" } else { "keystone.ca_file" },
        login: &login,
        interface: configuration.openstack.interface,
        retry: PATIENT,
    };
    Ok(section.cloud(configuration.service.rules.region.as_ref())?.0)
}

/// The Keystone that validates clients' tokens. `None` if the service doesn't accept such tokens.
pub(super) fn of(configuration: &Configuration) -> Result<Option<KeystoneConfig>, AssemblyError> {
    if !configuration.auth.contains(&AuthChoice::Keystone) {
        return Ok(None);
    }
    let keystone = &configuration.keystone;
    let section = Section {
        name: "keystone",
        needed_for: "auth: keystone",
        ca_setting: "keystone.ca_file",
        login: &keystone.login,
        interface: Interface::Internal,
        retry: RETRY,
    };
    let (cloud, auth_url) = section.cloud(configuration.service.rules.region.as_ref())?;
    let www_authenticate_uri = keystone.www_authenticate_uri.clone().unwrap_or(auth_url);
    Ok(Some(KeystoneConfig { cloud, www_authenticate_uri, validation: keystone.validation }))
}
