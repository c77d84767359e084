//! Options of `hail`.

use chores::random::Random;

use super::{Drawn, NODE_FIELDS, node_names};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] =
    &["--nosuch", "-q", "--static-kvm-node-memory=x", "--mond=perhaps", "--ignore"];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(30) {
        drawn.add(["--no-capacity-checks"]);
    }
    if random.chance(15) {
        drawn.add(["--ignore-soft-errors"]);
    }
    if random.chance(10) {
        drawn.add([&format!("--restrict-allocation-to={}", node_names(random, cluster))]);
    }
    if random.chance(15) {
        drawn.add([random.pick(&NODE_FIELDS)]);
    }
    if random.chance(10) {
        drawn.add(["-S", "saved"]);
    }
    if random.chance(10) {
        drawn.add(["--static-kvm-node-memory", random.pick(&["0", "-1", "512", "4096", "20000"])]);
    }
    if random.chance(5) {
        drawn.add(["--ignore-dynu"]);
    }
    if random.chance(5) {
        drawn.add(["-v"]);
        // Dumps the whole cluster.
        if random.chance(50) {
            drawn.add(["-v"]);
        }
    }
    if random.chance(4) {
        drawn.add(["-t", "cluster.data"]);
    } else if random.chance(3) {
        drawn.add(["--simulate", random.pick(&["p,4,100g,16g,4", "preferred,3,1t,32G,8,2", "u,2,10g,1g,1"])]);
        if random.chance(30) {
            drawn.add(["--simulate", random.pick(&["a,3,100G,8g,4,1,False", "p,2,1t,64g,8,4,True"])]);
        }
    }
}
