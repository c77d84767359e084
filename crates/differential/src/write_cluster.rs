//! `cargo xtask cluster`: writes a generated cluster for experiments.

use std::path::Path;

use anyhow::Result;
use chores::arguments::Arguments;
use chores::run::write;

use crate::generate::model::Cluster;
use crate::generate::{message, ordinary, text};

pub fn main(mut arguments: Arguments) -> Result<()> {
    let nodes = arguments.value("--nodes", 20)?;
    let per_node = arguments.value("--instances-per-node", 10)?;
    let seed = arguments.value("--seed", 1)?;
    let prefix = arguments.text("--out")?.unwrap_or_else(|| "cluster".to_owned());
    arguments.finish()?;
    let files = save(&ordinary::cluster(nodes, per_node, seed), &prefix)?;
    for file in files {
        println!("{file}");
    }
    Ok(())
}

/// Writes the cluster as text and two requests for it. Returns the file names.
fn save(cluster: &Cluster, prefix: &str) -> Result<Vec<String>> {
    let request = |request| message::render(cluster, &request).to_string();
    let files = [
        (format!("{prefix}.data"), text::render(cluster)),
        (format!("{prefix}.allocate.json"), request(ordinary::allocate())),
        (format!("{prefix}.relocate.json"), request(ordinary::relocate(cluster))),
    ];
    for (name, content) in &files {
        write(Path::new(name), content.as_bytes())?;
    }
    Ok(files.map(|(name, _)| name).to_vec())
}
