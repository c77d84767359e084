//! Compares `hbal --search=deep` with the greedy search by the balance that they reach.

use std::path::Path;

use anyhow::{Context, Result, bail};
use chores::run::Executable;
use serde_json::{Value, json};

use crate::measure::{generate, measure};

/// Generator options: one family of clusters per line.
const FAMILIES: [&str; 17] = [
    "--nodes 10 --seed 1",
    "--nodes 10 --seed 2",
    "--nodes 15 --seed 3 --imbalance 0.8",
    "--nodes 20 --seed 1",
    "--nodes 20 --seed 2",
    "--nodes 20 --seed 4 --imbalance 0.8",
    "--nodes 20 --seed 5 --hetero",
    "--nodes 20 --seed 6 --template rbd",
    "--nodes 20 --seed 7 --template mixed --fill 0.7",
    "--nodes 16 --seed 8 --offline 2 --util",
    "--nodes 24 --seed 9 --location-tags 4 --exclusion-tags 0.3",
    "--nodes 24 --seed 10 --migration-tags 0.3",
    "--nodes 30 --seed 11 --imbalance 0.3",
    "--nodes 30 --seed 12 --uniform-instances",
    "--nodes 30 --seed 13 --fill 0.7",
    "--nodes 40 --seed 1",
    "--nodes 40 --seed 2",
];
/// Search time for each, in seconds.
const TIME: &str = "3";
/// Additional clusters with `--large`, and their search times in seconds.
const LARGE: [(&str, &str); 2] = [("--nodes 80 --seed 1", "10"), ("--nodes 200 --seed 1", "30")];
/// Limits of the deep search relative to the greedy one: no more moves, or no more copies of disks but more
/// migrations.
const LIMITS: [(&str, &[&str]); 2] = [("moves", &[]), ("copies", &["--max-copies=usual"])];

/// Result of a search.
#[derive(Clone, Copy, Debug)]
struct Found {
    score: f64,
    moves: u64,
    copies: u64,
    copied_gib: f64,
    migrations: u64,
    /// Instances on nodes that fail N+1 after the moves.
    n1: f64,
    cpu_seconds: f64,
}

#[derive(Clone, Debug)]
struct Row {
    cluster: &'static str,
    /// Cost that limits the deep search to the greedy search's result: `moves` or `copies`.
    limit: &'static str,
    initial_score: f64,
    initial_n1: f64,
    greedy: Found,
    deep: Found,
}

impl Found {
    fn document(&self) -> Value {
        json!({"score": self.score, "moves": self.moves, "copies": self.copies, "copied_gib": self.copied_gib,
            "migrations": self.migrations, "n1": self.n1, "cpu_seconds": self.cpu_seconds})
    }
}

impl Row {
    fn document(&self) -> Value {
        json!({"cluster": self.cluster, "limit": self.limit, "initial_score": self.initial_score,
            "initial_n1": self.initial_n1, "ratio": self.ratio(), "greedy": self.greedy.document(),
            "deep": self.deep.document()})
    }

    /// The deep search's final score divided by the greedy one's.
    fn ratio(&self) -> f64 {
        if self.greedy.score > 0.0 { self.deep.score / self.greedy.score } else { 1.0 }
    }

    /// Whether the deep search ends worse, or exceeds its limit.
    fn worse(&self) -> bool {
        let spent = |found: &Found| if self.limit == "moves" { found.moves } else { found.copies };
        self.deep.score > self.greedy.score
            || spent(&self.deep) > spent(&self.greedy)
            || self.deep.n1 > self.initial_n1
    }
}

