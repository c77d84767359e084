//! Checks whether a plan can be carried out as it stands, without using any code of the search.

use cluster::{Cluster, InstanceIdx, MirrorClass, Move, NodeIdx};
use thiserror::Error;

use super::atlas::{Pair, Price};
use super::ledger::{Ledger, Rule, Standing};
use crate::balance::{BalanceOptions, Step};

/// Rule that a plan violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// There are more moves or copies than allowed.
    #[error("the plan takes {0:?}, which is more than it may")]
    TooMuch(Price),
    /// A move begins where the instance isn't, or doesn't lead where it claims.
    #[error("step {0} is not a move of its instance")]
    NoMove(usize),
    /// The instance may not move, or not in this way, or not to this node.
    #[error("step {0} is not allowed")]
    Forbidden(usize),
    /// A node would run out of a resource.
    #[error("step {0} is not possible, since node {1:?} has no room")]
    NoRoom(usize, NodeIdx),
    /// A node would break a rule that it kept.
    #[error("step {0} breaks a rule on node {1:?}: {2:?}")]
    Unsound(usize, NodeIdx, Rule),
    /// An instance moves more often than necessary.
    #[error("instance {0:?} moves twice without need")]
    Twice(InstanceIdx),
}

/// Constraints on plans.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The nodes of the group.
    pub nodes: &'a [NodeIdx],
    /// Instances that may move, ascending.
    pub free: &'a [InstanceIdx],
    pub options: &'a BalanceOptions,
    /// Maximum number of moves and copies.
    pub limit: Price,
}

/// Checks a plan: each step in order, and the total number of moves and copies.
pub fn verify(cluster: &Cluster, rules: &Rules<'_>, steps: &[Step]) -> Result<(), Violation> {
    let price = Price { steps: steps.len(), copies: steps.iter().filter(|s| copies(s.mov)).count() };
    if !price.within(rules.limit) {
        return Err(Violation::TooMuch(price));
    }
    let mut ledger = Ledger::new(cluster);
    for (number, step) in steps.iter().enumerate() {
        if ledger.pairs[step.instance.at()] != step.from || destination(step.mov, step.from) != Some(step.to)
        {
            return Err(Violation::NoMove(number));
        }
        if !allowed(cluster, rules, step) {
            return Err(Violation::Forbidden(number));
        }
        carry_out(&mut ledger, cluster, rules, (number, step))?;
    }
    no_detours(cluster, &ledger, steps)
}

fn copies(mov: Move) -> bool {
    !matches!(mov, Move::Failover | Move::FailoverTo(_))
}

/// Nodes of the instance after a move; `None` if the move is impossible.
fn destination(mov: Move, (p, s): Pair) -> Option<Pair> {
    let elsewhere = mov.target().is_none_or(|t| t != p && Some(t) != s);
    let to = match mov {
        Move::Failover => (s?, Some(p)),
        Move::ReplaceSecondary(t) => (p, Some(t)),
        Move::ReplaceAndFailover(t) => (t, Some(p)),
        Move::FailoverTo(t) | Move::ReplacePrimary(t) => (t, s),
        Move::FailoverAndReplace(t) => (s?, Some(t)),
    };
    elsewhere.then_some(to)
}

/// Nodes on which the instance runs, one after the other.
fn runs_on(step: &Step) -> Vec<NodeIdx> {
    match (step.mov, step.from.1) {
        (Move::ReplaceSecondary(_), _) => vec![step.from.0],
        (Move::ReplacePrimary(t), Some(s)) => vec![step.from.0, s, t],
        _ => vec![step.from.0, step.to.0],
    }
}

