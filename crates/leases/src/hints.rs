//! Scheduler hints of a lease (CLS-11): the location of its hosts, and the distribution of its instances over
//! them. Hints are set when a lease is created and never change.
//!
//! Other requirements on hosts belong to reservations ([`crate::properties`]). [`HintRules`] holds the
//! operator's settings: which hints are allowed, and when they are too strict.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::host::Host;
use crate::ids::{HostId, LeaseId};
use crate::requirement::Requirement;

/// Maximum number of names or leases in a hint. Each is compared with each host.
pub const MAX_NAMED: usize = 500;

/// Kind of a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// Hosts must match an expression in the syntax of `JsonFilter`.
    Query,
    /// Hosts must be among the named ones.
    Host,
    /// Hosts must belong to other leases of the project.
    SameHost,
    /// Hosts must not belong to other leases of the project.
    DifferentHost,
    /// The hosts of a reservation must be in the same place, or all in different places.
    Location,
    /// Distribution of the lease's instances over its hosts.
    Group,
}

impl Hint {
    pub const ALL: [Self; 6] =
        [Self::Query, Self::Host, Self::SameHost, Self::DifferentHost, Self::Location, Self::Group];

    /// Name in requests: Nova's, if Nova has the hint.
    pub fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Host => "host",
            Self::SameHost => "same_host",
            Self::DifferentHost => "different_host",
            Self::Location => "location",
            Self::Group => "group",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.name() == name)
    }

    /// Hints that conflict with this one, because both would select the hosts.
    pub fn excludes(self) -> &'static [Self] {
        match self {
            Self::Host => &[Self::SameHost],
            Self::SameHost => &[Self::Host],
            _ => &[],
        }
    }

    /// Whether the hint is only for leases of whole hosts. Reservations of instances have their own
    /// `affinity`.
    pub fn needs_whole_hosts(self) -> bool {
        matches!(self, Self::Location | Self::Group)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Other leases, with their hosts at the time of the request. Later changes to those leases don't count.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OtherLeases {
    pub leases: BTreeSet<LeaseId>,
    pub hosts: BTreeSet<HostId>,
}

/// Location of a reservation's hosts relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// All in the same place.
    Same,
    /// Each in a different place.
    Different,
}

impl Location {
    const NAMES: [(Self, &'static str); 2] = [(Self::Same, "same"), (Self::Different, "different")];

    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(_, name)| name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(value, _)| value)
    }
}

/// Distribution of a lease's instances over its hosts: the policies of Nova's server groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupPolicy {
    /// All on the same host.
    Affinity,
    /// Each on a different host.
    AntiAffinity,
    /// On the same host while it has capacity.
    SoftAffinity,
    /// Each on a different host while there are any left.
    SoftAntiAffinity,
}

impl GroupPolicy {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Affinity, "affinity"),
        (Self::AntiAffinity, "anti-affinity"),
        (Self::SoftAffinity, "soft-affinity"),
        (Self::SoftAntiAffinity, "soft-anti-affinity"),
    ];

    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(_, name)| name)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(value, _)| value)
    }

    /// Whether other hosts are acceptable if no host satisfies the policy.
    pub fn soft(self) -> bool {
        matches!(self, Self::SoftAffinity | Self::SoftAntiAffinity)
    }

    /// Whether the policy keeps instances on the same host.
    pub fn together(self) -> bool {
        matches!(self, Self::Affinity | Self::SoftAffinity)
    }
}

/// Hints of a lease. Absent hints impose no condition.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hints {
    /// Expression that each host must match.
    pub query: Requirement,
    /// Names of acceptable hosts; empty means all.
    pub hosts: BTreeSet<String>,
    /// Only hosts of these leases are acceptable.
    pub same_host: Option<OtherLeases>,
    /// Hosts of these leases aren't acceptable.
    pub different_host: Option<OtherLeases>,
    pub location: Option<Location>,
    pub group: Option<GroupPolicy>,
}

impl Hints {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Hints that are set.
    pub fn given(&self) -> impl Iterator<Item = Hint> {
        let given = |hint: &Hint| match hint {
            Hint::Query => self.query != Requirement::NONE,
            Hint::Host => !self.hosts.is_empty(),
            Hint::SameHost => self.same_host.is_some(),
            Hint::DifferentHost => self.different_host.is_some(),
            Hint::Location => self.location.is_some(),
            Hint::Group => self.group.is_some(),
        };
        Hint::ALL.into_iter().filter(given)
    }

