//! Placing a new instance on one node or on a pair of nodes (HT-allocate).

use std::cmp::Ordering;
use std::slice;

use cluster::{Change, Cluster, Demand, FailMode, GroupIdx, Instance, InstanceIdx, NodeIdx, Outcome};

use crate::board::Board;
use crate::order::BestFirst;
use crate::pair;
use crate::redundancy::{Redundancy, Tentative};

/// Number of refused placements by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Failures([u64; FailMode::ALL.len()]);

impl Failures {
    pub fn add(&mut self, mode: FailMode) {
        self.add_many(mode, 1);
    }

    pub fn add_many(&mut self, mode: FailMode, count: u64) {
        self.0[mode as usize] += count;
    }

    pub(crate) fn remove(&mut self, mode: FailMode) {
        self.0[mode as usize] -= 1;
    }

    /// Reasons that occurred with their counts, in the order of [`FailMode::ALL`].
    pub fn reasons(&self) -> impl Iterator<Item = (FailMode, u64)> + '_ {
        FailMode::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    pub fn count(&self, mode: FailMode) -> u64 {
        self.0[mode as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// A possible placement and its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<S> {
    /// Lower is better.
    pub score: S,
    pub outcome: Outcome,
}

impl<S> Placed<S> {
    /// Primary first.
    pub fn nodes(&self) -> Vec<NodeIdx> {
        std::iter::once(self.outcome.primary).chain(self.outcome.secondary).collect()
    }
}

/// Result of trying an instance on all target nodes or pairs of nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Trials<S> {
    /// `None` if every placement was refused.
    pub best: Option<Placed<S>>,
    /// Number of placements that were not refused.
    pub successes: u64,
    /// Refused placements.
    pub failures: Failures,
}

impl<S> Default for Trials<S> {
    fn default() -> Self {
        Self { best: None, successes: 0, failures: Failures::default() }
    }
}

impl<S> Trials<S> {
    /// Converts the score of the best placement.
    pub fn map<T>(self, score: impl FnOnce(S) -> T) -> Trials<T> {
        let best = self.best.map(|b| Placed { score: score(b.score), outcome: b.outcome });
        Trials { best, successes: self.successes, failures: self.failures }
    }
}

/// Nodes or pairs of nodes to try for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    Single(Vec<NodeIdx>),
    Pairs(PairTargets),
}

/// Pairs of primary and secondary. The primaries of a group share one list of secondaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairTargets {
    /// Lists of possible secondaries, each ascending.
    pub partners: Vec<Vec<NodeIdx>>,
    /// Primaries, ascending, each with the index of its list in `partners`. The list includes the primary
    /// itself, which is never its own secondary.
    pub primaries: Vec<(NodeIdx, usize)>,
}

/// Reason why no placement is even tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTargets {
    /// One node is needed, but none is online.
    #[error("No online nodes")]
    None,
    /// Two nodes are needed, but no group has two online.
    #[error("Not enough online nodes")]
    TooFew,
    /// Neither one nor two nodes are needed.
    #[error("Unsupported number of nodes, only one or two  supported")]
    Unsupported,
}

impl Targets {
    /// Targets among the online nodes of `nodes` (ascending) for an instance that needs `count` nodes.
    /// `allowed` restricts them by name; `None` allows all.
    pub fn new(
        cluster: &Cluster,
        nodes: &[NodeIdx],
        count: i64,
        allowed: Option<&[String]>,
    ) -> Result<Self, NoTargets> {
        let usable: Vec<NodeIdx> = nodes
            .iter()
            .copied()
            .filter(|n| cluster.node(*n).online())
            .filter(|n| allowed.is_none_or(|names| names.iter().any(|name| *name == cluster.node(*n).name)))
            .collect();
        match count {
            1 if usable.is_empty() => Err(NoTargets::None),
            1 => Ok(Self::Single(usable)),
            2 => {
                let mut pairs = PairTargets { partners: Vec::new(), primaries: Vec::new() };
                let mut list_of_group: Vec<Option<usize>> = vec![None; cluster.groups.len()];
                for &node in &usable {
                    let list = *list_of_group[cluster.node(node).group.at()].get_or_insert_with(|| {
                        pairs.partners.push(Vec::new());
                        pairs.partners.len() - 1
                    });
                    pairs.partners[list].push(node);
                    pairs.primaries.push((node, list));
                }
                let PairTargets { partners, primaries } = &mut pairs;
                primaries.retain(|(_, list)| partners[*list].len() > 1);
                if primaries.is_empty() { Err(NoTargets::TooFew) } else { Ok(Self::Pairs(pairs)) }
            }
            _ => Err(NoTargets::Unsupported),
        }
    }
}

