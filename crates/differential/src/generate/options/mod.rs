//! Draws command lines with every option that affects a program's decisions or output. Each program has its
//! own module.

mod hail;
mod hbal;
mod hcheck;
mod hinfo;
mod hroller;
mod hscan;
mod hspace;
mod hsqueeze;
mod loads;

use chores::random::Random;

use super::model::{Cluster, Program};
use crate::json::Json;

/// Options, each with its argument, and the files that they need.
#[derive(Debug, Default)]
pub struct Drawn {
    pub options: Vec<Vec<String>>,
    /// Lines of the file for `-U`.
    pub utilisation: Vec<String>,
    /// Content of the file for `--mond-data`.
    pub mond: Option<Json>,
}

impl Drawn {
    pub fn add<const N: usize>(&mut self, words: [&str; N]) {
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

/// Draws the options of one program.
type Draw = fn(&mut Random, &Cluster, &mut Drawn);

/// Draws options for a run of `program` on `cluster`. In 2 % of cases, an invalid one is added.
pub fn draw(random: &mut Random, program: Program, cluster: &Cluster) -> Drawn {
    let mut drawn = Drawn::default();
    let (options, wrong): (Draw, &[&str]) = match program {
        Program::Hail => (hail::draw, hail::WRONG),
        Program::Hbal => (hbal::draw, hbal::WRONG),
        Program::Hcheck => (hcheck::draw, hcheck::WRONG),
        Program::Hinfo => (hinfo::draw, hinfo::WRONG),
        Program::Hroller => (hroller::draw, hroller::WRONG),
        Program::Hspace => (hspace::draw, hspace::WRONG),
        Program::Hsqueeze => (hsqueeze::draw, hsqueeze::WRONG),
        Program::Hscan => (hscan::draw, hscan::WRONG),
    };
    options(random, cluster, &mut drawn);
    if random.chance(2) {
        drawn.add([random.pick(wrong)]);
    }
    drawn
}

/// Name of a random node, whole or only its first component.
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
