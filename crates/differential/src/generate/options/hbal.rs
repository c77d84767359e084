//! Options of `hbal`.

use chores::random::Random;

use super::{Drawn, NODE_FIELDS, instance_names, loads, node_name};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] =
    &["--nosuch", "--min-gain=x", "-l1.5", "--min", "--max-cpu=0", "-O", "--exec=1", "-Onosuch"];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let groups = cluster.groups.len();
    if groups > 1 && random.chance(92) || random.chance(8) {
        let group = &cluster.groups[random.below(groups)];
        let name = if random.chance(75) { &group.name } else { &group.uuid };
        drawn.add(["-G", if random.chance(3) { "nosuch" } else { name }]);
    }
    limits(random, drawn);
    restrictions(random, cluster, drawn);
    output(random, drawn);
    if random.chance(12) {
        loads::utilisation(random, cluster, drawn);
    }
    if random.chance(6) {
        drawn.add(["--ignore-dynu"]);
    }
    if random.chance(6) {
        loads::mond(random, cluster, drawn);
        if random.chance(15) {
            drawn.add(["--exit-on-missing-mond-data"]);
        }
    }
}

fn limits(random: &mut Random, drawn: &mut Drawn) {
    if random.chance(25) {
        drawn.add(["-l", random.pick(&["0", "1", "2", "3", "7"])]);
    }
    if random.chance(8) {
        drawn.add(["-e", random.pick(&["1e-2", "0.5", "3", "10"])]);
    }
    if random.chance(12) {
        drawn.add(["-g", random.pick(&["0", "1e-9", "0.001", "0.1", "0.5"])]);
    }
    if random.chance(12) {
        drawn.add(["--min-gain-limit", random.pick(&["0", "0.5", "1", "5", "100"])]);
    }
    if random.chance(10) {
        drawn.add(["--max-cpu", random.pick(&["0.5", "1.5", "2", "8", "100"])]);
    }
    if random.chance(10) {
        drawn.add(["--min-disk", random.pick(&["0", "0.1", "0.3", "0.75", "1"])]);
    }
}

fn restrictions(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    for (percent, option) in [
        (8, "--evac-mode"),
        (12, "--restricted-migration"),
        (8, "--no-disk-moves"),
        (8, "--no-instance-moves"),
        (12, "--ignore-soft-errors"),
    ] {
        if random.chance(percent) {
            drawn.add([option]);
        }
    }
    if random.chance(12) {
        for _ in 0..=random.below(2) {
            if let Some(name) = node_name(random, cluster) {
                drawn.add(["-O", &name]);
            }
        }
    }
    if random.chance(10) {
        drawn.add([random.pick(&[
            "--exclusion-tags=svc",
            "--exclusion-tags=svc,role",
            "--exclusion-tags=rack",
        ])]);
    }
    if random.chance(7) {
        drawn.add([&format!("--select-instances={}", instance_names(random, cluster))]);
    }
    if random.chance(7) {
        drawn.add([&format!("--exclude-instances={}", instance_names(random, cluster))]);
    }
}

fn output(random: &mut Random, drawn: &mut Drawn) {
    for _ in 0..random.weighted(&[(55, 0), (15, 1), (10, 2), (8, 3), (12, 4)]) {
        drawn.add(["-v"]);
    }
    for _ in 0..random.weighted(&[(85, 0), (10, 1), (5, 2)]) {
        drawn.add(["-q"]);
    }
    if random.chance(45) {
        drawn.add([random.pick(&["-C", "-C", "--print-commands", "-Ccommands.sh"])]);
    }
    if random.chance(10) {
        drawn.add(["--first-job-group"]);
    }
    if random.chance(20) {
        drawn.add(["-S", "saved"]);
    }
    if random.chance(25) {
        drawn.add([random.pick(&NODE_FIELDS)]);
    }
    if random.chance(20) {
        drawn.add(["--print-instances"]);
    }
}