/// Rules for accepting a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocOptions {
    /// Place instances even if policies or redundancy suffer.
    pub ignore_soft_errors: bool,
    /// Accept only placements after which every node can still be emptied (global N+1).
    pub capacity_checks: bool,
}

/// Nodes and instances that a decision considers: the whole cluster or one group.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Nodes whose score counts and that must stay evacuable, ascending.
    pub nodes: Vec<NodeIdx>,
    /// Number of instances in scope. The reference assigns this number to a new instance.
    pub instances: usize,
    /// `None` for the whole cluster.
    group: Option<cluster::GroupIdx>,
}

impl Scope {
    pub fn cluster(cluster: &Cluster) -> Self {
        Self { nodes: cluster.node_indices().collect(), instances: cluster.instances.len(), group: None }
    }

    /// A group's nodes, and the instances with their primary there.
    pub fn group(cluster: &Cluster, group: cluster::GroupIdx) -> Self {
        Self {
            nodes: cluster.nodes_of(group),
            instances: cluster.instances_of(group).len(),
            group: Some(group),
        }
    }

    /// The existing instance that a new one hides by getting the same number.
    pub(crate) fn hidden(&self, cluster: &Cluster) -> Option<InstanceIdx> {
        let group = self.group?;
        let number = InstanceIdx::from_usize(self.instances);
        let at_hand = number.at() < cluster.instances.len() && cluster.group_of(number) == group;
        at_hand.then_some(number)
    }
}

/// Evaluates placements of new instances in a scope. Prepare it once, then use it for any number of instances
/// and targets.
#[derive(Debug)]
pub struct Allocator {
    board: Board,
    redundancy: Option<Redundancy>,
    hidden: Option<InstanceIdx>,
    existing: Option<InstanceIdx>,
    force: bool,
}

impl Allocator {
    /// Prepares an allocator for the current state of the scope. Leaves the cluster unchanged.
    pub fn new(cluster: &mut Cluster, scope: &Scope, options: AllocOptions) -> Self {
        Self {
            board: Board::new(cluster, &scope.nodes),
            redundancy: options.capacity_checks.then(|| Redundancy::new(cluster, &scope.nodes)),
            hidden: scope.hidden(cluster),
            existing: None,
            force: options.ignore_soft_errors,
        }
    }

    /// Adapts the allocator to an instance that already exists: redundancy checks use its record as it is.
    #[must_use]
    pub fn of_existing(self, index: InstanceIdx) -> Self {
        Self { existing: Some(index), ..self }
    }

    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Outcomes of placing `instance` on each of `nodes` that can take it, best first. Ignores redundancy.
    ///
    /// Takes constant time per node, because it compares lower bounds instead of exact scores. They differ
    /// only by rounding, so the order distinguishes everything that isn't equal for practical purposes. Among
    /// equals, the latest node comes first.
    pub fn ranked(&self, cluster: &Cluster, instance: &Instance, nodes: &[NodeIdx]) -> Vec<Outcome> {
        let (mut judged, attempt) = self.judged(cluster, instance, nodes);
        judged.sort_unstable_by(before);
        judged.into_iter().map(|(_, change)| attempt.outcome(change)).collect()
    }

    /// The first of [`Self::ranked`].
    pub fn best_of(&self, cluster: &Cluster, instance: &Instance, nodes: &[NodeIdx]) -> Option<Outcome> {
        let (judged, attempt) = self.judged(cluster, instance, nodes);
        let best = judged.into_iter().min_by(before)?;
        Some(attempt.outcome(best.1))
    }

    fn judged<'i>(
        &self,
        cluster: &Cluster,
        instance: &'i Instance,
        nodes: &[NodeIdx],
    ) -> (Vec<(f64, Change)>, OnOneNode<'i>) {
        let mut attempt = OnOneNode::new(instance, self.force);
        let judge = |node: &NodeIdx| {
            let change = attempt.place(cluster, *node).ok()?;
            let located = self.board.located_delta_of_new(cluster, instance, *node);
            Some((self.board.lower_bound(cluster, slice::from_ref(&change), located), change))
        };
        (nodes.iter().filter_map(judge).collect(), attempt)
    }

    /// Tries all targets for `instance`, whose tags must already be derived. Leaves the cluster unchanged.
    pub fn try_all(&self, cluster: &mut Cluster, instance: &Instance, targets: &Targets) -> Trials<f64> {
        let number = InstanceIdx::from_usize(cluster.instances.len());
        let tentative = Tentative { instance: number, hidden: self.hidden, existing: self.existing };
        let inquiry = self.redundancy.as_ref().map(|r| r.inquiry(cluster, instance, Some(tentative)));
        let acceptable = |cluster: &mut Cluster, outcome: &Outcome| {
            let Some(inquiry) = &inquiry else { return true };
            let undo = cluster.add(instance.clone(), outcome);
            let holds = inquiry.holds(cluster, outcome);
            cluster.undo(undo);
            holds
        };
        match targets {
            Targets::Single(nodes) => single(cluster, &self.board, instance, nodes, self.force, acceptable),
            Targets::Pairs(pairs) => {
                let acceptable = self.redundancy.is_some().then_some(acceptable);
                pair::best_pair(cluster, &self.board, instance, pairs, self.force, acceptable)
            }
        }
    }
}

