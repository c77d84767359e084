//! Authentication and policy from the operator's files, which are read at startup and on reload.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::auth::{Authentication, Permanent};
use crate::config::Config;
use crate::config_error::ConfigError;
use crate::policy::{Policy, PolicyError};

/// Users, tokens and rules from the operator's files. A request uses one instance throughout, even if a
/// reload replaces it.
#[derive(Debug)]
pub(crate) struct Access {
    pub authentication: Authentication,
    pub policy: Policy,
}

/// Number of entries of a file that differ after a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub added: usize,
    pub removed: usize,
    pub changed: usize,
}

/// Effect of a reload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    pub users: Difference,
    pub tokens: Difference,
    pub rules: Difference,
    /// Whether new connections get another server certificate, or must present a client certificate from
    /// another authority.
    pub certificate: bool,
}

impl Difference {
    pub(crate) fn between<K: Ord, V: PartialEq>(old: &BTreeMap<K, V>, new: &BTreeMap<K, V>) -> Self {
        let added = new.keys().filter(|key| !old.contains_key(key)).count();
        let removed = old.keys().filter(|key| !new.contains_key(key)).count();
        let differs = |(key, value): &(&K, &V)| old.get(key).is_some_and(|old| old != *value);
        Self { added, removed, changed: new.iter().filter(differs).count() }
    }
}

impl Access {
    /// Reads the files named in the settings.
    pub fn read(config: &Config, permanent: &Permanent) -> Result<Self, ConfigError> {
        let policy = Self::policy(config)?;
        let authentication = Authentication::new(&config.auth, permanent)?;
        Ok(Self { authentication, policy })
    }

    /// Reads the policy file. Without one, returns the default policy.
    pub fn policy(config: &Config) -> Result<Policy, ConfigError> {
        match &config.policy_file {
            Some(path) => read_policy(path),
            None => Policy::new(None).map_err(|errors| ConfigError::Policy {
                path: PathBuf::from("default policy"),
                errors: errors.into_iter().map(|error| (None, error)).collect(),
            }),
        }
    }

    /// Logs warnings about questionable credentials in the files.
    pub fn warn(&self) {
        for reason in self.authentication.warnings(&|role| self.policy.names_role(role)) {
            tracing::warn!(reason, "questionable credentials");
        }
    }
}

fn read_policy(path: &Path) -> Result<Policy, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        setting: "policy_file",
        path: path.to_owned(),
        error,
    })?;
    Policy::new(Some(&text)).map_err(|errors| {
        let errors = errors.into_iter().map(|error| (line_of_rule(&text, &error), error));
        ConfigError::Policy { path: path.to_owned(), errors: errors.collect() }
    })
}

/// Line of the rule that the error is about, from 1. YAML errors already contain their line.
fn line_of_rule(text: &str, error: &PolicyError) -> Option<usize> {
    let rule = error.rule()?;
    let begins = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        line.strip_prefix(rule).is_some_and(|rest| !is_word(rest))
    };
    text.lines().position(begins).map(|position| position + 1)
}

/// Whether the rule's name continues in `rest`, so that the line has a longer name.
fn is_word(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':'))
        && !rest.starts_with(": ")
        && rest != ":"
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
        let wrong = error("ours: \"role:\"\nblazar:leases:put: rule:nosuch\nblazar:lease:get: \"@\"\n");
        let lines: Vec<&str> = wrong.lines().collect();
        for (number, rule) in [(1, "ours"), (2, "blazar:leases:put"), (3, "blazar:lease:get")] {
            let place = format!("{}, line {number}: ", path.display());
            let named = |line: &&str| line.starts_with(&place) && line.contains(&format!("\"{rule}\""));
            assert!(lines.iter().any(named), "{rule}: {wrong}");
        }
        assert_eq!(lines.len(), 3, "{wrong}");
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn differences_are_counted() {
        let old = BTreeMap::from([(1, "a"), (2, "b"), (3, "c")]);
        let new = BTreeMap::from([(2, "b"), (3, "x"), (4, "d"), (5, "e")]);
        assert_eq!(Difference::between(&old, &new), Difference { added: 2, removed: 1, changed: 1 });
    }
}
