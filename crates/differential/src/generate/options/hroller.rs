//! Options of `hroller`.

use chores::random::Random;

use super::{Drawn, node_name};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] = &[
    "--nosuch",
    "-p",
    "--skip=1",
    "--o",
    "-Gnosuch",
    "-Onosuch",
    "--node-tags",
    "--static-kvm-node-memory=x",
];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    nodes(random, cluster, drawn);
    for (percent, option) in [
        (12, "--skip-non-redundant"),
        (25, "--ignore-non-redundant"),
        (20, "--offline-maintenance"),
        (35, "--full-evacuation"),
    ] {
        if random.chance(percent) {
            drawn.add([option]);
        }
    }
    output(random, drawn);
}

/// Options that select the nodes to reboot.
fn nodes(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let has_master = cluster.nodes.iter().any(|node| node.role == 'M');
    if random.chance(if has_master { 15 } else { 85 }) {
        drawn.add([random.pick(&["-f", "--force"])]);
    }
    let groups = cluster.groups.len();
    if groups > 0 && random.chance(if groups > 1 { 35 } else { 4 }) {
        let group = &cluster.groups[random.below(groups)];
        let name = if random.chance(75) { &group.name } else { &group.uuid };
        drawn.add(["-G", name]);
    }
    let tagged = cluster.nodes.iter().any(|node| !node.tags.is_empty());
    if random.chance(if tagged { 35 } else { 2 }) {
        let tags =
            ["rack:a", "rack:a,rack:b", "power:1,site:x", "hv:old", "site:x,site:y,rack:c", "rack", ""];
        drawn.add([&format!("--node-tags={}", random.pick(&tags))]);
    }
    if random.chance(12) {
        for _ in 0..=random.below(2) {
            if let Some(name) = node_name(random, cluster) {
                drawn.add(["-O", &name]);
            }
        }
    }
}

fn output(random: &mut Random, drawn: &mut Drawn) {
    for _ in 0..random.weighted(&[(50, 0), (15, 1), (30, 2), (5, 3)]) {
        drawn.add(["-v"]);
    }
    for _ in 0..random.weighted(&[(88, 0), (8, 1), (4, 2)]) {
        drawn.add(["-q"]);
    }
    for (percent, option) in [(12, "--no-headers"), (12, "--one-step-only"), (60, "--print-moves")] {
        if random.chance(percent) {
            drawn.add([option]);
        }
    }
    if random.chance(8) {
        drawn.add(["-S", "saved"]);
    }
    if random.chance(4) {
        drawn.add(["--static-kvm-node-memory", random.pick(&["0", "512", "20000"])]);
    }
}
