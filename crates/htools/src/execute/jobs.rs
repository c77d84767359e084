//! Conversion of decisions to sets of jobs.

use cluster::{Cluster, NodeIdx};
use placement::balance::Step;

use super::daemon::{JobId, JobStatus};
use crate::opcode::{self, OpCode, Tagged};

/// Tag of a node that was powered off because its capacity was not needed.
const STANDBY: &str = "htools:standby:auto";

/// Jobs that can run at the same time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JobSet {
    /// Description of the set, shown in reports.
    pub(crate) what: String,
    /// Operations of each job.
    pub(crate) jobs: Vec<Vec<OpCode>>,
}

/// Description of a submitted set, and its jobs with their final statuses.
pub(super) type Finished = (String, Vec<(JobId, JobStatus)>);

/// Converts each set of steps to a set of jobs, one job per step. `verb` starts the descriptions.
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

/// Tags nodes as standby, one set per node. Then one job marks all of them offline and powers them off.
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

/// One job that marks nodes online and powers them on.
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
