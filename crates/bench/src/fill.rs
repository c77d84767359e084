//! `cargo xtask bench fill`: use of the gaps between leases by preemptible instances.
//!
//! Arrivals of virtual machines at a public cloud become requests for preemptible instances next to a
//! workload of leases. The crate `simulation` replays the leases without and with them. The traces are in the
//! reference material.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::places;
use chores::run::{must_run, output_of};
use serde_json::Value;

use super::workload::{TRACES, USUAL, conclude, released, replay};

/// Directory of the arrivals in the reference material, and the files that are converted to one table.
const ARRIVALS: &str = "data/azure-v1";
const BATCHES: &str = "v1.dev.txt.xz";
const LIFETIMES: &str = "v1.dev.c2100000.txt.xz";
/// Only every 40th batch is replayed, because a public cloud is larger than the machine that the leases are
/// from.
const EVERY: u32 = 40;

/// Traces to replay, and options of the replay.
#[derive(Debug)]
struct Options {
    traces: Vec<String>,
    every: String,
    limit: Option<String>,
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let usual = || USUAL.iter().map(|name| (*name).to_owned()).collect();
    let options = Options {
        traces: arguments.text("--trace")?.map_or_else(usual, |trace| vec![trace]),
        every: arguments.value("--every", EVERY)?.to_string(),
        limit: arguments.text("--limit")?,
    };
    let json = arguments.switch("--json");
    let ours = arguments.text("--ours")?.map(PathBuf::from);
    arguments.finish()?;
    let found = |path: &str| places::shared().map(|shared| shared.join(path)).filter(|path| path.exists());
    let (Some(leases), Some(arrivals)) = (found(TRACES), found(ARRIVALS)) else {
        println!(
            "skipped: the traces are in ../shared/{TRACES} and ../shared/{ARRIVALS} (or in $ALLOT_SHARED)"
        );
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    output_of(Command::new("tar").arg("-xf").arg(&leases).arg("-C").arg(directory.path()))?;
    let table = directory.path().join("arrivals.csv");
    let mut python = Command::new("python3");
    python.arg(arrivals.join("to_csv.py")).arg(arrivals.join(BATCHES)).arg(arrivals.join(LIFETIMES));
    must_run(python.stdout(File::create(&table)?))?;
    let simulation = ours.map_or_else(released, Ok)?;
    let mut rows = Vec::new();
    for trace in &options.traces {
        if !json {
            println!("{trace}\n{}", heading());
        }
        for variant in ["plain", "fill", "move"] {
            let traces = directory.path().join("blue");
            let way = (variant, options.limit.as_deref());
            let more = ["--arrivals".as_ref(), table.as_os_str(), "--every".as_ref(), options.every.as_ref()];
            let row = replay(&simulation, (&traces, trace), way, more)?;
            if !json {
                println!("{}", line(&row)?);
            }
            rows.push(row);
        }
    }
    if json {
        println!("{}", Value::Array(rows.clone()));
    }
    conclude(&rows)
}

fn heading() -> String {
    format!(
        "{:<6} {:>8} {:>5} {:>8} {:>7} {:>9} {:>9} {:>8} {:>8} {:>9} {:>10} {:>10} {:>6}",
        "",
        "reserved",
        "late",
        "at most",
        "leased",
        "with them",
        "instances",
        "refused",
        "done",
        "preempted",
        "core-hours",
        "of it lost",
        "took"
    )
}

/// Formats a row of the table.
fn line(row: &Value) -> Result<String> {
    let figures = &row["figures"];
    let number = |at: &Value| at.as_f64().context("a figure is missing");
    let fill = &figures["fill"];
    // Without preemptible instances, `fill` has no utilization of its own.
    let leased = number(&figures["utilisation"])?;
    let together = number(&fill["utilisation"])?.max(leased);
    Ok(format!(
        "{:<6} {:>8} {:>5} {:>7.2}s {:>6.1}% {:>8.1}% {:>9} {:>8} {:>8} {:>9} {:>10.0} {:>10.0} {:>5.0}s",
        figures["variant"].as_str().context("a name is missing")?,
        number(&figures["reservations"]["accepted"])?,
        number(&figures["late_starts"])?,
        number(&figures["longest_handover_s"])?,
        100.0 * leased,
        100.0 * together,
        number(&fill["requests"])?,
        number(&fill["refused"])?,
        number(&fill["done"])?,
        number(&fill["preempted"])?,
        number(&fill["core_hours"])?,
        number(&fill["lost_core_hours"])?,
        number(&row["took_s"])?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(variant: &str, late: u64) -> Value {
        let fill = json!({
            "requests": 9, "refused": 1, "done": 5, "preempted": 3, "core_hours": 80.5, "lost_core_hours": 12.0,
            "utilisation": 0.75,
        });
        let figures = json!({
            "variant": variant, "reservations": {"accepted": 4}, "late_starts": late,
            "longest_handover_s": 0.75, "utilisation": 0.5, "fill": fill,
        });
        json!({"trace": "a/b", "took_s": 2.0, "figures": figures})
    }

    #[test]
    fn a_row_says_what_the_gaps_were_good_for() {
        let line = line(&row("fill", 0)).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.join(" "), "fill 4 0 0.75s 50.0% 75.0% 9 1 5 3 80 12 2s");
        assert!(super::line(&json!({"figures": {}})).is_err());
    }

    #[test]
    fn a_lease_that_is_late_fails_the_bench() {
        assert!(conclude(&[row("plain", 0), row("fill", 0)]).is_ok());
        assert!(conclude(&[row("plain", 0), row("fill", 1)]).is_err());
    }
}
