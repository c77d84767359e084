//! Results for people.

use std::fmt::Write;

use placement::capacity::{Placement, Shape};

use super::figures::{Resources, Usage};
use super::{Phase, machine};
use crate::number::fixed;

/// The cluster before allocation.
pub(super) fn start(resources: &Resources, initial: &Usage) -> String {
    let spindles = spindles(resources, resources.spindles);
    let instances = match initial.instances {
        0 => "no".to_owned(),
        count => count.to_string(),
    };
    format!(
        "The cluster has {} nodes and the following resources:\n  MEM {}, DSK {}, CPU {}, VCPU {}{spindles}.\n\
         There are {instances} initial instances on the cluster.\n",
        resources.nodes,
        fixed(resources.memory_mib, 0),
        fixed(resources.disk_mib, 0),
        fixed(resources.cpus, 0),
        resources.vcpus,
    )
}

/// Spindles; empty if no node has exclusive storage.
fn spindles(resources: &Resources, count: i64) -> String {
    if resources.exclusive_storage { format!(", SPN {count}") } else { String::new() }
}

fn size(resources: &Resources, shape: &Shape) -> String {
    format!(
        "MEM {}, DSK {}, CPU {}{}",
        shape.memory_mib,
        shape.disk_mib,
        shape.vcpus,
        spindles(resources, shape.spindles)
    )
}

fn spec(kind: &str, resources: &Resources, shape: &Shape) -> String {
    format!(
        "{kind} instance spec is:\n  {}, using disk template '{}'.\n",
        size(resources, shape),
        shape.template.name()
    )
}

/// Results of tiered allocation.
pub(super) fn tiered(resources: &Resources, initial: &Usage, first: &Shape, phase: &Phase) -> String {
    let mut out = spec("Tiered (initial size)", resources, first);
    out.push_str("Tiered allocation results:\n");
    if phase.filled.placed.is_empty() {
        out.push_str("  - no instances allocated\n");
    }
    for run in phase.filled.placed.chunk_by(|a: &Placement, b| a.shape == b.shape) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  - {:3} instances of spec {}", run.len(), size(resources, &run[0].shape));
    }
    out + &outcome(resources, initial, phase)
}

/// Results of standard allocation.
pub(super) fn standard(resources: &Resources, initial: &Usage, shape: &Shape, phase: &Phase) -> String {
    let mut out = spec("Standard (fixed-size)", resources, shape);
    let count = phase.filled.placed.len();
    let _ = writeln!(out, "Normal (fixed-size) allocation results:\n  - {count:3} instances allocated");
    out + &outcome(resources, initial, phase)
}

/// Reason why no further instance fits, and utilization of the cluster.
fn outcome(resources: &Resources, initial: &Usage, phase: &Phase) -> String {
    let reason = match machine::reasons(phase).first() {
        Some((reason, _)) => reason.to_string(),
        None => "none (no instance was tried)".to_owned(),
    };
    let usage = &phase.usage;
    let mut out = format!(
        "  - most likely failure reason: {reason}\n  - initial cluster score: {}\n  -   final cluster score: {}\n",
        fixed(initial.score, 8),
        fixed(usage.score, 8),
    );
    let mut efficiencies = vec![
        ("memory", usage.memory_efficiency(resources)),
        ("disk", usage.disk_efficiency(resources)),
        ("vcpu", usage.vcpu_efficiency(resources)),
    ];
    if resources.exclusive_storage {
        efficiencies.push(("spindles", usage.spindle_efficiency(resources)));
    }
    let width = efficiencies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, efficiency) in efficiencies {
        let percent = fixed(100.0 * efficiency, 2);
        let _ = writeln!(out, "  - {name:>width$} usage efficiency: {percent:>5}%");
    }
    out
}
