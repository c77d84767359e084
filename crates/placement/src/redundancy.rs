//! Global N+1: could every node be evacuated if it were lost? (HT-redundancy)
//!
//! [`Redundancy`] is prepared once for a cluster and then asked about many tentative placements. If all
//! primaries of a node are DRBD, only a placement on the node itself or on one of their secondaries can
//! affect it. If all primaries would be started or created on other nodes, counting [`Slots`] decides about
//! most nodes at once. Most remaining verdicts don't need the reference's greedy simulation either.

#[cfg(test)]
mod tests;

use std::cell::RefCell;

use cluster::{Cluster, Instance, InstanceIdx, Move, NodeIdx, Outcome, Probe, Undo};

use crate::allocate;
use crate::board::Board;
use crate::displaced::{Displaced, Rescue};
use crate::evacuate::Latest;
use crate::evacuation::used_memory;
use crate::slots::{Count, Newcomer, Slots, Tables};

/// A tentative placement as the test sees it.
#[derive(Clone, Copy, Debug)]
pub struct Tentative {
    /// Record of the new instance.
    pub instance: InstanceIdx,
    /// An instance hidden by the new one's record, because the reference numbers the new instance by the
    /// length of a list with gaps (HT-allocate).
    pub hidden: Option<InstanceIdx>,
    /// The existing record, if the instance isn't new. The reference lists the instance on its new nodes
    /// under its own number, which still leads to that record (HT-convert, HT-change-group).
    pub existing: Option<InstanceIdx>,
}

impl Tentative {
    /// Resolves a number in a node's list to a record.
    fn record(self, listed: InstanceIdx) -> InstanceIdx {
        match self.existing {
            _ if Some(listed) == self.hidden => self.instance,
            Some(existing) if listed == self.instance => existing,
            _ => listed,
        }
    }
}

/// Knows the evacuable nodes of a cluster and keeps track of changes.
#[derive(Debug)]
pub struct Redundancy {
    /// Nodes in scope, ascending.
    nodes: Vec<NodeIdx>,
    /// Nodes that must stay evacuable, ascending.
    tested: Vec<NodeIdx>,
    /// Knowledge about each node, by index. Only entries of tested nodes are valid.
    knowledge: Vec<Knowledge>,
    /// Slots of each group whose table isn't too large.
    slots: Tables,
    /// Number of nodes known not to be evacuable.
    stuck: usize,
    /// Nodes that any placement can affect, ascending.
    open: Vec<NodeIdx>,
    /// Nodes that couldn't be evacuated after some placement, latest last. They are likely to fail again, so
    /// they are checked first. The order doesn't affect results.
    suspects: RefCell<Vec<NodeIdx>>,
}

/// Knowledge about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knowledge {
    /// Any placement can change whether it is evacuable.
    Open,
    /// Its group's slots decide.
    Counted,
    /// Whether it is evacuable. Only a placement on it, or on secondaries of its primaries, can change that.
    Settled(bool),
}

/// Maximum number of nodes that a placement changes.
const NODES_OF_A_PLACEMENT: usize = 2;

impl Redundancy {
    /// Checks the current state of all `nodes`. The cluster is unchanged on return.
    pub fn new(cluster: &mut Cluster, nodes: &[NodeIdx]) -> Self {
        Self::among(cluster, nodes, nodes)
    }

    /// Like [`Self::new`], but only the nodes `tested` must stay evacuable, to any of `nodes`.
    pub fn among(cluster: &mut Cluster, nodes: &[NodeIdx], tested: &[NodeIdx]) -> Self {
        let mut redundancy = Self {
            nodes: nodes.to_vec(),
            tested: tested.to_vec(),
            knowledge: vec![Knowledge::Open; cluster.nodes.len()],
            slots: Tables::new(cluster, nodes, tested),
            stuck: 0,
            open: Vec::new(),
            suspects: RefCell::default(),
        };
        for node in tested {
            redundancy.knowledge[node.at()] = redundancy.look_at(cluster, *node);
        }
        redundancy.count();
        redundancy
    }

