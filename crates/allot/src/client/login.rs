//! Login with a token, as a user with a password, or as a Keystone user, who gets a token for a password or
//! an application credential.
//!
//! Keystone's options and variables have the same names as in `OpenStack` clients, so a shell that is set up
//! for those (`openrc`) also works here. A login of the service's own takes precedence.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use htools::io::Io;
use openstack::{Catalog, Domain, Project, Secret, User};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;

use super::ask::may_type;
use super::failure::{ClientError, innermost, refusal};
use crate::secret;

/// Timeout for getting a token.
const LIMIT: Duration = Duration::from_secs(30);
/// Service type in Keystone's catalog.
const SERVICE: &str = "reservation";

/// The service's message for credentials that it rejects without details.
const UNAUTHORIZED: &str = "The request you have made requires authentication.";

/// Credentials for the service.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Login")]
pub(crate) struct Arguments {
    /// Token of the service or of Keystone; it takes precedence over a user
    #[arg(long, global = true, env = "ALLOT_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
    /// User, for a service that asks for a password (HTTP basic)
    #[arg(long, global = true, env = "ALLOT_USER", value_name = "NAME")]
    user: Option<String>,
    /// Password of the user; safer as a variable, or typed at the prompt on a terminal
    #[arg(long, global = true, env = "ALLOT_PASSWORD", value_name = "TEXT", hide_env_values = true)]
    password: Option<SecretString>,
    /// Project to use, if the user has several; for Keystone the same as --os-project-name
    #[arg(long, global = true, env = "ALLOT_PROJECT", value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    keystone: KeystoneArguments,
}

/// Login at Keystone, with the options of `OpenStack`'s clients.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Login at Keystone")]
#[expect(clippy::struct_field_names, reason = "they are called like the options")]
struct KeystoneArguments {
    /// URL of Keystone; its catalog has the service's URL, unless --url is given
    #[arg(long, global = true, env = "OS_AUTH_URL", value_name = "URL")]
    os_auth_url: Option<String>,
    /// Name of the user
    #[arg(long, global = true, env = "OS_USERNAME", value_name = "NAME")]
    os_username: Option<String>,
    /// ID of the user, instead of the name
    #[arg(long, global = true, env = "OS_USER_ID", value_name = "ID")]
    os_user_id: Option<String>,
    /// Password of the user; safer as a variable
    #[arg(long, global = true, env = "OS_PASSWORD", value_name = "TEXT", hide_env_values = true)]
    os_password: Option<SecretString>,
    /// ID of an application credential, instead of user, password and project
    #[arg(long, global = true, env = "OS_APPLICATION_CREDENTIAL_ID", value_name = "ID")]
    os_application_credential_id: Option<String>,
    /// Secret of the application credential; safer as a variable
    #[arg(
        long,
        global = true,
        env = "OS_APPLICATION_CREDENTIAL_SECRET",
        value_name = "TEXT",
        hide_env_values = true
    )]
    os_application_credential_secret: Option<SecretString>,
    /// Name of the project
    #[arg(long, global = true, env = "OS_PROJECT_NAME", value_name = "NAME")]
    os_project_name: Option<String>,
    /// ID of the project, instead of the name
    #[arg(long, global = true, env = "OS_PROJECT_ID", value_name = "ID")]
    os_project_id: Option<String>,
    /// Domain of the user's name
    #[arg(long, global = true, env = "OS_USER_DOMAIN_NAME", value_name = "NAME", default_value = "Default")]
    os_user_domain_name: String,
    /// ID of the user's domain, instead of its name
    #[arg(long, global = true, env = "OS_USER_DOMAIN_ID", value_name = "ID")]
    os_user_domain_id: Option<String>,
    /// Domain of the project's name
    #[arg(
        long,
        global = true,
        env = "OS_PROJECT_DOMAIN_NAME",
        value_name = "NAME",
        default_value = "Default"
    )]
    os_project_domain_name: String,
    /// ID of the project's domain, instead of its name
    #[arg(long, global = true, env = "OS_PROJECT_DOMAIN_ID", value_name = "ID")]
    os_project_domain_id: Option<String>,
    /// Region of the service, if there are several
    #[arg(long, global = true, env = "OS_REGION_NAME", value_name = "NAME")]
    os_region_name: Option<String>,
    /// Interface of the service's endpoint: public, internal or admin
    #[arg(long, global = true, env = "OS_INTERFACE", value_name = "NAME", default_value = "public")]
    os_interface: String,
}

