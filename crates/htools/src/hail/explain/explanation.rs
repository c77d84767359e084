//! Verdicts of nodes on a new instance: the score with it, or the reason for refusing it.

use std::io;

use cluster::{AllocPolicy, Change, Cluster, FailMode, GroupIdx, Instance, NodeIdx, Outcome, did_you_mean};
use placement::allocate::{Allocator, PairTargets, Scope, Targets};
use placement::board::Board;
use placement::dedicated::{self, LostAllocations};
use placement::explain::{refused_primary, refused_secondary};
use placement::objection::Objection;
use placement::redundancy::stuck_instances;
use placement::score::Values;

use crate::hail::sentence::{self, listed};
use crate::hail::wanted::{Strategy, Wanted, alloc_options};
use crate::io::Io;
use crate::number::fixed;
use crate::options::Options;
use crate::report;

/// Number of changed score components shown per node.
const SHOWN_COMPONENTS: usize = 3;
/// Number of refusing secondaries shown per primary.
const SHOWN_SECONDARIES: usize = 3;
/// Number of placements for which a node that can't be evacuated is shown. Finding it is slow.
const SHOWN_STUCK: usize = 8;

/// Explains the placement of one instance.
pub(super) struct Explanation<'a> {
    wanted: &'a Wanted<'a>,
    /// Group named in the request.
    group_name: Option<&'a str>,
    /// Group of the previous instances, if all must be in the same group.
    pub(super) only: Option<GroupIdx>,
    /// Judges placements by score. `None` on a dedicated cluster, which judges them by lost allocations.
    allocator: Option<Allocator>,
    scope: Scope,
    options: &'a Options,
    stuck_shown: usize,
}

impl<'a> Explanation<'a> {
    pub(super) fn new(
        cluster: &mut Cluster,
        wanted: &'a Wanted<'a>,
        group_name: Option<&'a str>,
        strategy: Strategy,
        options: &'a Options,
    ) -> Self {
        let scope = match group_name.map(|name| cluster.find_group(name)) {
            Some(Ok(group)) => Scope::group(cluster, group),
            _ => Scope::cluster(cluster),
        };
        let allocator =
            (strategy == Strategy::Balance).then(|| Allocator::new(cluster, &scope, alloc_options(options)));
        Self { wanted, group_name, only: None, allocator, scope, options, stuck_shown: 0 }
    }

    pub(super) fn groups(
        &mut self,
        cluster: &mut Cluster,
        groups: &[GroupIdx],
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        writeln!(io.err, "Instance {}:", self.wanted.instance.name)?;
        if groups.is_empty() {
            writeln!(io.err, "  no group has nodes")?;
        } else if let Some(wanted) = self.group_name {
            match cluster.find_group(wanted) {
                Err(_) => {
                    let names = cluster.groups.iter().map(|group| group.name.as_str());
                    writeln!(io.err, "  there is no group {wanted}{}", did_you_mean(&[wanted], names))?;
                }
                Ok(group) if !groups.contains(&group) => writeln!(io.err, "  group {wanted} has no nodes")?,
                Ok(_) => {}
            }
        }
        let unknown = self.unknown_nodes(cluster);
        if !unknown.is_empty() {
            let names = cluster.nodes.iter().map(|node| node.name.as_str());
            writeln!(io.err, "  there is no node {}{}", listed(&unknown), did_you_mean(&unknown, names))?;
        }
        let mut dedicated_told = self.allocator.is_some();
        for &group in groups {
            let record = cluster.group(group);
            let name = record.name.clone();
            if self.group_name.is_some_and(|wanted| wanted != name && wanted != record.uuid) {
                continue;
            }
            if let Some(reason) = self.left_out(cluster, group) {
                writeln!(io.err, "Group {name}: {reason}")?;
                continue;
            }
            if !dedicated_told {
                dedicated_told = true;
                // A group given by UUID is also judged by lost allocations, even if its nodes aren't
                // dedicated.
                let dedicated = cluster.nodes.iter().any(|node| node.exclusive_storage);
                let begin = if dedicated { "Dedicated cluster: lost" } else { "Lost" };
                writeln!(
                    io.err,
                    "{begin} allocations count, not the score: ([how many instances of the policy's sizes fit no more, by \
                     decreasing size],MiB of disk left); less is better."
                )?;
            }
            match &self.allocator {
                Some(allocator) => {
                    writeln!(io.err, "Group {name}: score {} now", fixed(allocator.board().score(), 8))?;
                }
                None => writeln!(io.err, "Group {name}:")?,
            }
            self.group(cluster, group, io)?;
        }
        Ok(())
    }

