//! Output of `hsqueeze`.

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::jobs::job_sets;
use placement::squeeze::{Action, Plan, STANDBY_PREFIX, offline_candidates, online_candidates};

use crate::commands::{self, InstanceNames};
use crate::io::Io;
use crate::options::Options;

/// Prints the nodes that can be powered off or on.
pub(super) fn candidates(cluster: &Cluster, io: &mut Io<'_>) -> io::Result<()> {
    let list = |nodes: &[NodeIdx]| {
        let names: Vec<&str> = nodes.iter().map(|n| cluster.node(*n).name.as_str()).collect();
        names.join(",")
    };
    writeln!(io.out, "Offline candidates: {}", list(&offline_candidates(cluster)))?;
    writeln!(io.out, "Online candidates: {}", list(&online_candidates(cluster)))
}

/// Prints the action and its nodes.
pub(super) fn plan(cluster: &Cluster, plan: &Plan, options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    if !options.no_headers {
        let heading = match plan.action {
            Action::SwitchOn { .. } => "'Nodes to online'",
            Action::SwitchOff => "'Nodes to offline'",
            Action::Nothing => "'No action'",
        };
        writeln!(io.out, "{heading}")?;
    }
    for node in &plan.nodes {
        writeln!(io.out, "{}", cluster.node(*node).name)?;
    }
    if options.verbosity > 1 && plan.action == (Action::SwitchOn { sufficient: false }) {
        writeln!(io.out, "Onlining all nodes will not yield enough capacity")?;
    }
    Ok(())
}

/// Commands of a plan, in the order in which they must run.
pub(super) fn commands(cluster: &Cluster, plan: &Plan) -> Vec<String> {
    let moves = commands::lines(cluster, &job_sets(cluster, &plan.steps), InstanceNames::Full);
    match plan.action {
        Action::SwitchOn { .. } => [power(cluster, plan, "on"), moves].concat(),
        Action::SwitchOff => {
            let tags = on_nodes(cluster, plan, |node| format!("add-tags {node} {STANDBY_PREFIX}auto"));
            let tagging = [vec![String::new(), "echo Tagging Commands".to_owned()], tags].concat();
            [moves, tagging, vec![String::new()], power(cluster, plan, "off")].concat()
        }
        Action::Nothing => vec!["echo Nothing to do".to_owned()],
    }
}

fn power(cluster: &Cluster, plan: &Plan, state: &str) -> Vec<String> {
    let switch = on_nodes(cluster, plan, |node| format!("power -f {state} {node}"));
    [vec!["echo Power Commands".to_owned()], switch].concat()
}

fn on_nodes(cluster: &Cluster, plan: &Plan, command: impl Fn(&str) -> String) -> Vec<String> {
    let name = |n: &NodeIdx| cluster.alias(&cluster.node(*n).name);
    plan.nodes.iter().map(|n| format!("  gnt-node {}", command(name(n)))).collect()
}
