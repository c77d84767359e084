//! Counts of the behavior that the compared cases exercised. Without them, a generator that draws only
//! refused input would pass every comparison.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::generate::model::{Case, Program, Source};
use crate::json::Json;
use crate::outcome::Outcome;

/// Upper limits of the classes of cluster sizes, in nodes. Larger clusters form one more class.
const SIZES: [usize; 3] = [60, 500, 2000];

/// Number of comparisons by kind of outcome, and by size of the cluster.
#[derive(Debug, Default)]
pub struct Kinds {
    counts: Mutex<BTreeMap<String, usize>>,
    sizes: Mutex<[usize; SIZES.len() + 1]>,
}

impl Kinds {
    /// Counts an outcome of the reference.
    pub fn count(&self, case: &Case, reference: &Outcome) {
        if let Ok(mut counts) = self.counts.lock() {
            *counts.entry(kind(case, reference)).or_default() += 1;
        }
        if let Ok(mut sizes) = self.sizes.lock() {
            sizes[SIZES.partition_point(|limit| *limit < case.cluster.nodes.len())] += 1;
        }
    }

    pub fn print(&self) {
        if let Ok(counts) = self.counts.lock() {
            for (kind, count) in counts.iter() {
                println!("{count:>7} {kind}");
            }
        }
        if let Ok(sizes) = self.sizes.lock() {
            for (limit, count) in SIZES.iter().zip(sizes.iter()) {
                println!("{count:>7} with up to {limit} nodes");
            }
            println!("{:>7} with more", sizes[SIZES.len()]);
        }
    }
}

fn kind(case: &Case, reference: &Outcome) -> String {
    let stdout = String::from_utf8_lossy(&reference.stdout);
    let how = match (reference.status, case.program) {
        (None, _) => "killed",
        _ if crate::known::crashed(reference) => "crash of the reference: not compared",
        (Some(2), Program::Hscan) if stdout.contains("failed to load data") => "not all read",
        (Some(2), _) => "wrong usage",
        (_, Program::Hcheck) if !stdout.is_empty() => health(&stdout),
        (Some(1..), Program::Hroller) => no_reboots(&String::from_utf8_lossy(&reference.stderr)),
        (Some(1..), _) => "refused",
        (_, Program::Hail) if stdout.starts_with("{\"success\":false") => "no solution",
        (_, Program::Hail) if stdout.contains("\"info\":\"Request successful: 0 instances failed") => {
            "all done"
        }
        (_, Program::Hail) if stdout.contains("instances failed") => "some failed",
        (_, Program::Hail) => "solution",
        (_, Program::Hscan) => "saved",
        (_, Program::Hinfo) if stdout.contains("Cluster is N+1 unhappy") => "unhappy",
        (_, Program::Hinfo) if stdout.contains("Found instances belonging") => "with split instances",
        (_, Program::Hinfo) => "happy",
        (_, Program::Hcheck) => "quiet",
        (_, Program::Hsqueeze) => squeezed(&stdout),
        (_, Program::Hroller) => reboots(&stdout),
        (_, Program::Hspace) => filling(&stdout),
        _ if stdout.contains("\nSolution length=") || stdout.contains("score improved") => "moves",
        _ if stdout.contains("already well balanced") => "well balanced",
        _ if stdout.contains("No solution") => "no solution",
        _ => "nothing to do",
    };
    format!("{} {how}", subject(case))
}

/// Health found by `hcheck`, and whether simulated balancing changed the scores.
fn health(stdout: &str) -> &'static str {
    let machine = stdout.contains("HCHECK_");
    if stdout.contains("NEED_REBALANCE=1") || stdout.contains("not healthy: True") {
        match (machine, changes(stdout)) {
            (true, true) => "unhealthy, changed by balancing, for machines",
            (true, false) => "unhealthy, unchanged, for machines",
            (false, true) => "unhealthy, changed by balancing",
            (false, false) => "unhealthy, unchanged",
        }
    } else if machine {
        "healthy, for machines"
    } else {
        "healthy"
    }
}

/// Whether the scores that `hcheck` prints differ between the beginning and the end.
fn changes(stdout: &str) -> bool {
    let scores: Vec<&str> = stdout
        .lines()
        .filter(|line| line.contains("_SCORE=") || line.contains("Group score: "))
        .filter_map(|line| line.rsplit(['=', ' ']).next())
        .collect();
    let (initial, last) = scores.split_at(scores.len() / 2);
    initial != last
}

/// Decision of `hsqueeze`.
fn squeezed(stdout: &str) -> &'static str {
    let moves = stdout.contains("jobset");
    if stdout.contains("Onlining all nodes will not") {
        "impossible"
    } else if stdout.contains("'Nodes to online'") {
        if moves { "nodes to online, with moves" } else { "nodes to online" }
    } else if stdout.contains("'Nodes to offline'") {
        if moves { "nodes to offline, with moves" } else { "nodes to offline" }
    } else {
        "no action, or no heading"
    }
}

fn no_reboots(stderr: &str) -> &'static str {
    if stderr.contains("Not enough capacity to move non-redundant") {
        "no room for instances without mirror"
    } else if stderr.contains("Not enough capacity to move secondaries") {
        "no room for mirrors"
    } else if stderr.contains("Failed to migrate") {
        "no migration"
    } else {
        "refused"
    }
}

/// Moves are indented. All other lines except the header and dumps are groups.
fn reboots(stdout: &str) -> &'static str {
    let lines = || stdout.lines().filter(|l| !l.starts_with('\'') && !l.contains(": "));
    let moves = lines().any(|line| line.starts_with("  "));
    match (lines().filter(|line| !line.starts_with("  ")).count(), moves) {
        (0 | 1, false) => "one group",
        (0 | 1, true) => "one group, moves",
        (_, false) => "groups",
        (_, true) => "groups, moves",
    }
}

/// Reason why filling the cluster with fixed-size instances stopped, and whether it placed any.
fn filling(stdout: &str) -> &'static str {
    let stopped_by = |reason: &str| {
        // The last reason printed is for the fixed size.
        let mut told =
            stdout.lines().filter(|line| line.contains("reason: ") || line.contains("FAIL_REASON="));
        told.next_back().is_some_and(|line| line.to_uppercase().ends_with(reason))
    };
    let begun = !stdout.contains("ALLOC_INSTANCES=0\n") && !stdout.contains("-   0 instances allocated");
    match (begun, stopped_by("FAILN1")) {
        (false, true) => "no room for redundancy",
        (false, false) => "no room",
        (true, true) => "filled until redundancy ends",
        (true, false) => "filled until resources end",
    }
}

fn subject(case: &Case) -> String {
    match case.source {
        Source::File => {}
        Source::Rapi => return format!("{} over RAPI", case.program),
        Source::Luxi => return format!("{} over Luxi", case.program),
    }
    let Some(Json::Object(members)) = &case.request else { return case.program.to_string() };
    let kind = members.iter().find(|(key, _)| key == "type").map(|(_, value)| value);
    match kind {
        Some(Json::Text(kind)) => format!("{} {kind}", case.program),
        _ => case.program.to_string(),
    }
}
