//! Lines that `hbal` prints about a run.

use std::io;

use cluster::{Cluster, FailMode, NodeIdx};
use placement::balance::{Balancer, Step};
use placement::board::Board;
use placement::health::{bad_nodes, instances_on};
use placement::score::Values;

use super::{Scope, Solution, commands, score};
use crate::io::Io;
use crate::number::{fixed, general6};
use crate::options::Options;
use crate::report;

pub(super) fn loaded(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    if level > 1 {
        writeln!(io.out, "Loaded cluster tags: {}", cluster.tags.join(","))?;
        writeln!(io.out, "Loaded cluster ipolicy: {}", report::policy(&cluster.policy))?;
    }
    Ok(())
}

pub(super) fn split_instances(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    let split = cluster.split_instances();
    if level > 1 && !split.is_empty() {
        writeln!(io.err, "Found instances belonging to multiple node groups:")?;
        for index in split {
            writeln!(io.err, "  {}", cluster.instance(index).name)?;
        }
        writeln!(io.err, "These instances will not be moved.")?;
    }
    Ok(())
}

pub(super) fn size(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    writeln!(io.out, "Loaded {} nodes, {} instances", cluster.nodes.len(), cluster.instances.len())?;
    if level > 1 && !cluster.suffix.is_empty() {
        writeln!(io.out, "Note: Stripping common suffix of '{}' from names", cluster.suffix)?;
    }
    Ok(())
}

/// Prints the group's state before balancing.
pub(super) fn scope(cluster: &Cluster, scope: &Scope, options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    let level = options.verbosity;
    writeln!(io.out, "Group size {} nodes, {} instances", scope.nodes.len(), scope.instances.len())?;
    writeln!(io.out, "Selected node group: {}", cluster.group(scope.group).name)?;
    let bad = bad_nodes(cluster, &scope.nodes);
    let good: Vec<NodeIdx> = scope.nodes.iter().copied().filter(|n| bad.binary_search(n).is_err()).collect();
    if level >= 1 {
        let instances = instances_on(cluster, &bad).len();
        writeln!(io.out, "Initial check done: {} bad nodes, {instances} bad instances.", bad.len())?;
    }
    if level > 4 {
        writeln!(io.out, "Bad nodes: {}", report::name_list(cluster, &bad))?;
        writeln!(io.out, "N+1 happy nodes: {}", report::name_list(cluster, &good))?;
        let status: Vec<String> = good.iter().map(|n| policy_status(cluster, *n)).collect();
        writeln!(io.out, "Node policy status: [{}]", status.join(","))?;
    }
    if !bad.is_empty() {
        writeln!(
            io.out,
            "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end N+1 happy."
        )?;
    }
    let violating = good.iter().filter(|n| violation(cluster, **n).is_some()).count();
    if violating > 0 {
        writeln!(io.out, "The cluster contains {violating} policy-violating nodes.")?;
        let advice = if options.ignore_soft_errors {
            "Continuing, ignoring soft errors."
        } else {
            "Continuing, but the set of moves might be too restricted; consider using the \
             --ignore-soft-errors option."
        };
        writeln!(io.out, "{advice}")?;
    }
    Ok(())
}

/// The policy limit that a node exceeds.
fn violation(cluster: &Cluster, index: NodeIdx) -> Option<FailMode> {
    let (node, figures) = (cluster.node(index), cluster.figures(index));
    if figures.instance_spindles > node.max_spindles {
        Some(FailMode::Disk)
    } else if node.max_vcpu_ratio >= 0.0 && node.max_vcpu_ratio < figures.vcpu_ratio(node) {
        Some(FailMode::Cpu)
    } else {
        None
    }
}

fn policy_status(cluster: &Cluster, index: NodeIdx) -> String {
    let name = report::shown(&cluster.node(index).name);
    match violation(cluster, index) {
        Some(mode) => format!("({name},Bad {mode})"),
        None => format!("({name},Ok ())"),
    }
}

pub(super) fn initial_score(board: &Board, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    if level > 2 {
        writeln!(io.out, "Initial coefficients: overall {}", score(board.score()))?;
        write!(io.out, "{}", report::metrics(board))
    } else {
        writeln!(io.out, "Initial score: {}", score(board.score()))
    }
}

