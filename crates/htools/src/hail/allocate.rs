//! Requests for new instances (HT-allocate).

use cluster::{Cluster, GroupIdx, Instance, NodeIdx, TagRules};
use placement::allocate::{Allocator, NoTargets, Scope, Targets, Trials};
use placement::dedicated;
use placement::groups::{self, GroupChoice};

use super::explain;
use super::sentence::{self, Metric};
use super::wanted::{Strategy, Wanted, alloc_options};
use crate::iallocator::{AllocateRequest, Response, ResultValue, failure, success};
use crate::io::Io;
use crate::options::Options;

/// Result of placing one instance.
struct Decision {
    detail: String,
    placed: Option<cluster::Outcome>,
    /// No node could be tried, so a request for several instances fails as a whole.
    hopeless: bool,
}

/// Answers a request for one instance.
pub(super) fn one(
    cluster: &mut Cluster,
    wanted: &AllocateRequest,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    let mut instance = wanted.instance.clone();
    cluster.derive_tags(&mut instance, rules);
    let strategy = Strategy::of(cluster, wanted.group_name.as_deref());
    let allowed = options.restrict_allocation_to.as_ref().or(wanted.restrict_to_nodes.as_ref());
    let request = Wanted { instance: &instance, nodes: wanted.required_nodes, allowed };
    if options.explain {
        explain::allocation(cluster, &request, wanted.group_name.as_deref(), strategy, None, options, io);
    }
    let decision = match wanted.group_name.as_deref() {
        None => anywhere(cluster, &request, strategy, None, options),
        Some(name) => in_group(cluster, &request, strategy, name, true, options),
    };
    match decision.placed {
        Some(outcome) => {
            let nodes = names(cluster, &outcome);
            cluster.add(instance, &outcome);
            success(&decision.detail, ResultValue::Nodes(nodes))
        }
        None => failure(&decision.detail),
    }
}

/// Answers a request for several instances. Each is placed after the previous ones.
pub(super) fn several(
    cluster: &mut Cluster,
    wanted: &[AllocateRequest],
    group_name: Option<&str>,
    rules: &TagRules,
    options: &Options,
    io: &mut Io<'_>,
) -> Response {
    let strategy = Strategy::of(cluster, group_name);
    let mut allocated = Vec::new();
    let mut failed = Vec::new();
    let mut only_group: Option<GroupIdx> = None;
    let mut undo = Vec::new();
    let mut apart = Vec::new();
    for wanted in wanted {
        let mut instance = wanted.instance.clone();
        cluster.derive_tags(&mut instance, rules);
        let allowed = options.restrict_allocation_to.as_ref();
        let request = Wanted { instance: &instance, nodes: wanted.required_nodes, allowed };
        if options.explain {
            explain::allocation(cluster, &request, group_name, strategy, only_group, options, io);
        }
        let decision = match group_name {
            None => anywhere(cluster, &request, strategy, only_group, options),
            Some(name) => {
                let named = strategy == Strategy::Balance;
                in_group(cluster, &request, strategy, name, named, options)
            }
        };
        let Some(outcome) = decision.placed else {
            if group_name.is_none() || decision.hopeless {
                for step in undo.into_iter().rev() {
                    cluster.undo(step);
                }
                return failure(&decision.detail);
            }
            failed.push((instance.name, decision.detail));
            continue;
        };
        allocated.push((instance.name.clone(), names(cluster, &outcome)));
        match (strategy, group_name) {
            // The reference judges each of these instances by the state before the request. Afterwards it has
            // all their records, but only the last one is counted on its nodes.
            (Strategy::Dedicated, Some(_)) => apart.push((instance, outcome)),
            (Strategy::Dedicated, None) => {
                // In this case, the reference keeps only the group that the first instance was placed in.
                only_group.get_or_insert(cluster.node(outcome.primary).group);
                undo.push(cluster.add(instance, &outcome));
            }
            (Strategy::Balance, _) => undo.push(cluster.add(instance, &outcome)),
        }
    }
    if let Some((instance, outcome)) = apart.pop() {
        cluster.instances.extend(apart.into_iter().map(
            |(instance, outcome): (Instance, cluster::Outcome)| Instance {
                primary: outcome.primary,
                secondary: outcome.secondary,
                ..instance
            },
        ));
        cluster.add(instance, &outcome);
    }
    let detail = format!(
        "{} instances failed to allocate and {} were allocated successfully",
        failed.len(),
        allocated.len()
    );
    success(&detail, ResultValue::MultiAllocate { allocated, failed })
}

