//! Defaults for values that protocol version 2 doesn't have.

use cluster::{Group, GroupIdx, Node, Policy};

/// CPUs of a node that doesn't report a number.
///
/// The ratio of virtual to physical CPUs is part of the score, and with 0 CPUs it wouldn't be finite. With a
/// number this large, no limit on the ratio can refuse an instance, and the ratios are too small to decide
/// anything.
pub(super) const UNKNOWN_CPUS: f64 = 1_048_576.0;

/// Limit of instance spindles per node spindle: so high that it never refuses and that spindles in use don't
/// affect the score.
const SPINDLE_RATIO: f64 = 1_048_576.0;

/// UUID of the implied group in a message without groups.
pub(super) const GROUP_UUID: &str = "00000000-0000-0000-0000-000000000000";

/// Policy of a group without one. The protocol is older than policies, so nothing is refused.
pub(super) fn policy() -> Policy {
    Policy { minmax: Vec::new(), vcpu_ratio: -1.0, spindle_ratio: SPINDLE_RATIO, ..Policy::default() }
}

/// The implied group of all nodes in a message without groups.
pub(super) fn group() -> Group {
    Group { policy: policy(), ..Group::new("default", GROUP_UUID) }
}

/// Marks a node offline and without CPUs of its own, so that it's never a target.
pub(super) fn dead(mut node: Node) -> Node {
    node.offline = true;
    node.node_cpus = 0;
    node
}

/// A node that an instance refers to, but that isn't listed.
pub(super) fn unlisted(name: &str, group: GroupIdx) -> Node {
    dead(Node::new(name, group))
}
