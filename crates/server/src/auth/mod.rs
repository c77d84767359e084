//! Who sends a request.
//!
//! An [`Authenticator`] knows callers by their credentials. There are four: everybody is the administrator
//! ([`open::Open`]), tokens from a file ([`tokens::Tokens`]), names and passwords ([`basic::Basic`]), and tokens
//! of a small Keystone ([`keystone::Keystone`]). What a caller may do is [`crate::policy`]'s.

pub(crate) mod basic;
mod credentials;
mod file;
mod hash;
pub(crate) mod keystone;
mod open;
mod passwords;
mod tokens;
mod users;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

use ambient::{Clock, Ids};
use async_trait::async_trait;
use leases::project::{ProjectId, UserId};

pub use credentials::Credentials;
pub use file::AuthFileError;
pub(crate) use hash::fingerprint;
pub use hash::{HashError, hash_password, hash_token};
pub(crate) use open::says_local;

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

    /// All of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// What knows callers by their credentials.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// Who that is; nobody it knows if none.
    async fn authenticate(&self, credentials: &Credentials) -> Option<Identity>;
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
}

impl Authentication {
    /// Of these settings; files are read now.
    pub fn new(config: &AuthConfig, ids: &Arc<dyn Ids>, clock: &Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let mut this = Self { authenticators: Vec::new(), keystone: None, open: false, basic: false };
        let mut users = None;
        for method in &config.methods {
            match method {
                AuthMethod::None if config.methods.len() > 1 => return Err(ConfigError::NoneAmongOthers),
                AuthMethod::None => {
                    this.open = true;
                    this.authenticators.push(Arc::new(open::Open));
                }
                AuthMethod::Tokens => {
                    let path = named(config.tokens_file.as_ref(), "tokens", "tokens_file")?;
                    this.authenticators.push(Arc::new(tokens::Tokens::read(path)?));
                }
                AuthMethod::Basic => {
                    let users = shared_users(&mut users, config, "basic", ids)?;
                    this.basic = true;
                    this.authenticators.push(Arc::new(basic::Basic::new(users)));
                }
                AuthMethod::Keystone => {
                    let users = shared_users(&mut users, config, "keystone", ids)?;
                    let lifetime = config.token_lifetime_seconds;
                    let keystone =
                        keystone::Keystone::new(users, Arc::clone(ids), Arc::clone(clock), lifetime);
                    let keystone = Arc::new(keystone);
                    this.keystone = Some(Arc::clone(&keystone));
                    this.authenticators.push(keystone);
                }
            }
        }
        if this.authenticators.is_empty() { Err(ConfigError::NoMethod) } else { Ok(this) }
    }

    /// Who that is, if anybody knows.
    pub async fn authenticate(&self, credentials: &Credentials) -> Option<Identity> {
        for authenticator in &self.authenticators {
            if let Some(identity) = authenticator.authenticate(credentials).await {
                return Some(identity);
            }
        }
        None
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
    ids: &Arc<dyn Ids>,
) -> Result<Arc<passwords::Passwords>, ConfigError> {
    if let Some(users) = read {
        return Ok(Arc::clone(users));
    }
    let path = named(config.users_file.as_ref(), method, "users_file")?;
    let users = Arc::new(passwords::Passwords::new(users::Users::read(path)?, ids.as_ref())?);
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
