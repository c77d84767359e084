//! Node groups.

use crate::policy::Policy;

/// Whether new instances may be placed in a group; the order is the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllocPolicy {
    /// Used first.
    Preferred,
    /// Used when no preferred group has room.
    LastResort,
    /// Never chosen, unless a request names the group.
    Unallocable,
}

impl AllocPolicy {
    /// All policies in order of preference.
    pub const ALL: [Self; 3] = [Self::Preferred, Self::LastResort, Self::Unallocable];

    /// The name used in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preferred => "preferred",
            Self::LastResort => "last_resort",
            Self::Unallocable => "unallocable",
        }
    }

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// A node group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The group's name.
    pub name: String,
    /// The group's UUID; any string.
    pub uuid: String,
    /// Whether new instances may be placed here.
    pub alloc_policy: AllocPolicy,
    /// The group's tags, as loaded.
    pub tags: Vec<String>,
    /// UUIDs of the networks that the group is connected to.
    pub networks: Vec<String>,
    /// The group's instance policy.
    pub policy: Policy,
}

impl Group {
    /// A group that new instances may join, under the default policy; the caller fills in what it knows.
    pub fn new(name: impl Into<String>, uuid: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            uuid: uuid.into(),
            alloc_policy: AllocPolicy::Preferred,
            tags: Vec::new(),
            networks: Vec::new(),
            policy: Policy::default(),
        }
    }
}
