//! Authentication of requests.
//!
//! An [`Authenticator`] identifies callers by their credentials. There are five: none, where every caller is
//! the administrator ([`open::Open`]), tokens from a file ([`tokens::Tokens`]), user names with passwords
//! ([`basic::Basic`]), tokens that the service issues itself ([`local_keystone::LocalKeystone`]), and tokens
//! of a cloud's Keystone ([`keystone::Keystone`]). Authorization is in [`crate::policy`].

pub(crate) mod basic;
mod credentials;
mod failures;
pub(crate) mod file;
mod hash;
pub(crate) mod identity;
mod key_file;
mod keyring;
pub(crate) mod keystone;
pub(crate) mod local_keystone;
mod open;
mod passwords;
mod sessions;
mod tokens;
mod users;
mod users_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leases::project::UserId;
use secrecy::SecretString;

pub(crate) use credentials::Attempt;
pub use credentials::Credentials;
pub(crate) use failures::{Failures, shown};
pub use file::AuthFileError;
pub(crate) use hash::fingerprint;
pub use hash::{HashError, hash_password, hash_token};
pub use identity::{Authenticator, Denial, Identity, Names, Roles};
pub(crate) use keyring::Keyring;
pub(crate) use open::says_local;
pub(crate) use passwords::Hashing;
pub(crate) use sessions::{Login, SessionError, Sessions};
pub use users_file::{UsersFile, UsersFileError};

use crate::config::{AuthConfig, AuthMethod};
use crate::config_error::ConfigError;

/// The configured authentication methods.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    authenticators: Vec<Arc<dyn Authenticator>>,
    /// Set for the method `local-keystone`, which has routes of its own.
    pub local_keystone: Option<Arc<local_keystone::LocalKeystone>>,
    /// Set for the method `keystone`.
    pub keystone: Option<Arc<keystone::Keystone>>,
    /// Authentication is off.
    pub open: bool,
    /// Browsers can ask for a user name and a password.
    pub basic: bool,
    /// Console sessions.
    pub sessions: Arc<Sessions>,
    tokens: Option<Arc<tokens::Tokens>>,
    passwords: Option<Arc<passwords::Passwords>>,
}

/// State that a reload of the files keeps.
#[derive(Debug)]
pub(crate) struct Permanent {
    pub keyring: Arc<Keyring>,
    pub hashing: Arc<Hashing>,
    /// A cloud's Keystone with its cache of tokens, if configured.
    pub keystone: Option<Arc<keystone::Keystone>>,
}

impl Authentication {
    /// Reads the files of the configured methods.
    pub fn new(config: &AuthConfig, permanent: &Permanent) -> Result<Self, ConfigError> {
        check_methods(&config.methods)?;
        let file_keys = file_keys(config)?;
        let keyring = Arc::clone(&permanent.keyring);
        let sessions = Sessions::new(keyring, file_keys.clone(), config.session_lifetime);
        let mut this = Self {
            authenticators: Vec::new(),
            local_keystone: None,
            keystone: None,
            sessions: Arc::new(sessions),
            open: false,
            basic: false,
            tokens: None,
            passwords: None,
        };
        for method in &config.methods {
            match method {
                AuthMethod::None => {
                    this.open = true;
                    this.authenticators.push(Arc::new(open::Open));
                }
                AuthMethod::Tokens => {
                    let path = named(config.tokens_file.as_ref(), "tokens", "tokens_file")?;
                    let tokens = Arc::new(read_tokens(path)?);
                    this.tokens = Some(Arc::clone(&tokens));
                    this.authenticators.push(tokens);
                }
                AuthMethod::Basic => {
                    let users = shared_users(&mut this.passwords, config, "basic", &permanent.hashing)?;
                    this.basic = true;
                    this.authenticators.push(Arc::new(basic::Basic::new(users)));
                }
                AuthMethod::LocalKeystone => {
                    let users =
                        shared_users(&mut this.passwords, config, "local-keystone", &permanent.hashing)?;
                    let (keyring, keys) = (Arc::clone(&permanent.keyring), file_keys.clone());
                    let keystone = Arc::new(local_keystone::LocalKeystone::new(users, keyring, keys));
                    this.local_keystone = Some(Arc::clone(&keystone));
                    this.authenticators.push(keystone);
                }
                AuthMethod::Keystone => {
                    let keystone = permanent.keystone.as_ref().ok_or(ConfigError::KeystoneNotNamed)?;
                    this.keystone = Some(Arc::clone(keystone));
                }
            }
        }
        if let Some(keystone) = &this.keystone {
            // Keystone comes last: it doesn't know the tokens of the other methods.
            this.authenticators.push(keystone.clone());
        }
        if this.authenticators.is_empty() { Err(ConfigError::NoMethod) } else { Ok(this) }
    }

