//! Sentences for the response's `info` (HT-iallocator), some of them shared with explanations.

use cluster::{Cluster, GroupIdx};
use placement::allocate::Trials;
use placement::dedicated::LostAllocations;
use placement::groups::GroupChoice;

use crate::number::fixed;

/// Figure that placements are compared by.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) enum Metric {
    /// Cluster score.
    Score(f64),
    /// Lost allocations, on a dedicated cluster.
    Lost(LostAllocations),
}

impl Metric {
    fn text(&self) -> String {
        match self {
            Self::Score(score) => fixed(*score, 8),
            Self::Lost(lost) => self::lost(lost),
        }
    }
}

/// Lost allocations as text: counts by instance size, and the disk left.
pub(super) fn lost(lost: &LostAllocations) -> String {
    let counts: Vec<String> = lost.lost.iter().map(ToString::to_string).collect();
    format!("([{}],{})", counts.join(","), lost.disk_left)
}

/// Result of trying all nodes of a list.
pub(super) fn trials(cluster: &Cluster, trials: &Trials<Metric>) -> String {
    let reasons: Vec<String> =
        trials.failures.reasons().map(|(mode, count)| format!("{mode}: {count}")).collect();
    match &trials.best {
        Some(best) => {
            let nodes: Vec<&str> = best.nodes().iter().map(|n| cluster.node(*n).name.as_str()).collect();
            format!(
                "score: {}, successes {}, failures {} ({}) for node(s) {}",
                best.score.text(),
                trials.successes,
                trials.failures.total(),
                reasons.join(", "),
                nodes.join("/")
            )
        }
        None if reasons.is_empty() => {
            "No valid allocation solutions, failure reasons: unknown reasons".to_owned()
        }
        None => format!("No valid allocation solutions, failure reasons: {}", reasons.join(", ")),
    }
}

/// Result of trying one group.
pub(super) fn group(cluster: &Cluster, group: GroupIdx, outcome: &Result<Trials<Metric>, String>) -> String {
    let group = cluster.group(group);
    match outcome {
        Ok(found) => {
            format!("Group {} ({}): {}", group.name, group.alloc_policy.name(), trials(cluster, found))
        }
        Err(message) => format!("Group {}: error {message}", group.name),
    }
}

/// Results of trying several groups: first the groups without a required network.
pub(super) fn choice(cluster: &Cluster, choice: &GroupChoice<Metric>, instance: &str) -> String {
    let mut items: Vec<String> = choice
        .unconnected
        .iter()
        .map(|g| {
            let name = &cluster.group(*g).name;
            format!("group {name} is not connected to a network required by instance {instance}")
        })
        .collect();
    for (index, outcome) in &choice.tried {
        let outcome = outcome.clone().map_err(|e| e.to_string());
        items.push(group(cluster, *index, &outcome));
    }
    selected(cluster, choice) + &items.join(", ")
}

/// Message for a group that lacks a network of the instance.
pub(super) fn not_connected(cluster: &Cluster, group: GroupIdx, instance: &str) -> String {
    let group = &cluster.group(group).name;
    format!("The group {group} is not connected to a network required by instance {instance}")
}

/// Like [`choice`] for a dedicated cluster: groups are in input order, and a missing network is an error of
/// its group.
pub(super) fn dedicated_choice(cluster: &Cluster, choice: &GroupChoice<Metric>, instance: &str) -> String {
    let missing = choice.unconnected.iter().map(|g| (*g, Err(not_connected(cluster, *g, instance))));
    let tried = choice.tried.iter().map(|(g, outcome)| (*g, outcome.clone().map_err(|e| e.to_string())));
    let mut all: Vec<_> = missing.chain(tried).collect();
    all.sort_by_key(|(group, _)| *group);
    let items: Vec<String> = all.iter().map(|(g, outcome)| group(cluster, *g, outcome)).collect();
    selected(cluster, choice) + &items.join(", ")
}

fn selected(cluster: &Cluster, choice: &GroupChoice<Metric>) -> String {
    choice.chosen().map_or(String::new(), |(g, _)| format!("Selected group: {}, ", cluster.group(g).name))
}

/// Maximum number of names listed in a sentence.
const LISTED: usize = 6;

/// The first names, and the number of omitted ones.
pub(super) fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(LISTED).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