    /// Names among the allowed nodes that no node has.
    fn unknown_nodes(&self, cluster: &Cluster) -> Vec<&'a str> {
        let allowed = self.wanted.allowed.into_iter().flatten().map(String::as_str);
        allowed.filter(|name| cluster.nodes.iter().all(|node| node.name != *name)).collect()
    }

    /// Reason for leaving out a group; `None` if its nodes are tried.
    fn left_out(&self, cluster: &Cluster, group: GroupIdx) -> Option<String> {
        let record = cluster.group(group);
        let wanted = self.wanted.instance.networks.iter();
        let mut missing: Vec<&str> =
            wanted.filter(|network| !record.networks.contains(network)).map(String::as_str).collect();
        missing.dedup();
        if !missing.is_empty() {
            let word = if missing.len() == 1 { "network" } else { "networks" };
            Some(format!("left out, not connected to {word} {}", missing.join(", ")))
        } else if self.group_name.is_none() && record.alloc_policy == AllocPolicy::Unallocable {
            Some("unallocable, never chosen without group_name".to_owned())
        } else if self.only.is_some_and(|only| only != group) {
            Some("left out, the instances before it went to another group".to_owned())
        } else {
            None
        }
    }

    fn group(&mut self, cluster: &mut Cluster, group: GroupIdx, io: &mut Io<'_>) -> io::Result<()> {
        let nodes = cluster.nodes_of(group);
        let allowed = self.wanted.allowed.map(Vec::as_slice);
        unusable(cluster, &nodes, allowed, io)?;
        let targets = match Targets::new(cluster, &nodes, self.wanted.nodes, allowed) {
            Err(error) => return writeln!(io.err, "  {error}"),
            Ok(targets) => targets,
        };
        let primaries: Vec<NodeIdx> = match &targets {
            Targets::Single(nodes) => nodes.clone(),
            Targets::Pairs(pairs) => pairs.primaries.iter().map(|(node, _)| *node).collect(),
        };
        let policy = &cluster.group(group).policy;
        let objections = primaries
            .iter()
            .map(|node| Objection::find(policy, self.wanted.instance, cluster.node(*node).exclusive_storage));
        let objections: Vec<Option<Objection>> = objections.collect();
        // The policy's objection is the same for all nodes, unless only some have exclusive storage.
        if let Some((Some(first), rest)) = objections.split_first()
            && rest.iter().all(|other| other.as_ref() == Some(first))
        {
            return writeln!(io.err, "  refused on all nodes: {first}");
        }
        match targets {
            Targets::Single(nodes) => nodes.into_iter().try_for_each(|node| self.single(cluster, node, io)),
            Targets::Pairs(pairs) => {
                let PairTargets { partners, primaries } = pairs;
                primaries
                    .into_iter()
                    .try_for_each(|(primary, list)| self.pairs(cluster, primary, &partners[list], io))
            }
        }
    }

    fn single(&mut self, cluster: &mut Cluster, node: NodeIdx, io: &mut Io<'_>) -> io::Result<()> {
        let (instance, force) = (self.wanted.instance, self.options.ignore_soft_errors);
        let name = cluster.node(node).name.clone();
        if let Some(check) = refused_primary(cluster, instance, node, force) {
            return writeln!(io.err, "  {name}: refused: {check}");
        }
        let targets = Targets::Single(vec![node]);
        let Some(allocator) = &self.allocator else {
            let trials = dedicated::try_all(cluster, instance, &targets, force);
            return match trials.best {
                Some(best) => writeln!(io.err, "  {name}: {}", sentence::lost(&best.score)),
                None => writeln!(io.err, "  {name}: refused"),
            };
        };
        let state = cluster.state(node);
        let tags = state.tag_effect(&instance.exclusion_tags);
        let location = cluster.unmet_wishes(instance, node);
        let demand = instance.demand();
        let Ok(figures) = state.figures.add_primary(cluster.node(node), &demand, tags, location, force)
        else {
            return Ok(());
        };
        let outcome = Outcome::one(Change { node, figures }, node, None, 0);
        if allocator.try_all(cluster, instance, &targets).failures.count(FailMode::N1) > 0 {
            let stuck = self.stuck(cluster, &outcome);
            return writeln!(io.err, "  {name}: refused: {stuck}");
        }
        write!(io.err, "  {name}: ")?;
        effect(cluster, allocator.board(), instance, &outcome, io)
    }

    pub(super) fn pairs(
        &mut self,
        cluster: &mut Cluster,
        primary: NodeIdx,
        partners: &[NodeIdx],
        io: &mut Io<'_>,
    ) -> io::Result<()> {
        let (instance, force) = (self.wanted.instance, self.options.ignore_soft_errors);
        let name = cluster.node(primary).name.clone();
        if let Some(check) = refused_primary(cluster, instance, primary, force) {
            return writeln!(io.err, "  {name}: refused as primary: {check}");
        }
        let with = |partners: Vec<NodeIdx>| {
            Targets::Pairs(PairTargets { partners: vec![partners], primaries: vec![(primary, 0)] })
        };
        let targets = with(partners.to_vec());
        let mut unsafe_partners = 0;
        match &self.allocator {
            None => {
                let trials = dedicated::try_all(cluster, instance, &targets, force);
                match trials.best {
                    Some(best) => {
                        let secondary = secondary_name(cluster, &best.outcome);
                        let (count, lost): (u64, &LostAllocations) = (trials.successes, &best.score);
                        writeln!(
                            io.err,
                            "  {name}: best with secondary {secondary} of {count} possible, {}",
                            sentence::lost(lost)
                        )?;
                    }
                    None => writeln!(io.err, "  {name}: no secondary")?,
                }
            }
            Some(allocator) => {
                let trials = allocator.try_all(cluster, instance, &targets);
                unsafe_partners = trials.failures.count(FailMode::N1);
                write!(io.err, "  {name}: ")?;
                match trials.best {
                    Some(best) => {
                        let secondary = secondary_name(cluster, &best.outcome);
                        write!(io.err, "best with secondary {secondary} of {} possible, ", trials.successes)?;
                        effect(cluster, allocator.board(), instance, &best.outcome, io)?;
                    }
                    None => writeln!(io.err, "no secondary")?,
                }
            }
        }
        let refused = partners.iter().filter(|s| **s != primary).filter_map(|s| {
            let check = refused_secondary(cluster, instance, *s, primary)?;
            Some((cluster.node(*s).name.clone(), check))
        });
        let refused: Vec<_> = refused.collect();
        for (name, check) in refused.iter().take(SHOWN_SECONDARIES) {
            writeln!(io.err, "    {name} refused as secondary: {check}")?;
        }
        if refused.len() > SHOWN_SECONDARIES {
            writeln!(io.err, "    ... and {} others", refused.len() - SHOWN_SECONDARIES)?;
        }
        if unsafe_partners == 0 {
            return Ok(());
        }
        let word = if unsafe_partners == 1 { "secondary" } else { "secondaries" };
        let example = self.first_unsafe(cluster, primary, partners);
        let reason = match example {
            Some(outcome) => {
                let secondary = secondary_name(cluster, &outcome);
                format!("with {secondary}, {}", self.stuck(cluster, &outcome))
            }
            None => format!("{} ({})", placement::explain::words(FailMode::N1), FailMode::N1),
        };
        writeln!(io.err, "    {unsafe_partners} better {word} refused: {reason}")
    }

    /// The first pair that fails the capacity check.
    fn first_unsafe(&self, cluster: &mut Cluster, primary: NodeIdx, partners: &[NodeIdx]) -> Option<Outcome> {
        let unchecked = Allocator::new(
            cluster,
            &self.scope,
            placement::allocate::AllocOptions { capacity_checks: false, ..alloc_options(self.options) },
        );
        let allocator = self.allocator.as_ref()?;
        partners.iter().filter(|s| **s != primary).find_map(|secondary| {
            let pair = PairTargets { partners: vec![vec![*secondary]], primaries: vec![(primary, 0)] };
            let targets = Targets::Pairs(pair);
            let refused = allocator.try_all(cluster, self.wanted.instance, &targets).failures;
            if refused.count(FailMode::N1) == 0 {
                return None;
            }
            let best = unchecked.try_all(cluster, self.wanted.instance, &targets).best?;
            Some(best.outcome)
        })
    }

    /// Names a node that cannot be evacuated after the placement, and the instances that no other node
    /// accepts.
    fn stuck(&mut self, cluster: &mut Cluster, outcome: &Outcome) -> String {
        let general = format!("{} ({})", placement::explain::words(FailMode::N1), FailMode::N1);
        if self.stuck_shown == SHOWN_STUCK {
            return general;
        }
        self.stuck_shown += 1;
        let undo = cluster.add(self.wanted.instance.clone(), outcome);
        let found = self.scope.nodes.iter().find_map(|node| {
            let stuck = stuck_instances(cluster, &self.scope.nodes, *node);
            if stuck.is_empty() { None } else { Some((*node, stuck)) }
        });
        let told = found.map(|(node, stuck)| {
            let names: Vec<&str> = stuck.iter().map(|i| cluster.instance(*i).name.as_str()).collect();
            let node = &cluster.node(node).name;
            let (what, more) = match names.as_slice() {
                [one] => ((*one).to_owned(), ""),
                several => (listed(several), "all of "),
            };
            format!(
                "{node} could not be emptied afterwards: there is no place for {more}{what} ({})",
                FailMode::N1
            )
        });
        cluster.undo(undo);
        told.unwrap_or(general)
    }
}

/// Lists nodes that are never targets, with reasons.
fn unusable(
    cluster: &Cluster,
    nodes: &[NodeIdx],
    allowed: Option<&[String]>,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let reason = |n: &NodeIdx| {
        let node = cluster.node(*n);
        let permitted = allowed.is_none_or(|names| names.contains(&node.name));
        match (node.online(), permitted) {
            (false, _) => Some(format!("{} {}", node.name, node.outage.words())),
            (true, false) => Some(format!("{} is not among the nodes that the request allows", node.name)),
            (true, true) => None,
        }
    };
    let reasons: Vec<String> = nodes.iter().filter_map(reason).collect();
    if reasons.is_empty() { Ok(()) } else { writeln!(io.err, "  {}", reasons.join(", ")) }
}

fn secondary_name(cluster: &Cluster, outcome: &Outcome) -> String {
    outcome.secondary.map_or(String::new(), |s| cluster.node(s).name.clone())
}

/// Prints the score after a placement, and the components that change most.
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