    fn look_at(&self, cluster: &mut Cluster, node: NodeIdx) -> Knowledge {
        if self.slots.counts(node) {
            return Knowledge::Counted;
        }
        if only_fails_over(cluster, node) {
            return Knowledge::Settled(can_evacuate(cluster, &self.nodes, node, None));
        }
        match without_simulation(cluster, &self.nodes, node, None, NODES_OF_A_PLACEMENT) {
            Some(true) => Knowledge::Settled(true),
            _ => Knowledge::Open,
        }
    }

    fn count(&mut self) {
        let with = |wanted: Knowledge| {
            let knowledge = &self.knowledge;
            self.tested.iter().copied().filter(move |n| knowledge[n.at()] == wanted)
        };
        let open = with(Knowledge::Open).collect();
        self.stuck = with(Knowledge::Settled(false)).count();
        self.open = open;
    }

    /// Records a placement that changed the nodes `changed`. `cluster` is the cluster *after* it.
    pub fn update(&mut self, cluster: &mut Cluster, changed: &[NodeIdx]) {
        self.slots.update(cluster, changed, &self.tested);
        let affected = affected_by(cluster, changed);
        for position in 0..self.tested.len() {
            let node = self.tested[position];
            let counted = self.knowledge[node.at()] == Knowledge::Counted;
            // A table is dropped once it grows too large.
            let has_lost_table = counted && !self.slots.counts(node);
            let is_affected = affected.binary_search(&node).is_ok();
            // If instances can be started or created again, each placement uses up some of the spare
            // capacity.
            if is_affected || has_lost_table || !(counted || only_fails_over(cluster, node)) {
                self.knowledge[node.at()] = self.look_at(cluster, node);
            }
        }
        self.count();
    }

    /// Prepares questions about placements of `instance` on the current cluster.
    pub fn inquiry(
        &self,
        cluster: &Cluster,
        instance: &Instance,
        tentative: Option<Tentative>,
    ) -> Inquiry<'_> {
        // Counts for the node of a hidden instance are wrong.
        let sure = tentative.is_none_or(|t| t.hidden.is_none());
        let is_new = tentative.is_none_or(|t| t.existing.is_none());
        let groups = self.slots.0.iter().map(|slots| GroupInquiry {
            slots,
            newcomer: slots.newcomer(cluster, instance, is_new),
            standing: slots.standing_beside(&self.nodes, sure),
        });
        Inquiry { redundancy: self, tentative, sure, groups: groups.collect() }
    }

    /// Whether every node could still be evacuated after `outcome`, which `cluster` already includes. Slots
    /// have decided about all nodes except `unsettled`.
    fn holds(
        &self,
        cluster: &mut Cluster,
        outcome: &Outcome,
        tentative: Option<Tentative>,
        unsettled: &[NodeIdx],
    ) -> bool {
        let changed: Vec<NodeIdx> = outcome.changes().iter().map(|change| change.node).collect();
        let mut affected = affected_by(cluster, &changed);
        if let Some(hidden) = tentative.and_then(|t| t.hidden) {
            affected.push(cluster.instance(hidden).primary);
        }
        affected.retain(|n| self.knowledge[n.at()] != Knowledge::Counted);
        affected.extend(&self.open);
        affected.extend(unsettled);
        affected.sort_unstable();
        affected.dedup();
        affected.retain(|n| self.tested.binary_search(n).is_ok());
        let stuck_affected =
            affected.iter().filter(|n| self.knowledge[n.at()] == Knowledge::Settled(false)).count();
        if stuck_affected != self.stuck {
            return false;
        }
        let stuck = self.find_stuck(cluster, &changed, &affected, tentative);
        // A node changed by this placement isn't a suspect for the next one, which changes another node.
        if let Some(stuck) = stuck.filter(|n| !changed.contains(n)) {
            let mut suspects = self.suspects.borrow_mut();
            suspects.retain(|n| *n != stuck);
            suspects.push(stuck);
        }
        stuck.is_none()
    }

    /// Finds a node that can't be evacuated. The most recent suspect is the most likely one, followed by the
    /// changed nodes, which have more instances than before. For the rest, cheap arguments are tried on every
    /// node before the first simulation.
    fn find_stuck(
        &self,
        cluster: &mut Cluster,
        changed: &[NodeIdx],
        nodes: &[NodeIdx],
        tentative: Option<Tentative>,
    ) -> Option<NodeIdx> {
        let suspects = self.suspects.borrow();
        let concerned = |n: &NodeIdx| nodes.binary_search(n).is_ok();
        let mut likely = suspects.last().into_iter().chain(changed).copied().filter(concerned);
        let stuck = likely.find(|n| !can_evacuate(cluster, &self.nodes, *n, tentative));
        if stuck.is_some() {
            return stuck;
        }
        let suspected = suspects.iter().rev().skip(1).copied().filter(concerned);
        let others = nodes.iter().copied().filter(|n| !suspects.contains(n));
        let (counted, others): (Vec<NodeIdx>, Vec<NodeIdx>) = suspected
            .chain(others)
            .filter(|n| !changed.contains(n))
            .partition(|n| self.knowledge[n.at()] == Knowledge::Counted);
        let mut undecided = Vec::new();
        for node in others {
            match without_simulation(cluster, &self.nodes, node, tentative, 0) {
                Some(true) => {}
                Some(false) => return Some(node),
                None => undecided.push(node),
            }
        }
        // If slots don't decide about these nodes, other cheap arguments don't either.
        let hides = tentative.is_some_and(|t| t.hidden.is_some());
        let changes = self.slots.changed(cluster, changed);
        let proved = |node: NodeIdx| !hides && self.slots.prove(node, &changes);
        let mut simulate = |node: &NodeIdx| !by_simulation(cluster, &self.nodes, *node, tentative);
        undecided
            .into_iter()
            .find(&mut simulate)
            .or_else(|| counted.into_iter().find(|node| !proved(*node) && simulate(node)))
    }
}

