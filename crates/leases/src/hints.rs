//! Scheduler hints of a lease (CLS-11): where its hosts are to be, and how its instances are to be spread over
//! them. A lease is made with them and keeps them: nothing changes them.
//!
//! What hosts must be like beside that is a reservation's business ([`crate::properties`]); which hints the operator
//! allows, and when they are too strict, is in [`HintRules`].

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use crate::host::Host;
use crate::ids::{HostId, LeaseId};
use crate::requirement::Requirement;

/// How many names or leases a hint may have. Each is compared with each host.
pub const MAX_NAMED: usize = 500;

/// A hint, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// Hosts match an expression, as `JsonFilter` has it.
    Query,
    /// Hosts are among those that are named.
    Host,
    /// Hosts are among those that other leases of the project have.
    SameHost,
    /// Hosts are none of those that other leases of the project have.
    DifferentHost,
    /// The hosts of a reservation are in one place, or each is in another.
    Location,
    /// How instances in the lease are spread over its hosts.
    Group,
}

impl Hint {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Query, Self::Host, Self::SameHost, Self::DifferentHost, Self::Location, Self::Group];

    /// Its name in requests: Nova's, where Nova has it.
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

    /// The hint of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.name() == name)
    }

    /// Those that it cannot be given together with: both would say which hosts to take.
    pub fn excludes(self) -> &'static [Self] {
        match self {
            Self::Host => &[Self::SameHost],
            Self::SameHost => &[Self::Host],
            _ => &[],
        }
    }

    /// Whether it is for leases of whole hosts alone. Reservations of instances have an `affinity` of their own.
    pub fn needs_whole_hosts(self) -> bool {
        matches!(self, Self::Location | Self::Group)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Other leases, and the hosts that they had when the hint was given: what becomes of them later does not count.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OtherLeases {
    /// The leases.
    pub leases: BTreeSet<LeaseId>,
    /// Their hosts.
    pub hosts: BTreeSet<HostId>,
}

/// Where the hosts of a reservation are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// All in one place.
    Same,
    /// Each in another.
    Different,
}

impl Location {
    const NAMES: [(Self, &'static str); 2] = [(Self::Same, "same"), (Self::Different, "different")];

    /// All values, by name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(_, name)| name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Different => "different",
        }
    }

    /// The value of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(value, _)| value)
    }
}

/// How the instances of a lease are spread over its hosts: the policies of Nova's server groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupPolicy {
    /// All on one host.
    Affinity,
    /// Each on a host of its own.
    AntiAffinity,
    /// On one host as long as there is room.
    SoftAffinity,
    /// Each on a host of its own as long as there are any.
    SoftAntiAffinity,
}

impl GroupPolicy {
    const NAMES: [(Self, &'static str); 4] = [
        (Self::Affinity, "affinity"),
        (Self::AntiAffinity, "anti-affinity"),
        (Self::SoftAffinity, "soft-affinity"),
        (Self::SoftAntiAffinity, "soft-anti-affinity"),
    ];

    /// All values, by name.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().map(|(_, name)| name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(value, _)| *value == self).map_or("", |(_, name)| name)
    }

    /// The value of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(value, _)| value)
    }

    /// Whether another host will do if none is as wanted.
    pub fn soft(self) -> bool {
        matches!(self, Self::SoftAffinity | Self::SoftAntiAffinity)
    }

    /// Whether instances are to be together.
    pub fn together(self) -> bool {
        matches!(self, Self::Affinity | Self::SoftAffinity)
    }
}

/// The hints of a lease. What is absent is not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Hints {
    /// What each host must match.
    pub query: Requirement,
    /// Names of hosts that will do; all, if there are none.
    pub hosts: BTreeSet<String>,
    /// Hosts that these have will do.
    pub same_host: Option<OtherLeases>,
    /// Hosts that these have will not do.
    pub different_host: Option<OtherLeases>,
    /// Where the hosts of a reservation are to each other.
    pub location: Option<Location>,
    /// How instances are spread.
    pub group: Option<GroupPolicy>,
}

impl Hints {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Which are given.
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

    /// The hint that the host is against, looked at by itself, the query apart. `location` is the property that says
    /// where hosts are: of one that has none nobody knows where it is.
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

    /// The properties of hosts that they rely on, so that one in use is not changed under a lease.
    pub fn names<'a>(&'a self, rules: &'a HintRules) -> BTreeSet<&'a str> {
        let mut names = self.query.names();
        names.extend(self.location.map(|_| rules.location.as_str()));
        names
    }
}

/// Where a host is, if that is known.
pub(crate) fn place<'a>(host: &'a Host, location: &str) -> Option<Cow<'a, str>> {
    host.property(location).filter(|place| !place.is_empty())
}

/// Operator settings about hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HintRules {
    /// Those that may be given.
    pub enabled: BTreeSet<Hint>,
    /// The property of hosts that says where they are.
    pub location: String,
    /// Hints that fewer hosts match than this are too strict.
    pub least_hosts: u32,
    /// Whether a lease may name a single host.
    pub single_host: bool,
}

impl Default for HintRules {
    /// All hints, however strict; places are racks.
    fn default() -> Self {
        Self {
            enabled: Hint::ALL.into_iter().collect(),
            location: "rack".to_owned(),
            least_hosts: 0,
            single_host: true,
        }
    }
}

/// What is wrong with hints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// The operator does not allow it.
    #[error("The hint {0} is not supported here: the operator has left it out")]
    LeftOut(Hint),
    /// Two that do not go together.
    #[error("The hints {0} and {1} cannot be given together")]
    Together(Hint, Hint),
    /// It means nothing for what is asked for.
    #[error("The hint {hint} is for leases of {wanted}")]
    Meaningless {
        /// Which.
        hint: Hint,
        /// What it is for.
        wanted: &'static str,
    },
    /// Fewer hosts match than the operator wants.
    #[error("The hints are too strict: {matching} host(s) match them, and at least {least} have to")]
    TooStrict {
        /// How many match.
        matching: usize,
        /// How many have to.
        least: u32,
    },
    /// A single host is named.
    #[error("The hints are too strict: a lease cannot name a single host here")]
    SingleHost,
}

/// Where an instance is to be, beside what its lease's hints say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InstanceHints {
    /// On one of these, if any are given.
    pub on: Option<BTreeSet<HostId>>,
    /// On none of these.
    pub not_on: BTreeSet<HostId>,
}

impl InstanceHints {
    /// Whether the host will do.
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
