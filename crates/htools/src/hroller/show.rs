//! Lines that describe groups of nodes, and the search for them.

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::reboot::{Colouring, ConflictGraph, Heuristic, RebootGroup, Relocation};

use crate::io::Io;
use crate::options::Options;

/// Prints the graph on one line. Neighbors are in reverse order of their discovery.
pub(super) fn graph(graph: &ConflictGraph, io: &mut Io<'_>) -> io::Result<()> {
    let list = |numbers: &mut dyn Iterator<Item = String>| numbers.collect::<Vec<_>>().join(",");
    let vertices = list(&mut (0..graph.vertices()).map(|vertex| {
        let neighbours = graph.neighbours(vertex).iter().rev();
        let neighbours = list(&mut neighbours.map(|n| graph.node(*n).0.to_string()));
        format!("({},[{neighbours}])", graph.node(vertex).0)
    }));
    let (first, last) = (graph.node(0).0, graph.node(graph.vertices() - 1).0);
    writeln!(io.out, "Node Graph: array ({first},{last}) [{vertices}]")
}

/// Prints the result of each heuristic, best first.
pub(super) fn colourings(colourings: &[Colouring], io: &mut Io<'_>) -> io::Result<()> {
    let name = |heuristic| match heuristic {
        Heuristic::LargestFirst => "LF",
        Heuristic::Saturation => "Dsatur",
        Heuristic::ColouredNeighbours => "Dcolor",
    };
    let mut sorted: Vec<&Colouring> = colourings.iter().collect();
    sorted.sort_by_key(|colouring| (colouring.colours(), std::cmp::Reverse(colouring.heuristic)));
    for (position, colouring) in sorted.iter().enumerate() {
        if let Some(better) = position.checked_sub(1).map(|before| sorted[before]) {
            let how = if better.colours() == colouring.colours() { "TIE" } else { "LOOSE" };
            write!(io.out, " {how} ")?;
        }
        let sizes: Vec<String> = colouring.classes().iter().map(|class| class.len().to_string()).collect();
        write!(io.out, "{}: {} ({})", name(colouring.heuristic), colouring.colours(), sizes.join(","))?;
    }
    writeln!(io.out)
}

const FIRST_GROUP: &str = "'First Reboot Group'";
const ALL_GROUPS: &str = "'Node Reboot Groups'";

/// Prints one line per group or, for only the first group, one line per node. On request, each group is
/// followed by its moves.
pub(super) fn groups(
    cluster: &Cluster,
    groups: &[RebootGroup],
    options: &Options,
    io: &mut Io<'_>,
) -> io::Result<()> {
    if !options.no_headers {
        writeln!(io.out, "{}", if options.one_step_only { FIRST_GROUP } else { ALL_GROUPS })?;
    }
    for group in groups {
        let names: Vec<&str> = group.nodes.iter().map(|n| cluster.node(*n).name.as_str()).collect();
        if options.one_step_only {
            names.iter().try_for_each(|name| writeln!(io.out, "{name}"))?;
        } else {
            writeln!(io.out, "{}", names.join(","))?;
        }
        if options.print_moves {
            for relocation in &group.relocations {
                writeln!(io.out, "  {}", relocated(cluster, relocation))?;
            }
        }
    }
    Ok(())
}

fn relocated(cluster: &Cluster, relocation: &Relocation) -> String {
    let name = |node: NodeIdx| cluster.node(node).name.as_str();
    let (primary, secondary) = relocation.to;
    let words = [cluster.instance(relocation.instance).name.as_str(), name(primary)];
    words.into_iter().chain(secondary.map(name)).collect::<Vec<_>>().join(" ")
}
