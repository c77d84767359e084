//! Draws command lines: every option that changes what `hail` or `hbal` decides or prints.

use super::model::{Cluster, Program};
use crate::json::Json;
use crate::random::Random;

/// Options, each with its argument, and the files they need beside the cluster.
#[derive(Debug, Default)]
pub struct Drawn {
    /// The options.
    pub options: Vec<Vec<String>>,
    /// Lines of `-U`'s file.
    pub utilisation: Vec<String>,
    /// Content of `--mond-data`'s file.
    pub mond: Option<Json>,
}

impl Drawn {
    fn add<const N: usize>(&mut self, words: [&str; N]) {
        self.options.push(words.iter().map(|w| (*w).to_owned()).collect());
    }
}

const NODE_FIELDS: [&str; 12] = [
    "-p",
    "-pname,status,plist,slist",
    "-p+ptags,peermap",
    "-pidx,fqdn,amem,hi_spindles,inst_spindles,spindle_count",
    "-p+nosuch",
    "--print-nodes",
    "--print-nodes=name,pfmem,pfdsk,rcpu,cload,mload,dload,nload",
    "--print-nodes=",
    "-pname,tmem,nmem,imem,xmem,fmem,umem,rmem",
    "-pname,tdsk,fdsk,tcpu,ucpu,pcnt,scnt",
    "-p",
    "-p",
];

/// Options for a run of `program` on `cluster`.
pub fn draw(random: &mut Random, program: Program, cluster: &Cluster) -> Drawn {
    let mut drawn = Drawn::default();
    match program {
        Program::Hail => hail(random, cluster, &mut drawn),
        Program::Hbal => hbal(random, cluster, &mut drawn),
    }
    if random.chance(2) {
        let wrong: &[&str] = match program {
            Program::Hail => &["--nosuch", "-q", "--static-kvm-node-memory=x", "--mond=perhaps", "--ignore"],
            Program::Hbal => {
                &["--nosuch", "--min-gain=x", "-l1.5", "--min", "--max-cpu=0", "-O", "--exec=1", "-Onosuch"]
            }
        };
        drawn.add([random.pick(wrong)]);
    }
    drawn
}

fn hail(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
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

fn hbal(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
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
        utilisation(random, cluster, drawn);
    }
    if random.chance(6) {
        drawn.add(["--ignore-dynu"]);
    }
    if random.chance(6) {
        mond(random, cluster, drawn);
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

fn utilisation(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let figure = |random: &mut Random| -> String {
        match random.below(4) {
            0 => random.below(5).to_string(),
            1 => format!("{:.1}", random.unit() * 3.0),
            2 => format!("{:.5}", random.unit() * 2.0),
            _ => format!("0.{}", random.below(10)),
        }
    };
    for instance in &cluster.instances {
        if random.chance(85) {
            let figures: Vec<String> = (0..4).map(|_| figure(random)).collect();
            drawn.utilisation.push(format!("{} {}", instance.name, figures.join(" ")));
        }
    }
    if random.chance(30) {
        drawn.utilisation.push("nosuch.instance 1 2 3 4".to_owned());
    }
    if random.chance(3) {
        drawn.utilisation.push("# a comment".to_owned());
    }
    drawn.add(["-U", "utilisation"]);
}

fn mond(random: &mut Random, cluster: &Cluster, drawn: &mut Drawn) {
    let complete = random.chance(80);
    let mut answers = Vec::new();
    for node in &cluster.nodes {
        if !complete && random.chance(30) {
            continue;
        }
        let load = format!("{:.2}", random.unit() * 8.0);
        let cpus = vec![Json::number(&load), Json::number("0.5")];
        let data = Json::object([
            ("cpu_number", Json::number(2)),
            ("cpus", Json::List(cpus)),
            ("cpu_total", Json::number(&load)),
        ]);
        let report = Json::object([
            ("name", Json::text("cpu-avg-load")),
            ("version", Json::text("B")),
            ("format_version", Json::number(1)),
            ("timestamp", Json::number(1_379_507_272_000_000_000_i64)),
            ("category", Json::Null),
            ("kind", Json::number(0)),
            ("data", data),
        ]);
        answers.push(Json::object([("node", Json::text(&node.name)), ("reports", Json::List(vec![report]))]));
    }
    drawn.mond = Some(Json::List(answers));
    if random.chance(90) {
        drawn.add(["--mond", "--mond-data", "mond.json"]);
    } else {
        // without --mond the file has no effect
        drawn.add(["--mond-data", "mond.json"]);
    }
    if random.chance(15) {
        drawn.add(["--exit-on-missing-mond-data"]);
    }
}

/// The name of a node, whole or its first component.
fn node_name(random: &mut Random, cluster: &Cluster) -> Option<String> {
    if cluster.nodes.is_empty() {
        return None;
    }
    let name = &random.one_of(&cluster.nodes).name;
    Some(if random.chance(30) { first_component(name) } else { name.clone() })
}

fn first_component(name: &str) -> String {
    name.split('.').next().unwrap_or(name).to_owned()
}

fn node_names(random: &mut Random, cluster: &Cluster) -> String {
    let names: Vec<String> = cluster.nodes.iter().map(|n| n.name.clone()).collect();
    let count = 1 + random.below(4);
    random.some(&names, count).join(",")
}

fn instance_names(random: &mut Random, cluster: &Cluster) -> String {
    let names: Vec<String> = cluster.instances.iter().map(|i| i.name.clone()).collect();
    let count = random.below(6);
    let mut chosen = random.some(&names, count);
    if let Some(name) = chosen.first_mut().filter(|_| random.chance(30)) {
        *name = first_component(name);
    }
    if random.chance(4) {
        chosen.push("nosuch".to_owned());
    }
    chosen.join(",")
}
