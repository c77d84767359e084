//! Authorization: named rules, each a check on the caller and the target of the call.
//!
//! Names, defaults and the rule language come from Blazar and oslo.policy (API-policy), so operators' policy
//! files work. A file is read once. A rule with a syntax error, or a `blazar:` rule that the service never
//! checks, is an error instead of a rule that silently never holds.

mod check;
mod defaults;
mod parse;

use std::collections::{BTreeMap, BTreeSet};

use serde_yaml_ng::Value as Yaml;
use thiserror::Error;

use self::check::Check;
pub use self::check::Target;
pub use self::defaults::Rule;
use crate::auth::identity::Identity;

/// Reason why a policy is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// The file is not a map from names to rules.
    #[error("not a map from names of rules to rules: {0}; correct this first, it can hide other mistakes")]
    Form(String),
    /// A rule is a number or a list.
    #[error("rule \"{0}\": write the rule as text")]
    NotText(String),
    /// A rule has a syntax error.
    #[error("rule \"{rule}\": {message} at character {position}")]
    Syntax {
        rule: String,
        message: String,
        /// Position of the character, counted from 1.
        position: usize,
    },
    /// A rule refers to a rule that doesn't exist.
    #[error("rule \"{rule}\" refers to rule \"{missing}\", which is not defined")]
    Undefined { rule: String, missing: String },
    /// A rule depends on itself.
    #[error("rule \"{0}\" refers to itself")]
    Circular(String),
    /// A name that looks like a rule of the service but isn't one.
    #[error("there is no rule \"{name}\"; did you mean \"{nearest}\"?")]
    Unknown {
        name: String,
        /// The most similar name of a rule, as a suggestion.
        nearest: String,
    },
}

impl PolicyError {
    /// The rule with the mistake, if it is in a rule.
    pub(crate) fn rule(&self) -> Option<&str> {
        match self {
            Self::Form(_) => None,
            Self::Syntax { rule, .. }
            | Self::Undefined { rule, .. }
            | Self::NotText(rule)
            | Self::Circular(rule)
            | Self::Unknown { name: rule, .. } => Some(rule),
        }
    }
}

/// Checks by name of their rule.
#[derive(Clone, Debug)]
pub struct Policy {
    checks: BTreeMap<String, Check>,
}

impl Policy {
    /// The default rules, overridden by the rules in the file (YAML), if any. The error lists all mistakes.
    pub fn new(file: Option<&str>) -> Result<Self, Vec<PolicyError>> {
        let mut texts: BTreeMap<String, String> =
            defaults::SHARED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        texts.extend(Rule::ALL.map(|rule| (rule.name().to_owned(), rule.default().to_owned())));
        let mut errors = Vec::new();
        if let Some(file) = file {
            for (name, rule) in read_file(file).map_err(|error| vec![error])? {
                errors.extend(unknown(&name));
                let text = if let Yaml::String(text) = rule {
                    text
                } else {
                    errors.push(PolicyError::NotText(name.clone()));
                    "!".to_owned()
                };
                texts.insert(name, text);
            }
        }
        let mut checks = BTreeMap::new();
        for (name, text) in texts {
            let check = parse::parse(&text).unwrap_or_else(|error| {
                let (message, position) = (error.message, error.position);
                errors.push(PolicyError::Syntax { rule: name.clone(), message, position });
                // The rule exists, so rules that refer to it aren't mistakes.
                Check::Never
            });
            checks.insert(name, check);
        }
        let policy = Self { checks };
        errors.extend(policy.undefined());
        if errors.is_empty() {
            policy.check_circles().map_err(|error| vec![error])?;
        }
        if errors.is_empty() { Ok(policy) } else { Err(errors) }
    }

    /// Rules by name, in a form that is only for comparison.
    pub(crate) fn rules(&self) -> BTreeMap<&str, String> {
        self.checks.iter().map(|(name, check)| (name.as_str(), format!("{check:?}"))).collect()
    }

    pub fn allows(&self, rule: Rule, caller: &Identity, target: &Target<'_>) -> bool {
        self.holds(rule.name(), caller, target)
    }

    /// Whether the caller is an administrator, who sees objects of all projects.
    pub fn is_admin(&self, caller: &Identity) -> bool {
        self.holds("admin", caller, &Target::caller(caller))
    }

    /// Whether a rule depends on the role.
    pub(crate) fn names_role(&self, role: &str) -> bool {
        self.checks.values().any(|check| check.names_role(role))
    }

    fn holds(&self, name: &str, caller: &Identity, target: &Target<'_>) -> bool {
        self.checks
            .get(name)
            .is_some_and(|check| check.holds(caller, target, &|name| self.holds(name, caller, target)))
    }

