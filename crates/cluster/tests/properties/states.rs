//! After moves, a cluster equals one loaded in that state. After undoing them, it equals the original.

use cluster::{Cluster, Instance, InstanceIdx, NodeIdx, NodeState, Probe};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{Parts, Used, cases, load, moves, recipes};

/// Choice of an instance, one of its moves, and whether to force it.
type Choice = (Index, Index, bool);

fn choices() -> impl Strategy<Value = Vec<Choice>> {
    prop::collection::vec((any::<Index>(), any::<Index>(), any::<bool>()), 1..24)
}

/// The first feasible move, starting with the chosen one.
fn choose(cluster: &Cluster, choice: &Choice) -> Option<(InstanceIdx, cluster::Outcome)> {
    let (instance, mov, force) = choice;
    let index = InstanceIdx::from_usize(instance.index(cluster.instances.len()));
    let moves = moves(cluster, index);
    if moves.is_empty() {
        return None;
    }
    let probe = Probe::new(cluster, index);
    let start = mov.index(moves.len());
    let mut rotated = moves.iter().cycle().skip(start).take(moves.len());
    rotated.find_map(|mov| probe.judge(*mov, *force).ok()).map(|outcome| (index, outcome))
}

/// Parts of a cluster with its instances on their current nodes, and matching reported figures.
fn parts_now(before: &Parts, cluster: &Cluster) -> Parts {
    let mut parts = before.clone();
    for (instance, now) in parts.instances.iter_mut().zip(&cluster.instances) {
        (instance.primary, instance.secondary) = (now.primary, now.secondary);
    }
    report_again(before, &mut parts);
    parts
}

/// Updates the figures that nodes report in `after` for instances that moved since `before`.
fn report_again(before: &Parts, after: &mut Parts) {
    for (position, node) in after.nodes.iter_mut().enumerate() {
        let index = NodeIdx::from_usize(position);
        let (was, is) = (Used::on(index, &before.instances), Used::on(index, &after.instances));
        node.reported_free_memory += was.memory - is.memory;
        node.reported_free_disk += was.disk - is.disk;
        if node.exclusive_storage {
            node.reported_free_spindles += was.spindles - is.spindles;
        }
    }
}

/// Counts of tags and of pairs of tags. By name, because each cluster assigns its own identifiers.
type TagCounts = Vec<(String, i64)>;

/// A node's state with sorted lists, and without unobservable parts.
fn normal(cluster: &Cluster, node: NodeIdx, exact_load: bool) -> (NodeState, TagCounts) {
    let mut state = cluster.state(node).clone();
    let name = |tag| cluster.tag_name(tag).to_owned();
    let single = state.exclusion_tags.drain(..).map(|(tag, count)| (name(tag), count));
    let located = state.located_tags.drain(..);
    let located = located.map(|((location, tag), count)| (name(location) + " " + &name(tag), count));
    let mut tags: TagCounts = single.chain(located).collect();
    tags.sort_unstable();
    state.primaries.sort_unstable();
    state.secondaries.sort_unstable();
    state.peers.retain(|(_, memory)| *memory > 0);
    state.peers.sort_unstable();
    if !exact_load {
        state.figures.load = [0.0; 4];
    }
    (state, tags)
}

