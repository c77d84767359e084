//! What protocol version 2 does not say, and what is assumed instead.

use cluster::{Group, GroupIdx, Node, Policy};

/// CPUs of a node that does not tell their number.
///
/// A number must be there, since the ratio of virtual to physical CPUs is part of the score: with 0 it would
/// not be finite. With a number as large as this no limit on the ratio can refuse an instance, and the ratios
/// are so small that what is unknown decides nothing.
pub(super) const UNKNOWN_CPUS: f64 = 1_048_576.0;

/// Instance spindles allowed per node spindle: no limit in practice, and too many for their use to weigh.
const SPINDLE_RATIO: f64 = 1_048_576.0;

/// The UUID of the group that is assumed when there are none.
pub(super) const GROUP_UUID: &str = "00000000-0000-0000-0000-000000000000";

/// The policy of a group without one: the protocol is older than policies, so nothing is refused for one.
pub(super) fn policy() -> Policy {
    Policy { minmax: Vec::new(), vcpu_ratio: -1.0, spindle_ratio: SPINDLE_RATIO, ..Policy::default() }
}

/// The group of all nodes when there are no groups.
pub(super) fn group() -> Group {
    Group { policy: policy(), ..Group::new("default", GROUP_UUID) }
}

/// A node without resources, never a target.
pub(super) fn dead(mut node: Node) -> Node {
    node.offline = true;
    node.node_cpus = 0;
    node
}

/// A node that an instance is said to be on, but that is not listed.
pub(super) fn unlisted(name: &str, group: GroupIdx) -> Node {
    dead(Node::new(name, group))
}
