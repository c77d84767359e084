//! Identities of callers, and the trait of authentication methods.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};

use super::credentials::Credentials;

/// The sender of a request: a user in a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub user: UserId,
    pub project: ProjectId,
    /// The user's roles in the project.
    pub roles: Roles,
    pub names: Names,
}

/// Display names for logs. An unknown name is empty. Decisions use only identifiers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Followed by the domain, unless that is `Default`.
    pub user: String,
    /// Followed by the domain, unless that is `Default`.
    pub project: String,
}

/// Role names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles(BTreeSet<String>);

/// Each role implies those after it.
const IMPLIED: [&str; 4] = ["admin", "manager", "member", "reader"];

impl Roles {
    /// Exactly these roles, without implied ones.
    pub fn exactly<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        Self(names.into_iter().map(|name| name.as_ref().to_ascii_lowercase()).collect())
    }

    /// These roles and the roles that they imply: admin implies manager, manager implies member, and member
    /// implies reader.
    pub fn new<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Self {
        let Self(mut roles) = Self::exactly(names);
        if let Some(highest) = IMPLIED.iter().position(|role| roles.contains(*role)) {
            roles.extend(IMPLIED[highest..].iter().map(ToString::to_string));
        }
        Self(roles)
    }

    /// Whether the set includes a role. Case-insensitive.
    pub fn has(&self, role: &str) -> bool {
        self.0.contains(&role.to_ascii_lowercase())
    }

    /// Roles that no built-in rule uses and that imply nothing: misspelled, or meant for a rule of the
    /// operator's.
    pub(crate) fn unknown<T: AsRef<str>>(names: &[T]) -> Vec<&str> {
        let known = |name: &&str| IMPLIED.iter().any(|role| role.eq_ignore_ascii_case(name));
        names.iter().map(AsRef::as_ref).filter(|name| !known(name)).collect()
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

/// An authentication method.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// Identifies the caller.
    ///
    /// # Errors
    /// The reason if this method doesn't accept the credentials.
    async fn authenticate(&self, credentials: &Credentials) -> Result<Identity, Denial>;
}

/// Reason to reject credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The request has no credentials of this kind.
    Absent,
    /// Invalid credentials. The reason is logged and not sent to the client.
    Wrong(&'static str),
    /// Genuine but unusable credentials. The reason is sent to the client.
    Told(&'static str),
    /// Genuine credentials that don't allow this request. The reason is sent to the client.
    Forbidden(&'static str),
    /// Not checked, because of too many failures or waiting requests. The client can retry after the
    /// duration.
    TooMany(Duration),
    /// Keystone can't be reached. The client can retry after the duration.
    Unavailable(Duration),
}

impl Denial {
    /// Rank of a denial. If all methods reject a request, the most informative denial is reported.
    pub(super) fn weight(self) -> u8 {
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