pub(super) fn well_balanced(run: &Balancer<'_>, options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    writeln!(
        io.out,
        "Cluster is already well balanced (initial score {},\noptimum score due to N+1 reservations {},\nminimum \
         score {}).\nNothing to do, exiting",
        general6(run.score()),
        general6(run.optimal()),
        general6(options.min_score)
    )
}

/// Format of the list of moves: names are padded to the longest in the group.
pub(super) struct Listing {
    instance_width: usize,
    pair_width: usize,
}

impl Listing {
    pub(super) fn new(cluster: &Cluster, scope: &Scope) -> Self {
        let length = |name: &str| cluster.alias(name).chars().count();
        let node = scope.nodes.iter().map(|n| length(&cluster.node(*n).name)).max().unwrap_or(0);
        let instance = scope.instances.iter().map(|i| length(&cluster.instance(*i).name)).max().unwrap_or(0);
        Self { instance_width: instance, pair_width: 2 * node + 1 }
    }

    pub(super) fn line(&self, cluster: &Cluster, number: usize, step: &Step) -> String {
        let name = |node| cluster.alias(&cluster.node(node).name);
        let pair = |(primary, secondary): (NodeIdx, Option<NodeIdx>)| match secondary {
            Some(secondary) => format!("{}:{}", name(primary), name(secondary)),
            None => name(primary).to_owned(),
        };
        format!(
            "  {number:3}. {:<iw$} {:<pw$} => {:<pw$} {:>12} a={}",
            cluster.alias(&cluster.instance(step.instance).name),
            pair(step.from),
            pair(step.to),
            score(step.score),
            commands::action(cluster, step.mov),
            iw = self.instance_width,
            pw = self.pair_width,
        )
    }
}

/// Lists moves that are all known. `values` has the score components before the first move and after each
/// one. With `--explain`, returns the components before and after each move.
pub(super) fn steps(
    cluster: &Cluster,
    listing: &Listing,
    steps: &[Step],
    values: &[Values],
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<Vec<(Values, Values)>> {
    let mut explained = Vec::new();
    for (position, (step, values)) in steps.iter().zip(values.windows(2)).enumerate() {
        writeln!(io.out, "{}", listing.line(cluster, position + 1, step))?;
        if options.explain {
            explain(&values[0], &values[1], io)?;
            explained.push((values[0], values[1]));
        }
    }
    Ok(explained)
}

/// Prints the score components that a move changes.
pub(super) fn explain(before: &Values, after: &Values, io: &mut Io<'_>) -> io::Result<()> {
    for (name, old, new, weighted) in report::component_changes(before, after) {
        let sign = if weighted < 0.0 { "" } else { "+" };
        writeln!(
            io.out,
            "         {name:<24} {:>12} => {:>12}  {sign}{}",
            score(old),
            score(new),
            fixed(weighted, 8)
        )?;
    }
    Ok(())
}

pub(super) fn summary(
    cluster: &Cluster,
    scope: &Scope,
    solution: &Solution,
    level: i64,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if solution.steps.is_empty() {
        writeln!(io.out, "No solution found")?;
        for reason in &solution.reasons {
            writeln!(io.out, "  {reason}")?;
        }
    } else if level > 2 {
        writeln!(io.out, "Final coefficients:   overall {}", score(solution.after.score()))?;
        write!(io.out, "{}", report::metrics(&Board::new(cluster, &scope.nodes)))?;
    } else {
        // Repairs can worsen the score.
        let improved = solution.after.score() <= solution.before.score();
        writeln!(
            io.out,
            "Cluster score {} from {} to {}",
            if improved { "improved" } else { "worsened" },
            score(solution.before.score()),
            score(solution.after.score())
        )?;
    }
    if level >= 1 {
        writeln!(io.out, "Solution length={}", solution.steps.len())?;
    }
    if let Some(comparison) = &solution.comparison {
        super::deep::show_comparison(comparison, solution.after.score(), io)?;
    }
    super::repair::show_remaining(&solution.remaining, io)
}

/// Unallocated memory and free disk of the group, MiB.
pub(super) fn totals(cluster: &Cluster, scope: &Scope) -> (i64, i64) {
    let memory = scope.nodes.iter().map(|n| cluster.figures(*n).unallocated_memory(cluster.node(*n))).sum();
    let disk = scope.nodes.iter().map(|n| cluster.figures(*n).free_disk).sum();
    (memory, disk)
}
