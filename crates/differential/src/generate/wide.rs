//! Draws unusual clusters: crowded, of any size, with groups that differ in storage, size and policy, and
//! with odd names, tags and numbers.

use chores::random::Random;

use super::cluster::{Shape, TEMPLATES};
use super::model::{Cluster, Program};
use super::options::Drawn;

/// Set of cases to draw from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Clusters of at most some 20 nodes, a quarter of them unusual: small enough for the test suite.
    Small,
    /// Unusual clusters of up to 2,500 nodes.
    Wide,
}

impl Space {
    /// Whether the case of a seed has an unusual cluster.
    pub fn is_unusual(self, seed: u64) -> bool {
        self == Self::Wide || seed % 4 == 3
    }

    /// Number of nodes of an unusual cluster. For hsqueeze, the reference handles only small ones in
    /// reasonable time.
    pub fn nodes(self, random: &mut Random, program: Program) -> usize {
        match self {
            Self::Small => random.between(1, 12) as usize,
            Self::Wide if program == Program::Hsqueeze => random.between(1, 25) as usize,
            Self::Wide => {
                let (from, to) = random.weighted(&[
                    (10, (0, 2)),
                    (500, (2, 12)),
                    (300, (13, 30)),
                    (120, (31, 60)),
                    (35, (61, 500)),
                    (30, (501, 1400)),
                    (5, (2001, 2500)),
                ]);
                random.between(from, to) as usize
            }
        }
    }
}

/// Number of nodes from which on the reference takes too long for more than a few steps.
const LARGE: usize = 61;

/// Shape of an unusual cluster.
pub fn shape(random: &mut Random, program: Program, nodes: usize) -> Shape {
    let ordinary = Shape::draw(random, program);
    let per_node = if nodes < LARGE { random.weighted(&[(15, 0), (25, 1), (40, 3), (20, 5)]) } else { 2 };
    let most = if nodes < LARGE { 90 } else { usize::MAX };
    Shape {
        nodes,
        groups: if nodes < LARGE { 1 + random.below(5) } else { 1 + random.below(12) },
        instances: if nodes == 0 { 0 } else { (nodes * per_node + random.below(3)).min(most) },
        symmetric: random.chance(10),
        exclusive: random.weighted(&[(45, 0), (45, 50), (10, 100)]),
        other_templates: random.weighted(&[(30, 0), (30, 30), (40, 100)]),
        fill: random.weighted(&[(30, 35), (40, 90), (30, 160)]),
        lonely: random.weighted(&[(50, 0), (35, 40), (15, 100)]),
        offline: random.weighted(&[(50, 0), (30, 12), (20, 35)]),
        forthcoming: random.weighted(&[(50, 0), (25, 15), (25, 60)]),
        several_policies: random.chance(60),
        ..ordinary
    }
}

/// Gives a cluster odd names, tags and numbers. `beyond_finite` allows infinities and NaN, which only some
/// inputs can express.
pub fn spoil(random: &mut Random, cluster: &mut Cluster, beyond_finite: bool) {
    if random.chance(40) {
        rename(random, cluster);
    }
    if random.chance(30) {
        tag(random, cluster);
    }
    if random.chance(25) {
        miscount(random, cluster, beyond_finite);
    }
}

/// Adds odd options, and limits that let the reference finish on a large cluster.
pub fn add_options(random: &mut Random, program: Program, nodes: usize, drawn: &mut Drawn) {
    let numbers: &[&str] = match program {
        Program::Hbal | Program::Hcheck => &["-e", "-g", "--min-gain-limit"],
        _ => &[],
    };
    for option in numbers {
        if random.chance(6) {
            drawn.add([
                option,
                random.pick(&["NaN", "Infinity", "-Infinity", "-1", "1e400", "0x10", "1e-320"]),
            ]);
        }
    }
    for line in &mut drawn.utilisation {
        if random.chance(4) {
            let (name, figures) = line.split_once(' ').unwrap_or((line.as_str(), ""));
            let rest = figures.split_once(' ').map_or("", |(_, rest)| rest);
            *line = format!("{name} {} {rest}", random.pick(&["NaN", "Infinity", "-1.5", "1e308", "0x2"]));
        }
    }
    if nodes >= LARGE {
        match program {
            Program::Hbal | Program::Hcheck => drawn.add(["-l", random.pick(&["0", "1", "2"])]),
            Program::Hspace => drawn.add(["-l", random.pick(&["1", "2"])]),
            _ => {}
        }
    }
}