fn names(cluster: &Cluster, outcome: &cluster::Outcome) -> Vec<String> {
    let nodes = std::iter::once(outcome.primary).chain(outcome.secondary);
    nodes.map(|n| cluster.node(n).name.clone()).collect()
}

fn targets(cluster: &Cluster, nodes: &[NodeIdx], wanted: &Wanted<'_>) -> Result<Targets, NoTargets> {
    Targets::new(cluster, nodes, wanted.nodes, wanted.allowed.map(Vec::as_slice))
}

/// Tries all groups, or `only` one, and chooses the best.
fn anywhere(
    cluster: &mut Cluster,
    wanted: &Wanted<'_>,
    strategy: Strategy,
    only: Option<GroupIdx>,
    options: &Options,
) -> Decision {
    let mut inhabited = groups::inhabited(cluster);
    inhabited.retain(|g| only.is_none_or(|only| only == *g));
    match strategy {
        Strategy::Balance => {
            let allocator = Allocator::new(cluster, &Scope::cluster(cluster), alloc_options(options));
            let choice = groups::choose(cluster, &inhabited, wanted.instance, true, |cluster, group| {
                let targets = targets(cluster, &cluster.nodes_of(group), wanted)?;
                Ok(allocator.try_all(cluster, wanted.instance, &targets))
            });
            decided(cluster, &choice.map(Metric::Score), wanted, false)
        }
        Strategy::Dedicated => {
            let force = options.ignore_soft_errors;
            let choice = groups::choose(cluster, &inhabited, wanted.instance, true, |cluster, group| {
                let targets = targets(cluster, &cluster.nodes_of(group), wanted)?;
                Ok(dedicated::try_all(cluster, wanted.instance, &targets, force))
            });
            decided(cluster, &choice.map(Metric::Lost), wanted, true)
        }
    }
}

fn decided(
    cluster: &Cluster,
    choice: &GroupChoice<Metric>,
    wanted: &Wanted<'_>,
    dedicated: bool,
) -> Decision {
    let detail = if dedicated {
        sentence::dedicated_choice(cluster, choice, &wanted.instance.name)
    } else {
        sentence::choice(cluster, choice, &wanted.instance.name)
    };
    Decision { detail, placed: choice.chosen().map(|(_, best)| best.outcome), hopeless: false }
}

/// Tries one group, given by name or UUID, regardless of its allocation policy. With `named`, the text names
/// the group.
fn in_group(
    cluster: &mut Cluster,
    wanted: &Wanted<'_>,
    strategy: Strategy,
    name: &str,
    named: bool,
    options: &Options,
) -> Decision {
    let refused = |detail: String| Decision { detail, placed: None, hopeless: true };
    let group = match cluster.find_group(name) {
        Ok(group) => group,
        Err(error) => return refused(error.to_string()),
    };
    if !groups::connected(cluster, group, wanted.instance) {
        return refused(sentence::not_connected(cluster, group, &wanted.instance.name));
    }
    let targets = match targets(cluster, &cluster.nodes_of(group), wanted) {
        Ok(targets) => targets,
        Err(error) => return refused(error.to_string()),
    };
    let trials: Trials<Metric> = match strategy {
        Strategy::Balance => {
            let scope = Scope::group(cluster, group);
            let allocator = Allocator::new(cluster, &scope, alloc_options(options));
            allocator.try_all(cluster, wanted.instance, &targets).map(Metric::Score)
        }
        Strategy::Dedicated => {
            dedicated::try_all(cluster, wanted.instance, &targets, options.ignore_soft_errors)
                .map(Metric::Lost)
        }
    };
    let placed = trials.best.as_ref().map(|best| best.outcome);
    let detail =
        if named { sentence::group(cluster, group, &Ok(trials)) } else { sentence::trials(cluster, &trials) };
    Decision { detail, placed, hopeless: false }
}
