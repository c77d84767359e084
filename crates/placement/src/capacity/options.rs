//! Limits and redundancy rules for filling a cluster.

use cluster::GroupIdx;

/// When the capacity check (global N+1) refuses an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As in `hspace`: nothing is placed in groups with nodes that fail N+1, and mirrored instances are only checked
    /// in batches.
    Hspace {
        /// Go on where nodes fail N+1 already, or offline ones cannot be emptied.
        accept_existing: bool,
    },
    /// As in `hail`: every single placement must leave every node evacuable.
    Hail {
        /// The group that requests name; `None` for all groups.
        group: Option<GroupIdx>,
    },
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityOptions {
    /// Stop where some node could no longer be emptied (global N+1).
    pub capacity_checks: bool,
    /// When the check is made.
    pub rule: Rule,
    /// Groups that are not redundant only lose their own place; without this, they stop everything.
    pub independent_groups: bool,
    /// At most so many instances.
    pub limit: Option<usize>,
}

impl CapacityOptions {
    /// As `hspace` counts without options.
    pub const HSPACE: Self = Self {
        capacity_checks: true,
        rule: Rule::Hspace { accept_existing: false },
        independent_groups: false,
        limit: None,
    };

    /// As `hail` places without options.
    pub const HAIL: Self = Self { rule: Rule::Hail { group: None }, ..Self::HSPACE };

    /// The group that requests name.
    pub(crate) fn group(&self) -> Option<GroupIdx> {
        match self.rule {
            Rule::Hail { group } => group,
            Rule::Hspace { .. } => None,
        }
    }
}
