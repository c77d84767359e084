//! Phrases, tables and JSON that the answers share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cluster::{AllocPolicy, Cluster, DiskTemplate, GroupIdx, InstanceIdx, Move, Node, NodeIdx};
use htools::commands;
use htools::number::fixed;
use htools::table::format_table;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use placement::allocate::Failures;
use placement::balance::Step;
use placement::capacity::Shape;
use placement::drain::DrainStep;
use placement::explain::words;
use placement::jobs::own_job_sets;
use placement::objection::Objection;
use placement::watch::Health;
use placement::whatif::Refusal;
use serde::Serialize;

use crate::client::Format;
use crate::client::table::{Column, Rendered, Style, Table, word};

/// A count and its noun: `1 move`, `3 moves`.
pub(super) fn count(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// A list of words: `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Names of instances; the rest of a long list is counted.
pub(super) fn instance_names(cluster: &Cluster, instances: &[InstanceIdx]) -> String {
    let names = instances.iter().map(|i| cluster.alias(&cluster.instance(*i).name).to_owned());
    shortened(names.collect())
}

/// Maximum number of names in a sentence.
const NAMES_IN_A_SENTENCE: usize = 8;

/// Names of nodes; the rest of a long list is counted.
pub(super) fn names(cluster: &Cluster, nodes: &[NodeIdx]) -> String {
    shortened(nodes.iter().map(|n| cluster.alias(&cluster.node(*n).name).to_owned()).collect())
}

fn shortened(mut names: Vec<String>) -> String {
    let rest = names.len().saturating_sub(NAMES_IN_A_SENTENCE);
    names.truncate(NAMES_IN_A_SENTENCE);
    names.extend((rest > 0).then(|| format!("{rest} more")));
    list(&names)
}

/// Clause about the death of one of these nodes: `n1 died`, `one of n1 and n2 died`.
pub(super) fn died(cluster: &Cluster, nodes: &[NodeIdx]) -> String {
    let names = names(cluster, nodes);
    if nodes.len() == 1 { format!("{names} died") } else { format!("one of {names} died") }
}

/// A size in MiB, in the largest unit that leaves a readable number.
pub(super) fn size(mib: i64) -> String {
    const UNITS: [(&str, f64); 3] = [("PiB", 1_073_741_824.0), ("TiB", 1_048_576.0), ("GiB", 1024.0)];
    let exact = mib as f64;
    match UNITS.into_iter().find(|(_, factor)| exact.abs() >= *factor) {
        Some((unit, factor)) => format!("{} {unit}", fixed(exact / factor, 1)),
        None => format!("{mib} MiB"),
    }
}

/// Whether a step copies disks over the network.
pub(super) fn copies_disks(cluster: &Cluster, step: &Step) -> bool {
    cluster.instance(step.instance).template == DiskTemplate::Drbd && step.mov != Move::Failover
}

/// The nodes of an instance, primary first.
pub(super) fn pair(cluster: &Cluster, (primary, secondary): (NodeIdx, Option<NodeIdx>)) -> String {
    let name = |n| cluster.alias(&cluster.node(n).name);
    match secondary {
        Some(secondary) => format!("{}:{}", name(primary), name(secondary)),
        None => name(primary).to_owned(),
    }
}

/// Table of a plan's steps. The score and the counts are those after each step.
pub(super) fn steps(cluster: &Cluster, steps: &[DrainStep]) -> String {
    let row = |(position, DrainStep { step, health }): (usize, &DrainStep)| {
        let copied = if copies_disks(cluster, step) {
            size(cluster.instance(step.instance).disk)
        } else {
            "-".to_owned()
        };
        vec![
            (position + 1).to_string(),
            cluster.alias(&cluster.instance(step.instance).name).to_owned(),
            pair(cluster, step.from),
            pair(cluster, step.to),
            commands::action(cluster, step.mov),
            copied,
            fixed(step.score, 4),
            health.failing_n1.len().to_string(),
            health.stuck.len().to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = steps.iter().enumerate().map(row).collect();
    let columns = [
        word("#"),
        word("instance"),
        word("from").hide(4),
        word("to"),
        word("action"),
        word("copied").hide(5),
        word("score").hide(1),
        word("fail N+1").hide(3),
        word("stuck").hide(2),
    ];
    let numeric = [true, false, false, false, false, true, true, true, true];
    table(&columns, &rows, &numeric, &Style::of_output(Format::Table, None, false))
}

/// A table. If a terminal is too narrow, prose wraps between words and columns are hidden in the order that
/// they define.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>], numeric: &[bool], style: &Style) -> String {
    let headings: Vec<&str> = columns.iter().map(Column::heading).collect();
    let whole = format_table(Some(&headings), rows, numeric, 1);
    let widest = whole.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
    if widest <= style.columns_of_terminal() {
        return whole;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(|at| if numeric[at] { width(at) } else { 0 }).collect();
    let mut fitted = Table::new(columns.to_vec());
    for row in rows {
        fitted.add_row(row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}")));
    }
    let Ok(Rendered { text, notes }) = fitted.render(style, &TimeZone::UTC, Timestamp::UNIX_EPOCH) else {
        return whole;
    };
    let hidden = notes.iter().find_map(|note| note.strip_prefix("Hidden: ")?.split_once(" ("));
    let note = hidden.map(|(hidden, _)| format!("Hidden: {hidden} (--json has all)\n"));
    format!("{text}\n{}", note.unwrap_or_default())
}

/// The commands of a plan, grouped into sets of jobs that can run at the same time.
pub(super) fn command_lines(cluster: &Cluster, steps: &[DrainStep]) -> Vec<String> {
    let steps: Vec<Step> = steps.iter().map(|s| s.step.clone()).collect();
    let lines =
        commands::possible_lines(cluster, &own_job_sets(cluster, &steps), commands::InstanceNames::Full);
    commands::readable(&lines).map(str::to_owned).collect()
}

/// Health of nodes, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct HealthEntry<'a> {
    pub score: f64,
    pub failing_n1: Vec<&'a str>,
    pub not_evacuable: Vec<&'a str>,
}

impl<'a> HealthEntry<'a> {
    pub fn new(cluster: &'a Cluster, health: &Health) -> Self {
        let names = |nodes: &[NodeIdx]| nodes.iter().map(|n| cluster.node(*n).name.as_str()).collect();
        Self {
            score: health.score,
            failing_n1: names(&health.failing_n1),
            not_evacuable: names(&health.stuck),
        }
    }
}

/// The names of an instance's nodes, primary first.
pub(super) fn node_names(cluster: &Cluster, (primary, secondary): (NodeIdx, Option<NodeIdx>)) -> Vec<&str> {
    std::iter::once(primary).chain(secondary).map(|n| cluster.node(n).name.as_str()).collect()
}

/// A move, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct MoveEntry<'a> {
    instance: &'a str,
    action: String,
    from: Vec<&'a str>,
    to: Vec<&'a str>,
    copied_mib: i64,
    commands: Vec<String>,
}

impl<'a> MoveEntry<'a> {
    pub fn new(cluster: &'a Cluster, step: &Step) -> Self {
        let instance = cluster.instance(step.instance);
        let commands = commands::possible_commands(cluster, step, commands::InstanceNames::Full);
        Self {
            instance: &instance.name,
            action: commands::action(cluster, step.mov),
            from: node_names(cluster, step.from),
            to: node_names(cluster, step.to),
            copied_mib: if copies_disks(cluster, step) { instance.disk } else { 0 },
            commands: commands.into_iter().map(|c| format!("gnt-instance {c}")).collect(),
        }
    }
}

/// A step of a plan, in JSON. The score and the counts are those after the step.
#[derive(Debug, Serialize)]
pub(super) struct StepEntry<'a> {
    #[serde(flatten)]
    step: MoveEntry<'a>,
    score: f64,
    failing_n1: usize,
    not_evacuable: usize,
}

