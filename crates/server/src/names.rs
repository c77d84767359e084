//! Names of users and projects, for display next to their identifiers. They are learned from requests since
//! the service started, and never affect decisions.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use api::v1::KnownNames;

use crate::auth::Identity;

/// Maximum number of users, and of projects, that are remembered.
const MOST: usize = 10_000;

/// Display names of users and projects, by identifier.
#[derive(Debug, Default)]
pub(crate) struct NameBook(RwLock<KnownNames>);

impl NameBook {
    /// Remembers the names in an authenticated identity.
    pub fn note(&self, identity: &Identity) {
        let Identity { user, project, names, .. } = identity;
        let is_news = |known: &KnownNames| {
            differs(&known.users, &user.0, &names.user)
                || differs(&known.projects, &project.0, &names.project)
        };
        // Most names are known already, so requests usually share the read lock.
        if is_news(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            enter(&mut known.users, &user.0, &names.user);
            enter(&mut known.projects, &project.0, &names.project);
        }
    }

    pub fn known(&self) -> KnownNames {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn differs(known: &BTreeMap<String, String>, id: &str, name: &str) -> bool {
    !name.is_empty() && known.get(id).is_none_or(|before| before != name)
}

fn enter(known: &mut BTreeMap<String, String>, id: &str, name: &str) {
    if !differs(known, id, name) {
        return;
    }
    // Any entry can go: it returns with the next request of its owner.
    if known.len() >= MOST && !known.contains_key(id) {
        known.pop_last();
    }
    known.insert(id.to_owned(), name.to_owned());
}

#[cfg(test)]
mod tests {
    use leases::project::{ProjectId, UserId};

    use super::*;
    use crate::auth::{Names, Roles};

    fn identity(user: &str, name: &str) -> Identity {
        Identity {
            user: UserId(user.to_owned()),
            project: ProjectId("p1".to_owned()),
            roles: Roles::new(["member"]),
            names: Names { user: name.to_owned(), project: String::new() },
        }
    }

    #[test]
    fn the_latest_name_counts_and_none_takes_nothing_away() {
        let names = NameBook::default();
        for name in ["ann", "anna", ""] {
            names.note(&identity("u1", name));
        }
        let known = names.known();
        assert_eq!(known.users, BTreeMap::from([("u1".to_owned(), "anna".to_owned())]));
        assert!(known.projects.is_empty(), "what has no name is not there");
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let names = NameBook::default();
        for number in 0..MOST + 10 {
            names.note(&identity(&format!("u{number}"), "x"));
        }
        let known = names.known();
        assert_eq!(known.users.len(), MOST);
        assert!(known.users.contains_key(&format!("u{}", MOST + 9)), "the latest is there");
    }
}
