//! Why an instance goes where it goes (`--explain`); on standard error, since the answer must be one line.

use std::io;

use cluster::{Change, Cluster, Instance, NodeIdx, Outcome, TagRules};
use placement::allocate::{Allocator, Scope, Targets};
use placement::board::Board;
use placement::explain::{refused_primary, refused_secondary};
use placement::groups;
use placement::score::Values;

use super::allocate::Strategy;
use super::decide::alloc_options;
use crate::iallocator::AllocateRequest;
use crate::io::Io;
use crate::number::fixed;
use crate::options::Options;
use crate::report;

/// How many of the components that change are shown per node.
const SHOWN_COMPONENTS: usize = 3;
/// How many of the nodes that refuse a secondary are shown per primary.
const SHOWN_SECONDARIES: usize = 3;

/// Explains a request for one instance, node by node.
pub(super) fn allocation(
    cluster: &mut Cluster,
    wanted: &AllocateRequest,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) {
    // Nobody can be told that standard error cannot be written.
    let _ = explain(cluster, wanted, rules, options, io);
}

fn explain(
    cluster: &mut Cluster,
    wanted: &AllocateRequest,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let mut instance = wanted.instance.clone();
    cluster.derive_tags(&mut instance, rules);
    if Strategy::of(cluster, wanted.group_name.as_deref()) == Strategy::Dedicated {
        writeln!(io.err, "Dedicated cluster: lost allocations count, not the score.")?;
    }
    let allowed = options.restrict_allocation_to.as_ref().or(wanted.restrict_to_nodes.as_ref());
    for group in groups::inhabited(cluster) {
        let name = cluster.group(group).name.clone();
        let named = wanted
            .group_name
            .as_ref()
            .is_none_or(|wanted| *wanted == name || *wanted == cluster.group(group).uuid);
        if !named {
            continue;
        }
        let scope = match wanted.group_name {
            Some(_) => Scope::group(cluster, group),
            None => Scope::cluster(cluster),
        };
        let allocator = Allocator::new(cluster, &scope, alloc_options(options));
        writeln!(io.err, "Group {name}: score {} now", fixed(allocator.board().score(), 8))?;
        let nodes = cluster.nodes_of(group);
        match Targets::new(cluster, &nodes, wanted.required_nodes, allowed.map(Vec::as_slice)) {
            Err(error) => writeln!(io.err, "  {error}")?,
            Ok(Targets::Single(nodes)) => {
                for node in nodes {
                    single(cluster, allocator.board(), &instance, node, options, io)?;
                }
            }
            Ok(targets @ Targets::Pairs(_)) => pairs(cluster, &allocator, &instance, &targets, options, io)?,
        }
    }
    Ok(())
}

fn single(
    cluster: &Cluster,
    board: &Board,
    instance: &Instance,
    node: NodeIdx,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let name = &cluster.node(node).name;
    if let Some(check) = refused_primary(cluster, instance, node, options.ignore_soft_errors) {
        return writeln!(io.err, "  {name}: refused: {check}");
    }
    let state = cluster.state(node);
    let tags = state.tag_effect(&instance.exclusion_tags);
    let location = cluster.unmet_wishes(instance, node);
    let force = options.ignore_soft_errors;
    let demand = instance.demand();
    let Ok(figures) = state.figures.add_primary(cluster.node(node), &demand, tags, location, force) else {
        return Ok(());
    };
    let outcome = Outcome::one(Change { node, figures }, node, None, 0);
    write!(io.err, "  {name}: ")?;
    effect(cluster, board, instance, &outcome, io)
}

/// The score after a placement, and the components that change most.
fn effect(
    cluster: &Cluster,
    board: &Board,
    instance: &Instance,
    outcome: &Outcome,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let located = board.located_delta_of_new(cluster, instance, outcome.primary);
    let after: Values = board.exact_values(cluster, outcome.changes(), located);
    let changes = report::component_changes(board.values(), &after);
    let shown: Vec<String> = changes
        .iter()
        .take(SHOWN_COMPONENTS)
        .map(|(name, _, _, weighted)| {
            let sign = if *weighted < 0.0 { "" } else { "+" };
            format!("{name} {sign}{}", fixed(*weighted, 8))
        })
        .collect();
    writeln!(io.err, "score {} ({})", fixed(after.score(), 8), shown.join(", "))
}

fn pairs(
    cluster: &mut Cluster,
    allocator: &Allocator,
    instance: &Instance,
    targets: &Targets,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let Targets::Pairs(pairs) = targets else { return Ok(()) };
    for (primary, list) in &pairs.primaries {
        let name = cluster.node(*primary).name.clone();
        if let Some(check) = refused_primary(cluster, instance, *primary, options.ignore_soft_errors) {
            writeln!(io.err, "  {name}: refused as primary: {check}")?;
            continue;
        }
        let partners = &pairs.partners[*list];
        let only = placement::allocate::PairTargets {
            partners: vec![partners.clone()],
            primaries: vec![(*primary, 0)],
        };
        let trials = allocator.try_all(cluster, instance, &Targets::Pairs(only));
        write!(io.err, "  {name}: ")?;
        match trials.best {
            Some(best) => {
                let secondary = best.outcome.secondary.map_or("", |s| cluster.node(s).name.as_str());
                write!(io.err, "best with secondary {secondary} of {} possible, ", trials.successes)?;
                effect(cluster, allocator.board(), instance, &best.outcome, io)?;
            }
            None => writeln!(io.err, "no secondary")?,
        }
        let refused = partners.iter().filter(|s| *s != primary).filter_map(|s| {
            let check = refused_secondary(cluster, instance, *s, *primary)?;
            Some((&cluster.node(*s).name, check))
        });
        for (position, (name, check)) in refused.enumerate() {
            if position == SHOWN_SECONDARIES {
                writeln!(io.err, "    ... and others")?;
                break;
            }
            writeln!(io.err, "    {name} refused as secondary: {check}")?;
        }
        for (mode, count) in trials.failures.reasons().filter(|(mode, _)| *mode == cluster::FailMode::N1) {
            writeln!(
                io.err,
                "    {count} better secondaries refused: the cluster would not survive the loss of some node ({mode})"
            )?;
        }
    }
    Ok(())
}
