//! Filling a cluster must equal placing one instance after another.

use cluster::{Cluster, DiskTemplate, GroupIdx, NodeIdx};
use placement::allocate::{AllocOptions, Allocator, Scope, Targets, Trials};
use placement::capacity::{CapacityOptions, Ground, Rule, Shape, fill, tiered};
use placement::fit::{FitQuestion, fit};
use placement::groups;
use placement::redundancy::{Redundancy, all_evacuable};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{Recipe, cases, load, recipes};

/// A shape like one of the cluster's instances.
fn shape_like(cluster: &Cluster, pick: Index, drbd: bool) -> Shape {
    let instance = &cluster.instances[pick.index(cluster.instances.len())];
    Shape {
        memory_mib: instance.memory.max(512),
        disk_mib: instance.disk.max(1024),
        vcpus: instance.vcpus.max(1),
        spindles: instance.total_spindles().unwrap_or(1),
        spindle_use: instance.spindle_use.max(1),
        template: if drbd { DiskTemplate::Drbd } else { DiskTemplate::Plain },
        metadata_mib: 0,
    }
}

/// A cluster, a shape to fill it with, and the ground for it.
fn field(recipe: &Recipe, pick: Index, drbd: bool, options: &CapacityOptions) -> (Cluster, Shape, Ground) {
    let mut cluster = recipe.build();
    let shape = shape_like(&cluster, pick, drbd);
    let ground = Ground::survey(&mut cluster, shape.template, options);
    (cluster, shape, ground)
}

type Nodes = (NodeIdx, Option<NodeIdx>);

/// Places `count` instances in separate requests. Returns their nodes and whether one more would be refused.
fn one_by_one(cluster: &mut Cluster, ground: &Ground, shape: &Shape, count: usize) -> (Vec<Nodes>, bool) {
    let options = AllocOptions { ignore_soft_errors: false, capacity_checks: false };
    let Ok(targets) = &ground.targets else { return (Vec::new(), true) };
    let mut placed = Vec::new();
    loop {
        let scope = Scope::cluster(cluster);
        let instance = shape.instance("new");
        let trials = Allocator::new(cluster, &scope, options).try_all(cluster, &instance, targets);
        let Some(best) = trials.best else { return (placed, true) };
        if placed.len() == count {
            return (placed, false);
        }
        cluster.add(instance, &best.outcome);
        placed.push((best.outcome.primary, best.outcome.secondary));
    }
}

