//! From decisions to sets of jobs.

use cluster::{Cluster, NodeIdx};
use placement::balance::Step;

use super::daemon::{JobId, JobStatus};
use crate::opcode::{self, OpCode, Tagged};

/// The tag of a node that was switched off because it was not needed.
const STANDBY: &str = "htools:standby:auto";

/// Jobs that may run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobSet {
    /// What they do.
    pub(crate) what: String,
    /// The operations of each job.
    pub(crate) jobs: Vec<Vec<OpCode>>,
}

/// A set that was run: what it did, and how its jobs ended.
pub(super) type Finished = (String, Vec<(JobId, JobStatus)>);

/// One set of jobs for each set of steps, one job for each step; `verb` begins their descriptions.
pub(crate) fn moves(cluster: &Cluster, sets: &[Vec<Step>], verb: &str) -> Vec<JobSet> {
    let names = |set: &[Step]| {
        let names: Vec<&str> = set.iter().map(|s| cluster.instance(s.instance).name.as_str()).collect();
        names.join(",")
    };
    let job = |step: &Step| opcode::of_move(cluster, cluster.instance(step.instance), step.mov);
    sets.iter()
        .map(|set| JobSet {
            what: format!("{verb} instances {}", names(set)),
            jobs: set.iter().map(job).collect(),
        })
        .collect()
}

/// Tags nodes as standing by, one after another, then takes all of them offline and switches them off.
pub(crate) fn switch_off(cluster: &Cluster, nodes: &[NodeIdx]) -> Vec<JobSet> {
    let names = names(cluster, nodes);
    let tagging = |name: &String| JobSet {
        what: format!("Tagging node {name} with standby"),
        jobs: vec![vec![OpCode::TagsSet {
            object: Tagged::Node(name.clone()),
            tags: vec![STANDBY.to_owned()],
        }]],
    };
    let mut sets: Vec<JobSet> = names.iter().map(tagging).collect();
    sets.push(power(names, false));
    sets
}

/// Takes nodes for online and switches them on.
pub(crate) fn switch_on(cluster: &Cluster, nodes: &[NodeIdx]) -> JobSet {
    power(names(cluster, nodes), true)
}

fn names(cluster: &Cluster, nodes: &[NodeIdx]) -> Vec<String> {
    nodes.iter().map(|node| cluster.node(*node).name.clone()).collect()
}

fn power(names: Vec<String>, on: bool) -> JobSet {
    let offline = |name: &String| OpCode::NodeSetOffline { node: name.clone(), offline: !on };
    let mut job: Vec<OpCode> = names.iter().map(offline).collect();
    job.push(OpCode::NodePower { nodes: names, on });
    JobSet { what: format!("Powering {} nodes", if on { "on" } else { "off" }), jobs: vec![job] }
}
