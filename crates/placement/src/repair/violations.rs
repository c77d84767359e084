//! Violations to repair, and their measure.

use std::collections::HashMap;

use cluster::{Cluster, Figures, Instance, InstanceIdx, Node, NodeIdx, Outcome, TagId};

/// A location tag together with an exclusion tag.
type LocatedTag = (TagId, TagId);

/// A violation that a repair tries to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// An instance has its primary or its mirror on an offline node.
    Offline { instance: InstanceIdx, node: NodeIdx },
    /// A node couldn't take over the instances of some other node.
    N1 {
        node: NodeIdx,
        /// Missing memory, MiB.
        shortage: i64,
    },
    /// Several primaries with the same exclusion tag are on one node.
    Conflict { node: NodeIdx, tag: TagId },
    /// An instance's two nodes have location tags in common.
    SharedLocation { instance: InstanceIdx },
    /// An instance's primary is outside a desired location.
    UnmetWish { instance: InstanceIdx },
    /// Several primaries with the same exclusion tag are on nodes with the same location tag.
    LocatedConflict {
        /// The nodes' tag.
        location: TagId,
        /// The instances' tag.
        tag: TagId,
    },
}

/// Class of violations, from worst to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Primaries and mirrors on offline nodes.
    Offline,
    /// Nodes that fail N+1.
    N1,
    /// Instances on one node that exclude each other.
    Conflicts,
    /// Instances in unwanted locations.
    Location,
}

/// Severity of all violations. Less is better, and classes are compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Measure {
    /// On offline nodes: number of primaries, then of primaries and mirrors.
    pub offline: (i64, i64),
    /// Redundancy: number of nodes that fail N+1, then their total missing memory, MiB.
    pub n1: (i64, i64),
    /// Primaries beyond the first per node and exclusion tag.
    pub conflicts: i64,
    /// Shared location tags, unmet wishes, and primaries beyond the first per location tag and exclusion tag.
    pub location: i64,
}

impl Measure {
    /// Measures `nodes`, which must be ascending.
    pub fn of(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        Gauge::new(cluster, nodes).measure()
    }

    /// Whether no class is worse than in `before`.
    pub fn worsens_nothing(&self, before: &Self) -> bool {
        self.worse_class(before).is_none()
    }

    /// The highest class that is worse than in `before`.
    pub fn worse_class(&self, before: &Self) -> Option<Class> {
        [
            (Class::Offline, self.offline > before.offline),
            (Class::N1, self.n1 > before.n1),
            (Class::Conflicts, self.conflicts > before.conflicts),
            (Class::Location, self.location > before.location),
        ]
        .into_iter()
        .find_map(|(class, is_worse)| is_worse.then_some(class))
    }

    /// Whether fewer primaries are on offline nodes than in `before`.
    pub fn runs_more(&self, before: &Self) -> bool {
        self.offline.0 < before.offline.0
    }

    /// Whether there are no violations.
    pub fn is_healthy(&self) -> bool {
        *self == Self::default()
    }

    /// Contribution of one node.
    ///
    /// Unlike the score, it also counts tags on offline nodes. Otherwise moving an instance off such a node
    /// would make an old violation look like a new one.
    fn of_node(node: &Node, figures: &Figures) -> Self {
        let mut measure =
            Self { conflicts: figures.tag_conflicts, location: figures.location_score, ..Self::default() };
        if node.offline {
            measure.offline = (figures.primaries, figures.primaries + figures.secondaries);
        } else if figures.fails_n1 {
            measure.n1 = (1, shortage(node, figures));
        }
        measure
    }

    fn combine(&self, other: &Self, sign: i64) -> Self {
        let pair = |a: (i64, i64), b: (i64, i64)| (a.0 + sign * b.0, a.1 + sign * b.1);
        Self {
            offline: pair(self.offline, other.offline),
            n1: pair(self.n1, other.n1),
            conflicts: self.conflicts + sign * other.conflicts,
            location: self.location + sign * other.location,
        }
    }
}