/// Credentials of requests.
#[derive(Debug)]
pub(crate) enum Login {
    /// Requests have no credentials.
    Nobody,
    Token(SecretString),
    Basic {
        user: String,
        password: SecretString,
        /// `None` selects the user's default project.
        project: Option<String>,
    },
    Keystone(Box<Keystone>),
}

impl Arguments {
    /// Whether any part of a login is given, by an option or a variable.
    pub(crate) fn is_given(&self) -> bool {
        let Self { token, user, password, project, keystone } = self;
        let KeystoneArguments { os_auth_url, os_username, .. } = keystone;
        let names = [user, project, os_auth_url, os_username];
        token.is_some() || password.is_some() || names.iter().any(|name| name.is_some())
    }

    /// Asks for the password on the terminal, if one is needed.
    pub(crate) fn ask_password(&mut self, io: &mut Io<'_>) -> Result<(), ClientError> {
        if let (None, Some(user), None, true) = (&self.token, &self.user, &self.password, may_type()) {
            let password = secret::read(&format!("Password of {user}"), false, io);
            self.password = Some(password.map_err(ClientError::Usage)?);
        }
        Ok(())
    }
}

impl Login {
    /// Selects the login: a token takes precedence over a user, and a user over Keystone.
    pub(crate) fn new(arguments: Arguments) -> Result<Self, ClientError> {
        let Arguments { token, user, password, project, mut keystone } = arguments;
        match (token, user, keystone.os_auth_url.clone()) {
            (Some(token), ..) => Ok(Self::Token(token)),
            (None, Some(user), _) => match password {
                Some(password) => Ok(Self::Basic { user, password, project }),
                None => Err(ClientError::Usage(format!(
                    "no password for user {user}: set ALLOT_PASSWORD or --password, or run the command on a terminal to be \
                     asked"
                ))),
            },
            (None, None, Some(url)) => {
                if project.is_some() {
                    keystone.os_project_name = project;
                    keystone.os_project_id = None;
                }
                Ok(Self::Keystone(Box::new(Keystone::new(&url, keystone)?)))
            }
            (None, None, None) => Ok(Self::Nobody),
        }
    }

    /// Adds the credentials to a request.
    pub(crate) fn sign(&self, request: RequestBuilder) -> RequestBuilder {
        match self {
            Self::Nobody => request,
            Self::Token(token) => request.header("X-Auth-Token", token.expose_secret()),
            Self::Basic { user, password, project } => {
                let request = request.basic_auth(user, Some(password.expose_secret()));
                match project {
                    Some(project) => request.header("X-Project-Id", project),
                    None => request,
                }
            }
            Self::Keystone(keystone) => match keystone.token() {
                Some(token) => request.header("X-Auth-Token", token.expose_secret()),
                None => request,
            },
        }
    }

    /// Names the rejected credentials, if the service gives no details itself.
    pub(crate) fn explain(&self, error: ClientError) -> ClientError {
        match error {
            ClientError::Refused { status: 401, message, hint: None } if message == UNAUTHORIZED => {
                let (message, hint) = self.rejection();
                ClientError::Refused { status: 401, message, hint: Some(hint.to_owned()) }
            }
            error => error,
        }
    }

    fn rejection(&self) -> (String, &'static str) {
        match self {
            Self::Nobody => (
                "The service requires a login".to_owned(),
                "log in with --user (or ALLOT_USER), with --token, or at Keystone with --os-auth-url",
            ),
            Self::Token(_) => {
                ("The service rejects the token".to_owned(), "it is wrong or has expired: get a new one")
            }
            Self::Basic { user, project: None, .. } => (
                format!("The service rejects user {user} with this password"),
                "check the name and the password (--user, ALLOT_PASSWORD)",
            ),
            Self::Basic { user, project: Some(project), .. } => (
                format!("The service rejects user {user} with this password for project {project}"),
                "check the name, the password and whether the user has a role in the project (--project)",
            ),
            Self::Keystone(_) => {
                ("The service rejects the token from Keystone".to_owned(), "does it use the same Keystone?")
            }
        }
    }
}

/// A Keystone user and the current token.
#[derive(Debug)]
pub(crate) struct Keystone {
    /// URL for requesting tokens.
    url: String,
    arguments: KeystoneArguments,
    /// The password, or the secret of the application credential.
    secret: SecretString,
    token: Mutex<Option<SecretString>>,
}

