//! Placing a new instance on one node or on a pair of nodes (HT-allocate).

use std::cmp::Ordering;
use std::slice;

use cluster::{Change, Cluster, Demand, FailMode, GroupIdx, Instance, InstanceIdx, NodeIdx, Outcome};

use crate::board::Board;
use crate::order::BestFirst;
use crate::pair;
use crate::redundancy::{Redundancy, Tentative};

/// How often each reason refused a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Failures([u64; FailMode::ALL.len()]);

impl Failures {
    /// Counts one refusal.
    pub fn add(&mut self, mode: FailMode) {
        self.add_many(mode, 1);
    }

    /// Counts several refusals for the same reason.
    pub fn add_many(&mut self, mode: FailMode, count: u64) {
        self.0[mode as usize] += count;
    }

    /// Takes one refusal back.
    pub(crate) fn remove(&mut self, mode: FailMode) {
        self.0[mode as usize] -= 1;
    }

    /// Reasons that occurred, with how often, in order.
    pub fn reasons(&self) -> impl Iterator<Item = (FailMode, u64)> + '_ {
        FailMode::ALL.into_iter().zip(self.0).filter(|(_, count)| *count > 0)
    }

    /// How often this reason occurred.
    pub fn count(&self, mode: FailMode) -> u64 {
        self.0[mode as usize]
    }

    /// All refusals.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// A possible placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed<S> {
    /// What is best: less is better.
    pub score: S,
    /// The nodes and their new figures.
    pub outcome: Outcome,
}

impl<S> Placed<S> {
    /// The nodes, primary first.
    pub fn nodes(&self) -> Vec<NodeIdx> {
        std::iter::once(self.outcome.primary).chain(self.outcome.secondary).collect()
    }
}

/// What trying all nodes, or pairs of nodes, came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Trials<S> {
    /// The best placement.
    pub best: Option<Placed<S>>,
    /// How many placements are acceptable.
    pub successes: u64,
    /// Why the others are not.
    pub failures: Failures,
}

impl<S> Default for Trials<S> {
    fn default() -> Self {
        Self { best: None, successes: 0, failures: Failures::default() }
    }
}

impl<S> Trials<S> {
    /// The same with another kind of score.
    pub fn map<T>(self, score: impl FnOnce(S) -> T) -> Trials<T> {
        let best = self.best.map(|b| Placed { score: score(b.score), outcome: b.outcome });
        Trials { best, successes: self.successes, failures: self.failures }
    }
}

/// Where an instance may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// On one of these nodes.
    Single(Vec<NodeIdx>),
    /// On a primary and one of its possible secondaries.
    Pairs(PairTargets),
}

/// Pairs of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairTargets {
    /// Lists of possible secondaries, ascending.
    pub partners: Vec<Vec<NodeIdx>>,
    /// Primaries, ascending, and which list their secondaries are in; a primary is never its own secondary.
    pub primaries: Vec<(NodeIdx, usize)>,
}

/// Why no placement was even tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTargets {
    /// One node wanted, none online.
    #[error("No online nodes")]
    None,
    /// Two nodes wanted, no two online in one group.
    #[error("Not enough online nodes")]
    TooFew,
    /// Neither one nor two nodes wanted.
    #[error("Unsupported number of nodes, only one or two  supported")]
    Unsupported,
}

impl Targets {
    /// The targets among `nodes` (ascending) for an instance that needs `count` nodes; `allowed` restricts
    /// them by name.
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

/// How placements are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocOptions {
    /// Place instances even where policies or redundancy suffer.
    pub ignore_soft_errors: bool,
    /// Accept only placements after which every node could still be emptied.
    pub capacity_checks: bool,
}

/// The nodes and instances that a decision looks at: the whole cluster, or one group of it.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Nodes whose score counts and that must stay evacuable, ascending.
    pub nodes: Vec<NodeIdx>,
    /// Number of instances at hand; the reference gives this number to a new one.
    pub instances: usize,
    /// The group, if the scope is not the whole cluster.
    group: Option<cluster::GroupIdx>,
}

