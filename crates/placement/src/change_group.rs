//! Moving instances to another node group (HT-change-group).

use cluster::{AllocPolicy, Cluster, DiskTemplate, GroupIdx, InstanceIdx, Move, NodeIdx};
use thiserror::Error;

use crate::allocate::{AllocOptions, Allocator, Scope, Targets};
use crate::evacuate::{Destination, EvacuateError, EvacuateMode, evacuate};
use crate::groups::{self, GroupChoice};

/// Reason why an instance cannot change its group.
#[derive(Clone, Debug, Error)]
pub enum ChangeGroupError {
    /// None of the target groups has nodes.
    #[error("no groups for evacuation")]
    NoGroups,
    /// No target group can take it. Holds the result of each group.
    #[error("no target group can take the instance")]
    NoRoom(Box<GroupChoice<f64>>),
    /// The chosen group could take a new instance of this shape, but this one cannot move there.
    #[error(transparent)]
    Stuck(#[from] EvacuateError),
}

/// Groups that the instances can move to: the wanted groups (all if empty), except those they are in.
pub fn target_groups(cluster: &Cluster, instances: &[InstanceIdx], wanted: &[GroupIdx]) -> Vec<GroupIdx> {
    let mut groups: Vec<GroupIdx> =
        if wanted.is_empty() { cluster.group_indices().collect() } else { wanted.to_vec() };
    groups.sort_unstable();
    groups.dedup();
    groups.retain(|g| instances.iter().all(|i| cluster.group_of(*i) != *g));
    groups
}

/// Moves one instance to the best of `groups`. A refusal changes nothing. `allowed` restricts, by name, only
/// the nodes on which the choice of the group is based, as in the reference. The moves then use any node of
/// the group.
pub fn change_group(
    cluster: &mut Cluster,
    index: InstanceIdx,
    groups: &[GroupIdx],
    allowed: Option<&[String]>,
    options: AllocOptions,
) -> Result<(GroupIdx, Vec<Move>), ChangeGroupError> {
    if cluster.instance(index).is_pinned() {
        return Err(EvacuateError::Pinned.into());
    }
    let inhabited = groups::inhabited(cluster);
    let groups: Vec<GroupIdx> = groups.iter().copied().filter(|g| inhabited.contains(g)).collect();
    if groups.is_empty() {
        return Err(ChangeGroupError::NoGroups);
    }
    let instance = cluster.instance(index).clone();
    let required = if instance.template == DiskTemplate::Drbd { 2 } else { 1 };
    let allocator = Allocator::new(cluster, &Scope::cluster(cluster), options).of_existing(index);
    let choice = groups::choose(cluster, &groups, &instance, true, |cluster, group| {
        let nodes = cluster.nodes_of(group);
        let targets = Targets::new(cluster, &nodes, required, allowed)?;
        Ok(allocator.try_all(cluster, &instance, &targets))
    });
    let Some((group, _)) = choice.chosen() else { return Err(ChangeGroupError::NoRoom(Box::new(choice))) };
    debug_assert_ne!(cluster.group(group).alloc_policy, AllocPolicy::Unallocable);
    let nodes = cluster.nodes_of(group);
    let available: Vec<NodeIdx> = nodes.iter().copied().filter(|n| cluster.node(*n).online()).collect();
    let to = Destination { group: nodes, available };
    let moves = evacuate(cluster, index, EvacuateMode::All, &to, false)?;
    Ok((group, moves))
}
