//! The programs and their names.

/// The programs; which one runs follows from the name under which it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// Answers one allocation request.
    Hail,
    /// Repairs what is broken.
    Harep,
    /// Balances a group.
    Hbal,
    /// Says whether balancing is needed.
    Hcheck,
    /// Describes a cluster.
    Hinfo,
    /// Groups nodes that may be rebooted together.
    Hroller,
    /// Saves the state of clusters.
    Hscan,
    /// Says how many instances fit.
    Hspace,
    /// Finds nodes that may be switched off.
    Hsqueeze,
}

impl Program {
    /// All programs, by name.
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

    /// The name of the program.
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

    /// The program of that name, in whatever case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name.to_lowercase())
    }
}
