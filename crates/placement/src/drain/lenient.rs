//! Judges the moves of a drain. In addition to moves that keep all rules, it accepts moves that make nothing
//! worse on the nodes that stay. Limits of the nodes being emptied don't count.

use cluster::{Cluster, FailMode, Figures, Move, Node, NodeIdx, Outcome, Probe};

/// Judges a move while `leaving` are emptied. `force` also accepts moves that make things worse.
pub(super) fn judge(
    cluster: &Cluster,
    probe: &Probe<'_>,
    mov: Move,
    leaving: &[NodeIdx],
    force: bool,
) -> Result<Outcome, FailMode> {
    let refusal = match probe.judge(mov, force) {
        Ok(outcome) => return Ok(outcome),
        Err(refusal) => refusal,
    };
    let Ok(outcome) = probe.judge(mov, true) else { return Err(refusal) };
    let mut staying = outcome.changes().iter().filter(|change| !leaving.contains(&change.node));
    let worsens_nothing = staying
        .all(|change| !worsens(cluster.node(change.node), cluster.figures(change.node), &change.figures));
    if worsens_nothing { Ok(outcome) } else { Err(refusal) }
}

/// Whether a rule is newly broken, or broken further than before.
fn worsens(node: &Node, before: &Figures, after: &Figures) -> bool {
    let shortage = |figures: &Figures| figures.reserved_memory - figures.unallocated_memory(node);
    let limit = node.max_vcpu_ratio;
    let vcpus = |before: f64, after: f64| limit >= 0.0 && after > limit && after > before;
    let spindle_use = |before: f64, after: f64| after > node.max_spindles && after > before;
    let disk = |before: i64, after: i64| after < node.min_free_disk.max(1) && after < before;
    let short = |before: i64, after: i64, least: i64| after < least && after < before;
    (after.fails_n1 && shortage(after) > shortage(before))
        || after.tag_conflicts > before.tag_conflicts
        || vcpus(before.vcpu_ratio(node), after.vcpu_ratio(node))
        || vcpus(before.booked_vcpu_ratio(node), after.booked_vcpu_ratio(node))
        || spindle_use(before.instance_spindles, after.instance_spindles)
        || spindle_use(before.booked_instance_spindles, after.booked_instance_spindles)
        || disk(before.free_disk, after.free_disk)
        || disk(before.booked_free_disk, after.booked_free_disk)
        || short(before.booked_free_memory, after.booked_free_memory, 1)
        || (node.exclusive_storage && short(before.booked_free_spindles, after.booked_free_spindles, 0))
}
