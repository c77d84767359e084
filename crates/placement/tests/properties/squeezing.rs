//! Switching nodes off and on: the plan delivers the promised capacity.

use cluster::{Cluster, NodeIdx, Policy, Probe};
use placement::squeeze::{
    Action, STANDBY_PREFIX, SqueezeOptions, offline_candidates, online_candidates, squeeze,
};
use proptest::prelude::*;

use crate::generate::{Recipe, cases, recipes};

/// Builds the recipe's cluster with all offline nodes on standby.
fn build(recipe: &Recipe) -> Cluster {
    let mut cluster = recipe.build();
    for node in cluster.nodes.iter_mut().filter(|node| node.offline) {
        node.tags.push(format!("{STANDBY_PREFIX}auto"));
    }
    cluster
}

fn options() -> impl Strategy<Value = SqueezeOptions> {
    (0..8_u8, 0..8_u8, any::<bool>()).prop_map(|(minimal, target, count_offline)| SqueezeOptions {
        minimal_resources: f64::from(minimal),
        target_resources: f64::from(target),
        count_offline,
    })
}

/// Whether every node that counts has memory for more than `factor` standard instances.
fn has_room(cluster: &Cluster, factor: f64, count_offline: bool) -> bool {
    let wanted = (factor * Policy::default().std.memory_size as f64) as i64;
    let mut counted = cluster.node_indices().filter(|n| count_offline || cluster.node(*n).online());
    counted.all(|n| cluster.figures(n).unallocated_memory(cluster.node(n)) > wanted)
}

fn settled(cluster: &Cluster) -> bool {
    cluster.instances.iter().all(|i| cluster.node(i.primary).online())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_plan_leads_from_the_cluster_to_what_it_promises(recipe in recipes(), options in options()) {
        let mut cluster = build(&recipe);
        let before = cluster.clone();
        let plan = squeeze(&mut cluster, &options);
        let mut replayed = before.clone();
        for node in &plan.nodes {
            replayed.nodes[node.at()].offline = plan.action == Action::SwitchOff;
        }
        for step in &plan.steps {
            let Ok(outcome) = Probe::new(&replayed, step.instance).judge(step.mov, false) else {
                return Err(TestCaseError::fail("a move is impossible"));
            };
            replayed.apply(step.instance, &outcome);
        }
        prop_assert_eq!(&replayed.instances, &cluster.instances);
        prop_assert_eq!(&replayed.nodes, &cluster.nodes);
        match plan.action {
            Action::SwitchOff => {
                prop_assert!(!plan.nodes.is_empty() && settled(&cluster));
                prop_assert!(has_room(&cluster, options.target_resources, options.count_offline));
                let candidates = offline_candidates(&before);
                prop_assert!(plan.nodes.iter().all(|n| candidates.contains(n)));
                prop_assert!(plan.nodes.iter().all(|n| cluster.figures(*n).primaries == 0));
            }
            Action::SwitchOn { sufficient } => {
                let candidates: Vec<NodeIdx> = online_candidates(&before);
                prop_assert!(candidates.starts_with(&plan.nodes));
                prop_assert!(sufficient || candidates == plan.nodes);
                let roomy = has_room(&cluster, options.minimal_resources, options.count_offline);
                prop_assert!(!sufficient || (settled(&cluster) && roomy));
            }
            Action::Nothing => prop_assert!(plan.nodes.is_empty() && plan.steps.is_empty()),
        }
    }
}