    /// References to rules that don't exist.
    fn undefined(&self) -> impl Iterator<Item = PolicyError> {
        self.checks.iter().flat_map(move |(name, check)| {
            let missing = check.references().into_iter();
            let missing = missing.filter(move |other| !self.checks.contains_key(*other));
            missing.map(move |other| PolicyError::Undefined { rule: name.clone(), missing: other.to_owned() })
        })
    }

    /// Rejects rules that depend on themselves.
    fn check_circles(&self) -> Result<(), PolicyError> {
        for name in self.checks.keys() {
            self.follow(name, &mut BTreeSet::new())?;
        }
        Ok(())
    }

    fn follow<'a>(&'a self, name: &'a str, above: &mut BTreeSet<&'a str>) -> Result<(), PolicyError> {
        let Some(check) = self.checks.get(name) else { return Ok(()) };
        if !above.insert(name) {
            return Err(PolicyError::Circular(name.to_owned()));
        }
        for other in check.references() {
            self.follow(other, above)?;
        }
        above.remove(name);
        Ok(())
    }
}

/// Blazar's rules for features that this service doesn't have. A file can include them.
const ELSEWHERE: [&str; 1] = ["blazar:plugins:get"];

fn read_file(file: &str) -> Result<BTreeMap<String, Yaml>, PolicyError> {
    // A file of comments only, such as the generated sample, changes nothing.
    let rules: Option<BTreeMap<String, Yaml>> =
        serde_yaml_ng::from_str(file).map_err(|error| PolicyError::Form(error.to_string()))?;
    Ok(rules.unwrap_or_default())
}

/// The error for a name that looks like one of the service's rules and isn't one.
fn unknown(name: &str) -> Option<PolicyError> {
    let known = !name.starts_with("blazar:")
        || Rule::ALL.iter().any(|rule| rule.name() == name)
        || ELSEWHERE.contains(&name);
    let error =
        || PolicyError::Unknown { name: name.to_owned(), nearest: defaults::nearest(name).name().to_owned() };
    (!known).then(error)
}

#[cfg(test)]
mod tests {
    use leases::project::{ProjectId, UserId};
    use leases::text::lines;

    use super::*;
    use crate::auth::identity::{Names, Roles};

    fn caller(roles: &[&str], project: &str) -> Identity {
        Identity {
            user: UserId("u".into()),
            project: ProjectId(project.into()),
            roles: Roles::new(roles),
            names: Names::default(),
        }
    }

    /// For each role, the projects in which the rule allows access to an object of project `p`.
    fn row(policy: &Policy, rule: Rule) -> String {
        let owner = (ProjectId("p".into()), UserId("u".into()));
        let target = Target { project: &owner.0, user: &owner.1 };
        let allowed = |roles: &[&str], project| policy.allows(rule, &caller(roles, project), &target);
        let word = |role| match (allowed(&[role], "p"), allowed(&[role], "q")) {
            (true, true) => "everywhere",
            (true, false) => "own",
            (false, false) => "no",
            (false, true) => "foreign",
        };
        format!("{} {} {} {}", word("admin"), word("member"), word("reader"), word("other"))
    }

    #[test]
    fn the_default_policy_is_this_matrix() {
        let policy = Policy::new(None).expect("the defaults are well formed");
        let matrix: Vec<_> = Rule::ALL.map(|rule| (rule.name(), row(&policy, rule))).into_iter().collect();
        let (reader, member, admin) =
            ("everywhere own own no", "everywhere own no no", "everywhere no no no");
        let expected = [
            ("blazar:leases:get", reader),
            ("blazar:leases:post", member),
            ("blazar:leases:put", member),
            ("blazar:leases:delete", member),
            ("blazar:leases:extra_specs", admin),
            ("blazar:oshosts:get", admin),
            ("blazar:oshosts:post", admin),
            ("blazar:oshosts:put", admin),
            ("blazar:oshosts:delete", admin),
            ("blazar:oshosts:get_allocations", admin),
            ("blazar:oshosts:get_resource_properties", reader),
            ("blazar:oshosts:update_resource_properties", admin),
            ("blazar:freepools:get", admin),
            ("blazar:freepools:post", admin),
            ("blazar:freepools:put", admin),
            ("blazar:freepools:delete", admin),
            ("blazar:leasepools:get", reader),
            ("blazar:leasepools:post", member),
            ("blazar:leasepools:put", member),
            ("blazar:leasepools:delete", member),
            ("blazar:floatingips:get", reader),
            ("blazar:floatingips:post", admin),
            ("blazar:floatingips:delete", admin),
            ("blazar:flavors:get", reader),
            ("blazar:flavors:post", admin),
            ("blazar:flavors:put", admin),
            ("blazar:flavors:delete", admin),
            ("blazar:instances:get", reader),
            ("blazar:instances:post", member),
            ("blazar:instances:start", member),
            ("blazar:instances:delete", member),
            ("blazar:instances:filter", admin),
            ("blazar:vendordata:post", admin),
            ("blazar:preemptible_projects:get", admin),
            ("blazar:preemptible_projects:put", admin),
            ("blazar:preemptible_projects:delete", admin),
            ("blazar:notifications:get", reader),
            ("blazar:audit:get", admin),
            ("blazar:usage:get", reader),
            ("blazar:capacity:get", reader),
            ("blazar:availability:get", reader),
            ("blazar:calendar:get", reader),
            ("blazar:calendar:get_names", admin),
            ("blazar:placement:post", member),
            ("blazar:placement:clusters", admin),
            ("blazar:placement:fleet", admin),
            ("blazar:energy:get", admin),
            ("blazar:maintenance:post", admin),
            ("blazar:drift:get", admin),
            ("blazar:drift:repair", admin),
            ("blazar:settings:get", admin),
            ("blazar:names:get", admin),
        ];
        let expected: Vec<_> = expected.map(|(name, row)| (name, row.to_owned())).into_iter().collect();
        assert_eq!(matrix, expected);
    }

