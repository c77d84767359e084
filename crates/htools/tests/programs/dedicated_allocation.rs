//! Seed 000: the worked examples of dedicated allocation, as vectors.
//!
//! Nodes have four quarters. A policy defines full, half and quarter nodes as sizes, and in one example three
//! quarters.

use cluster::{
    Cluster, Disk, DiskTemplate, Group, GroupIdx, ISpec, Instance, LoadOptions, MinMax, Node, NodeIdx, Policy,
};
use placement::allocate::Targets;
use placement::dedicated::{LostAllocations, allocation_vector, try_all};

/// Disk of a quarter node, MiB.
pub const QUARTER: i64 = 1000;
/// A node's disk in addition to four quarters, MiB: nodes never allocate their last MiB.
pub const SPARE: i64 = 1;

fn spec(quarters: i64) -> ISpec {
    ISpec {
        memory_size: 100 * quarters,
        cpu_count: 1,
        disk_size: QUARTER * quarters,
        disk_count: 1,
        nic_count: 1,
        spindle_use: 1,
    }
}

fn policy(sizes: &[i64]) -> Policy {
    let exact = |quarters: &i64| MinMax { min: spec(*quarters), max: spec(*quarters) };
    Policy { minmax: sizes.iter().map(exact).collect(), vcpu_ratio: 32.0, ..Policy::default() }
}

fn instance(quarters: i64) -> Instance {
    let spec = spec(quarters);
    Instance {
        memory: spec.memory_size,
        disk: spec.disk_size,
        vcpus: 1,
        disks: vec![Disk { size: spec.disk_size, spindles: Some(1) }],
        ..Instance::new("new", DiskTemplate::Plain, NodeIdx(0))
    }
}

/// A cluster whose policy has these sizes. `filled` is the number of quarter-node instances on each node.
fn cluster(filled: &[i64], sizes: &[i64]) -> Cluster {
    let group = Group { policy: policy(sizes), ..Group::new("g", "u") };
    let mut instances = Vec::new();
    let mut nodes = Vec::new();
    for (position, quarters) in filled.iter().enumerate() {
        let mut node = Node::new(format!("n{position}"), GroupIdx(0));
        node.total_memory = 16_384.0;
        node.reported_free_memory = 16_384 - 100 * quarters;
        node.total_disk = (4 * QUARTER + SPARE) as f64;
        node.reported_free_disk = (4 - quarters) * QUARTER + SPARE;
        node.total_cpus = 8.0;
        node.node_cpus = 0;
        // Only disk is scarce.
        node.exclusive_storage = false;
        nodes.push(node);
        for _ in 0..*quarters {
            instances.push(Instance { primary: NodeIdx::from_usize(position), ..instance(1) });
        }
    }
    let options = LoadOptions::default();
    let loaded = Cluster::load(vec![group], nodes, instances, Vec::new(), Policy::default(), &options);
    loaded.expect("nothing is selected").0
}

/// Allocations lost by placing an instance on a node with `filled` quarters in use.
fn lost(quarters: i64, filled: i64, sizes: &[i64]) -> LostAllocations {
    let cluster = cluster(&[filled], sizes);
    let targets = Targets::Single(vec![NodeIdx(0)]);
    let trials = try_all(&cluster, &instance(quarters), &targets, false);
    trials.best.expect("it fits").score
}

/// Quarters in use on the node chosen for an instance.
fn preferred(quarters: i64, filled: &[i64], sizes: &[i64]) -> i64 {
    let cluster = cluster(filled, sizes);
    let targets = Targets::Single(cluster.node_indices().collect());
    let best = try_all(&cluster, &instance(quarters), &targets, false).best.expect("it fits");
    filled[best.outcome.primary.at()]
}

const FULL_HALF_QUARTER: [i64; 3] = [4, 2, 1];

