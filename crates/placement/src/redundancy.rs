//! Global N+1: could every node be emptied if it were lost? (algorithms spec §5.1)
//!
//! [`Redundancy`] is prepared once for a cluster and then asked about many tentative placements. A node whose
//! primaries are all DRBD can only be affected by a placement on itself or on one of their secondaries; for the
//! rest, a node that is large enough to take all evacuees proves success without the greedy simulation.

use cluster::{Cluster, DiskTemplate, InstanceIdx, MirrorClass, Move, NodeIdx, Outcome, Probe, Undo};

use crate::board::Board;

/// How an instance survives the loss of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rescue {
    /// It fails over to its secondary.
    Failover,
    /// It is started elsewhere from shared storage.
    Evacuate,
    /// It is created anew.
    Recreate,
}

impl Rescue {
    fn of(template: DiskTemplate) -> Self {
        match (template, template.mirror()) {
            (_, MirrorClass::Internal) => Self::Failover,
            (DiskTemplate::Block, _) | (_, MirrorClass::None) => Self::Recreate,
            (_, MirrorClass::External) => Self::Evacuate,
        }
    }
}

/// A tentative placement as the test sees it.
#[derive(Clone, Copy, Debug)]
pub struct Tentative {
    /// The new instance's record.
    pub instance: InstanceIdx,
    /// An instance whose record the new one hides, because the reference numbers the new instance by the length
    /// of a list with gaps (algorithms spec §4.3).
    pub hidden: Option<InstanceIdx>,
}

/// Knows which nodes of a cluster can be emptied.
#[derive(Debug)]
pub struct Redundancy {
    nodes: Vec<NodeIdx>,
    /// Whether each node (by index) has only primaries that fail over.
    only_failover: Vec<bool>,
    /// Whether each such node can be emptied as things are; unset for the others.
    evacuable: Vec<bool>,
    /// How many of them cannot.
    stuck: usize,
    /// Nodes with other primaries.
    mixed: Vec<NodeIdx>,
}

impl Redundancy {
    /// Looks at all of `nodes` as things are. The cluster is left unchanged.
    pub fn new(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        let mut only_failover = vec![false; cluster.nodes.len()];
        let mut evacuable = vec![false; cluster.nodes.len()];
        let mut mixed = Vec::new();
        let mut stuck = 0;
        for &node in nodes {
            let primaries = &cluster.state(node).primaries;
            let simple = primaries.iter().all(|i| rescue(cluster, *i) == Rescue::Failover);
            only_failover[node.at()] = simple;
            if simple {
                evacuable[node.at()] = can_evacuate(cluster, nodes, node, None);
                stuck += usize::from(!evacuable[node.at()]);
            } else {
                mixed.push(node);
            }
        }
        Self { nodes: nodes.to_vec(), only_failover, evacuable, stuck, mixed }
    }

    /// Whether every node could still be emptied after `outcome`, which `cluster` reflects already.
    pub fn holds(&self, cluster: &mut Cluster, outcome: &Outcome, tentative: Tentative) -> bool {
        let mut affected: Vec<NodeIdx> = Vec::new();
        for change in outcome.changes() {
            affected.push(change.node);
            let secondaries = &cluster.state(change.node).secondaries;
            affected.extend(secondaries.iter().map(|i| cluster.instance(*i).primary));
        }
        if let Some(hidden) = tentative.hidden {
            affected.push(cluster.instance(hidden).primary);
        }
        affected.extend(&self.mixed);
        affected.sort_unstable();
        affected.dedup();
        let stuck_affected =
            affected.iter().filter(|n| self.only_failover[n.at()] && !self.evacuable[n.at()]).count();
        stuck_affected == self.stuck
            && affected
                .iter()
                .filter(|n| self.nodes.binary_search(n).is_ok())
                .all(|n| can_evacuate(cluster, &self.nodes, *n, Some(tentative)))
    }
}

fn rescue(cluster: &Cluster, index: InstanceIdx) -> Rescue {
    Rescue::of(cluster.instance(index).template)
}

/// Whether `node` could be emptied, given the nodes in `list`. The cluster is left unchanged.
pub fn can_evacuate(
    cluster: &mut Cluster,
    list: &[NodeIdx],
    node: NodeIdx,
    tentative: Option<Tentative>,
) -> bool {
    let mut attempt = Attempt { cluster, tentative, undo: Vec::new() };
    let possible = attempt.empty(list, node);
    attempt.take_back();
    possible
}

/// A simulated evacuation of one node.
struct Attempt<'a> {
    cluster: &'a mut Cluster,
    tentative: Option<Tentative>,
    undo: Vec<Undo>,
}

