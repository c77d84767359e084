//! Node groups and their allocation policies.

use crate::policy::Policy;

/// Whether new instances can be placed in a group. The order is the order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AllocPolicy {
    Preferred,
    /// Used if no preferred group has capacity.
    LastResort,
    /// Used only if a request names the group.
    Unallocable,
}

impl AllocPolicy {
    pub const ALL: [Self; 3] = [Self::Preferred, Self::LastResort, Self::Unallocable];

    /// The name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preferred => "preferred",
            Self::LastResort => "last_resort",
            Self::Unallocable => "unallocable",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// A node group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub name: String,
    /// Any string.
    pub uuid: String,
    pub alloc_policy: AllocPolicy,
    pub tags: Vec<String>,
    /// UUIDs of connected networks.
    pub networks: Vec<String>,
    pub policy: Policy,
}

impl Group {
    /// A group with allocation policy `preferred` and the default instance policy.
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