/// Whether the options, and tags on nodes, allow the move.
fn allowed(cluster: &Cluster, rules: &Rules<'_>, step: &Step) -> bool {
    let instance = cluster.instance(step.instance);
    let offline = |node: NodeIdx| cluster.node(node).offline;
    let kind = match instance.template.mirror() {
        MirrorClass::None => false,
        MirrorClass::External => matches!(step.mov, Move::FailoverTo(_)),
        MirrorClass::Internal => !matches!(step.mov, Move::FailoverTo(_)),
    };
    let moves_primary = step.from.0 != step.to.0;
    let on_offline = offline(step.from.0) || step.from.1.is_some_and(offline);
    // All options are named, so that a new one isn't forgotten here, where plans are judged.
    let BalanceOptions {
        disk_moves,
        instance_moves,
        restricted_migration,
        evacuate_only,
        readable_only,
        ignore_soft_errors: _,
        min_gain_limit: _,
        min_gain: _,
        min_score: _,
        max_moves: _,
    } = *rules.options;
    let cautious = !restricted_migration
        || matches!(step.mov, Move::ReplaceSecondary(_) | Move::Failover | Move::FailoverTo(_))
        || (offline(step.from.0) && !matches!(step.mov, Move::ReplacePrimary(_)));
    let is_readable = !readable_only
        || cluster.node(step.from.0).readable()
        || !matches!(step.mov, Move::ReplaceSecondary(_) | Move::ReplaceAndFailover(_));
    let target = step.mov.target();
    kind && is_readable
        && rules.free.binary_search(&step.instance).is_ok()
        && (disk_moves || !copies(step.mov) || instance.template.mirror() == MirrorClass::External)
        && (instance_moves || !moves_primary)
        && (!evacuate_only || on_offline)
        && cautious
        && target.is_none_or(|t| !offline(t) && rules.nodes.contains(&t))
        && runs_on(step).windows(2).all(|hop| cluster.migration_allowed(hop[0], hop[1]))
}

/// Makes the move in the ledger and inspects the nodes that receive something.
fn carry_out(
    ledger: &mut Ledger<'_>,
    cluster: &Cluster,
    rules: &Rules<'_>,
    (number, step): (usize, &Step),
) -> Result<(), Violation> {
    let offline = |node: NodeIdx| cluster.node(node).offline;
    // An instance that leaves an offline node may break rules, and any instance may if the options say so.
    let lenient =
        rules.options.ignore_soft_errors || offline(step.from.0) || step.from.1.is_some_and(offline);
    let nodes: Vec<NodeIdx> = std::iter::once(step.to.0).chain(step.to.1).collect();
    let before: Vec<_> = nodes.iter().map(|node| ledger.standing(*node)).collect();
    if let (Move::ReplacePrimary(_), Some(secondary)) = (step.mov, step.from.1) {
        // For a while it runs on the node of its mirror, without a mirror.
        let was = ledger.standing(secondary);
        ledger.note(step.instance, (secondary, None));
        inspect(ledger, secondary, &was, lenient, (number, step))?;
    }
    ledger.note(step.instance, step.to);
    let mut changed = nodes.iter().zip(&before).filter(|(node, _)| !offline(**node));
    changed.try_for_each(|(node, before)| inspect(ledger, *node, before, lenient, (number, step)))
}

fn inspect(
    ledger: &Ledger<'_>,
    node: NodeIdx,
    before: &Standing,
    lenient: bool,
    (number, step): (usize, &Step),
) -> Result<(), Violation> {
    let now = ledger.standing(node);
    if !ledger.possible(node, step.instance, before, &now) {
        return Err(Violation::NoRoom(number, node));
    }
    match ledger.broken(node, before, &now) {
        Some(rule) if !lenient => Err(Violation::Unsound(number, node, rule)),
        _ => Ok(()),
    }
}

/// Checks that each instance moves at most once, or twice if both its nodes differ in the end.
fn no_detours(cluster: &Cluster, ledger: &Ledger<'_>, steps: &[Step]) -> Result<(), Violation> {
    let mut moves = vec![0; cluster.instances.len()];
    for step in steps {
        moves[step.instance.at()] += 1;
    }
    for index in cluster.instance_indices() {
        let (from, to) = (cluster.instance(index), ledger.pairs[index.at()]);
        let old = |node: NodeIdx| node == from.primary || Some(node) == from.secondary;
        let both = !old(to.0) && to.1.is_some_and(|node| !old(node));
        if moves[index.at()] > if both { 2 } else { 1 } {
            return Err(Violation::Twice(index));
        }
    }
    Ok(())
}
