//! Who sends a request.
//!
//! An [`Authenticator`] knows callers by their credentials. There are four: everybody is the administrator
//! ([`open::Open`]), tokens from a file ([`tokens::Tokens`]), names and passwords ([`basic::Basic`]), and tokens
//! of a small Keystone ([`keystone::Keystone`]). What a caller may do is [`crate::policy`]'s.

pub(crate) mod basic;
mod credentials;
mod failures;
mod file;
mod hash;
mod key_file;
mod keyring;
pub(crate) mod keystone;
mod open;
mod passwords;
mod tokens;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};

pub use credentials::Credentials;
pub(crate) use failures::{Failures, shown};
pub use file::AuthFileError;
pub(crate) use hash::fingerprint;
pub use hash::{HashError, hash_password, hash_token};
pub(crate) use keyring::Keyring;
pub(crate) use open::says_local;
pub(crate) use passwords::Hashing;

use crate::config::{AuthConfig, AuthMethod, ConfigError};

/// Who sends a request, and for which project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub user: UserId,
    /// The project.
    pub project: ProjectId,
    /// The user's roles in the project.
    pub roles: Roles,
}

/// Roles, in lower case. An admin is a manager, a manager a member and a member a reader, as Keystone implies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles(BTreeSet<String>);

/// Each is all that follow.
const IMPLIED: [&str; 4] = ["admin", "manager", "member", "reader"];

impl Roles {
    /// These and those that they imply.
    pub fn new<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        let mut roles: BTreeSet<String> =
            names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()).collect();
        if let Some(highest) = IMPLIED.iter().position(|role| roles.contains(*role)) {
            roles.extend(IMPLIED[highest..].iter().map(ToString::to_string));
        }
        Self(roles)
    }

    /// Whether this is one of them; upper and lower case are alike.
    pub fn has(&self, role: &str) -> bool {
        self.0.contains(&role.to_ascii_lowercase())
    }

    /// Those of a file that no rule of ours names, and that imply nothing: misspelt, or for a rule of the operator's.
    pub(crate) fn unknown<T: AsRef<str>>(names: &[T]) -> Vec<&str> {
        let known = |name: &&str| IMPLIED.iter().any(|role| role.eq_ignore_ascii_case(name));
        names.iter().map(AsRef::as_ref).filter(|name| !known(name)).collect()
    }

    /// All of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// What knows callers by their credentials.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// Who that is, or why it is nobody that it knows.
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial>;
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The request has no credentials of this kind.
    Absent,
    /// They are wrong, in words for the log. The client is not told.
    Wrong(&'static str),
    /// They were wrong too often, and are not looked at for that time.
    TooMany(Duration),
}

/// All that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    authenticators: Vec<Arc<dyn Authenticator>>,
    /// The small Keystone, if there is one: it has addresses of its own.
    pub keystone: Option<Arc<keystone::Keystone>>,
    /// Nobody is asked who they are.
    pub open: bool,
    /// A browser may ask for name and password.
    pub basic: bool,
    tokens: Option<Arc<tokens::Tokens>>,
    passwords: Option<Arc<passwords::Passwords>>,
}

/// What outlives a reload of files.
#[derive(Debug)]
pub(crate) struct Permanent {
    pub keyring: Arc<Keyring>,
    pub hashing: Arc<Hashing>,
}

impl Authentication {
    /// Of these settings; files are read now.
    pub fn new(config: &AuthConfig, permanent: &Permanent) -> Result<Self, ConfigError> {
        let mut this = Self {
            authenticators: Vec::new(),
            keystone: None,
            open: false,
            basic: false,
            tokens: None,
            passwords: None,
        };
        for method in &config.methods {
            match method {
                AuthMethod::None if config.methods.len() > 1 => return Err(ConfigError::NoneAmongOthers),
                AuthMethod::None => {
                    this.open = true;
                    this.authenticators.push(Arc::new(open::Open));
                }
                AuthMethod::Tokens => {
                    let path = named(config.tokens_file.as_ref(), "tokens", "tokens_file")?;
                    let tokens = Arc::new(tokens::Tokens::read(path)?);
                    this.tokens = Some(Arc::clone(&tokens));
                    this.authenticators.push(tokens);
                }
                AuthMethod::Basic => {
                    let users = shared_users(&mut this.passwords, config, "basic", &permanent.hashing)?;
                    this.basic = true;
                    this.authenticators.push(Arc::new(basic::Basic::new(users)));
                }
                AuthMethod::Keystone => {
                    let users = shared_users(&mut this.passwords, config, "keystone", &permanent.hashing)?;
                    let keys = config.token_key_file.as_deref().map(key_file::read).transpose()?;
                    let keys = keys.unwrap_or_default();
                    let keystone =
                        Arc::new(keystone::Keystone::new(users, Arc::clone(&permanent.keyring), keys));
                    this.keystone = Some(Arc::clone(&keystone));
                    this.authenticators.push(keystone);
                }
            }
        }
        if this.authenticators.is_empty() { Err(ConfigError::NoMethod) } else { Ok(this) }
    }

    /// Who that is, if anybody knows; otherwise what is wrong with the credentials that there are.
    pub async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial> {
        let mut denial = Denial::Absent;
        for authenticator in &self.authenticators {
            match authenticator.authenticate(credentials).await {
                Ok(identity) => return Ok(identity),
                Err(Denial::Absent) => {}
                Err(other) => denial = other,
            }
        }
        Err(denial)
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

    /// What is questionable in the files, with its place.
    pub fn warnings(&self) -> Vec<String> {
        let users = self.passwords.iter().flat_map(|passwords| passwords.users().warnings());
        let tokens = self.tokens.iter().flat_map(|tokens| tokens.warnings());
        users.chain(tokens).cloned().collect()
    }
}

fn named<'a>(
    path: Option<&'a std::path::PathBuf>,
    method: &'static str,
    setting: &'static str,
) -> Result<&'a std::path::Path, ConfigError> {
    path.map(std::path::PathBuf::as_path).ok_or(ConfigError::FileNotNamed { method, setting })
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
    let users = Arc::new(passwords::Passwords::new(users::Users::read(path)?, Arc::clone(hashing)));
    *read = Some(Arc::clone(&users));
    Ok(users)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_implies_those_below_it() {
        let names = |roles: &Roles| roles.names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names(&Roles::new(["Member", "x"])), ["member", "reader", "x"]);
        assert_eq!(names(&Roles::new(["reader"])), ["reader"]);
        assert!(Roles::new(["admin"]).has("Reader"));
        assert!(!Roles::new(["x"]).has("reader"));
    }
}
