//! Who may come in, and who may do what, as the operator's files say: read when the service starts, and again when
//! it is told to.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::app::App;
use crate::auth::{Authentication, Permanent};
use crate::config::{Config, ConfigError};
use crate::policy::Policy;
use crate::serve::{Certificates, tls_config};

/// All that is read from files of users, tokens and rules. A request goes by one of these from its beginning to its
/// end.
#[derive(Debug)]
pub(crate) struct Access {
    pub authentication: Authentication,
    pub policy: Policy,
}

/// How many entries of a file are others than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// That were not there.
    pub added: usize,
    /// That are no longer there.
    pub removed: usize,
    /// That say something else.
    pub changed: usize,
}

/// What became another by a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Users of the users' file.
    pub users: Difference,
    /// Tokens of the tokens' file.
    pub tokens: Difference,
    /// Rules of the policy.
    pub rules: Difference,
    /// Whether new connections get another certificate, or are asked for one of another authority.
    pub certificate: bool,
}

impl Difference {
    fn between<K: Ord, V: PartialEq>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Self {
        let added = new.keys().filter(|key| !old.contains_key(key)).count();
        let removed = old.keys().filter(|key| !new.contains_key(key)).count();
        let differs = |(key, value): &(&K, &V)| old.get(key).is_some_and(|old| old != *value);
        Self { added, removed, changed: new.iter().filter(differs).count() }
    }
}

impl Access {
    /// Reads the files that the settings name.
    pub fn read(config: &Config, permanent: &Permanent) -> Result<Self, ConfigError> {
        let policy = match &config.policy_file {
            None => Policy::new(None)?,
            Some(path) => read_policy(path)?,
        };
        let authentication = Authentication::new(&config.auth, permanent)?;
        Ok(Self { authentication, policy })
    }

    /// Says in the log what is questionable in the files.
    pub fn warn(&self) {
        for reason in self.authentication.warnings() {
            tracing::warn!(reason, "questionable credentials");
        }
    }
}

fn read_policy(path: &Path) -> Result<Policy, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::PolicyFile { path: path.to_owned(), error })?;
    Policy::new(Some(&text)).map_err(|error| {
        // Errors of YAML have their line; the others have a rule, which begins one.
        let begins = |line: &&str| {
            let line = line.trim_start_matches(['"', '\'']);
            error.rule().is_some_and(|rule| line.strip_prefix(rule).is_some_and(|rest| !is_word(rest)))
        };
        let line = text.lines().zip(1..).find(|(line, _)| begins(line)).map(|(_, number)| number);
        ConfigError::PolicyIn { path: path.to_owned(), line, error }
    })
}

/// Whether a name goes on there.
fn is_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'))
        && !rest.starts_with(": ")
        && rest != ":"
}

impl App {
    /// Reads users, tokens, rules and certificates again. If any of it cannot be used, all stays as it was. Reads
    /// files, so it is for a thread that may wait.
    ///
    /// Requests that have begun go by what was before, connections that are open go on.
    pub fn reload(&self) -> Result<Reloaded, ConfigError> {
        let inner = &self.inner;
        // Of two reloads, the later one reads later.
        let _turn = inner.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Access::read(&inner.config, &inner.permanent)?;
        let tls = match (inner.certificates.get(), &inner.config.tls) {
            (Some(serving), Some(files)) => Some((serving, tls_config(files)?)),
            _ => None,
        };
        let old = self.access();
        let rules = Difference::between(&old.policy.rules(), &new.policy.rules());
        let (then, now) = (&old.authentication, &new.authentication);
        let users = Difference::between(&then.users(), &now.users());
        let tokens = Difference::between(&then.tokens(), &now.tokens());
        new.warn();
        // From here on nothing can fail.
        let certificate = tls.is_some_and(|(serving, new)| Certificates::replace(serving, new));
        *inner.access.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        Ok(Reloaded { users, tokens, rules, certificate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_rule_is_named_with_its_file_and_line() {
        let path = std::env::temp_dir().join(format!("allot-policy-{}.yaml", std::process::id()));
        let error = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            read_policy(&path).expect_err("wrong").to_string()
        };
        let wrong = error("# rules\n\"blazar:leases:get\": \"@\"\nblazar:leases:post: \"role:\"\n");
        assert!(wrong.starts_with(&format!("{}, line 3: ", path.display())), "{wrong}");
        let wrong = error("a: rule:b\n\"ab\": rule:c\n");
        assert!(wrong.starts_with(&format!("{}, line 1: ", path.display())), "{wrong}");
        let wrong = error("a: [1]\n");
        assert!(wrong.contains("line 1"), "{wrong}");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn differences_are_counted() {
        let old = BTreeMap::from([(1, "a"), (2, "b"), (3, "c")]);
        let new = BTreeMap::from([(2, "b"), (3, "x"), (4, "d"), (5, "e")]);
        assert_eq!(Difference::between(&old, &new), Difference { added: 2, removed: 1, changed: 1 });
    }
}