#[test]
fn the_allocation_vector_counts_instances_minimally_compliant_in_decreasing_order() {
    for (filled, vector) in [(0, [1, 2, 4]), (1, [0, 1, 3]), (2, [0, 1, 2]), (3, [0, 0, 1]), (4, [0, 0, 0])] {
        // The order of intervals in the policy doesn't matter.
        for sizes in [[4, 2, 1], [1, 2, 4], [2, 4, 1]] {
            let cluster = cluster(&[filled], &sizes);
            let (node, figures) = (&cluster.nodes[0], cluster.figures(NodeIdx(0)));
            assert_eq!(allocation_vector(&policy(&sizes), node, figures), vector, "{filled} quarters");
        }
    }
}

#[test]
fn a_quarter_prefers_three_quarters_over_a_quarter_over_a_half_over_an_empty_node() {
    let expected = [(3, [0, 0, 1], 0), (1, [0, 0, 1], 2), (2, [0, 1, 1], 1), (0, [1, 1, 1], 3)];
    for (filled, lost_allocations, quarters_left) in expected {
        let lost = lost(1, filled, &FULL_HALF_QUARTER);
        assert_eq!(lost.lost, lost_allocations, "{filled} quarters");
        assert_eq!(lost.disk_left, quarters_left * QUARTER + SPARE, "{filled} quarters");
    }
    assert_eq!(preferred(1, &[0, 2, 1, 3], &FULL_HALF_QUARTER), 3);
    assert_eq!(preferred(1, &[0, 2, 1], &FULL_HALF_QUARTER), 1);
    assert_eq!(preferred(1, &[1, 2, 0], &FULL_HALF_QUARTER), 1);
    assert_eq!(preferred(1, &[2, 0], &FULL_HALF_QUARTER), 2);
    assert_eq!(preferred(1, &[0, 4], &FULL_HALF_QUARTER), 0);
}

#[test]
fn a_half_prefers_a_half_over_a_quarter_over_an_empty_node() {
    let expected = [(2, [0, 1, 2], 0), (1, [0, 1, 2], 1), (0, [1, 1, 2], 2)];
    for (filled, lost_allocations, quarters_left) in expected {
        let lost = lost(2, filled, &FULL_HALF_QUARTER);
        assert_eq!(lost.lost, lost_allocations, "{filled} quarters");
        assert_eq!(lost.disk_left, quarters_left * QUARTER + SPARE, "{filled} quarters");
    }
    assert_eq!(preferred(2, &[0, 1, 2], &FULL_HALF_QUARTER), 2);
    assert_eq!(preferred(2, &[2, 1, 0], &FULL_HALF_QUARTER), 2);
    assert_eq!(preferred(2, &[1, 0], &FULL_HALF_QUARTER), 1);
    assert_eq!(preferred(2, &[0, 3], &FULL_HALF_QUARTER), 0);
}

#[test]
fn with_three_quarters_allowed_a_quarter_prefers_a_half_full_node_over_a_quarter_filled_one() {
    let sizes = [4, 3, 2, 1];
    assert_eq!(lost(1, 2, &sizes).lost, [0, 0, 1, 1]);
    assert_eq!(lost(1, 1, &sizes).lost, [0, 1, 0, 1]);
    assert_eq!(preferred(1, &[1, 2], &sizes), 2);
    assert_eq!(preferred(1, &[2, 1], &sizes), 2);
    assert_eq!(preferred(1, &[2, 1, 3, 0], &sizes), 3);
}

#[test]
fn losing_a_larger_size_dominates_losing_smaller_ones() {
    let lost = |lost: [i64; 3], disk_left| LostAllocations { lost: lost.to_vec(), disk_left };
    assert!(lost([0, 9, 9], 9) < lost([1, 0, 0], 0));
    assert!(lost([0, 0, 9], 9) < lost([0, 1, 0], 0));
    assert!(lost([0, 0, 1], 0) < lost([0, 0, 1], 1));
}