/// Answers questions about placements of an instance.
#[derive(Debug)]
pub struct Inquiry<'a> {
    redundancy: &'a Redundancy,
    tentative: Option<Tentative>,
    /// Whether counts against a node are reliable.
    sure: bool,
    groups: Vec<GroupInquiry<'a>>,
}

/// One group's input to an inquiry.
#[derive(Debug)]
struct GroupInquiry<'a> {
    slots: &'a Slots,
    /// The instance as the group sees it.
    newcomer: Newcomer,
    /// Verdict on the group's nodes if the instance is placed in another group.
    standing: Count,
}

impl Inquiry<'_> {
    /// Whether every node could still be evacuated after `outcome`, which `cluster` already includes.
    pub fn holds(&self, cluster: &mut Cluster, outcome: &Outcome) -> bool {
        let group = cluster.node(outcome.primary).group;
        let mut unsettled: Vec<NodeIdx> = Vec::new();
        for GroupInquiry { slots, newcomer, standing } in &self.groups {
            let counted =
                (slots.group() == group).then(|| slots.after(cluster, newcomer, outcome, self.sure));
            match counted.as_ref().unwrap_or(standing) {
                Count::Stuck => return false,
                Count::Unsettled(nodes) => unsettled.extend(nodes),
            }
        }
        let hidden = self.tentative.and_then(|t| t.hidden);
        unsettled.extend(hidden.map(|hidden| cluster.instance(hidden).primary));
        self.redundancy.holds(cluster, outcome, self.tentative, &unsettled)
    }
}

/// Nodes that a placement can affect although all their primaries fail over, ascending: the changed nodes,
/// and nodes whose instances fail over to them.
fn affected_by(cluster: &Cluster, changed: &[NodeIdx]) -> Vec<NodeIdx> {
    let mut affected: Vec<NodeIdx> = changed.to_vec();
    for node in changed {
        affected.extend(cluster.state(*node).secondaries.iter().map(|i| cluster.instance(*i).primary));
    }
    affected.sort_unstable();
    affected.dedup();
    affected
}

