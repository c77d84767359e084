//! Who sends a request.
//!
//! An [`Authenticator`] knows callers by their credentials. There are five: everybody is the administrator
//! ([`open::Open`]), tokens from a file ([`tokens::Tokens`]), names and passwords ([`basic::Basic`]), tokens that the
//! service issues itself ([`local_keystone::LocalKeystone`]), and tokens of a cloud's Keystone ([`keystone::Keystone`]).
//! What a caller may do is [`crate::policy`]'s.

pub(crate) mod basic;
mod credentials;
mod failures;
mod file;
mod hash;
mod key_file;
mod keyring;
pub(crate) mod keystone;
pub(crate) mod local_keystone;
mod open;
mod passwords;
mod sessions;
mod tokens;
mod users;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};
use secrecy::SecretString;

pub use credentials::Credentials;
pub(crate) use failures::{Failures, shown};
pub use file::AuthFileError;
pub(crate) use hash::fingerprint;
pub use hash::{HashError, hash_password, hash_token};
pub(crate) use keyring::Keyring;
pub(crate) use open::says_local;
pub(crate) use passwords::Hashing;
pub(crate) use sessions::{Login, SessionError, Sessions};

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
    /// What people call them.
    pub names: Names,
}

/// Names beside identifiers, for people who read logs; nothing where none is known. Only identifiers decide anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The user's, with its domain unless that is `Default`.
    pub user: String,
    /// The project's, likewise.
    pub project: String,
}

/// Roles, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles(BTreeSet<String>);

/// Each is all that follow.
const IMPLIED: [&str; 4] = ["admin", "manager", "member", "reader"];

impl Roles {
    /// These and no others.
    pub fn exactly<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        Self(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()).collect())
    }

    /// These and those that they imply: an admin is a manager, a manager a member and a member a reader.
    pub fn new<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        let Self(mut roles) = Self::exactly(names);
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
    /// They are genuine and of no use, in words for the client.
    Told(&'static str),
    /// They are genuine and not for this request, in words for the client.
    Forbidden(&'static str),
    /// They were wrong too often, and are not looked at for that time.
    TooMany(Duration),
    /// Whoever knows cannot be asked; perhaps after that time.
    Unavailable(Duration),
}

impl Denial {
    /// Which of several is answered: the one that says most.
    fn weight(self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Wrong(_) => 1,
            Self::Told(_) => 2,
            Self::Forbidden(_) => 3,
            Self::TooMany(_) => 4,
            Self::Unavailable(_) => 5,
        }
    }
}

/// With what somebody tries to log in to the console.
#[derive(Clone, Debug)]
pub(crate) enum Attempt {
    /// With a token.
    Token(SecretString),
    /// With a password, for the project that is named or the usual one.
    Password {
        /// The user's name, unless the identifier is given.
        name: Option<String>,
        /// The user's identifier.
        id: Option<String>,
        /// The password.
        password: SecretString,
        /// The project.
        project: Option<String>,
    },
}

impl Attempt {
    /// The name or identifier that was given.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Token(_) => None,
            Self::Password { name, id, .. } => id.as_deref().or(name.as_deref()),
        }
    }
}

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
        let file_keys = config.token_key_file.as_deref().map(key_file::read).transpose()?.unwrap_or_default();
        let keyring = Arc::clone(&permanent.keyring);
        let sessions = Sessions::new(keyring, file_keys.clone(), config.session_lifetime_seconds);
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
            if this.local_keystone.is_some() {
                return Err(ConfigError::TwoKeystones);
            }
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

    /// Who has the session of that cookie, if it is valid: what it was begun with has to be so still.
    pub async fn of_session(
        &self,
        cookie: &SecretString,
        credentials: &Credentials,
    ) -> Result<Identity, Denial> {
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
    fn of_several_reasons_the_one_that_says_most_is_answered() {
        let wait = Duration::from_secs(1);
        let ordered = [
            Denial::Absent,
            Denial::Wrong("w"),
            Denial::Told("t"),
            Denial::Forbidden("f"),
            Denial::TooMany(wait),
            Denial::Unavailable(wait),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0].weight() < pair[1].weight()));
    }

    #[test]
    fn a_role_implies_those_below_it() {
        let names = |roles: &Roles| roles.names().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(names(&Roles::new(["Member", "x"])), ["member", "reader", "x"]);
        assert_eq!(names(&Roles::new(["reader"])), ["reader"]);
        assert!(Roles::new(["admin"]).has("Reader"));
        assert!(!Roles::new(["x"]).has("reader"));
    }
}
