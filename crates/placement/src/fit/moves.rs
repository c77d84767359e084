//! Finds a few moves that make room: one instance off a node that almost has enough, or otherwise the first
//! steps of balancing.

use cluster::{Cluster, InstanceIdx, MirrorClass, Move, NodeIdx, Probe};

use super::crowd::Crowd;
use super::lack::Near;
use super::remedy::{Action, Remedy};
use crate::balance::{BalanceOptions, Balancer, Step};
use crate::board::Board;
use crate::role::Role;

/// Number of nearest nodes from which an instance is moved away, per role.
const NODES_TRIED: usize = 5;
/// Number of instances tried on each node, smallest first.
const INSTANCES_TRIED: usize = 12;
/// Number of targets tried for each instance, most available memory first.
const TARGETS_TRIED: usize = 8;
/// Number of balancing moves to follow.
const MOST_MOVES: usize = 30;

/// Moves that make room: a single move if one is enough, otherwise a prefix of a balancing run.
pub(super) fn remedy(crowd: &Crowd, nearest: &[Near]) -> Option<Remedy> {
    one_move(crowd, nearest).or_else(|| balancing(crowd))
}

fn one_move(crowd: &Crowd, nearest: &[Near]) -> Option<Remedy> {
    let nodes = nearest.iter().filter(|near| near.refused.is_some()).take(2 * NODES_TRIED);
    nodes.into_iter().find_map(|near| relieve(crowd, near))
}

/// Moves one instance off a node that is short of resources.
fn relieve(crowd: &Crowd, near: &Near) -> Option<Remedy> {
    let state = crowd.filled.state(near.node);
    let mut guests: Vec<InstanceIdx> = state.primaries.iter().chain(&state.secondaries).copied().collect();
    let movable = |i: &InstanceIdx| {
        let instance = crowd.filled.instance(*i);
        crowd.is_real(*i) && instance.movable && instance.auto_balance
    };
    // Only an instance at least as large as the shortage can make room.
    let helps = |i: &InstanceIdx| {
        let instance = crowd.filled.instance(*i);
        instance.memory >= near.lack.memory_mib
            && (near.lack.disk_mib == 0 || instance.disk >= near.lack.disk_mib)
            && (near.role == Role::Secondary || instance.vcpus >= near.lack.vcpus)
    };
    guests.retain(|i| movable(i) && helps(i));
    guests.sort_by_key(|i| (crowd.filled.instance(*i).disk, crowd.filled.instance(*i).memory));
    guests.dedup();
    guests.into_iter().take(INSTANCES_TRIED).find_map(|index| relocate(crowd, near.node, index))
}

fn relocate(crowd: &Crowd, node: NodeIdx, index: InstanceIdx) -> Option<Remedy> {
    let cluster = &crowd.filled;
    let instance = cluster.instance(index);
    let usable = |t: &NodeIdx| {
        let target = cluster.node(*t);
        target.online()
            && target.group == cluster.node(node).group
            && *t != instance.primary
            && Some(*t) != instance.secondary
    };
    let mut targets: Vec<NodeIdx> = cluster.node_indices().filter(usable).collect();
    targets.sort_by_key(|t| std::cmp::Reverse(cluster.figures(*t).available_memory(cluster.node(*t))));
    targets.truncate(TARGETS_TRIED);
    let leaves_as_primary = instance.primary == node;
    let mirror_online = instance.secondary.is_some_and(|s| cluster.node(s).online());
    let moves = match (instance.template.mirror(), leaves_as_primary) {
        (MirrorClass::None, _) => return None,
        (MirrorClass::External, _) => targets.into_iter().map(Move::FailoverTo).collect::<Vec<_>>(),
        // The only remaining copy of the data is on the primary, so a new mirror can be made only if the
        // primary is readable. An instance can't run next to a dead secondary.
        (MirrorClass::Internal, true) if !mirror_online => {
            targets.into_iter().map(Move::ReplaceAndFailover).collect()
        }
        (MirrorClass::Internal, false) if !cluster.node(instance.primary).readable() => return None,
        (MirrorClass::Internal, true) => std::iter::once(Move::Failover)
            .chain(targets.iter().flat_map(|t| [Move::ReplacePrimary(*t), Move::FailoverAndReplace(*t)]))
            .collect(),
        (MirrorClass::Internal, false) => targets.into_iter().map(Move::ReplaceSecondary).collect(),
    };
    moves.into_iter().find_map(|mov| after_move(crowd, index, mov))
}

fn after_move(crowd: &Crowd, index: InstanceIdx, mov: Move) -> Option<Remedy> {
    let probe = Probe::new(&crowd.filled, index);
    let outcome = probe.judge(mov, false).ok()?;
    let mut changed = crowd.filled.clone();
    changed.apply(index, &outcome);
    if crowd.room(&changed, 1) == 0 {
        return None;
    }
    let group: Vec<NodeIdx> = changed.nodes_of(changed.node(outcome.primary).group);
    let score = Board::new(&changed, &group).score();
    let (from, to) = ((probe.primary, probe.secondary), (outcome.primary, outcome.secondary));
    crowd.remedy(Action::Moves(vec![Step { instance: index, mov, from, to, score }]), &changed)
}

/// First balancing steps after which one more instance fits, in the group that needs the fewest.
fn balancing(crowd: &Crowd) -> Option<Remedy> {
    let mut best: Option<(Vec<Step>, Cluster)> = None;
    for group in crowd.groups() {
        let most = best.as_ref().map_or(MOST_MOVES, |(steps, _)| steps.len() - 1);
        let found = balance_group(crowd, group, most);
        best = found.or(best);
    }
    let (steps, changed) = best?;
    crowd.remedy(Action::Moves(steps), &changed)
}

fn balance_group(crowd: &Crowd, group: cluster::GroupIdx, most: usize) -> Option<(Vec<Step>, Cluster)> {
    let mut changed = crowd.filled.clone();
    let nodes = changed.nodes_of(group);
    let mut instances = changed.instances_of(group);
    instances.retain(|i| crowd.is_real(*i));
    let options = BalanceOptions { max_moves: Some(most), readable_only: true, ..BalanceOptions::default() };
    let mut run = Balancer::new(&mut changed, &nodes, &instances, options);
    let mut steps = Vec::new();
    while let Some(step) = run.step() {
        steps.push(step);
        if crowd.room(run.cluster(), 1) > 0 {
            return Some((steps, changed));
        }
    }
    None
}
