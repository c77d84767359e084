//! What a placement would do: the new figures of nodes, and where the instance would be.

use crate::figures::Figures;
use crate::ids::NodeIdx;

/// New figures of one node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Which node.
    pub node: NodeIdx,
    /// Its figures afterwards.
    pub figures: Figures,
}

/// What a placement would do: new figures of at most three nodes, and the instance's new nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    changes: [Change; 3],
    len: u8,
    /// The new primary.
    pub primary: NodeIdx,
    /// The new secondary.
    pub secondary: Option<NodeIdx>,
    /// The instance's new location score (without unmet wishes).
    pub location_score: i64,
}

impl Outcome {
    /// One node changes.
    #[inline]
    pub fn one(change: Change, primary: NodeIdx, secondary: Option<NodeIdx>, location_score: i64) -> Self {
        Self { changes: [change; 3], len: 1, primary, secondary, location_score }
    }

    /// Two nodes change.
    #[inline]
    pub fn two(
        [a, b]: [Change; 2],
        primary: NodeIdx,
        secondary: Option<NodeIdx>,
        location_score: i64,
    ) -> Self {
        Self { changes: [a, b, b], len: 2, primary, secondary, location_score }
    }

    /// Three nodes change.
    #[inline]
    pub fn three(
        changes: [Change; 3],
        primary: NodeIdx,
        secondary: Option<NodeIdx>,
        location_score: i64,
    ) -> Self {
        Self { changes, len: 3, primary, secondary, location_score }
    }

    /// The nodes that change.
    #[inline]
    pub fn changes(&self) -> &[Change] {
        &self.changes[..usize::from(self.len)]
    }

    /// The same outcome with every node's new figures put through `adjust`.
    #[must_use]
    pub fn map(mut self, mut adjust: impl FnMut(&mut Change)) -> Self {
        self.changes[..usize::from(self.len)].iter_mut().for_each(&mut adjust);
        self
    }

    /// Whether a node changes.
    pub fn changes_node(&self, node: NodeIdx) -> bool {
        self.changes().iter().any(|c| c.node == node)
    }
}
