//! Verdicts if some groups have no table of slots. In tests, few groups have one.

use cluster::{Cluster, GroupIdx, Instance, InstanceIdx, NodeIdx, Outcome};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::generate::{Recipe, cases, load, recipes_of};

/// A cluster where nothing fails over, with exclusive storage in the first group or nowhere.
fn countable(recipe: &Recipe, exclusive: bool) -> Cluster {
    let mut parts = recipe.parts();
    parts.instances.retain(|instance| instance.secondary.is_none());
    let first = |node: &cluster::Node| node.group == GroupIdx(0);
    parts.nodes.iter_mut().for_each(|node| node.exclusive_storage = exclusive && first(node));
    load(parts, recipe.style.recorded_n1)
}

fn everywhere(cluster: &Cluster, instance: &Instance) -> Vec<Outcome> {
    cluster.node_indices().filter_map(|node| allocate::by_force(cluster, instance, node)).collect()
}

fn each_can_be_emptied(cluster: &mut Cluster, tentative: Option<Tentative>) -> bool {
    let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
    nodes.iter().all(|n| by_simulation(cluster, &nodes, *n, tentative))
}

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn groups_without_a_table_are_tested_all_the_same(
        recipe in recipes_of(6, 10),
        exclusive: bool,
        forthcoming: bool,
        pick: Index,
    ) {
        let mut cluster = countable(&recipe, exclusive);
        prop_assume!(!cluster.instances.is_empty());
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let mut copy = cluster.instances[pick.index(cluster.instances.len())].clone();
        copy.forthcoming = forthcoming;
        let mut kept = Redundancy::new(&mut cluster, &nodes);
        // Each placement adds a new size, so tables grow too large along the way.
        for _ in 0..6 {
            let inquiry = kept.inquiry(&cluster, &copy, None);
            let outcomes = everywhere(&cluster, &copy);
            for outcome in &outcomes {
                let undo = cluster.add(copy.clone(), outcome);
                prop_assert_eq!(inquiry.holds(&mut cluster, outcome), each_can_be_emptied(&mut cluster, None));
                cluster.undo(undo);
            }
            let Some(outcome) = outcomes.first() else { break };
            cluster.add(copy.clone(), outcome);
            kept.update(&mut cluster, &[outcome.primary]);
            copy.memory = (copy.memory - 64).max(0);
        }
    }

    #[test]
    fn an_instance_that_exists_is_tested_by_its_own_record(recipe in recipes_of(6, 10), exclusive: bool, pick: Index) {
        let mut cluster = countable(&recipe, exclusive);
        prop_assume!(!cluster.instances.is_empty());
        let existing = InstanceIdx::from_usize(pick.index(cluster.instances.len()));
        let instance = InstanceIdx::from_usize(cluster.instances.len());
        let tentative = Some(Tentative { instance, hidden: None, existing: Some(existing) });
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let copy = cluster.instance(existing).clone();
        let redundancy = Redundancy::new(&mut cluster, &nodes);
        let inquiry = redundancy.inquiry(&cluster, &copy, tentative);
        for outcome in everywhere(&cluster, &copy) {
            let undo = cluster.add(copy.clone(), &outcome);
            prop_assert_eq!(
                inquiry.holds(&mut cluster, &outcome),
                each_can_be_emptied(&mut cluster, tentative),
                "{:?}",
                outcome
            );
            cluster.undo(undo);
        }
    }
}
