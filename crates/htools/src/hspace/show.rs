//! Lines printed to standard error in addition to the results.

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::allocate::{NoTargets, Targets};
use placement::board::Board;
use placement::capacity::{Filled, Ground, groups_not_redundant};

use crate::io::Io;
use crate::number::fixed;
use crate::options::Options;
use crate::report;
use crate::table::format_table;

/// Prints the common suffix that tables omit from names.
pub(super) fn suffix(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    if level > 1 && !cluster.suffix.is_empty() {
        writeln!(io.err, "Note: Stripping common suffix of '{}' from names", cluster.suffix)?;
    }
    Ok(())
}

/// Prints the initial components of the score.
pub(super) fn coefficients(cluster: &Cluster, level: i64, io: &mut Io<'_>) -> io::Result<()> {
    if level > 2 {
        let nodes: Vec<NodeIdx> = cluster.node_indices().collect();
        let board = Board::new(cluster, &nodes);
        writeln!(io.err, "Initial coefficients: overall {}", fixed(board.score(), 8))?;
        write!(io.err, "{}", report::metrics(&board))?;
    }
    Ok(())
}

/// Prints nodes and groups that are already bad, and the allocatable nodes.
pub(super) fn ground(
    cluster: &mut Cluster,
    ground: &Ground,
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if options.verbosity <= 3 {
        return Ok(());
    }
    if !ground.bad_nodes.is_empty() {
        writeln!(io.err, "Bad nodes: {}", report::name_list(cluster, &ground.bad_nodes))?;
    }
    let bad_groups = groups_not_redundant(cluster, options.accept_existing_errors);
    if !bad_groups.is_empty() {
        let names: Vec<String> = bad_groups.iter().map(|g| report::shown(&cluster.group(*g).name)).collect();
        writeln!(io.err, "Bad groups: [{}]", names.join(","))?;
    }
    // The reference numbers the nodes of simulated clusters from 1.
    let simulated = !options.simulate.is_empty() && options.master.is_none() && options.luxi.is_none();
    let base = u32::from(simulated);
    writeln!(io.err, "Allocatable nodes: {}", targets(&ground.targets, base))
}

fn targets(targets: &Result<Targets, NoTargets>, base: u32) -> String {
    let list = |nodes: &mut dyn Iterator<Item = NodeIdx>| {
        let numbers: Vec<String> = nodes.map(|n| (n.0 + base).to_string()).collect();
        format!("[{}]", numbers.join(","))
    };
    match targets {
        Ok(Targets::Single(nodes)) => format!("Left {}", list(&mut nodes.iter().copied())),
        Ok(Targets::Pairs(pairs)) => {
            let pairs: Vec<String> = pairs
                .primaries
                .iter()
                .map(|&(primary, partners)| {
                    let others = pairs.partners[partners].iter().copied().filter(|n| *n != primary);
                    format!("({},{})", primary.0 + base, list(&mut { others }))
                })
                .collect();
            format!("Right [{}]", pairs.join(","))
        }
        Err(NoTargets::None) => "Left []".to_owned(),
        Err(_) => "Right []".to_owned(),
    }
}

/// Prints the nodes of the instances that a phase placed.
pub(super) fn allocation_map(
    cluster: &Cluster,
    filled: &Filled,
    phase: &str,
    level: i64,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if level <= 1 {
        return Ok(());
    }
    let exclusive = cluster.nodes.iter().any(|n| n.exclusive_storage);
    let rows: Vec<Vec<String>> = filled
        .placed
        .iter()
        .map(|placed| {
            let name = |node: NodeIdx| cluster.node(node).name.clone();
            let shape = &placed.shape;
            vec![
                cluster.instance(placed.instance).name.clone(),
                name(placed.primary),
                placed.secondary.map(name).unwrap_or_default(),
                shape.memory_mib.to_string(),
                shape.disk_mib.to_string(),
                shape.vcpus.to_string(),
                if exclusive { shape.spindles.to_string() } else { String::new() },
            ]
        })
        .collect();
    let numeric = [false, false, false, true, true, true, true];
    write!(io.err, "{phase} allocation map\n{}", format_table(None, &rows, &numeric, 0))
}
