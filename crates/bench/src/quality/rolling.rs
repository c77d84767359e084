//! Compares `hroller --search=deep` with the exact search by the number of groups.

use std::path::Path;

use anyhow::{Result, bail};
use chores::run::Executable;

use crate::measure::{Cost, generate, measure};

/// Options of the generator, and options of `hroller`.
const ROLLING: [(&str, &str); 6] = [
    ("--nodes 95 --seed 8", ""),
    ("--nodes 200", ""),
    ("--nodes 200", "--full-evacuation"),
    ("--nodes 200", "--offline-maintenance"),
    ("--nodes 1000", ""),
    ("--nodes 1000", "--offline-maintenance"),
];

/// Prints the table. Fails if a deep search is worse.
pub fn table(ours: &Executable) -> Result<()> {
    println!("| cluster | hroller | groups, exact | CPU s | groups, deep | CPU s | |");
    println!("| --- | --- | ---: | ---: | ---: | ---: | --- |");
    let mut worse = 0;
    for (cluster, options) in ROLLING {
        let directory = tempfile::tempdir()?;
        let mut words = vec!["--out", "C"];
        words.extend(cluster.split(' '));
        generate(directory.path(), &words)?;
        let (exact, exact_cost) = groups(ours, options, "exact", directory.path())?;
        let (deep, deep_cost) = groups(ours, options, "deep", directory.path())?;
        worse += usize::from(deep > exact);
        println!(
            "| {cluster} | {options} | {exact} | {:.2} | {deep} | {:.2} | {} |",
            exact_cost.seconds,
            deep_cost.seconds,
            if deep > exact { "WORSE" } else { "" }
        );
    }
    if worse > 0 {
        bail!("{worse} deep searches are worse");
    }
    Ok(())
}

/// Number of groups of nodes that are rebooted one after another, and the cost of the run.
fn groups(ours: &Executable, options: &str, search: &str, directory: &Path) -> Result<(usize, Cost)> {
    let fixed = ["-q", "-t", "C.data", "--no-headers", "--search", search];
    let words = fixed.into_iter().chain(options.split_whitespace()).map(str::to_owned);
    let cost = measure(ours, "hroller", &words.collect::<Vec<_>>(), directory)?;
    if cost.status != Some(0) {
        bail!("hroller {options}: exit status {:?}", cost.status);
    }
    Ok((String::from_utf8_lossy(&cost.stdout).lines().count(), cost))
}
