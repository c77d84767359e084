//! Chooses the node group for a new instance (HT-allocate).

use cluster::{Cluster, GroupIdx, Instance};

use crate::allocate::{NoTargets, Placed, Trials};

/// Result of trying several groups.
#[derive(Clone, Debug)]
pub struct GroupChoice<S> {
    /// Groups without one of the instance's networks.
    pub unconnected: Vec<GroupIdx>,
    /// All other groups, in order, with their results.
    pub tried: Vec<(GroupIdx, Result<Trials<S>, NoTargets>)>,
    /// Position in [`Self::tried`] of the chosen group.
    pub winner: Option<usize>,
}

impl<S> GroupChoice<S> {
    /// The chosen group and the placement in it.
    pub fn chosen(&self) -> Option<(GroupIdx, &Placed<S>)> {
        let (group, trials) = &self.tried[self.winner?];
        Some((*group, trials.as_ref().ok()?.best.as_ref()?))
    }
}

impl<S> GroupChoice<S> {
    /// Converts the scores.
    pub fn map<T>(self, score: impl Fn(S) -> T) -> GroupChoice<T> {
        let tried = self.tried.into_iter().map(|(g, trials)| (g, trials.map(|t| t.map(&score)))).collect();
        GroupChoice { unconnected: self.unconnected, tried, winner: self.winner }
    }
}

/// Whether a group has all of the instance's networks.
pub fn connected(cluster: &Cluster, group: GroupIdx, instance: &Instance) -> bool {
    instance.networks.iter().all(|network| cluster.group(group).networks.contains(network))
}

/// Tries `groups`, which must be ascending and have nodes, and chooses the best allocatable one: preferred
/// allocation policy first, then lowest score, then highest index.
pub fn choose<S: PartialOrd>(
    cluster: &mut Cluster,
    groups: &[GroupIdx],
    instance: &Instance,
    filter_networks: bool,
    mut attempt: impl FnMut(&mut Cluster, GroupIdx) -> Result<Trials<S>, NoTargets>,
) -> GroupChoice<S> {
    let (usable, unconnected): (Vec<GroupIdx>, Vec<GroupIdx>) =
        groups.iter().partition(|g| !filter_networks || connected(cluster, **g, instance));
    let tried: Vec<_> = usable.into_iter().map(|g| (g, attempt(cluster, g))).collect();
    let mut winner: Option<usize> = None;
    for (position, (group, trials)) in tried.iter().enumerate() {
        let Some(found) = trials.as_ref().ok().and_then(|t| t.best.as_ref()) else { continue };
        let policy = cluster.group(*group).alloc_policy;
        if policy == cluster::AllocPolicy::Unallocable {
            continue;
        }
        let keep = winner.is_some_and(|old: usize| {
            let (old_group, old_trials) = &tried[old];
            let old_policy = cluster.group(*old_group).alloc_policy;
            let old_score = old_trials.as_ref().ok().and_then(|t| t.best.as_ref()).map(|b| &b.score);
            // If scores can't be compared (NaN), the earlier group stays the winner.
            let not_worse =
                old_score.is_none_or(|old| *old < found.score || old.partial_cmp(&found.score).is_none());
            old_policy < policy || (old_policy == policy && not_worse)
        });
        if !keep {
            winner = Some(position);
        }
    }
    GroupChoice { unconnected, tried, winner }
}

/// Groups that have nodes, ascending.
pub fn inhabited(cluster: &Cluster) -> Vec<GroupIdx> {
    cluster.group_indices().filter(|g| cluster.nodes.iter().any(|n| n.group == *g)).collect()
}
