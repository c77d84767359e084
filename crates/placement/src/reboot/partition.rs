//! Splitting nodes that may be down together into groups for whose instances there is room elsewhere.

use cluster::NodeIdx;

use super::group::{RebootError, RebootGroup};
use super::workbench::{Role, Workbench};

/// What must be moved off the nodes before they go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evacuation {
    /// Instances without a mirror: they have nowhere to fail over to.
    pub non_redundant: bool,
    /// Mirrors, after a migration of whatever runs on the nodes.
    pub secondaries: bool,
}

/// The nodes in as few groups as first come, first served makes of them. The workbench is left as it was.
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

/// What follows for a group whose instances without mirror are away.
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

/// What to do with a group while its instances are away.
type Then<'f> = &'f mut dyn FnMut(&mut Workbench<'_>, &[NodeIdx]) -> Result<(), RebootError>;

/// Fills a group with every node for whose instances there still is room, then another with the rest, and so on.
/// The instances are back before the next group.
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

/// Clears one node after the other as far as there is room; the nodes that are clear, and the others.
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