impl Scope {
    /// Everything.
    pub fn cluster(cluster: &Cluster) -> Self {
        Self { nodes: cluster.node_indices().collect(), instances: cluster.instances.len(), group: None }
    }

    /// One group's nodes, and the instances whose primary is there.
    pub fn group(cluster: &Cluster, group: cluster::GroupIdx) -> Self {
        Self {
            nodes: cluster.nodes_of(group),
            instances: cluster.instances_of(group).len(),
            group: Some(group),
        }
    }

    /// The instance that a new one hides, because it gets the same number.
    pub(crate) fn hidden(&self, cluster: &Cluster) -> Option<InstanceIdx> {
        let group = self.group?;
        let number = InstanceIdx::from_usize(self.instances);
        let at_hand = number.at() < cluster.instances.len() && cluster.group_of(number) == group;
        at_hand.then_some(number)
    }
}

/// Judges placements of new instances in a scope; prepared once, used for any number of instances and targets.
#[derive(Debug)]
pub struct Allocator {
    board: Board,
    redundancy: Option<Redundancy>,
    hidden: Option<InstanceIdx>,
    existing: Option<InstanceIdx>,
    force: bool,
}

impl Allocator {
    /// Looks at the scope as things are. The cluster is left unchanged.
    pub fn new(cluster: &mut Cluster, scope: &Scope, options: AllocOptions) -> Self {
        Self {
            board: Board::new(cluster, &scope.nodes),
            redundancy: options.capacity_checks.then(|| Redundancy::new(cluster, &scope.nodes)),
            hidden: scope.hidden(cluster),
            existing: None,
            force: options.ignore_soft_errors,
        }
    }

    /// The same for an instance that exists already: redundancy is judged by its record as it is.
    #[must_use]
    pub fn of_existing(self, index: InstanceIdx) -> Self {
        Self { existing: Some(index), ..self }
    }

    /// The score board of the scope.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Those of `nodes` that can take `instance`, best first: what becomes of each. Redundancy is not looked at.
    ///
    /// Each takes constant time, since bounds stand for scores. They differ by rounding alone, so this tells apart all that
    /// is not equal for practical purposes; of equals the latest comes first.
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

    /// Tries all targets for `instance`, whose tags must have been derived. The cluster is left unchanged.
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

/// The order of placements by bound, of equals the latest first.
fn before(one: &(f64, Change), other: &(f64, Change)) -> Ordering {
    one.0.total_cmp(&other.0).then(other.1.node.cmp(&one.1.node))
}

/// What becomes of a node if `instance` is put there, if it can be: policies and room are heeded.
pub fn placed_on(cluster: &Cluster, instance: &Instance, node: NodeIdx) -> Option<Outcome> {
    let mut attempt = OnOneNode::new(instance, false);
    let change = attempt.place(cluster, node).ok()?;
    Some(attempt.outcome(change))
}

/// An instance to be put on one of several nodes.
struct OnOneNode<'a> {
    instance: &'a Instance,
    demand: Demand,
    force: bool,
    /// Group and kind of storage of the last node, and what its policy says: most nodes are alike in these.
    policy: Option<((GroupIdx, bool), Result<(), FailMode>)>,
}

impl<'a> OnOneNode<'a> {
    fn new(instance: &'a Instance, force: bool) -> Self {
        Self { instance, demand: instance.demand(), force, policy: None }
    }

    /// The figures that result.
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

/// What becomes of one node if an instance is put there by force, if that is possible.
pub(crate) fn by_force(cluster: &Cluster, instance: &Instance, node: NodeIdx) -> Option<Outcome> {
    let mut attempt = OnOneNode::new(instance, true);
    let change = attempt.place(cluster, node).ok()?;
    Some(attempt.outcome(change))
}

/// Tries single nodes. Equal scores: the latest wins. `acceptable` is asked about the best ones until it
/// agrees; each refusal counts as [`FailMode::N1`].
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
