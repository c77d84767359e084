//! `whatif` and `fit`: figures match a fresh load, and remedies make as much room as they promise.

use cluster::{Cluster, DiskTemplate, InstanceIdx, LoadOptions, NodeIdx, Probe};
use placement::capacity::{CapacityOptions, Shape};
use placement::drain::Role;
use placement::fit::{Action, FitQuestion, fit};
use placement::whatif::{Changes, NewNodes, Resize, Summary};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::generate::{cases, recipes};

fn shapes() -> impl Strategy<Value = Shape> {
    let template = prop_oneof![Just(DiskTemplate::Drbd), Just(DiskTemplate::Plain), Just(DiskTemplate::Rbd)];
    (1..16_i64, 1..16_i64, 1..5_i64, 1..3_i64, template).prop_map(
        |(memory, disk, vcpus, spindles, template)| Shape {
            memory_mib: 256 * memory,
            disk_mib: 1024 * disk,
            vcpus,
            spindles,
            spindle_use: 1,
            template,
            metadata_mib: 0,
        },
    )
}

/// Figures that must not depend on how a cluster was produced.
fn figures(cluster: &Cluster) -> Vec<(i64, i64, i64, i64, i64)> {
    let figures = cluster.states.iter().map(|s| &s.figures);
    let of = |f: &cluster::Figures| {
        (f.instance_memory, f.reserved_memory, f.free_disk, f.used_vcpus, f.primaries + f.secondaries)
    };
    figures.map(of).collect()
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn a_cluster_that_is_not_changed_stays_as_it_is(recipe in recipes()) {
        let cluster = recipe.recorded().build();
        let same = Changes::default().reshape(&cluster, &LoadOptions::default()).unwrap();
        prop_assert_eq!(figures(&same), figures(&cluster));
        let missing = |c: &Cluster| c.nodes.iter().map(|n| n.missing_memory).collect::<Vec<_>>();
        prop_assert_eq!(missing(&same), missing(&cluster));
    }

    #[test]
    fn growing_and_shrinking_again_changes_nothing(recipe in recipes(), pick: Index, grow in 1..4096_i64) {
        let cluster = recipe.recorded().build();
        let index = InstanceIdx::from_usize(pick.index(cluster.instances.len()));
        let instance = cluster.instance(index).clone();
        let resized = |cluster: &Cluster, by: i64| {
            let size = Resize {
                memory_mib: Some(cluster.instance(index).memory + by),
                vcpus: Some(cluster.instance(index).vcpus + by),
                disk_mib: Some(cluster.instance(index).disk + by),
            };
            let changes = Changes { resize: vec![(index, size)], ..Changes::default() };
            changes.reshape(cluster, &LoadOptions::default()).unwrap()
        };
        let grown = resized(&cluster, grow);
        let missing = |c: &Cluster| c.nodes.iter().map(|n| n.missing_memory).collect::<Vec<_>>();
        prop_assert_eq!(missing(&grown), missing(&cluster));
        let back = resized(&grown, -grow);
        prop_assert_eq!(figures(&back), figures(&cluster));
        prop_assert_eq!(&back.instance(index).disks, &instance.disks);
    }

    #[test]
    fn what_a_removed_instance_had_is_free_again(recipe in recipes(), pick: Index) {
        let cluster = recipe.recorded().build();
        let index = InstanceIdx::from_usize(pick.index(cluster.instances.len()));
        let instance = cluster.instance(index);
        prop_assume!(!instance.forthcoming);
        let changes = Changes { remove: vec![index], ..Changes::default() };
        let without = changes.reshape(&cluster, &LoadOptions::default()).unwrap();
        prop_assert_eq!(without.instances.len() + 1, cluster.instances.len());
        for node in cluster.node_indices() {
            let (was, is) = (cluster.figures(node), without.figures(node));
            let primary = instance.primary == node;
            let mirror = instance.template == DiskTemplate::Drbd && instance.secondary == Some(node);
            let used = if primary && instance.uses_memory() { instance.memory } else { 0 };
            prop_assert_eq!(was.instance_memory - is.instance_memory, used);
            let local = instance.template.local_storage() && (primary || mirror);
            prop_assert_eq!(is.free_disk - was.free_disk, if local { instance.disk } else { 0 });
            prop_assert_eq!(without.node(node).missing_memory, cluster.node(node).missing_memory);
        }
    }

    #[test]
    fn a_lost_node_runs_nothing_that_could_run_elsewhere(recipe in recipes(), pick: Index, rebalance: bool) {
        let cluster = recipe.recorded().build();
        let lost = NodeIdx::from_usize(pick.index(cluster.nodes.len()));
        let changes = Changes { lose: vec![lost], rebalance, ..Changes::default() };
        let mut after = changes.reshape(&cluster, &LoadOptions::default()).unwrap();
        let enacted = changes.enact(&mut after);
        let plan = enacted.rescue.unwrap();
        for index in after.instance_indices().filter(|i| after.instance(*i).primary == lost) {
            let left = |s: &placement::drain::Stay| s.instance == index && s.role == Role::Primary;
            prop_assert!(plan.stays.iter().any(left) || plan.planned.contains(&index), "{:?}", index);
        }
        prop_assert!(after.node(lost).offline);
    }

    #[test]
    fn describing_a_cluster_does_not_change_it(recipe in recipes(), shape in shapes()) {
        let mut cluster = recipe.recorded().build();
        let before = (cluster.states.clone(), cluster.instances.clone());
        let summary = Summary::of(&mut cluster, &[shape], 8, CapacityOptions::HAIL);
        prop_assert_eq!((&cluster.states, &cluster.instances), (&before.0, &before.1));
        prop_assert_eq!(summary.rooms[0].refused.is_none(), summary.rooms[0].count == 8);
    }

    #[test]
    fn a_node_that_gets_what_it_lacks_takes_the_instance(
        recipe in recipes(),
        shape in shapes(),
        factor in 1..5_i64,
    ) {
        let cluster = recipe.recorded().online().build();
        let memory_mib = factor * shape.memory_mib;
        let shape = Shape { memory_mib, disk_mib: factor * shape.disk_mib, ..shape };
        let fit = fit(&cluster, &FitQuestion { shape, most: 1, rules: CapacityOptions::HAIL });
        // If nothing was placed, the current cluster is already full.
        prop_assume!(fit.placed.is_empty());
        let instance = shape.instance("");
        for near in fit.nearest.iter().filter(|near| near.role == Role::Primary) {
            let mut node = cluster.node(near.node).clone();
            let mut figures = *cluster.figures(near.node);
            let add = |figures: &cluster::Figures, node: &cluster::Node| {
                figures.add_primary(node, &instance.demand(), cluster::TagEffect::default(), 0, false)
            };
            prop_assert_eq!(add(&figures, &node).err(), near.refused);
            node.total_memory += near.lack.memory_mib as f64;
            figures.booked_free_memory += near.lack.memory_mib;
            figures.free_disk += near.lack.disk_mib;
            figures.booked_free_disk += near.lack.disk_mib;
            figures.free_spindles += near.lack.spindles;
            figures.booked_free_spindles += near.lack.spindles;
            node.max_spindles += near.lack.instance_spindles;
            figures.used_vcpus -= near.lack.vcpus;
            figures.booked_used_vcpus -= near.lack.vcpus;
            prop_assert_eq!(add(&figures, &node).err(), None, "{:?}", near);
            prop_assert_eq!(near.refused.is_none(), near.lack.is_none(), "{:?}", near);
        }
    }

    #[test]
    fn moves_that_make_room_can_be_made_and_do(recipe in recipes(), shape in shapes()) {
        let cluster = recipe.recorded().build();
        let full = fit(&cluster, &FitQuestion { shape, most: 50, rules: CapacityOptions::HAIL });
        for remedy in &full.remedies {
            prop_assert!(remedy.more > 0);
            match &remedy.action {
                Action::Moves(steps) if full.placed.is_empty() => {
                    let mut moved = cluster.clone();
                    for step in steps {
                        let outcome = Probe::new(&moved, step.instance).judge(step.mov, false);
                        prop_assert!(outcome.is_ok(), "{:?}: {:?}", step, outcome);
                        moved.apply(step.instance, &outcome.unwrap());
                    }
                    let then = fit(&moved, &FitQuestion { shape, most: remedy.more, rules: CapacityOptions::HAIL });
                    prop_assert_eq!(then.placed.len(), remedy.more);
                }
                Action::AddNode(node) if full.placed.is_empty() => {
                    let new = NewNodes { count: 1, like: (**node).clone() };
                    let changes = Changes { add_nodes: vec![new], ..Changes::default() };
                    let options = LoadOptions { initial_n1: cluster::InitialN1::Recorded, ..LoadOptions::default() };
                    let larger = changes.reshape(&cluster, &options).unwrap();
                    let then = fit(&larger, &FitQuestion { shape, most: remedy.more, rules: CapacityOptions::HAIL });
                    prop_assert_eq!(then.placed.len(), remedy.more);
                }
                _ => {}
            }
        }
    }
}
