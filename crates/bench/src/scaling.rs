//! `cargo xtask bench scaling`: cost of the first move of a balancing run, by size of the cluster.

use anyhow::Result;
use chores::arguments::Arguments;
use chores::places;

use super::measure::{best, generate};

pub fn main(mut arguments: Arguments) -> Result<()> {
    let full = arguments.switch("--full");
    arguments.finish()?;
    let ours = places::released()?;
    let directory = tempfile::tempdir()?;
    println!("| hbal -l 1, nodes | instances | elapsed s | CPU s | MiB | CPU us per instance x node |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    let sizes: &[u32] = if full { &[80, 200, 500, 1000, 2000, 5000] } else { &[80, 200, 500, 1000, 2000] };
    for nodes in sizes {
        let name = format!("c{nodes}");
        generate(directory.path(), &["--nodes", &nodes.to_string(), "--out", &name])?;
        let words = ["-t".to_owned(), format!("{name}.data"), "-l".to_owned(), "1".to_owned()];
        let cost = best(&ours, "hbal", &words, directory.path())?;
        let pairs = f64::from(*nodes) * f64::from(*nodes) * 10.0;
        println!(
            "| {nodes} | {} | {:.3} | {:.3} | {:.0} | {:.3} |",
            nodes * 10,
            cost.elapsed,
            cost.seconds,
            cost.memory,
            cost.seconds * 1e6 / pairs
        );
    }
    Ok(())
}