    /// Tries all methods in order. If none accepts the credentials, returns the most informative denial.
    pub async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let mut denial = Denial::Absent;
        for authenticator in &self.authenticators {
            match authenticator.authenticate(credentials).await {
                Ok(identity) => return Ok(identity),
                Err(other) if other.weight() >= denial.weight() => denial = other,
                Err(_) => {}
            }
        }
        Err(denial)
    }

    /// Credentials for logging in to the console: `none`, `token` or `password`.
    pub fn logins(&self) -> &'static [&'static str] {
        let keystone = self.keystone.is_some() || self.local_keystone.is_some();
        let token = self.tokens.is_some() || keystone;
        match (self.open, token, self.passwords.is_some()) {
            (true, ..) => &["none"],
            (_, true, true) => &["token", "password"],
            (_, true, false) => &["token"],
            (_, false, true) => &["password"],
            (_, false, false) => &[],
        }
    }

    /// Instructions to log in, if requests with a password are never accepted.
    pub fn instead_of_password(&self) -> Option<&'static str> {
        if self.basic || self.open {
            None
        } else if self.local_keystone.is_some() {
            Some(
                "This service takes passwords only for tokens: log in with --os-auth-url and the path /identity/v3 of this \
                 service, --os-username and --os-password.",
            )
        } else if self.keystone.is_some() {
            Some("This service takes no passwords: log in at the cloud's Keystone with --os-auth-url.")
        } else {
            Some("This service takes no passwords: log in with a token (--token).")
        }
    }

    /// Logs in to the console. `credentials` are those of the request that has the login in its body.
    pub async fn log_in(
        &self,
        attempt: &Attempt,
        credentials: &Credentials,
    ) -> Result<(Identity, Login), Denial> {
        match attempt {
            Attempt::Token(token) => {
                let identity = self.authenticate(&credentials.with_token(token.clone())).await?;
                Ok((identity, Login::Token(token.clone())))
            }
            Attempt::Password { name, id, password, project } => {
                let passwords = self.passwords.as_ref().ok_or(Denial::Wrong("no passwords here"))?;
                let user =
                    passwords.check(name.as_deref(), id.as_deref(), password, credentials.peer).await?;
                let identity = user.identity(project.as_deref());
                let identity = identity.ok_or(Denial::Wrong("no role in the project"))?;
                let entry = user.entry(&identity.project);
                Ok((identity, Login::Password { entry }))
            }
        }
    }

    /// Finds the first cookie with a valid session, and the session's owner.
    pub async fn of_sessions(
        &self,
        cookies: Vec<SecretString>,
        credentials: &Credentials,
    ) -> Result<(Identity, SecretString), Denial> {
        let mut denied = Denial::Absent;
        for cookie in cookies {
            match self.of_session(&cookie, credentials).await {
                Ok(identity) => return Ok((identity, cookie)),
                Err(Denial::Absent) => {}
                Err(denial) => denied = denial,
            }
        }
        Err(denied)
    }

    /// Owner of the cookie's session. The session is valid only while the credentials of its login are.
    async fn of_session(&self, cookie: &SecretString, credentials: &Credentials) -> Result<Identity, Denial> {
        let session = self.sessions.open(cookie).await.ok_or(Denial::Absent)?;
        let identity = match &session.login {
            Login::Token(token) => {
                match self.authenticate(&credentials.with_token(token.clone())).await {
                    // The token was valid at login, so its rejection isn't treated as a failed login.
                    Err(Denial::Wrong(_) | Denial::Told(_)) => return Err(Denial::Absent),
                    found => found?,
                }
            }
            Login::Password { entry } => {
                let users = self.passwords.as_ref().map(|passwords| passwords.users());
                let user = users.and_then(|users| users.find(None, Some(&session.user.0)));
                let identity = user.and_then(|user| user.identity(Some(&session.project.0)));
                let same = user.is_some_and(|user| user.entry(&session.project) == *entry);
                identity.filter(|_| same).ok_or(Denial::Absent)?
            }
        };
        let same = identity.user == session.user && identity.project == session.project;
        if same { Ok(identity) } else { Err(Denial::Absent) }
    }

    /// Users of the users' file by identifier.
    pub fn users(&self) -> BTreeMap<&str, &users::User> {
        let users = self.passwords.iter().flat_map(|passwords| passwords.users().all());
        users.map(|user| (user.id(), user)).collect()
    }

    /// Tokens of the tokens' file by hash.
    pub fn tokens(&self) -> BTreeMap<&[u8; 32], &Identity> {
        self.tokens.iter().flat_map(|tokens| tokens.all()).collect()
    }

    /// Projects in which a user of the users' file has a role. `None` for other users.
    pub fn projects_of(&self, user: &UserId) -> Option<Vec<String>> {
        let user = self.passwords.as_ref()?.users().find(None, Some(&user.0))?;
        let with_role = user.projects.iter().filter(|(_, roles)| !roles.is_empty());
        Some(with_role.map(|(project, _)| project.clone()).collect())
    }

    /// Warnings about the files, with their places. `is_named` says whether a rule names a role.
    pub fn warnings(&self, is_named: &dyn Fn(&str) -> bool) -> Vec<String> {
        let users = self.passwords.iter().flat_map(|passwords| passwords.users().warnings());
        let tokens = self.tokens.iter().flat_map(|tokens| tokens.warnings());
        users.chain(tokens).filter_map(|warning| warning.text(is_named)).collect()
    }
}

