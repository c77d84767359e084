//! Faults as one JSON document (`--json`), with names of nodes and instances.

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::health::GroupHealth;
use serde::Serialize;

use super::health::{Health, Scope};

#[derive(Serialize)]
struct Document<'a> {
    /// Whether no fault was found before balancing.
    healthy: bool,
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    #[serde(rename = "group")]
    name: &'a str,
    uuid: &'a str,
    initial: State<'a>,
    /// State after balancing; omitted if nothing was balanced.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#final: Option<State<'a>>,
}

#[derive(Serialize)]
struct State<'a> {
    failing_n1: Vec<&'a str>,
    conflicting: Vec<&'a str>,
    offline_nodes: Vec<&'a str>,
    /// Instances with an offline primary.
    offline_primaries: Vec<&'a str>,
    /// Omitted if capacity checks are off.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_evacuable: Option<Vec<&'a str>>,
    score: f64,
}

/// The document, including the final newline.
pub(super) fn document(
    cluster: &Cluster,
    scopes: &[Scope],
    initial: &Health,
    last: Option<&Health>,
    capacity_checks: bool,
) -> io::Result<String> {
    let nodes = |nodes: &[NodeIdx]| nodes.iter().map(|n| cluster.node(*n).name.as_str()).collect();
    let state = |health: &GroupHealth| {
        let faulty = &health.faulty;
        let instances = faulty.offline_primaries.iter();
        State {
            failing_n1: nodes(&faulty.n1_failing),
            conflicting: nodes(&faulty.conflicting),
            offline_nodes: nodes(&faulty.offline_nodes),
            offline_primaries: instances.map(|i| cluster.instance(*i).name.as_str()).collect(),
            not_evacuable: capacity_checks.then(|| nodes(&faulty.not_evacuable)),
            score: health.score,
        }
    };
    let groups = scopes.iter().enumerate().map(|(at, scope)| {
        let group = cluster.group(scope.group);
        Group {
            name: &group.name,
            uuid: &group.uuid,
            initial: state(&initial.groups[at]),
            r#final: last.map(|last| state(&last.groups[at])),
        }
    });
    let document = Document { healthy: !initial.all.any(), groups: groups.collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
