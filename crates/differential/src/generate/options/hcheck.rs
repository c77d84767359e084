//! Options of `hcheck`.

use chores::random::Random;

use super::{Drawn, instance_names, loads, node_name};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] = &[
    "--nosuch",
    "-t",
    "--machine-readable=perhaps",
    "--min-disk=x",
    "-l1.5",
    "--max-cpu=0",
    "-p",
    "-Onosuch",
    "extra",
];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(50) {
        drawn.add([random.pick(&[
            "--machine-readable",
            "--machine-readable=yes",
            "--machine-readable",
            "--machine-readable=no",
        ])]);
    }
    for (percent, option) in [
        (25, "--no-simulation"),
        (20, "--no-capacity-checks"),
        (8, "--evac-mode"),
        (8, "--no-disk-moves"),
        (8, "--no-instance-moves"),
        (12, "--ignore-soft-errors"),
        (6, "--ignore-dynu"),
        (8, "-q"),
        (8, "-v"),
    ] {
        if random.chance(percent) {
            drawn.add([option]);
        }
    }
    limits(random, drawn);
    names(random, cluster, drawn);
    if random.chance(10) {
        loads::utilisation(random, cluster, drawn);
    }
}

fn limits(random: &mut Random, drawn: &mut Drawn) {
    for (percent, option, values) in [
        (15, "-l", ["0", "1", "3", "7"]),
        (8, "-e", ["1e-2", "0.5", "3", "10"]),
        (10, "-g", ["0", "0.001", "0.1", "0.5"]),
        (10, "--min-gain-limit", ["0", "0.5", "5", "100"]),
        (10, "--max-cpu", ["0.5", "1.5", "8", "100"]),
        (10, "--min-disk", ["0", "0.1", "0.3", "1"]),
    ] {
        if random.chance(percent) {
            drawn.add([option, random.pick(&values)]);
        }
    }
}

fn names(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(15) {
        for _ in 0..=random.below(2) {
            if let Some(name) = node_name(random, cluster) {
                drawn.add(["-O", &name]);
            }
        }
    }
    if random.chance(10) {
        drawn.add([random.pick(&["--exclusion-tags=svc", "--exclusion-tags=svc,role"])]);
    }
    if random.chance(6) {
        drawn.add([&format!("--select-instances={}", instance_names(random, cluster))]);
    }
    if random.chance(6) {
        drawn.add([&format!("--exclude-instances={}", instance_names(random, cluster))]);
    }
}