/// Places a single instance as `hail` would, in any group or only in `only`.
fn asked_alone(cluster: &mut Cluster, shape: &Shape, only: Option<GroupIdx>) -> Option<Nodes> {
    let options = AllocOptions { ignore_soft_errors: false, capacity_checks: true };
    let instance = shape.instance("new");
    let count = shape.template.required_nodes() as i64;
    let outcome = if let Some(group) = only {
        let targets = Targets::new(cluster, &cluster.nodes_of(group), count, None).ok()?;
        let allocator = Allocator::new(cluster, &Scope::group(cluster, group), options);
        allocator.try_all(cluster, &instance, &targets).best?.outcome
    } else {
        let allocator = Allocator::new(cluster, &Scope::cluster(cluster), options);
        let inhabited = groups::inhabited(cluster);
        let choice = groups::choose(cluster, &inhabited, &instance, true, |cluster, group| {
            let targets = Targets::new(cluster, &cluster.nodes_of(group), count, None)?;
            Ok::<Trials<f64>, _>(allocator.try_all(cluster, &instance, &targets))
        });
        choice.chosen()?.1.outcome
    };
    cluster.add(instance, &outcome);
    Some((outcome.primary, outcome.secondary))
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn as_many_fit_as_hail_places_one_after_another(
        recipe in recipes(),
        pick: Index,
        drbd: bool,
        grouped: bool,
    ) {
        // If all nodes have exclusive storage, other rules apply.
        let mut parts = recipe.parts();
        parts.nodes.iter_mut().for_each(|node| node.exclusive_storage = false);
        let mut cluster = load(parts, recipe.style.recorded_n1);
        let shape = shape_like(&cluster, pick, drbd);
        let group = grouped.then(|| cluster.nodes[0].group);
        let rules = CapacityOptions { rule: Rule::Hail { group }, ..CapacityOptions::HAIL };
        let most = 12;
        let fit = fit(&cluster, &FitQuestion { shape, most, rules });
        let mut asked = 0;
        while asked < most && asked_alone(&mut cluster, &shape, group).is_some() {
            asked += 1;
        }
        prop_assert_eq!(fit.placed.len(), asked);
    }

    #[test]
    fn without_checks_each_instance_goes_where_it_would_alone(
        recipe in recipes(),
        pick: Index,
        drbd: bool,
        limit in 0_usize..12,
    ) {
        let rule = Rule::Hspace { accept_existing: true };
        let options =
            CapacityOptions { capacity_checks: false, rule, limit: Some(limit), ..CapacityOptions::HSPACE };
        let (mut cluster, shape, ground) = field(&recipe, pick, drbd, &options);
        let mut alone = cluster.clone();
        if let Ok(filled) = fill(&mut cluster, &ground, &shape, &options) {
            let placed: Vec<Nodes> = filled.placed.iter().map(|p| (p.primary, p.secondary)).collect();
            let (expected, refused) = one_by_one(&mut alone, &ground, &shape, limit);
            prop_assert_eq!(&placed, &expected);
            prop_assert!(refused || placed.len() == limit);
            prop_assert_eq!(&cluster.states, &alone.states);
        }
    }

    #[test]
    fn a_redundant_cluster_stays_so(recipe in recipes(), pick: Index, tiers: bool, limit in 1_usize..40) {
        let options = CapacityOptions { limit: Some(limit), ..CapacityOptions::HSPACE };
        let (mut cluster, shape, ground) = field(&recipe, pick, false, &options);
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let before = all_evacuable(&mut cluster, &nodes, &nodes);
        let filled = if tiers {
            tiered(&mut cluster, &ground, &[shape], &options)
        } else {
            fill(&mut cluster, &ground, &shape, &options)
        };
        if let Ok(filled) = filled {
            prop_assert!(filled.placed.len() <= limit);
            prop_assert!(before || filled.placed.is_empty(), "{:?}", filled);
            if before {
                prop_assert!(all_evacuable(&mut cluster, &nodes, &nodes));
            }
        }
    }

    #[test]
    fn redundancy_kept_through_placements_is_redundancy_seen_again(
        recipe in recipes(),
        pick: Index,
        drbd: bool,
    ) {
        let rule = Rule::Hspace { accept_existing: true };
        let options = CapacityOptions { rule, ..CapacityOptions::HSPACE };
        let (mut cluster, shape, ground) = field(&recipe, pick, drbd, &options);
        let Ok(targets) = &ground.targets else { return Ok(()) };
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let unchecked = AllocOptions { ignore_soft_errors: false, capacity_checks: false };
        let mut kept = Redundancy::new(&mut cluster, &nodes);
        for _ in 0..6 {
            let instance = shape.instance("new");
            let scope = Scope::cluster(&cluster);
            let trials = Allocator::new(&mut cluster, &scope, unchecked).try_all(&mut cluster, &instance, targets);
            let Some(best) = trials.best else { break };
            let fresh = Redundancy::new(&mut cluster, &nodes);
            let inquiries = [&kept, &fresh].map(|r| r.inquiry(&cluster, &instance, None));
            cluster.add(instance, &best.outcome);
            let [from_kept, expected] = inquiries.map(|i| i.holds(&mut cluster, &best.outcome));
            prop_assert_eq!(from_kept, expected);
            prop_assert_eq!(all_evacuable(&mut cluster, &nodes, &nodes), expected);
            let changed: Vec<NodeIdx> = best.outcome.changes().iter().map(|change| change.node).collect();
            kept.update(&mut cluster, &changed);
        }
    }
}