/// Memory that a node is missing to take over the instances of any other node, MiB; positive if it fails N+1.
fn shortage(node: &Node, figures: &Figures) -> i64 {
    figures.reserved_memory + 1 - figures.unallocated_memory(node)
}

/// Measure of a set of nodes, updated incrementally.
#[derive(Clone, Debug)]
pub(super) struct Gauge {
    nodes: Vec<NodeIdx>,
    measure: Measure,
    located: HashMap<LocatedTag, i64>,
}

impl Gauge {
    /// Measures `nodes`, which must be ascending.
    pub fn new(cluster: &Cluster, nodes: &[NodeIdx]) -> Self {
        let mut gauge = Self { nodes: nodes.to_vec(), measure: Measure::default(), located: HashMap::new() };
        for &index in nodes {
            let part = Measure::of_node(cluster.node(index), cluster.figures(index));
            gauge.measure = gauge.measure.combine(&part, 1);
            for (pair, count) in &cluster.state(index).located_tags {
                *gauge.located.entry(*pair).or_default() += count;
            }
        }
        gauge.measure.location += gauge.located.values().map(|count| beyond_first(*count)).sum::<i64>();
        gauge
    }

    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// Measure after a move of `instance`.
    pub fn after(&self, cluster: &Cluster, instance: &Instance, outcome: &Outcome) -> Measure {
        let mut measure = self.measure;
        for change in outcome.changes().iter().filter(|c| self.nodes.binary_search(&c.node).is_ok()) {
            let node = cluster.node(change.node);
            measure = measure.combine(&Measure::of_node(node, cluster.figures(change.node)), -1);
            measure = measure.combine(&Measure::of_node(node, &change.figures), 1);
        }
        for (pair, step) in located_steps(cluster, instance, outcome) {
            let before = self.located.get(&pair).copied().unwrap_or(0);
            measure.location += beyond_first(before + step) - beyond_first(before);
        }
        measure
    }

    /// Records a move. `cluster` is the cluster before it.
    pub fn update(&mut self, cluster: &Cluster, instance: &Instance, outcome: &Outcome) {
        self.measure = self.after(cluster, instance, outcome);
        for (pair, step) in located_steps(cluster, instance, outcome) {
            *self.located.entry(pair).or_default() += step;
        }
    }

    /// All violations, the worst class first.
    pub fn violations(&self, cluster: &Cluster) -> Vec<Violation> {
        let mut all = self.offline(cluster);
        let fails = |n: &&NodeIdx| cluster.node(**n).online() && cluster.figures(**n).fails_n1;
        let mut failing: Vec<(i64, NodeIdx)> = self
            .nodes
            .iter()
            .filter(fails)
            .map(|n| (shortage(cluster.node(*n), cluster.figures(*n)), *n))
            .collect();
        failing.sort_by_key(|(shortage, node)| (std::cmp::Reverse(*shortage), *node));
        all.extend(failing.into_iter().map(|(shortage, node)| Violation::N1 { node, shortage }));
        for &node in &self.nodes {
            let mut tags: Vec<TagId> =
                cluster.state(node).exclusion_tags.iter().filter(|(_, n)| *n > 1).map(|(t, _)| *t).collect();
            tags.sort_unstable();
            all.extend(tags.into_iter().map(|tag| Violation::Conflict { node, tag }));
        }
        self.locations(cluster, &mut all);
        all
    }

    /// Primaries before mirrors, and large instances first, while there is still capacity for them.
    fn offline(&self, cluster: &Cluster) -> Vec<Violation> {
        let mut found = Vec::new();
        for &node in self.nodes.iter().filter(|n| cluster.node(**n).offline) {
            let state = cluster.state(node);
            found.extend(state.primaries.iter().map(|i| (false, *i, node)));
            found.extend(state.secondaries.iter().map(|i| (true, *i, node)));
        }
        found.sort_by_key(|(mirror, i, node)| {
            (*mirror, std::cmp::Reverse(cluster.instance(*i).memory), *i, *node)
        });
        found.into_iter().map(|(_, instance, node)| Violation::Offline { instance, node }).collect()
    }

