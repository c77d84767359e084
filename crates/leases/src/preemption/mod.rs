//! Preemptible instances: which instances are preemptible, and their guaranteed minimum lifetime (PRE).
//!
//! They run on hosts of the free pool between two leases. [`crate::admission`] places them on the host that
//! stays unleased for longest, and [`crate::plan`] makes them leave, with notice, before the next lease of
//! their host starts.

mod class;
mod victims;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use jiff::SignedDuration;
use thiserror::Error;

pub use self::class::{Class, ClassError, EndState};
pub(crate) use self::victims::victims_within;
pub use self::victims::{Candidate, victims};
use crate::project::ProjectId;
use crate::text::Quoted;

/// A pattern for project identifiers: `*` matches any text, `?` any character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPattern(Vec<char>);

impl FromStr for ProjectPattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().chars().collect()))
    }
}

impl fmt::Display for ProjectPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|character| write!(f, "{character}"))
    }
}

impl ProjectPattern {
    pub fn matches(&self, project: &ProjectId) -> bool {
        // `reached[n]`: the part of the pattern read so far matches the first n characters of the name.
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

/// Property of flavors, images and volumes that marks instances made from them as preemptible or not.
pub const PROPERTY: &str = "blazar:preemptible";

/// Part of a request that can mark the instance as preemptible or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The scheduler hint.
    Hint,
    /// The flavor's [property](PROPERTY).
    Flavor,
    /// The image's property.
    Image,
    /// A volume's property.
    Volume,
}

impl Mark {
    pub const ALL: [Self; 4] = [Self::Hint, Self::Flavor, Self::Image, Self::Volume];

    /// The name: `hint`, `flavor`, `image` or `volume`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Flavor => "flavor",
            Self::Image => "image",
            Self::Volume => "volume",
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mark {
    type Err = UnknownMark;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mark| mark.name() == name.trim()).ok_or(UnknownMark)
    }
}

/// Error for an unknown name of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("marks of preemptible instances are hint, flavor, image and volume")]
pub struct UnknownMark;

/// Each mark in a request, with its value: preemptible or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked(pub Vec<(Mark, bool)>);

impl Marked {
    /// The first mark with this value.
    fn by(&self, answer: bool) -> Option<Mark> {
        self.0.iter().find(|(_, says)| *says == answer).map(|(mark, _)| *mark)
    }

    /// Rejects marks that would make an instance in a lease preemptible.
    pub fn in_lease(&self) -> Result<(), NotPreemptible> {
        self.by(true).map_or(Ok(()), |mark| Err(NotPreemptible::InLease(mark)))
    }
}

/// Operator settings for preemptible instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionRules {
    /// Whether preemptible instances are allowed.
    pub allowed: bool,
    /// Projects whose instances are preemptible by default. Marks in a request take precedence.
    pub projects: Vec<ProjectPattern>,
    /// Marks that can make an instance preemptible.
    pub marks: BTreeSet<Mark>,
    /// Minimum time an instance has its place before it is asked to leave.
    pub least_lifetime: SignedDuration,
    /// Available classes.
    pub classes: Vec<Class>,
}

impl Default for PreemptionRules {
    /// Not allowed. If the operator allows preemptible instances, any mark is accepted and the minimum
    /// lifetime is ten minutes.
    fn default() -> Self {
        let (projects, marks) = (Vec::new(), Mark::ALL.into());
        let least_lifetime = SignedDuration::from_mins(10);
        Self { allowed: false, projects, marks, least_lifetime, classes: Vec::new() }
    }
}

/// Reason why an instance can't be preemptible, or not in the requested way.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotPreemptible {
    /// The operator doesn't allow preemptible instances.
    #[error("Preemptible instances are not allowed here")]
    NotAllowed,
    /// The operator doesn't allow this mark.
    #[error("The instance's {0} makes it preemptible, which is not allowed here")]
    MarkNotAllowed(Mark),
    /// Two marks disagree.
    #[error("The instance's {yes} makes it preemptible, and its {no} says that it is not")]
    Contradiction {
        /// A mark that makes it preemptible.
        yes: Mark,
        /// A mark that doesn't.
        no: Mark,
    },
    /// Unknown class.
    #[error("There is no class '{}' of preemptible instances; {}", Quoted(.name), there_are(.known))]
    NoSuchClass {
        /// The requested class.
        name: String,
        /// Names of the classes that exist.
        known: Vec<String>,
    },
    /// A class was given for an instance that isn't preemptible.
    #[error("An instance of class '{}' is preemptible, and this one is not", Quoted(.0))]
    NotOfClass(String),
    /// Instances in leases are never preempted.
    #[error("The instance's {0} makes it preemptible, which it cannot be in a lease")]
    InLease(Mark),
}