impl<'a> StepEntry<'a> {
    pub fn new(cluster: &'a Cluster, DrainStep { step, health }: &DrainStep) -> Self {
        Self {
            step: MoveEntry::new(cluster, step),
            score: health.score,
            failing_n1: health.failing_n1.len(),
            not_evacuable: health.stuck.len(),
        }
    }
}

/// The shape of an instance in words.
pub(super) fn shape(shape: &Shape) -> String {
    let (disk, memory) = (size(shape.disk_mib), size(shape.memory_mib));
    format!(
        "{disk} disk, {memory} memory, {}, {}",
        count(shape.vcpus as usize, "vCPU"),
        shape.template.name()
    )
}

/// Shape of an instance, in JSON.
#[derive(Debug, Serialize)]
pub(super) struct ShapeEntry {
    disk_mib: i64,
    memory_mib: i64,
    vcpus: i64,
    spindles: i64,
    disk_template: &'static str,
}

impl ShapeEntry {
    pub fn new(shape: &Shape) -> Self {
        Self {
            disk_mib: shape.disk_mib,
            memory_mib: shape.memory_mib,
            vcpus: shape.vcpus,
            spindles: shape.spindles,
            disk_template: shape.template.name(),
        }
    }
}

/// Reasons for refused placements, the most frequent first.
pub(super) fn failures(failures: &Failures) -> String {
    let mut reasons: Vec<_> = failures.reasons().collect();
    reasons.sort_by_key(|(_, count)| Reverse(*count));
    let reason = |(mode, times): &(_, u64)| {
        let times = usize::try_from(*times).unwrap_or(usize::MAX);
        format!("{} ({})", words(*mode), count(times, "time"))
    };
    reasons.iter().map(reason).collect::<Vec<_>>().join(", ")
}