    fn locations(&self, cluster: &Cluster, all: &mut Vec<Violation>) {
        let mut primaries: Vec<InstanceIdx> =
            self.nodes.iter().flat_map(|n| &cluster.state(*n).primaries).copied().collect();
        primaries.sort_unstable();
        for index in primaries {
            let instance = cluster.instance(index);
            if instance.location_score > 0 {
                all.push(Violation::SharedLocation { instance: index });
            }
            if cluster.unmet_wishes(instance, instance.primary) > 0 {
                all.push(Violation::UnmetWish { instance: index });
            }
        }
        let mut pairs: Vec<LocatedTag> =
            self.located.iter().filter(|(_, count)| **count > 1).map(|(pair, _)| *pair).collect();
        pairs.sort_unstable();
        all.extend(pairs.into_iter().map(|(location, tag)| Violation::LocatedConflict { location, tag }));
    }

    /// Instances whose move could end a violation; empty if it has ended.
    pub fn involved(&self, cluster: &Cluster, violation: Violation) -> Vec<InstanceIdx> {
        let with_tag = |node: NodeIdx, tag: TagId| {
            let primaries = cluster.state(node).primaries.iter().copied();
            primaries.filter(move |i| cluster.instance(*i).exclusion_tags.contains(&tag))
        };
        let only = |index: InstanceIdx, violated: bool| if violated { vec![index] } else { Vec::new() };
        match violation {
            Violation::Offline { instance, node } => {
                let state = cluster.state(node);
                only(instance, state.primaries.contains(&instance) || state.secondaries.contains(&instance))
            }
            Violation::N1 { node, .. } => {
                let state = cluster.state(node);
                if !state.figures.fails_n1 {
                    return Vec::new();
                }
                let mut instances = [state.primaries.as_slice(), &state.secondaries].concat();
                instances.sort_unstable();
                instances
            }
            Violation::Conflict { node, tag } => {
                let count = cluster.state(node).exclusion_tags.iter().find(|(t, _)| *t == tag);
                if count.is_some_and(|(_, n)| *n > 1) { with_tag(node, tag).collect() } else { Vec::new() }
            }
            Violation::SharedLocation { instance } => {
                only(instance, cluster.instance(instance).location_score > 0)
            }
            Violation::UnmetWish { instance } => {
                let record = cluster.instance(instance);
                only(instance, cluster.unmet_wishes(record, record.primary) > 0)
            }
            Violation::LocatedConflict { location, tag } => {
                if self.located.get(&(location, tag)).is_none_or(|count| *count < 2) {
                    return Vec::new();
                }
                let there = self.nodes.iter().filter(|n| cluster.node(**n).locations.contains(&location));
                there.flat_map(|n| with_tag(*n, tag)).collect()
            }
        }
    }
}

fn beyond_first(count: i64) -> i64 {
    (count - 1).max(0)
}

/// Change in the number of primaries of each pair of tags due to a move.
fn located_steps(cluster: &Cluster, instance: &Instance, outcome: &Outcome) -> Vec<(LocatedTag, i64)> {
    let mut steps: Vec<(LocatedTag, i64)> = Vec::new();
    if instance.primary == outcome.primary || instance.forthcoming {
        return steps;
    }
    for (node, step) in [(instance.primary, -1), (outcome.primary, 1)] {
        for &location in &cluster.node(node).locations {
            for &tag in &instance.exclusion_tags {
                match steps.iter_mut().find(|(pair, _)| *pair == (location, tag)) {
                    Some((_, steps)) => *steps += step,
                    None => steps.push(((location, tag), step)),
                }
            }
        }
    }
    steps
}
