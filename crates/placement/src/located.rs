//! How many instances there are per pair of location tag and exclusion tag.

use std::collections::HashMap;

use cluster::{Cluster, NodeIdx, TagId};

/// The numbers of instances, on online nodes, per location tag of their primary and exclusion tag of theirs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located {
    counts: HashMap<(TagId, TagId), i64>,
}

impl Located {
    /// The numbers on those of `nodes` that are online.
    pub fn of(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let mut located = Self::default();
        for &node in nodes.iter().filter(|n| cluster.node(**n).online()) {
            for (pair, count) in &cluster.state(node).located_tags {
                *located.counts.entry(*pair).or_default() += count;
            }
        }
        located
    }

    /// How many instances there are beyond the first of each pair.
    pub fn beyond_first(&self) -> i64 {
        self.counts.values().map(|count| (count - 1).max(0)).sum()
    }

    /// How [`Self::beyond_first`] changes when a primary with these exclusion tags leaves one node for another.
    pub fn delta(&self, tags: &[TagId], left: &[TagId], reached: &[TagId]) -> i64 {
        if tags.is_empty() || (left.is_empty() && reached.is_empty()) {
            return 0;
        }
        let mut deltas: Vec<((TagId, TagId), i64)> = Vec::new();
        for (locations, step) in [(left, -1), (reached, 1)] {
            for &location in locations {
                for &tag in tags {
                    match deltas.iter_mut().find(|(pair, _)| *pair == (location, tag)) {
                        Some((_, delta)) => *delta += step,
                        None => deltas.push(((location, tag), step)),
                    }
                }
            }
        }
        let beyond_first = |count: i64| (count - 1).max(0);
        let change = |(pair, delta): &((TagId, TagId), i64)| {
            let before = self.counts.get(pair).copied().unwrap_or(0);
            beyond_first(before + delta) - beyond_first(before)
        };
        deltas.iter().map(change).sum()
    }

    /// Counts `step` primaries with these exclusion tags in these locations.
    pub fn shift(&mut self, tags: &[TagId], locations: &[TagId], step: i64) {
        for &location in locations {
            for &tag in tags {
                *self.counts.entry((location, tag)).or_default() += step;
            }
        }
    }
}
