//! Options of `hscan`.

use chores::random::Random;

use super::{Drawn, NODE_FIELDS};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] = &["--nosuch", "--static-kvm-node-memory=x", "-d", "--output-dir=nosuch"];

pub(super) fn draw(random: &mut Random, _cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(40) {
        drawn.add([random.pick(&NODE_FIELDS)]);
    }
    if random.chance(30) {
        drawn.add(["--no-headers"]);
    }
    if random.chance(30) {
        drawn.add([random.pick(&[
            "--static-kvm-node-memory=0",
            "--static-kvm-node-memory=512",
            "--static-kvm-node-memory=10000",
        ])]);
    }
    if random.chance(10) {
        drawn.add(["-v"]);
    }
    if random.chance(10) {
        drawn.add(["-d."]);
    }
    if random.chance(8) {
        // another cluster, which can't be read
        drawn.add(["file://nosuch"]);
    }
}
