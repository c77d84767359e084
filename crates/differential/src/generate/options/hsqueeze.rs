//! Options of `hsqueeze`.

use chores::random::Random;

use super::Drawn;
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] = &["--nosuch", "-t", "--minimal-resources=x", "-q", "-O", "extra", "-X"];

pub(super) fn draw(random: &mut Random, _cluster: &Cluster, drawn: &mut Drawn) {
    let factors = ["0", "0.5", "1", "4", "20", "60", "120", "1e30"];
    if random.chance(40) {
        drawn.add(["--minimal-resources", random.pick(&factors)]);
    }
    if random.chance(40) {
        drawn.add(["--target-resources", random.pick(&factors)]);
    }
    if random.chance(50) {
        drawn.add(["-v"]);
    }
    if random.chance(70) {
        drawn.add([random.pick(&["-C", "-C", "--print-commands", "-Ccommands.sh"])]);
    }
    if random.chance(30) {
        drawn.add(["-S", "saved"]);
    }
    if random.chance(10) {
        drawn.add(["--no-headers"]);
    }
    if random.chance(5) {
        drawn.add(["--static-kvm-node-memory", "512"]);
    }
}
