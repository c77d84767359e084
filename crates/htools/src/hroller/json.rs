//! The groups as one JSON document (`--json`).

use std::io;

use cluster::{Cluster, NodeIdx};
use placement::reboot::RebootGroup;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    groups: Vec<Group<'a>>,
}

#[derive(Serialize)]
struct Group<'a> {
    nodes: Vec<&'a str>,
    moves: Vec<MoveEntry<'a>>,
}

/// Like in the document of `hbal`: nodes are the primary and, if mirrored, the secondary.
#[derive(Serialize)]
struct MoveEntry<'a> {
    instance: &'a str,
    from: Vec<&'a str>,
    to: Vec<&'a str>,
}

/// The document, including the final newline.
pub(super) fn document(cluster: &Cluster, groups: &[RebootGroup]) -> io::Result<String> {
    let name = |node: NodeIdx| cluster.node(node).name.as_str();
    let names = |(primary, secondary): (NodeIdx, Option<NodeIdx>)| -> Vec<&str> {
        std::iter::once(primary).chain(secondary).map(name).collect()
    };
    let groups = groups.iter().map(|group| Group {
        nodes: group.nodes.iter().copied().map(name).collect(),
        moves: group
            .relocations
            .iter()
            .map(|relocation| MoveEntry {
                instance: &cluster.instance(relocation.instance).name,
                from: names(relocation.from),
                to: names(relocation.to),
            })
            .collect(),
    });
    let document = Document { groups: groups.collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