/// Prints the tables, or a JSON document. Fails if a deep search is worse or exceeds its limit.
pub fn table(ours: &Executable, large: bool, json: bool) -> Result<()> {
    let mut rows = Vec::new();
    let mut medians = serde_json::Map::new();
    for (limit, options) in LIMITS {
        let mut ratios = Vec::new();
        if !json {
            println!("With no more {limit} than the greedy search:\n");
            println!(
                "| cluster | score, greedy | deep | ratio | moves | copies | GiB | migrations | N+1 | CPU s, greedy | deep |"
            );
            println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        }
        for cluster in FAMILIES {
            let row = compare(ours, cluster, limit, &[options, &["--search-time", TIME]].concat())?;
            ratios.push(row.ratio());
            note(row, json, &mut rows);
        }
        for (cluster, time) in LARGE.iter().filter(|_| large) {
            let row = compare(ours, cluster, limit, &[options, &["--search-time", time]].concat())?;
            note(row, json, &mut rows);
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[ratios.len() / 2];
        medians.insert(limit.to_owned(), json!(median));
        if !json {
            println!("\nMedian of the ratios on {} clusters of 10 to 40 nodes: {median:.3}\n", ratios.len());
        }
    }
    if json {
        let documents: Vec<Value> = rows.iter().map(Row::document).collect();
        println!("{}", serde_json::to_string_pretty(&json!({"median_ratio": medians, "rows": documents}))?);
    }
    match rows.iter().find(|row| row.worse()) {
        Some(row) => bail!("{}: the deep search is worse, or takes more {}", row.cluster, row.limit),
        None => Ok(()),
    }
}

fn note(row: Row, json: bool, rows: &mut Vec<Row>) {
    if !json {
        print(&row);
    }
    rows.push(row);
}

fn print(row: &Row) {
    let (greedy, deep) = (&row.greedy, &row.deep);
    println!(
        "| {} | {:.3} | {:.3} | {:.3} | {} / {} | {} / {} | {:.0} / {:.0} | {} / {} | {} / {} | {:.2} | {:.2} |",
        row.cluster,
        greedy.score,
        deep.score,
        row.ratio(),
        greedy.moves,
        deep.moves,
        greedy.copies,
        deep.copies,
        greedy.copied_gib,
        deep.copied_gib,
        greedy.migrations,
        deep.migrations,
        greedy.n1,
        deep.n1,
        greedy.cpu_seconds,
        deep.cpu_seconds,
    );
}

/// Balances a cluster with both searches; `options` are for the deep one.
fn compare(ours: &Executable, cluster: &'static str, limit: &'static str, options: &[&str]) -> Result<Row> {
    let directory = tempfile::tempdir()?;
    let mut words = vec!["--out", "C"];
    words.extend(cluster.split(' '));
    generate(directory.path(), &words)?;
    let (usual, usual_seconds) = balance(ours, &["--search", "exact"], directory.path())?;
    let (document, seconds) = balance(ours, &[&["--search", "deep"], options].concat(), directory.path())?;
    let number = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path} in hbal's document"))
    };
    let found = |end: &Value, cost: &str, cpu_seconds: f64| -> Result<Found> {
        let counted = |what: &str| -> Result<f64> { number(&document, &format!("{cost}/{what}")) };
        Ok(Found {
            score: number(end, "/final/score")?,
            moves: counted("moves")? as u64,
            copies: counted("copies")? as u64,
            copied_gib: counted("copied_mib")? / 1024.0,
            migrations: counted("migrations")? as u64,
            n1: number(end, "/final/components/n1_cnt")?,
            cpu_seconds,
        })
    };
    Ok(Row {
        cluster,
        limit,
        initial_score: number(&usual, "/initial/score")?,
        initial_n1: number(&usual, "/initial/components/n1_cnt")?,
        greedy: found(&usual, "/deep/greedy/cost", usual_seconds)?,
        deep: found(&document, "/deep/cost", seconds)?,
    })
}

/// JSON document of a run, and its processor time in seconds.
fn balance(ours: &Executable, options: &[&str], directory: &Path) -> Result<(Value, f64)> {
    let fixed = ["-q", "-t", "C.data", "--json"];
    let words: Vec<String> = fixed.iter().chain(options).map(|word| (*word).to_owned()).collect();
    let cost = measure(ours, "hbal", &words, directory)?;
    if cost.status != Some(0) {
        bail!("hbal {}: exit status {:?}", options.join(" "), cost.status);
    }
    Ok((serde_json::from_slice(&cost.stdout)?, cost.seconds))
}