/// Names of nodes, instances and groups. A number in place of `#` makes each unique.
const NAMES: [(&str, &str, &str); 9] = [
    ("n#", "i#", "g#"),
    ("n#.zone.test", "n#.zone", "n#.zone.test"),
    ("NODE#.Zone.Test", "Inst#.zone.test", "Group #"),
    ("knöt#.zone.test", "экземпляр#", "群#"),
    ("#", "#.0", "uuid-#"),
    ("-n#", "--i#", "-G#"),
    ("n'#", "i\"#", "g\\#"),
    ("node #", "inst +#", "a;b#"),
    ("n#.a-rather-long-name-of-a-domain.that-nobody.would-type.example.org", "i#..", ".g#"),
];

fn rename(random: &mut Random, cluster: &mut Cluster) {
    let (nodes, instances, groups) = (random.pick(&NAMES).0, random.pick(&NAMES).1, random.pick(&NAMES).2);
    let numbered = |pattern: &str, number: usize| pattern.replace('#', &number.to_string());
    for (number, node) in cluster.nodes.iter_mut().enumerate() {
        node.name = numbered(nodes, number);
    }
    for (number, instance) in cluster.instances.iter_mut().enumerate() {
        instance.name = numbered(instances, number);
    }
    for (number, group) in cluster.groups.iter_mut().enumerate() {
        group.name = numbered(groups, number);
    }
}

const TAGS: [&str; 16] = [
    "",
    ":",
    "svc:",
    ":svc",
    "svc:ünï",
    "SVC:dns",
    "svc:a:b",
    " svc:dns",
    "htools:iextags",
    "htools:iextags:svc",
    "htools:nlocation",
    "htools:standby",
    "rack:",
    "hv:old:new",
    "site:x ",
    "htools:migration:hv",
];

fn tag(random: &mut Random, cluster: &mut Cluster) {
    let share = random.between(5, 60) as usize;
    let lists = cluster.nodes.iter_mut().map(|node| &mut node.tags);
    let lists = lists.chain(cluster.instances.iter_mut().map(|instance| &mut instance.tags));
    for tags in lists.chain([&mut cluster.tags]) {
        while random.chance(share) {
            tags.push(random.pick(&TAGS).to_owned());
        }
    }
}

/// Sets a few numbers that no cluster should report. Only a few, so that most of the cluster stays defined.
fn miscount(random: &mut Random, cluster: &mut Cluster, beyond_finite: bool) {
    const FINITE: [f64; 7] = [0.0, -1.0, 0.1, 1e-9, 1e11, 4_294_967_296.0, 1_048_576.5];
    const BEYOND: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let finite = |random: &mut Random| random.pick(&FINITE);
    // Only finite numbers are used where whole numbers are derived from them: beyond 2^40 these differ on
    // purpose.
    let number = |random: &mut Random| {
        if beyond_finite && random.chance(40) { random.pick(&BEYOND) } else { random.pick(&FINITE) }
    };
    for _ in 0..=random.below(3) {
        match random.below(3) {
            0 if !cluster.nodes.is_empty() => {
                let at = random.below(cluster.nodes.len());
                let node = &mut cluster.nodes[at];
                match random.below(8) {
                    0 => node.total_memory = finite(random),
                    1 => node.total_disk = finite(random),
                    2 => node.cpus = finite(random),
                    3 => node.cpu_speed = number(random),
                    4 => node.system_memory = random.pick(&[-1024, 0, 1 << 38]),
                    5 => node.free_memory = random.pick(&[-1, 0, 1 << 38]),
                    6 => node.free_disk = random.pick(&[-1, 0, 1 << 38]),
                    _ => node.spindles = random.pick(&[0, -1, 1 << 38]),
                }
            }
            1 if !cluster.instances.is_empty() => {
                let at = random.below(cluster.instances.len());
                let instance = &mut cluster.instances[at];
                match random.below(4) {
                    0 => instance.memory = random.pick(&[0, 1 << 38]),
                    1 => instance.disk = random.pick(&[0, 1 << 38]),
                    2 => instance.vcpus = random.pick(&[0, 1 << 20]),
                    _ => instance.spindle_use = random.pick(&[0, 1 << 20]),
                }
            }
            _ => {
                let policies = cluster.groups.iter_mut().filter_map(|group| group.policy.as_mut());
                let mut policies: Vec<_> = policies.chain(cluster.policy.as_mut()).collect();
                if policies.is_empty() {
                    continue;
                }
                let at = random.below(policies.len());
                match random.below(3) {
                    // Limits derived from ratios differ on purpose beyond 2^40 as well.
                    0 => policies[at].vcpu_ratio = finite(random).min(1_048_576.5),
                    1 => policies[at].spindle_ratio = number(random),
                    _ => {
                        let count = random.below(3);
                        policies[at].templates = random.some(&TEMPLATES, count);
                    }
                }
            }
        }
    }
}