/// Keystone's response to a request for a token, as far as it is used.
#[derive(Deserialize)]
struct Answer {
    token: Scope,
}

#[derive(Deserialize)]
struct Scope {
    #[serde(default)]
    catalog: Catalog,
}

impl Keystone {
    fn new(url: &str, arguments: KeystoneArguments) -> Result<Self, ClientError> {
        let missing = |what: &str| ClientError::Usage(format!("a login at Keystone also needs {what}"));
        let secret = if arguments.os_application_credential_id.is_some() {
            let secret = arguments.os_application_credential_secret.clone();
            secret.ok_or_else(|| missing("--os-application-credential-secret"))?
        } else {
            if arguments.os_username.is_none() && arguments.os_user_id.is_none() {
                return Err(missing("--os-username"));
            }
            let password = arguments.os_password.clone().ok_or_else(|| missing("--os-password"))?;
            if arguments.os_project_name.is_none() && arguments.os_project_id.is_none() {
                return Err(missing("--os-project-name"));
            }
            password
        };
        // Some openrc files have the URL with the version, some without.
        let base = url.trim_end_matches('/');
        let base = base.strip_suffix("/v3").unwrap_or(base);
        let url = format!("{base}/v3/auth/tokens");
        Ok(Self { url, arguments, secret, token: Mutex::default() })
    }

    /// URL of the list of the user's projects.
    pub(crate) fn projects_url(&self) -> String {
        format!("{}/projects", self.url.trim_end_matches("/tokens"))
    }

    fn token(&self) -> Option<SecretString> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gets a token. Returns the service's URL if the catalog has it.
    pub(crate) async fn log_in(&self, client: &Client) -> Result<Option<String>, ClientError> {
        let failed = |error: &reqwest::Error| ClientError::Unreachable {
            url: self.url.clone(),
            reason: innermost(error),
        };
        let request = client
            .post(&self.url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(self.request().to_string())
            .timeout(LIMIT);
        let answer = request.send().await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let token = answer.headers().get("X-Subject-Token").and_then(|token| token.to_str().ok());
        let token = token.map(SecretString::from);
        let body = answer.bytes().await.map_err(|error| failed(&error))?;
        if !status.is_success() {
            return Err(match refusal(status, &body, false) {
                ClientError::Refused { status: 401, message, .. } => {
                    let hint = "Keystone rejects the login: check user, password, project and domains";
                    ClientError::Refused { status: 401, message, hint: Some(hint.to_owned()) }
                }
                error => error,
            });
        }
        let nonsense =
            |reason: &str| ClientError::Nonsense { url: self.url.clone(), reason: reason.to_owned() };
        let token = token.ok_or_else(|| nonsense("it has no token"))?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| nonsense(&error.to_string()))?;
        Ok(self.address(&answer.token.catalog))
    }

    fn address(&self, catalog: &Catalog) -> Option<String> {
        let own = &self.arguments;
        let endpoint = catalog.endpoint(SERVICE, own.os_region_name.as_deref(), &own.os_interface);
        endpoint.map(|endpoint| endpoint.url.clone())
    }

    fn request(&self) -> Value {
        self.login().body(&self.secret)
    }

    fn login(&self) -> openstack::Login {
        let own = self.arguments.clone();
        let secret = Secret::Text(self.secret.clone());
        if let Some(id) = own.os_application_credential_id {
            return openstack::Login::ApplicationCredential { id, secret };
        }
        let domain = |name: String, id: Option<String>| id.map_or(Domain::Name(name), Domain::Id);
        let user_domain = domain(own.os_user_domain_name, own.os_user_domain_id);
        let user = own.os_username.unwrap_or_default();
        let user = own.os_user_id.map_or(User::Name(user, user_domain), User::Id);
        let project_domain = domain(own.os_project_domain_name, own.os_project_domain_id);
        let project = own.os_project_name.unwrap_or_default();
        let project = own.os_project_id.map_or(Project::Name(project, project_domain), Project::Id);
        openstack::Login::Password { user, password: secret, project }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        login: Arguments,
    }

    fn login(words: &str) -> Result<Login, ClientError> {
        let line = format!("allot {words}");
        Login::new(Line::parse_from(line.split(' ')).login)
    }