fn only_fails_over(cluster: &Cluster, node: NodeIdx) -> bool {
    cluster.state(node).primaries.iter().all(|i| rescue(cluster, *i) == Rescue::Failover)
}

/// Whether all of `tested` can be evacuated to the nodes in `list`. The cluster is unchanged on return.
pub fn all_evacuable(cluster: &mut Cluster, list: &[NodeIdx], tested: &[NodeIdx]) -> bool {
    tested.iter().all(|node| can_evacuate(cluster, list, *node, None))
}

fn rescue(cluster: &Cluster, index: InstanceIdx) -> Rescue {
    Rescue::of(cluster.instance(index).template)
}

/// Whether `node` could be evacuated to the nodes in `list`. The cluster is unchanged on return.
pub fn can_evacuate(
    cluster: &mut Cluster,
    list: &[NodeIdx],
    node: NodeIdx,
    tentative: Option<Tentative>,
) -> bool {
    match without_simulation(cluster, list, node, tentative, 0) {
        Some(verdict) => verdict,
        None => by_simulation(cluster, list, node, tentative),
    }
}

/// Whether `node` can't be evacuated, and still couldn't be after further placements that only use up
/// capacity.
///
/// The arguments that replace a simulation remain valid after such placements. The outcome of a simulation
/// might not.
pub fn surely_stuck(cluster: &Cluster, list: &[NodeIdx], node: NodeIdx) -> bool {
    without_simulation(cluster, list, node, None, 0) == Some(false)
}

/// Like [`can_evacuate`], but simulates the evacuation step by step as the reference does.
pub fn by_simulation(
    cluster: &mut Cluster,
    list: &[NodeIdx],
    node: NodeIdx,
    tentative: Option<Tentative>,
) -> bool {
    let mut attempt = Attempt { cluster, tentative, undo: Vec::new(), stuck: Vec::new() };
    let possible = attempt.empty(list, node);
    attempt.take_back();
    possible
}

/// Instances that fit nowhere if `node` is lost and the nodes in `list` remain; empty if all fit. If the
/// instances that would be created again don't all fit, the list contains every one of these. The cluster is
/// unchanged on return.
pub fn stuck_instances(cluster: &mut Cluster, list: &[NodeIdx], node: NodeIdx) -> Vec<InstanceIdx> {
    let mut attempt = Attempt { cluster, tentative: None, undo: Vec::new(), stuck: Vec::new() };
    let possible = attempt.empty(list, node);
    attempt.take_back();
    if possible { Vec::new() } else { attempt.stuck }
}

/// Verdict, if it can be reached without simulating the evacuation.
///
/// Failover is all or nothing: when forced, an instance needs memory on its secondary that isn't used up by
/// other instances failing over to the same node. Disks and spindles are released and taken again. Instances
/// that are started or created elsewhere are left to [`Evacuation`](crate::evacuation::Evacuation). Success
/// remains valid if up to `spare` nodes change.
fn without_simulation(
    cluster: &Cluster,
    list: &[NodeIdx],
    node: NodeIdx,
    tentative: Option<Tentative>,
    spare: usize,
) -> Option<bool> {
    let substituted = |listed: &InstanceIdx| tentative.is_some_and(|t| t.record(*listed) != *listed);
    if tentative.is_some_and(|t| t.hidden.is_some()) || cluster.state(node).primaries.iter().any(substituted)
    {
        return None;
    }
    let mut moved_to: Vec<(NodeIdx, i64)> = Vec::new();
    let mut displaced = Displaced::default();
    // The reference processes the latest instance first.
    for &index in cluster.state(node).primaries.iter().rev() {
        let instance = cluster.instance(index);
        if Rescue::of(instance.template) != Rescue::Failover {
            displaced.add(index, instance);
            continue;
        }
        let used = used_memory(instance);
        if used < 0 {
            return None;
        }
        let Some(secondary) = failover_target(cluster, list, node, instance) else { return Some(false) };
        match moved_to.iter_mut().find(|(to, _)| *to == secondary) {
            Some((_, memory)) => *memory += used,
            None => moved_to.push((secondary, used)),
        }
    }
    let left = |index: NodeIdx| {
        let added = moved_to.iter().find(|(to, _)| *to == index).map_or(0, |(_, memory)| *memory);
        cluster.figures(index).unallocated_memory(cluster.node(index)) - added
    };
    if moved_to.iter().any(|(to, _)| left(*to) <= 0) {
        return Some(false);
    }
    if displaced.is_empty() {
        return Some(true);
    }
    displaced.evacuation(cluster, list, node, left)?.verdict(spare)
}