impl Attempt<'_> {
    fn take_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            self.cluster.undo(undo);
        }
    }

    fn empty(&mut self, list: &[NodeIdx], node: NodeIdx) -> bool {
        let mut primaries: Vec<InstanceIdx> = self.cluster.state(node).primaries.clone();
        primaries.reverse();
        if let Some(Tentative { instance, hidden: Some(hidden) }) = self.tentative {
            for index in &mut primaries {
                if *index == hidden {
                    *index = instance;
                }
            }
        }
        let of_class = |cluster: &Cluster, class: Rescue| -> Vec<InstanceIdx> {
            primaries.iter().copied().filter(|i| rescue(cluster, *i) == class).collect()
        };
        let evacuees = of_class(self.cluster, Rescue::Evacuate);
        let mut recreated = of_class(self.cluster, Rescue::Recreate);
        for index in of_class(self.cluster, Rescue::Failover) {
            if !self.fail_over(list, index) {
                return false;
            }
        }
        if evacuees.is_empty() && recreated.is_empty() {
            return true;
        }
        let group = self.cluster.node(node).group;
        let in_group: Vec<NodeIdx> =
            list.iter().copied().filter(|n| self.cluster.node(*n).group == group).collect();
        if self.surely_fits(&in_group, node, &evacuees, &recreated) {
            return true;
        }
        recreated.sort_by_key(|i| std::cmp::Reverse(self.cluster.instance(*i).memory));
        evacuees.into_iter().all(|index| self.evacuate(&in_group, node, index))
            && (recreated.is_empty() || self.recreate_all(list, &in_group, node, &recreated))
    }

    /// An instance that the reference does not find on a node when it leaves it: its record's index differs from
    /// the one in the lists, so that the node's list lengths stay too high.
    fn is_ghost(&self, index: InstanceIdx) -> bool {
        self.tentative.is_some_and(|t| t.instance == index)
    }

    fn apply(&mut self, index: InstanceIdx, outcome: Outcome) {
        let instance = self.cluster.instance(index);
        let (primary, secondary) = (instance.primary, instance.secondary);
        let outcome = if self.is_ghost(index) {
            outcome.map(|change| {
                if change.node == primary {
                    change.figures.primaries += 1;
                } else if Some(change.node) == secondary {
                    change.figures.secondaries += 1;
                }
            })
        } else {
            outcome
        };
        self.undo.push(self.cluster.apply(index, &outcome));
    }

    fn fail_over(&mut self, list: &[NodeIdx], index: InstanceIdx) -> bool {
        // A secondary that is not at hand cannot be relied upon.
        let reachable =
            self.cluster.instance(index).secondary.is_some_and(|s| list.binary_search(&s).is_ok());
        if !reachable {
            return false;
        }
        match Probe::new(self.cluster, index).judge(Move::Failover, true) {
            Ok(outcome) => {
                self.apply(index, outcome);
                true
            }
            Err(_) => false,
        }
    }

    /// Whether one node has room for everything at once: then every single step succeeds, whatever the order.
    fn surely_fits(
        &self,
        in_group: &[NodeIdx],
        node: NodeIdx,
        evacuees: &[InstanceIdx],
        recreated: &[InstanceIdx],
    ) -> bool {
        let cluster = &*self.cluster;
        let all = || evacuees.iter().chain(recreated).map(|i| cluster.instance(*i));
        let memory: i64 = all().map(|i| i.demand().used_memory).sum();
        let disk: i64 = all().filter(|i| i.template.local_storage()).map(|i| i.disk).sum();
        in_group.iter().any(|&target| {
            let (to, figures) = (cluster.node(target), cluster.figures(target));
            target != node
                && figures.unallocated_memory(to) > memory
                && (disk == 0 || (figures.free_disk > disk && !to.exclusive_storage))
                && (evacuees.is_empty() || cluster.migration_allowed(node, target))
                && recreated.iter().all(|i| {
                    let policy = &cluster.group(to.group).policy;
                    policy.check(cluster.instance(*i), to.exclusive_storage).is_ok()
                        && (disk > 0 || !cluster.instance(*i).template.local_storage())
                })
        })
    }

    /// Starts an instance on the best other node of the group, offline ones included.
    fn evacuate(&mut self, in_group: &[NodeIdx], node: NodeIdx, index: InstanceIdx) -> bool {
        let board = Board::new(self.cluster, in_group);
        let probe = Probe::new(self.cluster, index);
        let mut best: Option<(f64, Outcome)> = None;
        for &target in in_group.iter().filter(|t| **t != node) {
            let Ok(outcome) = probe.judge(Move::FailoverTo(target), true) else { continue };
            let outcome = self.as_seen(index, outcome);
            let located = board.located_delta_of(self.cluster, self.cluster.instance(index), &outcome);
            let limit = best.as_ref().map_or(f64::INFINITY, |b| b.0);
            if board.lower_bound(self.cluster, outcome.changes(), located) > limit {
                continue;
            }
            let score = board.exact(self.cluster, outcome.changes(), located);
            if best.as_ref().is_none_or(|b| !(b.0 < score)) {
                best = Some((score, outcome));
            }
        }
        match best {
            Some((_, outcome)) => {
                self.undo.push(self.cluster.apply(index, &outcome));
                true
            }
            None => false,
        }
    }

    fn as_seen(&self, index: InstanceIdx, outcome: Outcome) -> Outcome {
        if !self.is_ghost(index) {
            return outcome;
        }
        let primary = self.cluster.instance(index).primary;
        outcome.map(|change| {
            if change.node == primary {
                change.figures.primaries += 1;
            }
        })
    }

    /// Creates instances anew, each on the best other node of the group; they are not taken off the lost node.
    fn recreate_all(
        &mut self,
        list: &[NodeIdx],
        in_group: &[NodeIdx],
        node: NodeIdx,
        instances: &[InstanceIdx],
    ) -> bool {
        let targets: Vec<NodeIdx> = in_group.iter().copied().filter(|t| *t != node).collect();
        for &index in instances {
            let board = Board::new(self.cluster, list);
            let instance = self.cluster.instance(index).clone();
            let trial = crate::allocate::single(self.cluster, &board, &instance, &targets, true, |_, _| true);
            let Some(best) = trial.best else { return false };
            self.undo.push(self.cluster.add(instance, &best.outcome));
        }
        true
    }
}
