//! Who sends a request.
//!
//! An [`Authenticator`] knows callers by their credentials. There are five: everybody is the administrator
//! ([`open::Open`]), tokens from a file ([`tokens::Tokens`]), names and passwords ([`basic::Basic`]), tokens that the
//! service issues itself ([`local_keystone::LocalKeystone`]), and tokens of a cloud's Keystone ([`keystone::Keystone`]).
//! What a caller may do is [`crate::policy`]'s.

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

/// All that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    authenticators: Vec<Arc<dyn Authenticator>>,
    /// The local Keystone, if there is one: it has addresses of its own.
    pub local_keystone: Option<Arc<local_keystone::LocalKeystone>>,
    /// A cloud's Keystone, if its tokens are good here.
    pub keystone: Option<Arc<keystone::Keystone>>,
    /// Nobody is asked who they are.
    pub open: bool,
    /// A browser may ask for name and password.
    pub basic: bool,
    /// Sessions of the console.
    pub sessions: Arc<Sessions>,
    tokens: Option<Arc<tokens::Tokens>>,
    passwords: Option<Arc<passwords::Passwords>>,
}

/// What outlives a reload of files.
#[derive(Debug)]
pub(crate) struct Permanent {
    pub keyring: Arc<Keyring>,
    pub hashing: Arc<Hashing>,
    /// A cloud's Keystone and what it has said, if the settings name one.
    pub keystone: Option<Arc<keystone::Keystone>>,
}

impl Authentication {
    /// Of these settings; files are read now.
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
            // After the others: what they know is nothing to Keystone.
            this.authenticators.push(keystone.clone());
        }
        if this.authenticators.is_empty() { Err(ConfigError::NoMethod) } else { Ok(this) }
    }

    /// Who that is, if anybody knows; otherwise what is wrong with the credentials that there are.
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

    /// With what one can log in to the console.
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

    /// Who logs in, and how, by a request that has `credentials` beside.
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

    /// The first of these cookies with a valid session, and whose it is.
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

    /// Who has the session of that cookie, if it is valid: what it was begun with has to be so still.
    async fn of_session(&self, cookie: &SecretString, credentials: &Credentials) -> Result<Identity, Denial> {
        let session = self.sessions.open(cookie).await.ok_or(Denial::Absent)?;
        let identity = match &session.login {
            Login::Token(token) => {
                match self.authenticate(&credentials.with_token(token.clone())).await {
                    // It was valid once: there is no reason to suspect whoever has it.
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

    /// Users of the file, by identifier.
    pub fn users(&self) -> BTreeMap<&str, &users::User> {
        let users = self.passwords.iter().flat_map(|passwords| passwords.users().all());
        users.map(|user| (user.id(), user)).collect()
    }

    /// Tokens of the file, by hash.
    pub fn tokens(&self) -> BTreeMap<&[u8; 32], &Identity> {
        self.tokens.iter().flat_map(|tokens| tokens.all()).collect()
    }

    /// The projects that a user of the users' file has a role in.
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

/// Mistakes in the settings, and in each of the files that they name.
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

/// The users' file is read once for all methods that need it.
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