/// Node that an instance would fail over to, if disks, spindles and migration tags allow it.
fn failover_target(
    cluster: &Cluster,
    list: &[NodeIdx],
    from: NodeIdx,
    instance: &Instance,
) -> Option<NodeIdx> {
    let secondary = instance.secondary.filter(|s| list.binary_search(s).is_ok())?;
    let takes_storage = |index: NodeIdx, ignore_disk: bool| {
        let (node, figures) = (cluster.node(index), cluster.figures(index));
        (ignore_disk || figures.free_disk > 0)
            && (!node.exclusive_storage
                || (figures.free_spindles >= 0 && instance.total_spindles().is_some()))
    };
    let possible = cluster.migration_allowed(from, secondary)
        && takes_storage(secondary, false)
        && takes_storage(from, cluster.node(from).offline);
    possible.then_some(secondary)
}

/// A simulated evacuation of one node.
struct Attempt<'a> {
    cluster: &'a mut Cluster,
    tentative: Option<Tentative>,
    undo: Vec<Undo>,
    /// Instances that fit nowhere.
    stuck: Vec<InstanceIdx>,
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
        if let Some(tentative) = self.tentative {
            for index in &mut primaries {
                *index = tentative.record(*index);
            }
        }
        let of_class = |cluster: &Cluster, class: Rescue| -> Vec<InstanceIdx> {
            primaries.iter().copied().filter(|i| rescue(cluster, *i) == class).collect()
        };
        let evacuees = of_class(self.cluster, Rescue::Evacuate);
        let mut recreated = of_class(self.cluster, Rescue::Recreate);
        for index in of_class(self.cluster, Rescue::Failover) {
            if !self.fail_over(list, index) {
                self.stuck.push(index);
                return false;
            }
        }
        if evacuees.is_empty() && recreated.is_empty() {
            return true;
        }
        let group = self.cluster.node(node).group;
        let in_group: Vec<NodeIdx> =
            list.iter().copied().filter(|n| self.cluster.node(*n).group == group).collect();
        recreated.sort_by_key(|i| std::cmp::Reverse(self.cluster.instance(*i).memory));
        for index in evacuees {
            if !self.evacuate(&in_group, node, index) {
                self.stuck.push(index);
                return false;
            }
        }
        let possible = recreated.is_empty() || self.recreate_all(list, &in_group, node, &recreated);
        if !possible {
            self.stuck = recreated;
        }
        possible
    }

    /// Whether the reference fails to find the instance on a node when it leaves it. Its record's index
    /// differs from the one in the node's lists, so their lengths stay too high.
    fn is_ghost(&self, index: InstanceIdx) -> bool {
        self.tentative.is_some_and(|t| t.instance == index)
    }

    fn apply(&mut self, index: InstanceIdx, outcome: &Outcome) {
        let outcome = self.as_seen(index, outcome);
        self.undo.push(self.cluster.apply(index, &outcome));
    }

    /// The outcome as the reference sees it; see [`Self::is_ghost`].
    fn as_seen(&self, index: InstanceIdx, outcome: &Outcome) -> Outcome {
        if !self.is_ghost(index) {
            return *outcome;
        }
        let instance = self.cluster.instance(index);
        outcome.map(|change| {
            if change.node == instance.primary {
                change.figures.primaries += 1;
            } else if Some(change.node) == instance.secondary {
                change.figures.secondaries += 1;
            }
        })
    }

    fn fail_over(&mut self, list: &[NodeIdx], index: InstanceIdx) -> bool {
        // A secondary outside `list` can't be relied on.
        let reachable =
            self.cluster.instance(index).secondary.is_some_and(|s| list.binary_search(&s).is_ok());
        if !reachable {
            return false;
        }
        match Probe::new(self.cluster, index).judge(Move::Failover, true) {
            Ok(outcome) => {
                self.apply(index, &outcome);
                true
            }
            Err(_) => false,
        }
    }

    /// Starts an instance on the best other node of the group. Offline nodes are included.
    fn evacuate(&mut self, in_group: &[NodeIdx], node: NodeIdx, index: InstanceIdx) -> bool {
        let board = Board::new(self.cluster, in_group);
        let probe = Probe::new(self.cluster, index);
        let mut best = Latest(None);
        for &target in in_group.iter().filter(|t| **t != node) {
            let Ok(outcome) = probe.judge(Move::FailoverTo(target), true) else { continue };
            let outcome = self.as_seen(index, &outcome);
            let located = board.located_delta_of(self.cluster, self.cluster.instance(index), &outcome);
            let hopeless = board.lower_bound(self.cluster, outcome.changes(), located) > best.limit();
            if !hopeless {
                best.offer(board.exact(self.cluster, outcome.changes(), located), outcome);
            }
        }
        match best.0 {
            Some((_, outcome)) => {
                self.undo.push(self.cluster.apply(index, &outcome));
                true
            }
            None => false,
        }
    }

    /// Creates instances again, each on the best other node of the group. They aren't removed from the lost
    /// node.
    ///
    /// The simulation stops as soon as the outcome for the remaining instances is certain.
    fn recreate_all(
        &mut self,
        list: &[NodeIdx],
        in_group: &[NodeIdx],
        node: NodeIdx,
        instances: &[InstanceIdx],
    ) -> bool {
        let mut targets: Vec<NodeIdx> = in_group.iter().copied().filter(|t| *t != node).collect();
        let mut displaced = Displaced::default();
        for &index in instances {
            displaced.add(index, self.cluster.instance(index));
        }
        let left = |index: NodeIdx| self.cluster.figures(index).unallocated_memory(self.cluster.node(index));
        let mut rest = displaced.evacuation(self.cluster, list, node, left);
        if let Some(rest) = &mut rest {
            rest.drop_useless(&mut targets);
        }
        let mut board = None;
        for &index in instances {
            let instance = self.cluster.instance(index).clone();
            let fitting: Vec<NodeIdx> = match &rest {
                Some(rest) => rest.rooms_for_first().map(|room| targets[room]).collect(),
                None => targets.clone(),
            };
            let Some(outcome) = self.best_of(list, &fitting, &instance, &mut board) else { return false };
            let target = outcome.primary;
            self.undo.push(self.cluster.add(instance, &outcome));
            if let Some(board) = &mut board {
                board.update(self.cluster, list, &[target]);
            }
            if let Some(rest) = &mut rest
                && let Ok(room) = targets.binary_search(&target)
            {
                rest.house_first(room);
                if let Some(verdict) = rest.verdict(0) {
                    return verdict;
                }
            }
        }
        true
    }

    /// Chooses the node on which to create an instance again. The board is built only if there is more than
    /// one target.
    fn best_of(
        &mut self,
        list: &[NodeIdx],
        targets: &[NodeIdx],
        instance: &Instance,
        board: &mut Option<Board>,
    ) -> Option<Outcome> {
        if let [only] = targets {
            return allocate::by_force(self.cluster, instance, *only);
        }
        let board = board.get_or_insert_with(|| Board::new(self.cluster, list));
        let trials = allocate::single(self.cluster, board, instance, targets, true, |_, _| true);
        Some(trials.best?.outcome)
    }
}
