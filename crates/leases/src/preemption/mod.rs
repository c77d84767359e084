//! Preemptible instances: which instances are, and how long they are to have their place at least (seed 004; spec §6).
//!
//! They run on hosts of the free pool between two leases. [`crate::admission`] gives them the host that nobody has for
//! longest, and [`crate::plan`] has them leave, with notice, before the next lease of their host starts.

use std::convert::Infallible;
use std::str::FromStr;

use jiff::SignedDuration;
use thiserror::Error;

use crate::project::ProjectId;

/// Projects by their identifiers, with `*` for anything and `?` for any character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPattern(Vec<char>);

impl FromStr for ProjectPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().chars().collect()))
    }
}

impl ProjectPattern {
    /// Whether the project is one of them.
    pub fn matches(&self, project: &ProjectId) -> bool {
        // So many characters of the name can be what the pattern has so far.
        let name: Vec<char> = project.0.chars().collect();
        let mut reached = vec![false; name.len() + 1];
        reached[0] = true;
        for wanted in &self.0 {
            if *wanted == '*' {
                let first = reached.iter().position(|reached| *reached).unwrap_or(name.len() + 1);
                reached.iter_mut().skip(first).for_each(|reached| *reached = true);
                continue;
            }
            for count in (1..reached.len()).rev() {
                reached[count] = reached[count - 1] && (*wanted == '?' || *wanted == name[count - 1]);
            }
            reached[0] = false;
        }
        reached.last() == Some(&true)
    }
}

/// What the operator has laid down about preemptible instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionRules {
    /// Whether there are any.
    pub allowed: bool,
    /// Projects whose instances are preemptible unless a request says otherwise.
    pub projects: Vec<ProjectPattern>,
    /// For how long one is to have its place at least, before it is asked to leave.
    pub least_lifetime: SignedDuration,
}

impl Default for PreemptionRules {
    /// None; ten minutes.
    fn default() -> Self {
        Self { allowed: false, projects: Vec::new(), least_lifetime: SignedDuration::from_mins(10) }
    }
}

/// Why an instance cannot be preemptible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotPreemptible {
    /// The operator does not allow it.
    #[error("Preemptible instances are not allowed here")]
    NotAllowed,
}

impl PreemptionRules {
    /// Whether an instance of that project is preemptible: as the request says, or else as the project is listed.
    pub fn makes_preemptible(
        &self,
        project: &ProjectId,
        asked: Option<bool>,
    ) -> Result<bool, NotPreemptible> {
        match (self.allowed, asked) {
            (false, Some(true)) => Err(NotPreemptible::NotAllowed),
            (false, _) => Ok(false),
            (true, Some(asked)) => Ok(asked),
            (true, None) => Ok(self.projects.iter().any(|pattern| pattern.matches(project))),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, project: &str) -> bool {
        let Ok(pattern) = pattern.parse::<ProjectPattern>();
        pattern.matches(&ProjectId(project.to_owned()))
    }

    #[test]
    fn pre_03_a_projects_are_listed_by_patterns() {
        for (pattern, project, expected) in [
            ("spot", "spot", true),
            ("spot", "spots", false),
            ("spot-*", "spot-ci", true),
            ("spot-*", "spot", false),
            ("*", "", true),
            ("*ci*", "a-ci-b", true),
            ("*ci", "ci-b", false),
            ("?", "ü", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, project), expected, "{pattern} {project}");
        }
    }

    #[test]
    fn pre_03_a_b_a_request_says_whether_it_is_or_its_project_does() {
        let Ok(listed) = "spot-*".parse();
        let mut rules =
            PreemptionRules { allowed: true, projects: vec![listed], ..PreemptionRules::default() };
        let (spot, other) = (ProjectId("spot-1".into()), ProjectId("web".into()));
        assert_eq!(rules.makes_preemptible(&spot, None), Ok(true));
        assert_eq!(rules.makes_preemptible(&spot, Some(false)), Ok(false), "it opts out");
        assert_eq!(rules.makes_preemptible(&other, None), Ok(false));
        assert_eq!(rules.makes_preemptible(&other, Some(true)), Ok(true));
        rules.allowed = false;
        assert_eq!(rules.makes_preemptible(&spot, None), Ok(false));
        assert_eq!(rules.makes_preemptible(&spot, Some(true)), Err(NotPreemptible::NotAllowed));
    }

    /// Whether they match, tried out.
    fn tried(pattern: &[char], name: &[char]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some(('*', rest)) => (0..=name.len()).any(|skipped| tried(rest, &name[skipped..])),
            Some((wanted, rest)) => name
                .split_first()
                .is_some_and(|(first, name)| (*wanted == '?' || wanted == first) && tried(rest, name)),
        }
    }

    proptest! {
        #[test]
        fn patterns_match_as_they_do_when_all_ways_are_tried(pattern in "[ab*?]{0,7}", name in "[ab]{0,7}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(matches(&pattern, &name), tried(&chars(&pattern), &chars(&name)));
        }
    }
}
