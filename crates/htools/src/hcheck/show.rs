//! Output of `hcheck`: sentences for people, keys and values for scripts.

use std::io;

use cluster::Cluster;
use placement::health::{Faults, GroupHealth};

use super::health::{Health, Scope};
use crate::io::Io;
use crate::machine::quoted;
use crate::number::fixed;
use crate::options::Options;

/// Before or after balancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Initial,
    Final,
}

impl Phase {
    fn key(self) -> &'static str {
        match self {
            Self::Initial => "INIT",
            Self::Final => "FINAL",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Initial => "initially",
            Self::Final => "after rebalancing",
        }
    }
}

/// A figure: its key for scripts, its name for people, and its value.
struct Figure {
    key: &'static str,
    name: &'static str,
    count: usize,
}

fn figures(faults: &Faults, options: &Options) -> Vec<Figure> {
    let figure = |key, name, count| Figure { key, name, count };
    let mut figures = vec![
        figure("N1_FAIL", "Nodes not N+1 happy", faults.n1_failing),
        figure("CONFLICT_TAGS", "Nodes with conflicting instances", faults.conflicting),
        figure("OFFLINE_PRI", "Instances having the primary node offline", faults.offline_primaries),
        figure("OFFLINE_SEC", "Instances having a secondary node offline", faults.offline_nodes),
    ];
    if !options.no_capacity_checks {
        figures.push(figure("GN1_FAIL", "Nodes not directly evacuateable", faults.not_evacuable));
    }
    figures
}

/// Prints the lines before all figures.
pub(super) fn introduction(
    cluster: &Cluster,
    initial: &Health,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if options.machine_readable {
        for (number, group) in cluster.groups.iter().enumerate() {
            key(io, &format!("GROUP_UUID_{number}"), &group.uuid)?;
        }
    } else if options.verbosity >= 1 {
        let sentence = if options.no_simulation {
            "Running in no-simulation mode."
        } else if initial.needs_balancing {
            "Cluster needs rebalancing."
        } else {
            "No need to rebalance cluster, no problems found."
        };
        writeln!(io.out, "{sentence}")?;
    }
    Ok(())
}

/// Prints the figures of each group, then of the cluster.
pub(super) fn health(
    cluster: &Cluster,
    scopes: &[Scope],
    health: &Health,
    phase: Phase,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if !options.machine_readable && options.verbosity < 1 {
        return Ok(());
    }
    for (scope, group) in scopes.iter().zip(&health.groups) {
        if options.machine_readable {
            let prefix = format!("{}_GROUP_{}", phase.key(), scope.group.0);
            group_for_machines(&prefix, group, options, io)?;
        } else {
            let name = &cluster.group(scope.group).name;
            writeln!(io.out, "\nStatistics for group {name} {}", phase.sentence())?;
            for figure in figures(&group.faults, options) {
                writeln!(io.out, "    {}: {}", figure.name, figure.count)?;
            }
            writeln!(io.out, "    Group score: {}", fixed(group.score, 8))?;
        }
    }
    whole_cluster(health, phase, options, io)
}

fn group_for_machines(
    prefix: &str,
    group: &GroupHealth,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    for figure in figures(&group.faults, options) {
        key(io, &format!("{prefix}_{}", figure.key), &figure.count.to_string())?;
    }
    key(io, &format!("{prefix}_SCORE"), &fixed(group.score, 8))
}

fn whole_cluster(health: &Health, phase: Phase, options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    // For a cluster without nodes, the reference prints only the verdict, under the first figure's name.
    let figures = if health.groups.is_empty() { Vec::new() } else { figures(&health.all, options) };
    let verdict = health.needs_balancing;
    if options.machine_readable {
        let prefix = format!("{}_CLUSTER", phase.key());
        for figure in &figures {
            key(io, &format!("{prefix}_{}", figure.key), &figure.count.to_string())?;
        }
        let name = if figures.is_empty() { "N1_FAIL" } else { "NEED_REBALANCE" };
        return key(io, &format!("{prefix}_{name}"), if verdict { "1" } else { "0" });
    }
    writeln!(io.out, "\nCluster statistics {}", phase.sentence())?;
    for figure in &figures {
        writeln!(io.out, "    {}: {}", figure.name, figure.count)?;
    }
    let name = if figures.is_empty() { "Nodes not N+1 happy" } else { "Cluster is not healthy" };
    writeln!(io.out, "    {name}: {}", if verdict { "True" } else { "False" })
}

/// Prints the line after all figures.
pub(super) fn end(options: &Options, io: &mut Io<'_>) -> io::Result<()> {
    if options.machine_readable { key(io, "OK", "1") } else { Ok(()) }
}

fn key(io: &mut Io<'_>, name: &str, value: &str) -> io::Result<()> {
    writeln!(io.out, "HCHECK_{name}={}", quoted(value))
}
