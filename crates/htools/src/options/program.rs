//! Programs and their names.

/// A program, selected by the name under which the binary is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Answers an allocation request.
    Hail,
    /// Repairs broken instances.
    Harep,
    /// Balances a group.
    Hbal,
    /// Reports whether balancing is needed.
    Hcheck,
    /// Describes a cluster.
    Hinfo,
    /// Groups nodes that can be rebooted together.
    Hroller,
    /// Saves the state of clusters.
    Hscan,
    /// Computes how many instances fit.
    Hspace,
    /// Finds nodes that can be powered off.
    Hsqueeze,
}

impl Program {
    /// All programs in alphabetical order.
    pub const ALL: [Self; 9] = [
        Self::Hail,
        Self::Harep,
        Self::Hbal,
        Self::Hcheck,
        Self::Hinfo,
        Self::Hroller,
        Self::Hscan,
        Self::Hspace,
        Self::Hsqueeze,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Hail => "hail",
            Self::Harep => "harep",
            Self::Hbal => "hbal",
            Self::Hcheck => "hcheck",
            Self::Hinfo => "hinfo",
            Self::Hroller => "hroller",
            Self::Hscan => "hscan",
            Self::Hspace => "hspace",
            Self::Hsqueeze => "hsqueeze",
        }
    }

    /// The program with this name, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name.to_lowercase())
    }
}
