//! Options of `hinfo`.

use chores::random::Random;

use super::{Drawn, NODE_FIELDS, loads, node_name};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] =
    &["--nosuch", "-t", "--mond=perhaps", "--static-kvm-node-memory=x", "--print", "-Onosuch", "-U", "extra"];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    for _ in 0..random.weighted(&[(25, 0), (40, 1), (25, 2), (10, 3)]) {
        drawn.add(["-v"]);
    }
    for _ in 0..random.weighted(&[(85, 0), (10, 1), (5, 2)]) {
        drawn.add(["-q"]);
    }
    if random.chance(40) {
        drawn.add([random.pick(&NODE_FIELDS)]);
    }
    if random.chance(40) {
        drawn.add(["--print-instances"]);
    }
    if random.chance(20) {
        for _ in 0..=random.below(2) {
            if let Some(name) = node_name(random, cluster) {
                drawn.add(["-O", &name]);
            }
        }
    }
    if random.chance(10) {
        drawn.add(["--ignore-dynu"]);
    }
    if random.chance(15) {
        loads::mond(random, cluster, drawn);
    }
    if random.chance(8) {
        // The text format has no hypervisor, so this changes nothing.
        drawn.add(["--static-kvm-node-memory", random.pick(&["0", "-1", "4096"])]);
    }
}
