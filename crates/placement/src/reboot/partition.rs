//! Splits nodes that can be down together into groups whose instances fit elsewhere.

use cluster::NodeIdx;

use super::group::{RebootError, RebootGroup};
use super::workbench::{Role, Workbench};

/// Instances and mirrors that must move off the nodes before they go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evacuation {
    /// Instances without a mirror, which can't fail over.
    pub non_redundant: bool,
    /// Mirrors, after all running instances have migrated off the nodes.
    pub secondaries: bool,
}

/// Partitions the nodes into as few groups as a first-come, first-served pass can. The workbench is unchanged
/// on return.
pub(super) fn partition(
    bench: &mut Workbench<'_>,
    nodes: &[NodeIdx],
    evacuation: Evacuation,
) -> Result<Vec<RebootGroup>, RebootError> {
    let mut groups = Vec::new();
    let start = bench.mark();
    let done = if evacuation.non_redundant {
        let role = Role::NonRedundantPrimary;
        split(bench, nodes, role, RebootError::NonRedundantCapacity, &mut |bench, nodes| {
            finish(bench, nodes, evacuation, &mut groups)
        })
    } else {
        finish(bench, nodes, evacuation, &mut groups)
    };
    bench.roll_back(start);
    done.map(|()| groups)
}

/// Handles the mirrors of a group whose unmirrored instances have already moved, and adds its groups.
fn finish(
    bench: &mut Workbench<'_>,
    nodes: &[NodeIdx],
    evacuation: Evacuation,
    groups: &mut Vec<RebootGroup>,
) -> Result<(), RebootError> {
    let mut add = |bench: &mut Workbench<'_>, nodes: &[NodeIdx]| {
        groups.push(RebootGroup { nodes: nodes.to_vec(), relocations: bench.relocations() });
        Ok(())
    };
    if !evacuation.secondaries {
        return add(bench, nodes);
    }
    if !bench.migrate_all(nodes) {
        return Err(RebootError::Migration);
    }
    split(bench, nodes, Role::Secondary, RebootError::SecondaryCapacity, &mut add)
}

/// Callback for a group while its instances are away.
type Then<'f> = &'f mut dyn FnMut(&mut Workbench<'_>, &[NodeIdx]) -> Result<(), RebootError>;

/// Fills a group with every node whose instances still fit elsewhere, then another group with the remaining
/// nodes, and so on. All instances return before the next group.
fn split(
    bench: &mut Workbench<'_>,
    nodes: &[NodeIdx],
    role: Role,
    no_room: RebootError,
    then: Then<'_>,
) -> Result<(), RebootError> {
    let mut rest = nodes.to_vec();
    while !rest.is_empty() {
        let start = bench.mark();
        bench.open_all();
        let (group, others) = clear_first_come(bench, &rest, role);
        if group.is_empty() {
            return Err(no_room);
        }
        then(bench, &group)?;
        bench.roll_back(start);
        rest = others;
    }
    Ok(())
}

/// Clears one node after another while capacity lasts. Returns the cleared nodes and the remaining ones.
fn clear_first_come(
    bench: &mut Workbench<'_>,
    nodes: &[NodeIdx],
    role: Role,
) -> (Vec<NodeIdx>, Vec<NodeIdx>) {
    nodes.iter().partition(|node| {
        let before = bench.mark();
        bench.close(**node);
        let cleared = bench.clear(**node, role);
        if !cleared {
            bench.roll_back(before);
            bench.reopen(**node);
        }
        cleared
    })
}