/// Errors in the settings, and in the files that they name.
pub(crate) fn mistakes(config: &AuthConfig) -> Vec<ConfigError> {
    let files = [
        file_keys(config).err(),
        config.tokens_file.as_deref().and_then(|path| read_tokens(path).err()),
        config.users_file.as_deref().and_then(|path| read_users(path).err()),
    ];
    check_methods(&config.methods).err().into_iter().chain(files.into_iter().flatten()).collect()
}

/// Warnings about the files that the settings name. `is_named` says whether a rule names a role.
pub(crate) fn warnings(config: &AuthConfig, is_named: &dyn Fn(&str) -> bool) -> Vec<String> {
    let tokens = config.tokens_file.as_deref().and_then(|path| read_tokens(path).ok());
    let users = config.users_file.as_deref().and_then(|path| read_users(path).ok());
    let of_tokens = tokens.iter().flat_map(tokens::Tokens::warnings);
    let of_users = users.iter().flat_map(users::Users::warnings);
    of_users.chain(of_tokens).filter_map(|warning| warning.text(is_named)).collect()
}

fn check_methods(methods: &[AuthMethod]) -> Result<(), ConfigError> {
    if methods.contains(&AuthMethod::None) && methods.len() > 1 {
        return Err(ConfigError::NoneAmongOthers);
    }
    if methods.contains(&AuthMethod::Keystone) && methods.contains(&AuthMethod::LocalKeystone) {
        return Err(ConfigError::TwoKeystones);
    }
    Ok(())
}

fn file_keys(config: &AuthConfig) -> Result<Vec<key_file::FileKey>, ConfigError> {
    let keys = config.token_key_file.as_deref().map(key_file::read).transpose();
    Ok(keys.map_err(|error| ConfigError::for_file("token_key_file", error))?.unwrap_or_default())
}

fn read_tokens(path: &Path) -> Result<tokens::Tokens, ConfigError> {
    tokens::Tokens::read(path).map_err(|error| ConfigError::for_file("auth", error))
}

fn read_users(path: &Path) -> Result<users::Users, ConfigError> {
    users::Users::read(path).map_err(|error| ConfigError::for_file("auth", error))
}

fn named<'a>(
    path: Option<&'a PathBuf>,
    method: &'static str,
    setting: &'static str,
) -> Result<&'a Path, ConfigError> {
    path.map(PathBuf::as_path).ok_or(ConfigError::FileNotNamed { method, setting })
}

/// Reads the users' file once for all methods that need it.
fn shared_users(
    read: &mut Option<Arc<passwords::Passwords>>,
    config: &AuthConfig,
    method: &'static str,
    hashing: &Arc<Hashing>,
) -> Result<Arc<passwords::Passwords>, ConfigError> {
    if let Some(users) = read {
        return Ok(Arc::clone(users));
    }
    let path = named(config.users_file.as_ref(), method, "users_file")?;
    let users = Arc::new(passwords::Passwords::new(read_users(path)?, Arc::clone(hashing)));
    *read = Some(Arc::clone(&users));
    Ok(users)
}
