//! What is asked for when a cluster is filled, and what must stay redundant.

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityOptions {
    /// Stop where some node could no longer be emptied (global N+1).
    pub capacity_checks: bool,
    /// Go on where nodes fail N+1 already, or offline ones cannot be emptied.
    pub accept_existing: bool,
    /// Groups that are not redundant only lose their own place; without this, they stop everything.
    pub independent_groups: bool,
    /// At most so many instances.
    pub limit: Option<usize>,
}

impl Default for CapacityOptions {
    fn default() -> Self {
        Self { capacity_checks: true, accept_existing: false, independent_groups: false, limit: None }
    }
}
