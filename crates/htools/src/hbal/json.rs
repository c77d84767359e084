//! A run as one JSON document (`--json`).

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::score::{COMPONENTS, Values};
use serde::Serialize;

use super::repair::Remaining;
use super::{Scope, Solution, commands};

#[derive(Serialize)]
struct Document<'a> {
    group: &'a str,
    nodes: usize,
    instances: usize,
    initial: Score,
    r#final: Score,
    optimal_score: f64,
    moves: Vec<MoveEntry<'a>>,
    /// Reasons why nothing is moved, with `--explain`.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reasons: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remaining_violations: &'a [Remaining],
    #[serde(skip_serializing_if = "Option::is_none")]
    deep: Option<super::deep::Document>,
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
    weighted: f64,
}

/// The document, including the final newline.
pub(super) fn document(cluster: &Cluster, scope: &Scope, solution: &Solution) -> io::Result<String> {
    let names = |(primary, secondary): (NodeIdx, Option<NodeIdx>)| -> Vec<&str> {
        std::iter::once(primary).chain(secondary).map(|n| cluster.node(n).name.as_str()).collect()
    };
    let changes = |position: usize| -> Vec<Change> {
        let Some((before, after)) = solution.explained.get(position) else { return Vec::new() };
        crate::report::component_changes(before, after)
            .into_iter()
            .map(|(component, before, after, weighted)| Change { component, before, after, weighted })
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
        group: &cluster.group(scope.group).name,
        nodes: scope.nodes.len(),
        instances: scope.instances.len(),
        initial: score_of(&solution.before),
        r#final: score_of(&solution.after),
        optimal_score: solution.optimal,
        moves,
        reasons: &solution.reasons,
        remaining_violations: &solution.remaining,
        deep: solution.comparison.as_ref().map(Into::into),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn score_of(values: &Values) -> Score {
    let components = COMPONENTS
        .iter()
        .zip(values.in_order())
        .map(|(component, value)| (component.name.to_owned(), value.into()))
        .collect();
    Score { score: values.score(), components }
}
