//! Which group a new instance goes to (HT-allocate).

use cluster::{Cluster, GroupIdx, Instance};

use crate::allocate::{NoTargets, Placed, Trials};

/// What trying several groups came to.
#[derive(Clone, Debug)]
pub struct GroupChoice<S> {
    /// Groups that lack one of the instance's networks.
    pub unconnected: Vec<GroupIdx>,
    /// Every other group, in order, and what came of it.
    pub tried: Vec<(GroupIdx, Result<Trials<S>, NoTargets>)>,
    /// Position in [`Self::tried`] of the group chosen.
    pub winner: Option<usize>,
}

impl<S> GroupChoice<S> {
    /// The group chosen and the placement in it.
    pub fn chosen(&self) -> Option<(GroupIdx, &Placed<S>)> {
        let (group, trials) = &self.tried[self.winner?];
        Some((*group, trials.as_ref().ok()?.best.as_ref()?))
    }
}

impl<S> GroupChoice<S> {
    /// The same with another kind of score.
    pub fn map<T>(self, score: impl Fn(S) -> T) -> GroupChoice<T> {
        let tried = self.tried.into_iter().map(|(g, trials)| (g, trials.map(|t| t.map(&score)))).collect();
        GroupChoice { unconnected: self.unconnected, tried, winner: self.winner }
    }
}

/// Whether a group reaches all networks of an instance.
pub fn connected(cluster: &Cluster, group: GroupIdx, instance: &Instance) -> bool {
    instance.networks.iter().all(|network| cluster.group(group).networks.contains(network))
}

/// Tries `groups` (ascending, none without nodes) and chooses the best that may be chosen: the preferred
/// allocation policy first, then the least score, then the highest index.
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
            // Scores that cannot be compared (undefined ones) leave the first group where it is.
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

/// The groups that have nodes, ascending.
pub fn inhabited(cluster: &Cluster) -> Vec<GroupIdx> {
    cluster.group_indices().filter(|g| cluster.nodes.iter().any(|n| n.group == *g)).collect()
}