    fn keystone(words: &str) -> Keystone {
        match login(words).expect("all is there") {
            Login::Keystone(keystone) => *keystone,
            other => panic!("{other:?}"),
        }
    }

    const ANN: &str =
        "--os-auth-url http://k/identity/ --os-username ann --os-password secret --os-project-name physics";

    #[test]
    fn a_login_at_keystone_is_asked_for_as_keystone_reads_it() {
        let login = keystone(ANN);
        assert_eq!(login.url, "http://k/identity/v3/auth/tokens");
        let domain = json!({"name": "Default"});
        let user = json!({"name": "ann", "domain": domain, "password": "secret"});
        let wanted = json!({"auth": {
            "identity": {"methods": ["password"], "password": {"user": user}},
            "scope": {"project": {"name": "physics", "domain": domain}},
        }});
        assert_eq!(login.request(), wanted);
        let by_id = keystone(
            "--os-auth-url http://k/v3 --os-user-id 7 --os-password s --os-project-id 8 --os-region-name r",
        );
        assert_eq!(by_id.url, "http://k/v3/auth/tokens");
        assert_eq!(by_id.projects_url(), "http://k/v3/auth/projects");
        assert_eq!(by_id.request()["auth"]["scope"], json!({"project": {"id": "8"}}));
        // An application credential is tied to a project. It takes precedence over a user name, which the
        // shell can have set as well.
        let credential = keystone(
            "--os-auth-url http://k --os-application-credential-id c --os-application-credential-secret s --os-username a",
        );
        let credential = credential.request();
        let identity = json!({
            "methods": ["application_credential"], "application_credential": {"id": "c", "secret": "s"},
        });
        assert_eq!(credential, json!({"auth": {"identity": identity}}));
    }

    #[test]
    fn a_login_of_the_services_own_comes_before_one_at_keystone() {
        assert!(matches!(login(&format!("--token t {ANN}")), Ok(Login::Token(_))));
        assert!(matches!(login(&format!("--user bo --password p {ANN}")), Ok(Login::Basic { .. })));
        assert!(matches!(login("--token t --user bo"), Ok(Login::Token(_))));
        assert!(matches!(login("--os-username ann"), Ok(Login::Nobody)));
    }

    #[test]
    fn each_part_of_a_login_counts_as_one() {
        let is_given =
            |words: &str| Line::parse_from(format!("allot {words}").split_whitespace()).login.is_given();
        for words in ["--token t", "--user bo", "--password p", "--project physics", "--os-username ann"] {
            assert!(is_given(words), "{words}");
        }
        assert!(!is_given("") && !is_given("--os-region-name r"));
    }

    #[test]
    fn a_project_is_the_one_of_keystone_too() {
        let request = keystone(&format!("{ANN} --os-project-id 8 --project vision")).request();
        assert_eq!(request["auth"]["scope"]["project"]["name"], "vision");
    }

    #[test]
    fn what_is_missing_for_a_login_is_said() {
        for (given, missing) in [
            ("--user bo", "ALLOT_PASSWORD"),
            ("--os-auth-url u", "--os-username"),
            ("--os-auth-url u --os-username a", "--os-password"),
            ("--os-auth-url u --os-username a --os-password p", "--os-project-name"),
            ("--os-auth-url u --os-application-credential-id c", "--os-application-credential-secret"),
        ] {
            let error = login(given).expect_err(given).to_string();
            assert!(error.contains(missing), "{error}");
        }
    }

    #[test]
    fn the_service_is_where_the_catalogue_of_the_region_says() {
        let catalog = || {
            serde_json::from_value(json!([
                {"type": "identity", "endpoints": [{"interface": "public", "url": "http://no"}]},
                {"type": "reservation", "endpoints": [
                    {"interface": "internal", "region": "a", "url": "http://inside"},
                    {"interface": "public", "region": "a", "url": "http://a"},
                    {"interface": "public", "region": "b", "url": "http://b"},
                ]},
            ]))
            .expect("a catalogue")
        };
        let address = |more: &str| keystone(&format!("{ANN}{more}")).address(&catalog());
        assert_eq!(address("").as_deref(), Some("http://a"));
        assert_eq!(address(" --os-region-name b").as_deref(), Some("http://b"));
        assert_eq!(address(" --os-interface internal").as_deref(), Some("http://inside"));
        assert_eq!(address(" --os-region-name c"), None);
    }
}