/// Whether all numbers of spindles are known. Unknown ones are booked as -1, so sums don't match.
fn spindles_known(instances: &[Instance]) -> bool {
    instances.iter().all(|i| i.total_spindles().is_some())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn undoing_moves_restores_everything(recipe in recipes(), choices in choices()) {
        let mut cluster = recipe.build();
        let mut undone = Vec::new();
        for choice in &choices {
            if let Some((index, outcome)) = choose(&cluster, choice) {
                let before = (cluster.states.clone(), cluster.instances.clone());
                undone.push((before, cluster.apply(index, &outcome)));
            }
        }
        while let Some(((states, instances), undo)) = undone.pop() {
            cluster.undo(undo);
            prop_assert_eq!(&cluster.states, &states);
            prop_assert_eq!(&cluster.instances, &instances);
        }
    }

    #[test]
    fn moves_lead_to_what_would_be_loaded(recipe in recipes(), choices in choices()) {
        // From the first move on, figures follow the recorded rule.
        let recipe = recipe.recorded();
        let parts = recipe.parts();
        prop_assume!(spindles_known(&parts.instances));
        let mut cluster = recipe.build();
        for choice in &choices {
            if let Some((index, outcome)) = choose(&cluster, choice) {
                cluster.apply(index, &outcome);
            }
        }
        let fresh = load(parts_now(&parts, &cluster), true);
        for index in cluster.node_indices() {
            let exact = !recipe.style.decimal;
            let (moved, loaded) = (normal(&cluster, index, exact), normal(&fresh, index, exact));
            prop_assert_eq!(moved, loaded, "node {:?}", index);
        }
        for (moved, loaded) in cluster.instances.iter().zip(&fresh.instances) {
            // `movable` depends on the nodes at load.
            prop_assert_eq!(&Instance { movable: loaded.movable, ..moved.clone() }, loaded);
        }
    }

    #[test]
    fn adding_an_instance_leads_to_what_would_be_loaded(recipe in recipes()) {
        let recipe = recipe.recorded();
        let parts = recipe.parts();
        prop_assume!(spindles_known(&parts.instances));
        // Load all instances but the last, then add it.
        let mut without = parts.clone();
        let mut instance = without.instances.pop().expect("there is an instance");
        report_again(&parts, &mut without);
        let mut cluster = load(without, true);
        let rules = cluster::TagRules::from_cluster_tags(&cluster.tags, &[]);
        cluster.derive_tags(&mut instance, &rules);
        if let Some(outcome) = place(&cluster, &mut instance) {
            let states = cluster.states.clone();
            let undo = cluster.add(instance, &outcome);
            let fresh = load(parts, true);
            for index in cluster.node_indices() {
                let exact = !recipe.style.decimal;
                let (added, loaded) = (normal(&cluster, index, exact), normal(&fresh, index, exact));
                prop_assert_eq!(added, loaded, "node {:?}", index);
            }
            cluster.undo(undo);
            prop_assert_eq!(&cluster.states, &states);
        }
    }

    #[test]
    fn the_reserve_without_an_instance_is_what_the_others_need(recipe in recipes(), choices in choices()) {
        let mut cluster = recipe.build();
        for choice in &choices {
            if let Some((index, outcome)) = choose(&cluster, choice) {
                cluster.apply(index, &outcome);
            }
            for node in cluster.node_indices() {
                let state = cluster.state(node);
                for &leaving in &state.secondaries {
                    let instance = cluster.instance(leaving);
                    let need = instance.demand().reserved_memory;
                    let expected = needed(&cluster, node, Some(leaving));
                    prop_assert_eq!(state.reserve_without(instance.primary, need), expected);
                }
                prop_assert_eq!(state.figures.reserved_memory, needed(&cluster, node, None));
            }
        }
    }
}

/// Judges the instance on the nodes in its record; `None` if it doesn't fit even by force.
fn place(cluster: &Cluster, instance: &mut Instance) -> Option<cluster::Outcome> {
    let (p, demand) = (instance.primary, instance.demand());
    let shared = instance.secondary.map_or(0, |s| cluster.shared_locations(p, s));
    let location = shared + cluster.unmet_wishes(instance, p);
    let tags = cluster.state(p).tag_effect(&instance.exclusion_tags);
    let primary = cluster.figures(p).add_primary(cluster.node(p), &demand, tags, location, true).ok()?;
    let primary = cluster::Change { node: p, figures: primary };
    let Some(s) = instance.secondary else { return Some(cluster::Outcome::one(primary, p, None, 0)) };
    let reserved = cluster.state(s).reserved_for(p);
    let figures = cluster.figures(s).add_secondary(cluster.node(s), &demand, reserved, true, false).ok()?;
    let secondary = cluster::Change { node: s, figures };
    Some(cluster::Outcome::two([primary, secondary], p, Some(s), shared))
}

/// Maximum, over the other nodes, of the memory that a node must reserve for that node's instances. Ignores
/// the instance `without`.
fn needed(cluster: &Cluster, node: NodeIdx, without: Option<InstanceIdx>) -> i64 {
    let of_peer = |peer: NodeIdx| -> i64 {
        let here = cluster.state(node).secondaries.iter().filter(|i| Some(**i) != without);
        let demands = here.map(|i| cluster.instance(*i)).filter(|i| i.primary == peer);
        demands.map(|i| i.demand().reserved_memory).sum()
    };
    cluster.node_indices().map(of_peer).max().unwrap_or(0)
}
