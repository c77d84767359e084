//! Options of `hspace`.

use chores::random::Random;

use super::{Drawn, NODE_FIELDS, node_name};
use crate::generate::model::Cluster;

/// Invalid options.
pub(super) const WRONG: &[&str] = &[
    "--nosuch",
    "-t",
    "--machine-readable=perhaps",
    "--disk-template=none",
    "--spindle-use=-1",
    "--standard-alloc=1g,1g",
    "--tiered-alloc=1k,1g,1",
    "--max-cpu=0",
    "-Onosuch",
    "-l1.5",
];

pub(super) fn draw(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(15) {
        simulate(random, drawn);
    }
    shapes(random, drawn);
    limits(random, cluster, drawn);
    for (percent, option) in
        [(25, "--no-capacity-checks"), (20, "--independent-groups"), (35, "--accept-existing-errors")]
    {
        if random.chance(percent) {
            drawn.add([option]);
        }
    }
    output(random, drawn);
}

fn simulate(random: &mut Random, drawn: &mut Drawn) {
    const SPECS: [&str; 9] = [
        "p,3,200g,16g,8",
        "preferred,6,100g,8g,4,2",
        "p,9,400G,24g,16",
        "a,4,1t,32g,8,3",
        "last_resort,2,100g,16384,4",
        "p,5,200g,16g,8,4,True",
        "u,3,200g,16g,8",
        "p,1,100g,8g,4",
        "p,4,150gib,12000m,6,1,False",
    ];
    for _ in 0..random.weighted(&[(65, 1), (25, 2), (10, 3)]) {
        drawn.add(["--simulate", random.pick(&SPECS)]);
    }
}

/// Instances to place. They are large relative to nodes, so that the reference finishes in time.
fn shapes(random: &mut Random, drawn: &mut Drawn) {
    if random.chance(92) {
        let template = random.weighted(&[
            (38, "drbd"),
            (34, "plain"),
            (6, "rbd"),
            (6, "ext"),
            (4, "diskless"),
            (4, "file"),
            (4, "blockdev"),
            (4, "sharedfile"),
        ]);
        drawn.add(["--disk-template", template]);
    }
    for (percent, option) in [(90, "--standard-alloc"), (88, "--tiered-alloc")] {
        if !random.chance(percent) {
            continue;
        }
        let spec = if random.chance(3) {
            (random.pick(&["0,1g,1", "10g,0,1", "10g,1g,0", "-1,4g,1", "10g,4g,1,0", "10g,4g,1,-1"]))
                .to_owned()
        } else {
            let disk = random.weighted(&[(30, "10g"), (30, "20g"), (25, "51200"), (10, "100G"), (5, "400g")]);
            let memory = random.pick(&["2g", "3000", "4096", "4g", "6g", "8g", "8G", "12g"]);
            let cpus = random.weighted(&[(30, 1), (30, 2), (30, 4), (10, 8)]);
            let spindles = random.weighted(&[(60, ""), (20, ",1"), (10, ",2"), (10, ",3")]);
            format!("{disk},{memory},{cpus}{spindles}")
        };
        drawn.add([option, &spec]);
    }
    if random.chance(15) {
        drawn.add(["--spindle-use", random.pick(&["0", "1", "2", "5", "20"])]);
    }
}

fn limits(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    if random.chance(30) {
        drawn.add(["-l", random.pick(&["0", "1", "2", "3", "5", "8", "11", "20", "30"])]);
    }
    if random.chance(12) {
        drawn.add(["--max-cpu", random.pick(&["0.5", "1.5", "2", "8", "100"])]);
    }
    if random.chance(12) {
        drawn.add(["--min-disk", random.pick(&["0", "0.1", "0.3", "0.75", "1"])]);
    }
    if random.chance(10)
        && let Some(name) = node_name(random, cluster)
    {
        drawn.add(["-O", &name]);
    }
}

fn output(random: &mut Random, drawn: &mut Drawn) {
    if random.chance(60) {
        drawn.add([random.pick(&["--machine-readable", "--machine-readable=yes", "--machine-readable=no"])]);
    }
    for _ in 0..random.weighted(&[(50, 0), (25, 1), (10, 2), (15, 3)]) {
        drawn.add(["-v"]);
    }
    for _ in 0..random.weighted(&[(85, 0), (10, 1), (5, 2)]) {
        drawn.add(["-q"]);
    }
    if random.chance(20) {
        drawn.add(["-S", "saved"]);
    }
    if random.chance(25) {
        drawn.add([random.pick(&NODE_FIELDS)]);
    }
}
