//! A run as one JSON document (`--json`).

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::score::{COMPONENTS, Counts, Values};
use serde::Serialize;

use super::{Scope, Solution, commands};
use crate::io::Io;

#[derive(Serialize)]
struct Document<'a> {
    /// None if there was nothing to choose a group for.
    group: Option<&'a str>,
    nodes: usize,
    instances: usize,
    initial: Score,
    r#final: Score,
    optimal_score: f64,
    moves: Vec<MoveEntry<'a>>,
}

#[derive(Serialize)]
struct Score {
    score: f64,
    components: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize)]
struct MoveEntry<'a> {
    instance: &'a str,
    action: String,
    from: Vec<&'a str>,
    to: Vec<&'a str>,
    score: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Change {
    component: &'static str,
    before: f64,
    after: f64,
    weighted_change: f64,
}

pub(super) fn print(
    cluster: &Cluster,
    scope: &Scope,
    solution: &Solution,
    io: &mut Io<'_>,
) -> io::Result<()> {
    let names = |(primary, secondary): (NodeIdx, Option<NodeIdx>)| -> Vec<&str> {
        std::iter::once(primary).chain(secondary).map(|n| cluster.node(n).name.as_str()).collect()
    };
    let changes = |position: usize| -> Vec<Change> {
        let Some((before, after)) = solution.explained.get(position) else { return Vec::new() };
        crate::report::component_changes(before, after)
            .into_iter()
            .map(|(component, before, after, weighted_change)| Change {
                component,
                before,
                after,
                weighted_change,
            })
            .collect()
    };
    let moves = solution
        .steps
        .iter()
        .enumerate()
        .map(|(position, step)| MoveEntry {
            instance: &cluster.instance(step.instance).name,
            action: commands::action(cluster, step.mov),
            from: names(step.from),
            to: names(step.to),
            score: step.score,
            changes: changes(position),
        })
        .collect();
    let document = Document {
        group: Some(&cluster.group(scope.group).name),
        nodes: scope.nodes.len(),
        instances: scope.instances.len(),
        initial: score_of(&solution.before),
        r#final: score_of(&solution.after),
        optimal_score: solution.optimal,
        moves,
    };
    write(&document, io)
}

/// The document of a cluster without instances.
pub(super) fn print_empty(cluster: &Cluster, io: &mut Io<'_>) -> io::Result<()> {
    let nothing = Values { deviations: [0.0; 14], counts: Counts::default(), reserved_total: 0.0 };
    let document = Document {
        group: None,
        nodes: cluster.nodes.len(),
        instances: 0,
        initial: score_of(&nothing),
        r#final: score_of(&nothing),
        optimal_score: 0.0,
        moves: Vec::new(),
    };
    write(&document, io)
}

fn write(document: &Document<'_>, io: &mut Io<'_>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *io.out, document)?;
    writeln!(io.out)
}

fn score_of(values: &Values) -> Score {
    let components = COMPONENTS
        .iter()
        .zip(values.in_order())
        .map(|(component, value)| (component.name.to_owned(), value.into()))
        .collect();
    Score { score: values.score(), components }
}