    #[test]
    fn a_file_changes_the_rules_that_it_names_and_no_others() {
        let file = "# users may see the calendar\n\
                    \"blazar:oshosts:get\": \"rule:project_reader_or_admin\"\n\
                    blazar:oshosts:get_allocations: role:reader\n\
                    blazar:leases:delete: \"!\"\n";
        let policy = Policy::new(Some(file)).expect("well formed");
        assert_eq!(row(&policy, Rule::HostsGet), "everywhere own own no");
        assert_eq!(row(&policy, Rule::HostsGetAllocations), "everywhere everywhere everywhere no");
        assert_eq!(row(&policy, Rule::LeasesDelete), "no no no no");
        assert_eq!(row(&policy, Rule::HostsPost), "everywhere no no no");
    }

    #[test]
    fn a_rule_may_combine_others() {
        let file = "mine: user_id:%(user_id)s and project_id:%(project_id)s\n\
                    blazar:leases:put: (rule:mine and not role:reader) or rule:admin\n\
                    blazar:leases:get: \"\"\n\
                    blazar:leases:post: \"@\"\n";
        let policy = Policy::new(Some(file)).expect("well formed");
        assert_eq!(row(&policy, Rule::LeasesPut), "everywhere no no own");
        assert_eq!(row(&policy, Rule::LeasesGet), "everywhere everywhere everywhere everywhere");
        assert_eq!(row(&policy, Rule::LeasesPost), "everywhere everywhere everywhere everywhere");
    }

    #[test]
    fn a_rule_that_cannot_work_is_refused() {
        let error = |file| lines(&Policy::new(Some(file)).expect_err("wrong"));
        assert_eq!(
            error("blazar:leases:get: role:admin or\n"),
            "rule \"blazar:leases:get\": a check is missing at character 14"
        );
        assert_eq!(
            error("blazar:leases:get: rule:nosuch\n"),
            "rule \"blazar:leases:get\" refers to rule \"nosuch\", which is not defined"
        );
        assert_eq!(error("a: rule:b\nb: rule:a\n"), "rule \"a\" refers to itself");
        assert_eq!(
            error("blazar:lease:get: \"@\"\n"),
            "there is no rule \"blazar:lease:get\"; did you mean \"blazar:leases:get\"?"
        );
        assert_eq!(
            error("a: [1]\nblazar:leases:get: \"role:\"\n"),
            "rule \"a\": write the rule as text\nrule \"blazar:leases:get\": role: has no value at character 1"
        );
        assert!(error("a: [\n").contains("correct this first"), "{}", error("a: [\n"));
        assert!(error("a: colour:red\n").contains("colour"));
    }

    #[test]
    fn roles_of_all_rules_are_known() {
        let policy = Policy::new(Some("blazar:audit:get: rule:admin or not (role:Auditor and role:b)\n"));
        let policy = policy.expect("well formed");
        assert!(["auditor", "b", "admin"].into_iter().all(|role| policy.names_role(role)));
        assert!(!policy.names_role("auditors"));
    }

    #[test]
    fn a_file_of_comments_changes_nothing() {
        let policy = Policy::new(Some("# nothing\n")).expect("well formed");
        assert_eq!(row(&policy, Rule::LeasesGet), "everywhere own own no");
    }
}
