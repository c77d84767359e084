//! Names of users and projects beside their identifiers, as requests have shown them since the service was started: for
//! people who read lists. Nothing is decided by them.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use api::v1::KnownNames;

use crate::auth::Identity;

/// So many users, and so many projects, are remembered.
const MOST: usize = 10_000;

/// What people call users and projects.
#[derive(Debug, Default)]
pub(crate) struct NameBook(RwLock<KnownNames>);

impl NameBook {
    /// Remembers what somebody who was let in is called.
    pub fn note(&self, identity: &Identity) {
        let Identity { user, project, names, .. } = identity;
        let is_news = |known: &KnownNames| {
            differs(&known.users, &user.0, &names.user)
                || differs(&known.projects, &project.0, &names.project)
        };
        // Nearly always it is known, and requests do not wait for each other.
        if is_news(&self.0.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            enter(&mut known.users, &user.0, &names.user);
            enter(&mut known.projects, &project.0, &names.project);
        }
    }

    /// All that is remembered.
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
    // Any of them may go: it comes back with its next request.
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
