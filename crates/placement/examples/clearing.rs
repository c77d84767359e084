//! Planning time of scavenger hunts, and the distance of the plan's cost from its lower bound: `cargo run
//! --release -p placement --example clearing`.
//!
//! Uses pools of 1,000 nodes with up to about 8,000 guests, clears 20 nodes at several fill levels, with and
//! without redundancy. Optional arguments, in this order: number of nodes, number of wanted nodes, fill
//! levels in percent.

use std::collections::BTreeSet;
use std::time::Instant;

use placement::clear::{
    CostWeights, Effort, ExclusionGroup, Guest, GuestId, Label, NPlusOne, Node, NodeId, Request, Role, check,
    plan,
};

/// Used memory, percent.
const LEVELS: [u64; 12] = [50, 70, 80, 85, 88, 90, 92, 93, 94, 95, 96, 97];

/// A linear congruential generator: the same pools on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Nodes with 96 virtual CPUs, 256 GiB of memory and 4,000 GiB of disk in four zones; guests of 1 to 16
/// virtual CPUs with 2 to 8 GiB each. One guest in eight is bound to its zone, one in eight is in an
/// anti-affinity group. Guests are added to random nodes until `percent` of memory is used or nothing else
/// fits.
fn pool(nodes: u64, wanted: usize, percent: u64, redundant: bool) -> Request {
    let mut numbers = Numbers(nodes + percent);
    let zone = |node: u64| Label((node % 4) as u32);
    let mut pool: Vec<Node> = (0..nodes)
        .map(|id| Node {
            labels: BTreeSet::from([zone(id)]),
            free_in_seconds: (numbers.below(50) == 0).then(|| 600 + numbers.below(7200)),
            ..Node::new(NodeId(id), Role::Candidate, vec![96, 262_144, 4000])
        })
        .collect();
    for node in &mut pool {
        node.role = match numbers.below(20) {
            0 => Role::Closed,
            1 | 2 => Role::Receiver,
            _ => Role::Candidate,
        };
    }
    let mut used = vec![[0, 0, 0]; pool.len()];
    let (mut guests, mut memory, mut refused) = (Vec::new(), 0, 0);
    let full = nodes * 262_144 / 100 * percent;
    while memory < full && refused < 200 * nodes {
        let at = numbers.below(nodes);
        let vcpus = 1 << [0, 1, 2, 2, 3, 3, 3, 4][numbers.below(8) as usize];
        let size = [vcpus, vcpus * 2048 * (1 + numbers.below(4)), vcpus * 20];
        let there = &mut used[at as usize];
        if (0..3).any(|d| there[d] + size[d] > [96, 262_144, 4000][d]) {
            refused += 1;
            continue;
        }
        (0..3).for_each(|d| there[d] += size[d]);
        memory += size[1];
        let id = guests.len() as u128;
        let mut guest = Guest::new(GuestId(id), NodeId(at), size.to_vec());
        guest.memory_mib = size[1] / 2 + numbers.below(size[1] / 2);
        guest.downtime_ms = 50 + numbers.below(500);
        guest.priority = [1, 1, 1, 4][numbers.below(4) as usize];
        guest.movable = numbers.below(100) != 0;
        if numbers.below(8) == 0 {
            guest.requires.insert(zone(at));
        }
        if numbers.below(8) == 0 {
            guest.exclusion.insert(ExclusionGroup(numbers.below(nodes / 4 + 1)));
        }
        guests.push(guest);
    }
    let nodes = pool.iter().map(|node| node.id).collect();
    let n_plus_one = redundant.then(|| NPlusOne { nodes, dimensions: vec![1] });
    Request { nodes: pool, guests, wanted, n_plus_one, weights: CostWeights::default() }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let nodes = numbers.first().copied().unwrap_or(1000);
    let wanted = numbers.get(1).copied().unwrap_or(20) as usize;
    let levels = numbers.get(2..).filter(|levels| !levels.is_empty()).unwrap_or(&LEVELS);
    for redundant in [false, true] {
        for &percent in levels {
            let request = pool(nodes, wanted, percent, redundant);
            let used: u64 = request.guests.iter().map(|guest| guest.size[1]).sum();
            print!(
                "{wanted} of {nodes} nodes, {} guests, {} % of memory used, {}: ",
                request.guests.len(),
                used * 100 / (nodes * 262_144),
                if redundant { "N+1" } else { "no N+1" }
            );
            let begin = Instant::now();
            let answer = plan(&request, Effort::default());
            let seconds = begin.elapsed().as_secs_f64();
            let plan = match answer {
                Ok(plan) => plan,
                Err(refusal) => {
                    println!("{seconds:.3} s; {refusal}");
                    continue;
                }
            };
            let begin = Instant::now();
            let verdict =
                check(&request, &plan).map_or_else(|violation| violation.to_string(), |()| "ok".into());
            let gap = plan.cost.weighted as f64 / plan.lower_bound.max(1) as f64 - 1.0;
            println!(
                "{seconds:.3} s; {} moves, {} waits, {} points, {:.2} % above the bound; check: {verdict}, {:.3} s",
                plan.moves.len(),
                plan.waits.len(),
                plan.cost.weighted,
                100.0 * gap,
                begin.elapsed().as_secs_f64()
            );
        }
    }
}