fn there_are(known: &[String]) -> String {
    if known.is_empty() { "there are none".to_owned() } else { format!("there are: {}", known.join(", ")) }
}

impl PreemptionRules {
    pub fn class(&self, name: &str) -> Result<&Class, NotPreemptible> {
        self.classes.iter().find(|class| class.name() == name).ok_or_else(|| NotPreemptible::NoSuchClass {
            name: name.to_owned(),
            known: self.classes.iter().map(|class| class.name().to_owned()).collect(),
        })
    }

    /// Whether an instance of the project, outside leases, is preemptible. Marks in the request decide;
    /// without any, the project's presence in `self.projects` or `others` does.
    pub fn makes_preemptible<'p>(
        &'p self,
        project: &ProjectId,
        marked: &Marked,
        others: impl IntoIterator<Item = &'p ProjectPattern>,
    ) -> Result<bool, NotPreemptible> {
        let mut listed = self.projects.iter().chain(others);
        match (marked.by(true), marked.by(false)) {
            (Some(_), _) if !self.allowed => Err(NotPreemptible::NotAllowed),
            (Some(yes), Some(no)) => Err(NotPreemptible::Contradiction { yes, no }),
            (Some(mark), None) if !self.marks.contains(&mark) => Err(NotPreemptible::MarkNotAllowed(mark)),
            (Some(_), None) => Ok(true),
            (None, Some(_)) => Ok(false),
            (None, None) => Ok(self.allowed && listed.any(|pattern| pattern.matches(project))),
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

    fn decide(rules: &PreemptionRules, project: &ProjectId, marked: &Marked) -> Result<bool, NotPreemptible> {
        rules.makes_preemptible(project, marked, [])
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
        let hint = |says| Marked(vec![(Mark::Hint, says)]);
        assert_eq!(decide(&rules, &spot, &Marked::default()), Ok(true));
        assert_eq!(decide(&rules, &spot, &hint(false)), Ok(false), "it opts out");
        assert_eq!(decide(&rules, &other, &Marked::default()), Ok(false));
        let Ok(more) = "w?b".parse::<ProjectPattern>();
        assert_eq!(rules.makes_preemptible(&other, &Marked::default(), [&more]), Ok(true), "{more}");
        assert_eq!(more.to_string(), "w?b");
        assert_eq!(decide(&rules, &other, &hint(true)), Ok(true));
        rules.allowed = false;
        assert_eq!(decide(&rules, &spot, &Marked::default()), Ok(false));
        assert_eq!(decide(&rules, &spot, &hint(true)), Err(NotPreemptible::NotAllowed));
    }

    #[test]
    fn pre_03_b_c_d_the_operator_says_what_may_mark_an_instance_and_marks_must_agree() {
        let mut rules = PreemptionRules { allowed: true, ..PreemptionRules::default() };
        let project = ProjectId("web".into());
        for mark in Mark::ALL {
            let marked = Marked(vec![(mark, true)]);
            assert_eq!(decide(&rules, &project, &marked), Ok(true));
            assert_eq!(marked.in_lease(), Err(NotPreemptible::InLease(mark)));
            rules.marks.remove(&mark);
            assert_eq!(decide(&rules, &project, &marked), Err(NotPreemptible::MarkNotAllowed(mark)));
            assert_eq!(decide(&rules, &project, &Marked(vec![(mark, false)])), Ok(false));
            assert_eq!(mark.name().parse(), Ok(mark));
        }
        let both = Marked(vec![(Mark::Hint, false), (Mark::Flavor, true)]);
        let contradiction = NotPreemptible::Contradiction { yes: Mark::Flavor, no: Mark::Hint };
        assert_eq!(decide(&rules, &project, &both), Err(contradiction), "a cheap flavor is one that yields");
        assert_eq!("server".parse::<Mark>(), Err(UnknownMark));
    }

    /// Reference implementation: whether they match, by trying every way.
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