/// Orders placements by bound; among equals, the latest node comes first.
fn before(one: &(f64, Change), other: &(f64, Change)) -> Ordering {
    one.0.total_cmp(&other.0).then(other.1.node.cmp(&one.1.node))
}

/// Outcome of placing `instance` on `node`; `None` if policies or capacity rule it out.
pub fn placed_on(cluster: &Cluster, instance: &Instance, node: NodeIdx) -> Option<Outcome> {
    let mut attempt = OnOneNode::new(instance, false);
    let change = attempt.place(cluster, node).ok()?;
    Some(attempt.outcome(change))
}

/// Tries an instance on one node after another.
struct OnOneNode<'a> {
    instance: &'a Instance,
    demand: Demand,
    force: bool,
    /// Policy verdict for the group and storage kind of the last node. Cached because most nodes share both.
    policy: Option<((GroupIdx, bool), Result<(), FailMode>)>,
}

impl<'a> OnOneNode<'a> {
    fn new(instance: &'a Instance, force: bool) -> Self {
        Self { instance, demand: instance.demand(), force, policy: None }
    }

    /// Computes the node's figures with the instance added.
    fn place(&mut self, cluster: &Cluster, node: NodeIdx) -> Result<Change, FailMode> {
        let (target, state) = (cluster.node(node), cluster.state(node));
        let kind = (target.group, target.exclusive_storage);
        let allowed = match self.policy {
            Some((known, allowed)) if known == kind => allowed,
            _ => cluster.group(kind.0).policy.check(self.instance, kind.1),
        };
        self.policy = Some((kind, allowed));
        allowed?;
        let figures = state.figures.add_primary(
            target,
            &self.demand,
            state.tag_effect(&self.instance.exclusion_tags),
            self.instance.location_score + cluster.unmet_wishes(self.instance, node),
            self.force,
        )?;
        Ok(Change { node, figures })
    }

    fn outcome(&self, change: Change) -> Outcome {
        Outcome::one(change, change.node, None, self.instance.location_score)
    }
}

/// Outcome of forcing an instance onto a node; `None` if even that is impossible.
pub(crate) fn by_force(cluster: &Cluster, instance: &Instance, node: NodeIdx) -> Option<Outcome> {
    let mut attempt = OnOneNode::new(instance, true);
    let change = attempt.place(cluster, node).ok()?;
    Some(attempt.outcome(change))
}

/// Tries single nodes. Among equal scores, the latest node wins. `acceptable` is asked about the best
/// placements until it agrees; each refusal counts as [`FailMode::N1`].
pub(crate) fn single(
    cluster: &mut Cluster,
    board: &Board,
    instance: &Instance,
    nodes: &[NodeIdx],
    force: bool,
    mut acceptable: impl FnMut(&mut Cluster, &Outcome) -> bool,
) -> Trials<f64> {
    let mut trials = Trials::default();
    let mut possible: Vec<(Change, i64)> = Vec::new();
    let mut attempt = OnOneNode::new(instance, force);
    for &node in nodes {
        match attempt.place(cluster, node) {
            Ok(change) => possible.push((change, board.located_delta_of_new(cluster, instance, node))),
            Err(mode) => trials.failures.add(mode),
        }
    }
    let bound =
        |(change, located): &(Change, i64)| board.lower_bound(cluster, slice::from_ref(change), *located);
    let mut order = BestFirst::new(possible.iter().map(bound));
    let mut rejected = 0;
    while let Some((position, score)) = order.next(|position| {
        let (change, located) = &possible[position];
        board.exact(cluster, slice::from_ref(change), *located)
    }) {
        let outcome = attempt.outcome(possible[position].0);
        if acceptable(cluster, &outcome) {
            trials.best = Some(Placed { score, outcome });
            break;
        }
        rejected += 1;
    }
    trials.failures.add_many(FailMode::N1, rejected);
    trials.successes = possible.len() as u64 - rejected;
    trials
}
