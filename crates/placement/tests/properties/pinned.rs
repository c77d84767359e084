//! Pinned instances keep their nodes in every kind of plan.

use cluster::{Cluster, InstanceIdx, NodeIdx, PINNED};
use placement::Search;
use placement::balance::{BalanceOptions, Balancer};
use placement::deep::{self, DeepOptions};
use placement::drain::{DrainOptions, Obstacle, Purpose, drain};
use placement::evacuate::{Destination, EvacuateMode, evacuate};
use placement::reboot::{Choice, Colouring, ConflictGraph, Evacuation, Heuristic, pinned_to, plan};
use placement::repair::repair;
use placement::squeeze::{SqueezeOptions, squeeze};
use proptest::prelude::*;

use crate::generate::{Recipe, cases, load, recipes};

/// Builds the cluster and pins the instances that `bits` select.
fn build(recipe: &Recipe, bits: u16) -> Cluster {
    let mut parts = recipe.parts();
    for (position, instance) in parts.instances.iter_mut().enumerate() {
        if (bits >> (position % 16)) & 1 == 1 {
            instance.tags.push(PINNED.to_owned());
        }
    }
    load(parts, true)
}

fn pinned(cluster: &Cluster) -> impl Iterator<Item = InstanceIdx> {
    cluster.instance_indices().filter(move |i| cluster.instance(*i).is_pinned())
}

fn stay(before: &Cluster, after: &Cluster) -> Result<(), TestCaseError> {
    for index in pinned(before) {
        let (was, is) = (before.instance(index), after.instance(index));
        prop_assert_eq!((was.primary, was.secondary), (is.primary, is.secondary), "{:?}", index);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn balancing_repairs_and_deep_searches_leave_them(recipe in recipes(), bits: u16) {
        let before = build(&recipe, bits);
        let group = before.nodes[0].group;
        let (nodes, instances) = (before.nodes_of(group), before.instances_of(group));
        let options = BalanceOptions::default();
        let mut balanced = before.clone();
        let mut run = Balancer::new(&mut balanced, &nodes, &instances, options);
        while run.step().is_some() {}
        stay(&before, &balanced)?;
        let mut repaired = before.clone();
        repair(&mut repaired, &nodes, &instances, &options);
        stay(&before, &repaired)?;
        let mut searched = before.clone();
        let mut effort = deep::rounds(2);
        deep::balance(&mut searched, &nodes, &instances, &options, &DeepOptions::default(), &mut effort);
        stay(&before, &searched)?;
        let mut squeezed = before.clone();
        let options = SqueezeOptions { minimal_resources: 0.0, target_resources: 0.0, count_offline: false };
        squeeze(&mut squeezed, &options);
        stay(&before, &squeezed)?;
    }

    #[test]
    fn drains_leave_them_and_say_so(recipe in recipes(), bits: u16, leaving in 1..255_u8) {
        let before = build(&recipe, bits);
        let leaving: Vec<NodeIdx> = before.node_indices().filter(|n| leaving >> n.0 & 1 == 1).collect();
        for purpose in [Purpose::Retire, Purpose::Reboot] {
            let mut after = before.clone();
            let options = DrainOptions { purpose, ignore_soft_errors: false, disk_moves: true };
            let plan = drain(&mut after, &leaving, options);
            stay(&before, &after)?;
            for index in pinned(&before) {
                let instance = before.instance(index);
                let must_leave = purpose == Purpose::Retire || instance.uses_memory();
                if !instance.forthcoming && leaving.contains(&instance.primary) && must_leave {
                    prop_assert!(plan.stays.iter().any(|stays| stays.instance == index), "{index:?}");
                }
            }
            for stays in plan.stays.iter().filter(|stays| before.instance(stays.instance).is_pinned()) {
                let is_named = matches!(
                    stays.obstacle,
                    Obstacle::Pinned | Obstacle::NotMirrored(_) | Obstacle::NoSecondary
                );
                prop_assert!(is_named, "{stays:?}");
            }
        }
    }

    #[test]
    fn evacuations_refuse_them(recipe in recipes(), bits: u16) {
        let before = build(&recipe, bits);
        for index in pinned(&before) {
            for mode in [EvacuateMode::PrimaryOnly, EvacuateMode::SecondaryOnly, EvacuateMode::All] {
                let to = Destination::in_group(&before, index, &[]);
                prop_assert!(evacuate(&mut before.clone(), index, mode, &to, true).is_err());
            }
        }
    }

    #[test]
    fn reboots_relocate_none_of_them(recipe in recipes(), bits: u16, non_redundant: bool, secondaries: bool) {
        let cluster = build(&recipe, bits);
        let evacuation = Evacuation { non_redundant, secondaries };
        let mut nodes = Choice::default().nodes(&cluster);
        nodes.retain(|node| pinned_to(&cluster, *node, evacuation).is_none());
        let Some(graph) = ConflictGraph::new(&cluster, &nodes, false) else { return Ok(()) };
        let colourings = Heuristic::ALL.map(|heuristic| Colouring::greedy(&graph, heuristic));
        for search in [Search::Exact, Search::Deep] {
            let Ok(groups) = plan(&cluster, &graph, &colourings, evacuation, None, search) else { continue };
            for relocation in groups.iter().flat_map(|group| &group.relocations) {
                prop_assert!(!cluster.instance(relocation.instance).is_pinned(), "{relocation:?}");
            }
        }
    }
}