/// Maximum number of instances without a place that are named.
const WITHOUT_PLACE_NAMED: usize = 3;

/// Instances that find no place. Each has the objection of the policy, or else its memory.
pub(super) fn without_place(cluster: &Cluster, instances: &[InstanceIdx]) -> String {
    let describe = |index: &InstanceIdx| {
        let instance = cluster.instance(*index);
        let name = cluster.alias(&instance.name);
        let node = cluster.node(instance.primary);
        // Only instances that would be created again must comply with the policy.
        let is_created =
            matches!(instance.template, DiskTemplate::Plain | DiskTemplate::File | DiskTemplate::Block);
        let policy = &cluster.group(node.group).policy;
        let objection = Objection::find(policy, instance, node.exclusive_storage).filter(|_| is_created);
        match objection {
            Some(objection) => format!("{name} ({objection})"),
            None => format!("{name} ({} MiB of memory)", instance.memory),
        }
    };
    let mut named: Vec<String> = instances.iter().take(WITHOUT_PLACE_NAMED).map(describe).collect();
    let rest = instances.len() - named.len();
    named.extend((rest > 0).then(|| format!("{rest} more")));
    list(&named)
}

/// Reason why no more instances find a place. `only` is the group that the question is limited to.
pub(super) fn refusal(cluster: &Cluster, refusal: &Refusal, only: Option<GroupIdx>) -> String {
    match refusal {
        Refusal::NoTargets(error) => {
            // A group that is named takes instances even if it's unallocable.
            let is_closed = |group: &GroupIdx| {
                let is_online = |node: &Node| node.group == *group && node.online();
                let is_unallocable = cluster.group(*group).alloc_policy == AllocPolicy::Unallocable;
                only.is_none() && is_unallocable && cluster.nodes.iter().any(is_online)
            };
            let closed = cluster.group_indices().filter(is_closed);
            let names: Vec<String> = closed.map(|group| cluster.group(group).name.clone()).collect();
            match names.len() {
                0 => error.to_string(),
                1 => format!("{error} (group {} is unallocable)", names[0]),
                _ => format!("{error} (groups {} are unallocable)", shortened(names)),
            }
        }
        Refusal::Full(reasons) => failures(reasons),
    }
}

/// Total resources of a node, in words.
pub(super) fn node_shape(node: &Node) -> String {
    let (disk, memory) = (size(node.total_disk as i64), size(node.total_memory_mib()));
    format!("{disk} disk, {memory} memory, {} CPUs", fixed(node.total_cpus, 0))
}

/// Number of occurrences of each value, in ascending order of the values.
pub(super) fn tally<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit_that_fits() {
        let shown = [0, 1023, 1024, 1536, -2048, 1 << 20, 3 << 30].map(size);
        assert_eq!(shown, ["0 MiB", "1023 MiB", "1.0 GiB", "1.5 GiB", "-2.0 GiB", "1.0 TiB", "3.0 PiB"]);
    }

    #[test]
    fn tables_lose_columns_on_narrow_terminals_only() {
        let columns = [word("#"), word("instance"), word("from").hide(2), word("to"), word("score").hide(1)];
        let numeric = [true, false, false, false, true];
        let rows = [
            ["9", "web.example.org", "node1:node2", "node3:node2", "1.2345"].map(str::to_owned).to_vec(),
            ["10", "app.example.org", "node2:node1", "node3:node1", "1.2344"].map(str::to_owned).to_vec(),
        ];
        let shown =
            |width: Option<u16>| table(&columns, &rows, &numeric, &Style { width, ..Style::default() });
        let headings: Vec<&str> = columns.iter().map(Column::heading).collect();
        let whole = format_table(Some(&headings), &rows, &numeric, 1);
        assert_eq!((shown(None), shown(Some(80))), (whole.clone(), whole));
        let narrow = shown(Some(50));
        let lines: Vec<&str> = narrow.lines().collect();
        assert_eq!(lines[1], "  9  web.example.org  node1:node2  node3:node2");
        assert_eq!(lines[2], " 10  app.example.org  node2:node1  node3:node1");
        assert_eq!(lines[3], "Hidden: score (--json has all)");
        assert!(shown(Some(36)).ends_with("\nHidden: score, from (--json has all)\n"));
        for width in 36..120 {
            let text = shown(Some(width));
            assert!(text.lines().all(|line| line.trim_end().len() <= usize::from(width)), "{width}:\n{text}");
        }
    }

    #[test]
    fn lists_and_counts_read_as_sentences() {
        let words = |n: usize| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!([0, 1, 2, 3].map(|n| list(&words(n))), ["", "1", "1 and 2", "1, 2 and 3"]);
        assert_eq!([0, 1, 2].map(|n| count(n, "move")), ["0 moves", "1 move", "2 moves"]);
    }
}
