//! Explanations of placements (`--explain`), on standard error because the response must be one line.

mod explanation;
mod moves;

use cluster::{Cluster, GroupIdx, Instance, NodeIdx};
use placement::groups;

use self::explanation::Explanation;
use super::wanted::{Strategy, Wanted};
use crate::io::Io;
use crate::options::Options;

pub(super) use moves::{NOT_MIRRORED, change_group, evacuation, stays};

/// Explains, node by node, where a new instance can be placed.
pub(super) fn allocation(
    cluster: &mut Cluster,
    wanted: &Wanted<'_>,
    group_name: Option<&str>,
    strategy: Strategy,
    only: Option<GroupIdx>,
    options: &Options,
    io: &mut Io<'_>,
) {
    let mut explanation = Explanation::new(cluster, wanted, group_name, strategy, options);
    explanation.only = only;
    // A failure to write to standard error cannot be reported.
    let _ = explanation.groups(cluster, &groups::inhabited(cluster), io);
}

/// Explains which nodes can become the secondary of an instance without one.
pub(super) fn secondary(
    cluster: &mut Cluster,
    converted: &Instance,
    primary: NodeIdx,
    others: &[NodeIdx],
    options: &Options,
    io: &mut Io<'_>,
) {
    let wanted = Wanted { instance: converted, nodes: 2, allowed: None };
    let mut explanation = Explanation::new(cluster, &wanted, None, Strategy::Balance, options);
    let _ = writeln!(io.err, "Instance {}:", converted.name)
        .and_then(|()| explanation.pairs(cluster, primary, others, io));
}
