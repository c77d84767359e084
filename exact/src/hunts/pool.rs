//! Pools of nodes to hunt in, drawn from a seed.

use std::collections::BTreeSet;

use placement::clear::{CostWeights, ExclusionGroup, Guest, GuestId, Label, Node, NodeId, Request, Role};

use crate::numbers::Numbers;

/// Capacity of a node: virtual CPUs, MiB of memory, GiB of disk.
const CAPACITY: [u64; 3] = [64, 262_144, 4000];

/// Size and load of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: u64,
    /// Number of nodes that the hunt wants.
    pub wanted: usize,
    /// Used memory, percent.
    pub percent: u64,
}

/// Draws a pool. Its nodes are in three zones; some aren't candidates, and some become free by themselves.
/// Guests have 8 to 64 GiB and go to any node with enough capacity. An eighth of the guests are bound to
/// their zone, an eighth are in groups that exclude each other, and some can't be moved.
pub fn draw(seed: u64, size: Size) -> Request {
    let mut numbers = Numbers::new(seed * 1000 + size.percent);
    let zone = |node: u64| Label((node % 3) as u32);
    let node = |id, numbers: &mut Numbers| Node {
        role: match numbers.below(16) {
            0 => Role::Closed,
            1 | 2 => Role::Receiver,
            _ => Role::Candidate,
        },
        labels: BTreeSet::from([zone(id)]),
        free_in_seconds: (numbers.below(8) == 0).then(|| 10 + numbers.below(120)),
        surcharge: numbers.below(2) * numbers.below(5000),
        ..Node::new(NodeId(id), Role::Candidate, CAPACITY.to_vec())
    };
    let nodes: Vec<Node> = (0..size.nodes).map(|id| node(id, &mut numbers)).collect();
    let mut used = vec![[0; 3]; nodes.len()];
    let (mut guests, mut memory, mut refused) = (Vec::new(), 0, 0);
    while memory < size.nodes * CAPACITY[1] / 100 * size.percent && refused < 100 * size.nodes {
        let at = numbers.below(size.nodes);
        let gib = 8 * (1 + numbers.below(8));
        let needs = [gib / 8, gib * 1024, 10 * gib];
        let there = &mut used[at as usize];
        if there.iter().zip(needs).zip(CAPACITY).any(|((used, needs), capacity)| *used + needs > capacity) {
            refused += 1;
            continue;
        }
        there.iter_mut().zip(needs).for_each(|(used, needs)| *used += needs);
        memory += needs[1];
        guests.push(guest(guests.len(), at, needs, &mut numbers, zone(at)));
    }
    let weights = CostWeights::default();
    Request { nodes, guests, wanted: size.wanted, n_plus_one: None, weights }
}

fn guest(number: usize, at: u64, needs: [u64; 3], numbers: &mut Numbers, zone: Label) -> Guest {
    let mut guest = Guest {
        movable: numbers.below(25) != 0,
        memory_mib: needs[1],
        disk_gib: if numbers.below(3) == 0 { needs[2] } else { 0 },
        downtime_ms: 100 + numbers.below(900),
        priority: numbers.below(4),
        ..Guest::new(GuestId(number as u128), NodeId(at), needs.to_vec())
    };
    match numbers.below(8) {
        0 => _ = guest.requires.insert(zone),
        1 => _ = guest.exclusion.insert(ExclusionGroup(numbers.below(4))),
        _ => {}
    }
    guest
}
