//! Counts instances per pair of location tag and exclusion tag.

use std::collections::HashMap;

use cluster::{Cluster, NodeIdx, TagId};

/// Number of instances on online nodes per location tag of the primary node and exclusion tag of the
/// instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located {
    counts: HashMap<(TagId, TagId), i64>,
}

impl Located {
    /// Counts on the online nodes among `nodes`.
    pub fn of(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let mut located = Self::default();
        for &node in nodes.iter().filter(|n| cluster.node(**n).online()) {
            for (pair, count) in &cluster.state(node).located_tags {
                *located.counts.entry(*pair).or_default() += count;
            }
        }
        located
    }

    /// Number of instances beyond the first of each pair.
    pub fn beyond_first(&self) -> i64 {
        self.counts.values().map(|count| (count - 1).max(0)).sum()
    }

    /// Change of [`Self::beyond_first`] if a primary with exclusion tags `tags` moves from locations `left`
    /// to `reached`.
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

    /// Adds `step` to the count of primaries with these exclusion tags in these locations.
    pub fn shift(&mut self, tags: &[TagId], locations: &[TagId], step: i64) {
        for &location in locations {
            for &tag in tags {
                *self.counts.entry((location, tag)).or_default() += step;
            }
        }
    }
}
