//! Who callers are, and what knows them.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use leases::project::{ProjectId, UserId};

use super::credentials::Credentials;

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
