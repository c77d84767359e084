//! Redundancy: the shortcuts must give the same verdicts as testing every node.

use std::cmp::Reverse;

use cluster::{Change, Cluster, Instance, InstanceIdx, MirrorClass, NodeIdx, Outcome};
use placement::allocate::{AllocOptions, Allocator, Scope, Targets};
use placement::redundancy::{Redundancy, Tentative, by_simulation, can_evacuate};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{Recipe, cases, load, recipes};

/// All placements of a copy of an instance that are possible by force.
fn placements(cluster: &Cluster, instance: &Instance) -> Vec<Outcome> {
    let demand = instance.demand();
    let mut found = Vec::new();
    for p in cluster.node_indices() {
        let tags = cluster.state(p).tag_effect(&instance.exclusion_tags);
        let location = cluster.unmet_wishes(instance, p);
        let Ok(primary) = cluster.figures(p).add_primary(cluster.node(p), &demand, tags, location, true)
        else {
            continue;
        };
        if !demand.drbd {
            found.push(Outcome::one(Change { node: p, figures: primary }, p, None, 0));
            continue;
        }
        for s in cluster.node_indices().filter(|s| *s != p) {
            let reserved = cluster.state(s).reserved_for(p);
            let node = cluster.node(s);
            if let Ok(figures) = cluster.figures(s).add_secondary(node, &demand, reserved, true, false) {
                let changes = [Change { node: p, figures: primary }, Change { node: s, figures }];
                found.push(Outcome::two(changes, p, Some(s), 0));
            }
        }
    }
    found
}

/// A cluster where nothing fails over, so that slots can be counted.
fn without_mirrors(recipe: &Recipe) -> Cluster {
    let mut parts = recipe.parts();
    parts.instances.retain(|instance| instance.secondary.is_none());
    parts.nodes.iter_mut().for_each(|node| node.exclusive_storage = false);
    load(parts, recipe.style.recorded_n1)
}

/// Whether the instances of a node can be created again, each on its best-scoring node; `None` if the
/// reference would rescue some instance differently.
fn one_by_one(cluster: &Cluster, node: NodeIdx) -> Option<bool> {
    let mut cluster = cluster.clone();
    let mut instances: Vec<Instance> =
        cluster.state(node).primaries.iter().rev().map(|i| cluster.instance(*i).clone()).collect();
    if instances.iter().any(|instance| instance.template.mirror() != MirrorClass::None) {
        return None;
    }
    instances.sort_by_key(|instance| Reverse(instance.memory));
    let others = cluster.nodes_of(cluster.node(node).group).into_iter().filter(|n| *n != node);
    let targets = Targets::Single(others.collect());
    let options = AllocOptions { ignore_soft_errors: true, capacity_checks: false };
    for instance in instances {
        let scope = Scope::cluster(&cluster);
        let trials = Allocator::new(&mut cluster, &scope, options).try_all(&mut cluster, &instance, &targets);
        let Some(best) = trials.best else { return Some(false) };
        cluster.add(instance, &best.outcome);
    }
    Some(true)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_simulation_puts_each_instance_where_it_scores_best(recipe in recipes()) {
        let mut cluster = without_mirrors(&recipe);
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        for &node in &nodes {
            if let Some(expected) = one_by_one(&cluster, node) {
                prop_assert_eq!(by_simulation(&mut cluster, &nodes, node, None), expected, "{:?}", node);
            }
        }
    }

    #[test]
    fn counting_slots_says_what_emptying_every_node_says(
        recipe in recipes(),
        pick: Index,
        stuffed in 0_usize..12,
    ) {
        let mut cluster = without_mirrors(&recipe);
        prop_assume!(!cluster.instances.is_empty());
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let mut copy = cluster.instances[pick.index(cluster.instances.len())].clone();
        copy.forthcoming = false;
        let mut kept = Redundancy::new(&mut cluster, &nodes);
        for step in 0..=stuffed {
            let outcomes = placements(&cluster, &copy);
            let Some(outcome) = outcomes.get(step % outcomes.len().max(1)) else { break };
            let inquiry = kept.inquiry(&cluster, &copy, None);
            // Knowledge gained from placements that aren't made must not mislead later checks.
            for outcome in outcomes.iter().take(6).chain([outcome]) {
                let undo = cluster.add(copy.clone(), outcome);
                let holds = inquiry.holds(&mut cluster, outcome);
                let each = nodes.iter().all(|n| by_simulation(&mut cluster, &nodes, *n, None));
                prop_assert_eq!(holds, each, "{:?}", outcome);
                cluster.undo(undo);
            }
            cluster.add(copy.clone(), outcome);
            kept.update(&mut cluster, &[outcome.primary]);
            copy.memory = (copy.memory - 64).max(0);
        }
    }

    #[test]
    fn redundancy_holds_if_every_node_can_be_emptied(
        recipe in recipes(),
        picks in any::<(Index, Index)>(),
        hide: bool,
        part: bool,
    ) {
        let mut cluster = recipe.build();
        let mut nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        if part {
            nodes = cluster.nodes_of(cluster.nodes[0].group);
        }
        let copy = cluster.instances[picks.0.index(cluster.instances.len())].clone();
        let hidden = InstanceIdx::from_usize(picks.1.index(cluster.instances.len()));
        let number = InstanceIdx::from_usize(cluster.instances.len());
        let tentative = Tentative { instance: number, hidden: hide.then_some(hidden), existing: None };
        let before = (cluster.states.clone(), cluster.instances.clone());
        let redundancy = Redundancy::new(&mut cluster, &nodes);
        prop_assert_eq!((&cluster.states, &cluster.instances), (&before.0, &before.1));
        let inquiry = redundancy.inquiry(&cluster, &copy, Some(tentative));
        for outcome in placements(&cluster, &copy).into_iter().take(12) {
            let undo = cluster.add(copy.clone(), &outcome);
            let holds = inquiry.holds(&mut cluster, &outcome);
            let each = nodes.iter().all(|n| by_simulation(&mut cluster, &nodes, *n, Some(tentative)));
            cluster.undo(undo);
            prop_assert_eq!(holds, each, "{:?}", outcome);
            prop_assert_eq!((&cluster.states, &cluster.instances), (&before.0, &before.1));
        }
    }

    #[test]
    fn a_verdict_without_simulation_is_that_of_the_simulation(recipe in recipes(), part: bool) {
        let mut cluster = recipe.build();
        let mut nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        if part {
            nodes = cluster.nodes_of(cluster.nodes[0].group);
        }
        let before = (cluster.states.clone(), cluster.instances.clone());
        for &node in &nodes {
            let verdict = can_evacuate(&mut cluster, &nodes, node, None);
            prop_assert_eq!(verdict, by_simulation(&mut cluster, &nodes, node, None), "{:?}", node);
            prop_assert_eq!((&cluster.states, &cluster.instances), (&before.0, &before.1));
        }
    }
}