    /// First hint that the host violates on its own; doesn't check the query. `location` is the property with
    /// a host's place. A host without it violates any location hint, because its place is unknown.
    pub(crate) fn against(&self, host: &Host, location: &str) -> Option<Hint> {
        let named = self.hosts.is_empty() || self.hosts.contains(&host.name);
        let same = self.same_host.as_ref().is_none_or(|others| others.hosts.contains(&host.id));
        let different = self.different_host.as_ref().is_none_or(|others| !others.hosts.contains(&host.id));
        let located = self.location.is_none() || place(host, location).is_some();
        let checks = [
            (named, Hint::Host),
            (same, Hint::SameHost),
            (different, Hint::DifferentHost),
            (located, Hint::Location),
        ];
        checks.into_iter().find(|(as_wanted, _)| !as_wanted).map(|(_, hint)| hint)
    }

    /// Properties of hosts that the hints refer to. A property in use by a lease must not change.
    pub fn names<'a>(&'a self, rules: &'a HintRules) -> BTreeSet<&'a str> {
        let mut names = self.query.names();
        names.extend(self.location.map(|_| rules.location.as_str()));
        names
    }
}

/// Place of the host; `None` if unknown or empty.
pub(crate) fn place<'a>(host: &'a Host, location: &str) -> Option<Cow<'a, str>> {
    host.property(location).filter(|place| !place.is_empty())
}

/// Operator settings for hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintRules {
    /// Allowed hints.
    pub enabled: BTreeSet<Hint>,
    /// Host property with the host's place.
    pub location: String,
    /// Minimum number of hosts that must match a lease's hints.
    pub least_hosts: u32,
    /// Whether a lease can name a single host.
    pub single_host: bool,
}

impl Default for HintRules {
    /// Allows all hints, however strict. Places are racks.
    fn default() -> Self {
        Self {
            enabled: Hint::ALL.into_iter().collect(),
            location: "rack".to_owned(),
            least_hosts: 0,
            single_host: true,
        }
    }
}

/// Invalid or disallowed hints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// Disabled by the operator.
    #[error("The hint {0} is not supported here: the operator has left it out")]
    LeftOut(Hint),
    #[error("The hints {0} and {1} cannot be given together")]
    Together(Hint, Hint),
    /// The hint doesn't apply to this type of resource.
    #[error("The hint {hint} is for leases of {wanted}")]
    Meaningless {
        hint: Hint,
        /// Type of resource that the hint is for.
        wanted: &'static str,
    },
    /// Fewer hosts match than the operator requires.
    #[error("The hints are too strict: {matching} host(s) match them, and at least {least} have to")]
    TooStrict { matching: usize, least: u32 },
    /// Names a single host, which the operator disallows.
    #[error("The hints are too strict: a lease cannot name a single host here")]
    SingleHost,
}

/// Conditions on an instance's host, in addition to the hints of its lease.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InstanceHints {
    /// Acceptable hosts; `None` means all.
    pub on: Option<BTreeSet<HostId>>,
    /// Excluded hosts.
    pub not_on: BTreeSet<HostId>,
}

impl InstanceHints {
    pub fn allow(&self, host: HostId) -> bool {
        self.on.as_ref().is_none_or(|on| on.contains(&host)) && !self.not_on.contains(&host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;

    #[test]
    fn hints_and_their_values_are_found_by_their_names() {
        for hint in Hint::ALL {
            assert_eq!(Hint::from_name(hint.name()), Some(hint));
            assert!(hint.excludes().iter().all(|other| other.excludes().contains(&hint)));
        }
        for name in Location::names() {
            assert_eq!(Location::from_name(name).map(Location::name), Some(name));
        }
        for name in GroupPolicy::names() {
            assert_eq!(GroupPolicy::from_name(name).map(GroupPolicy::name), Some(name));
        }
        assert_eq!(Hint::from_name("same_hosts"), None);
    }

    #[test]
    fn cls_11_a_a_host_is_against_the_hint_that_it_does_not_match() {
        let others = || Some(OtherLeases { hosts: [HostId(1)].into(), ..OtherLeases::default() });
        let mut racked = host(1);
        racked.capabilities.insert("rack".into(), "r1".into());
        let named = Hints { hosts: ["node1".to_owned()].into(), ..Hints::default() };
        let same = Hints { same_host: others(), ..Hints::default() };
        let different = Hints { different_host: others(), ..Hints::default() };
        let located = Hints { location: Some(Location::Same), ..Hints::default() };
        for (hints, against) in [
            (named, [None, Some(Hint::Host)]),
            (same, [None, Some(Hint::SameHost)]),
            (different, [Some(Hint::DifferentHost), None]),
            (located, [None, Some(Hint::Location)]),
        ] {
            assert_eq!([&racked, &host(2)].map(|host| hints.against(host, "rack")), against, "{hints:?}");
        }
    }
}
