//! Limits and redundancy rules for filling a cluster.

use cluster::GroupIdx;

/// Rule for applying the capacity check (global N+1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As in `hspace`: groups with nodes that fail N+1 get no instances, and mirrored instances are checked
    /// only in batches.
    Hspace {
        /// Continue even if nodes already fail N+1 or offline nodes cannot be emptied.
        accept_existing: bool,
    },
    /// As in `hail`: every single placement must leave every node evacuable.
    Hail {
        /// Group named by requests; `None` for all groups.
        group: Option<GroupIdx>,
    },
}

/// Options for filling a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityOptions {
    /// Stop when another instance would leave a node that cannot be emptied (global N+1).
    pub capacity_checks: bool,
    pub rule: Rule,
    /// Groups that aren't redundant are only excluded as targets. If false, they block the whole cluster.
    pub independent_groups: bool,
    /// Maximum number of instances; `None` means no limit.
    pub limit: Option<usize>,
}

impl CapacityOptions {
    /// Default options of `hspace`.
    pub const HSPACE: Self = Self {
        capacity_checks: true,
        rule: Rule::Hspace { accept_existing: false },
        independent_groups: false,
        limit: None,
    };

    /// Default options of `hail`.
    pub const HAIL: Self = Self { rule: Rule::Hail { group: None }, ..Self::HSPACE };

    /// Group named by requests; `None` for all groups.
    pub(crate) fn group(&self) -> Option<GroupIdx> {
        match self.rule {
            Rule::Hail { group } => group,
            Rule::Hspace { .. } => None,
        }
    }
}
