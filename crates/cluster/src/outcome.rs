//! Result of judging a placement: new figures of nodes, and the instance's new nodes.

use crate::figures::Figures;
use crate::ids::NodeIdx;

/// New figures of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    pub node: NodeIdx,
    /// Figures after the placement.
    pub figures: Figures,
}

/// Result of judging a placement. At most three nodes change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    changes: [Change; 3],
    len: u8,
    pub primary: NodeIdx,
    pub secondary: Option<NodeIdx>,
    /// The instance's new location score, without unmet desired locations.
    pub location_score: i64,
}

impl Outcome {
    /// An outcome that changes one node.
    #[inline]
    pub fn one(change: Change, primary: NodeIdx, secondary: Option<NodeIdx>, location_score: i64) -> Self {
        Self { changes: [change; 3], len: 1, primary, secondary, location_score }
    }

    /// An outcome that changes two nodes.
    #[inline]
    pub fn two(
        [a, b]: [Change; 2],
        primary: NodeIdx,
        secondary: Option<NodeIdx>,
        location_score: i64,
    ) -> Self {
        Self { changes: [a, b, b], len: 2, primary, secondary, location_score }
    }

    /// An outcome that changes three nodes.
    #[inline]
    pub fn three(
        changes: [Change; 3],
        primary: NodeIdx,
        secondary: Option<NodeIdx>,
        location_score: i64,
    ) -> Self {
        Self { changes, len: 3, primary, secondary, location_score }
    }

    #[inline]
    pub fn changes(&self) -> &[Change] {
        &self.changes[..usize::from(self.len)]
    }

    /// Adjusts the new figures of each changed node.
    #[must_use]
    pub fn map(mut self, mut adjust: impl FnMut(&mut Change)) -> Self {
        self.changes[..usize::from(self.len)].iter_mut().for_each(&mut adjust);
        self
    }

    pub fn changes_node(&self, node: NodeIdx) -> bool {
        self.changes().iter().any(|c| c.node == node)
    }
}
