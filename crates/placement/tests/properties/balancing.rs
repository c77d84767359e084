//! Balancing runs: every step improves the score and keeps the rules, and the job sets contain exactly the
//! steps.

use cluster::{Cluster, DiskTemplate, InstanceIdx, NodeIdx};
use placement::balance::{BalanceOptions, Balancer, Step};
use placement::board::Board;
use placement::jobs::job_sets;
use proptest::prelude::*;

use crate::generate::{cases, recipes};

/// Nodes and instances of the first node's group.
fn scope(cluster: &Cluster) -> (Vec<NodeIdx>, Vec<InstanceIdx>) {
    let group = cluster.nodes[0].group;
    (cluster.nodes_of(group), cluster.instances_of(group))
}

fn run(cluster: &mut Cluster, options: BalanceOptions) -> Vec<Step> {
    let (nodes, instances) = scope(cluster);
    let mut run = Balancer::new(cluster, &nodes, &instances, options);
    std::iter::from_fn(|| run.step()).take(40).collect()
}

fn involved(cluster: &Cluster, step: &Step) -> Vec<NodeIdx> {
    let drbd = cluster.instance(step.instance).template == DiskTemplate::Drbd;
    let old = step.from.1.filter(|_| drbd);
    [Some(step.from.0), old, Some(step.to.0), step.to.1].into_iter().flatten().collect()
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn nothing_moves_if_the_least_score_is_not_a_number(recipe in recipes()) {
        let options = BalanceOptions { min_score: f64::NAN, ..BalanceOptions::default() };
        prop_assert_eq!(run(&mut recipe.build(), options), []);
    }

    #[test]
    fn after_every_step_the_score_is_that_of_a_new_board(recipe in recipes(), soft: bool) {
        let mut cluster = recipe.build();
        let (nodes, instances) = scope(&cluster);
        let options = BalanceOptions { ignore_soft_errors: soft, ..BalanceOptions::default() };
        let mut run = Balancer::new(&mut cluster, &nodes, &instances, options);
        let mut last = run.score();
        for _ in 0..40 {
            let Some(step) = run.step() else { break };
            let fresh = Board::new(run.cluster(), &nodes);
            prop_assert_eq!(step.score.to_bits(), fresh.score().to_bits());
            prop_assert_eq!(run.board().score().to_bits(), fresh.score().to_bits());
            prop_assert_eq!(run.score().to_bits(), fresh.score().to_bits());
            prop_assert!(step.score < last);
            last = step.score;
        }
    }

    #[test]
    fn balancing_breaks_nothing_that_was_in_order(recipe in recipes()) {
        // All nodes are online, because instances on offline nodes are moved by force.
        let mut cluster = recipe.recorded().online().build();
        let before = cluster.clone();
        let moved: Vec<InstanceIdx> =
            run(&mut cluster, BalanceOptions::default()).iter().map(|s| s.instance).collect();
        let apart = moved.iter().all(|i| keeps_apart(&before, *i));
        for index in cluster.node_indices() {
            let (node, was, is) = (cluster.node(index), before.figures(index), cluster.figures(index));
            prop_assert!(!is.fails_n1 || was.fails_n1, "node {index:?} fails N+1 now");
            // A figure within its limit must stay within it.
            let within = |used: f64, most: f64| used <= most;
            let cpus = |f: &cluster::Figures| within(f.vcpu_ratio(node), node.max_vcpu_ratio);
            prop_assert!(cpus(is) || !cpus(was), "node {index:?} has too many CPUs now");
            let spindles = |f: &cluster::Figures| within(f.instance_spindles, node.max_spindles);
            prop_assert!(spindles(is) || !spindles(was), "node {index:?} has too many spindles now");
            prop_assert!(is.free_disk > 0 || was.free_disk <= 0, "node {index:?} is full now");
            prop_assert!(is.tag_conflicts <= was.tag_conflicts || !apart, "new conflicts on {index:?}");
        }
        for index in cluster.instance_indices() {
            let (was, is) = (before.instance(index), cluster.instance(index));
            prop_assert!(moved.contains(&index) || was == is);
            prop_assert!(was.movable && was.auto_balance || was == is);
            prop_assert_eq!(was.secondary.is_some(), is.secondary.is_some());
            prop_assert_ne!(Some(is.primary), is.secondary);
        }
    }

    #[test]
    fn evacuation_moves_only_what_is_on_offline_nodes(recipe in recipes()) {
        let mut cluster = recipe.build();
        let before = cluster.clone();
        for step in run(&mut cluster, BalanceOptions { evacuate_only: true, ..BalanceOptions::default() }) {
            let nodes = before.instance(step.instance).involved_nodes();
            prop_assert!(nodes.into_iter().any(|n| before.node(n).offline));
        }
    }

    #[test]
    fn without_disk_moves_mirrored_instances_keep_their_nodes(recipe in recipes()) {
        let mut cluster = recipe.build();
        for step in run(&mut cluster, BalanceOptions { disk_moves: false, ..BalanceOptions::default() }) {
            if cluster.instance(step.instance).template == DiskTemplate::Drbd {
                prop_assert_eq!((Some(step.to.0), step.to.1), (step.from.1, Some(step.from.0)));
            }
        }
    }

    #[test]
    fn without_instance_moves_primaries_stay(recipe in recipes()) {
        let mut cluster = recipe.build();
        for step in run(&mut cluster, BalanceOptions { instance_moves: false, ..BalanceOptions::default() }) {
            prop_assert_eq!(step.to.0, step.from.0);
        }
    }

    #[test]
    fn jobs_of_a_set_share_no_node_and_all_sets_make_the_steps(recipe in recipes()) {
        let mut cluster = recipe.build();
        let steps = run(&mut cluster, BalanceOptions::default());
        let sets = job_sets(&cluster, &steps);
        prop_assert_eq!(sets.concat(), steps);
        for set in &sets {
            prop_assert!(!set.is_empty());
            for (position, step) in set.iter().enumerate() {
                let nodes = involved(&cluster, step);
                for other in &set[..position] {
                    prop_assert!(involved(&cluster, other).iter().all(|n| !nodes.contains(n)));
                }
            }
        }
    }
}

/// Whether exclusion tags affect the instance's moves and the instance doesn't conflict with itself.
fn keeps_apart(cluster: &Cluster, index: InstanceIdx) -> bool {
    let instance = cluster.instance(index);
    let mut tags = instance.exclusion_tags.clone();
    tags.sort_unstable();
    tags.dedup();
    !instance.forthcoming && tags.len() == instance.exclusion_tags.len()
}
