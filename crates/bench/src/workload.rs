//! `cargo xtask bench workload`: how well the leasing service serves the recorded workload of a real machine.
//!
//! Advance reservations are injected into a stream of best-effort jobs. The crate `simulation` replays both,
//! once per variant: without extras, with offers, with the waitlist, with power saving, and next to other
//! tenants' guests without and with hunts. The traces are in the reference material.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places::{self, cargo};
use chores::run::{must_run, output_of};
use serde_json::{Value, json};

/// Path of the traces in the reference material.
pub(super) const TRACES: &str = "data/haizea/blue.tar.xz";
/// Traces to replay by default: length of the stream, and the injected reservations.
pub(super) const USUAL: [&str; 3] = [
    "15days/work_10-dur_2h-size_2medium",
    "15days/work_30-dur_2h-size_2medium",
    "30days/work_15-dur_2h-size_2medium",
];
/// The names that `simulation` uses.
const VARIANTS: [&str; 6] = ["plain", "offers", "waitlist", "power", "guests", "hunts"];

/// Traces to replay, and options of the replay.
#[derive(Debug)]
struct Options {
    traces: Vec<String>,
    variants: Vec<String>,
    limit: Option<String>,
    seed: String,
}

pub fn main(mut arguments: Arguments) -> Result<()> {
    let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let options = Options {
        traces: arguments.text("--trace")?.map_or_else(|| all(&USUAL), |trace| vec![trace]),
        variants: arguments.text("--variant")?.map_or_else(|| all(&VARIANTS), |variant| vec![variant]),
        limit: arguments.text("--limit")?,
        seed: arguments.value("--seed", 1_u64)?.to_string(),
    };
    let json = arguments.switch("--json");
    let ours = arguments.text("--ours")?.map(PathBuf::from);
    arguments.finish()?;
    let Some(archive) = places::shared().map(|shared| shared.join(TRACES)).filter(|path| path.is_file())
    else {
        println!("skipped: the traces are in ../shared/{TRACES} (or in $ALLOT_SHARED), which is not there");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    output_of(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(directory.path()))?;
    let simulation = ours.map_or_else(released, Ok)?;
    let mut rows = Vec::new();
    for trace in &options.traces {
        if !json {
            println!("{trace}\n{}", heading());
        }
        for variant in &options.variants {
            let way = (variant.as_str(), options.limit.as_deref());
            let more = ["--seed", &options.seed];
            let row = replay(&simulation, (&directory.path().join("blue"), trace), way, more)?;
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

/// Builds the simulation with optimizations.
pub(super) fn released() -> Result<PathBuf> {
    must_run(cargo().args(["build", "--quiet", "--release", "--package", "simulation"]))?;
    Ok(places::target().join("release/simulation"))
}

/// Replays the first jobs of a trace with one variant, passing `more` arguments to the simulation.
pub(super) fn replay(
    simulation: &Path,
    (traces, trace): (&Path, &str),
    (variant, limit): (&str, Option<&str>),
    more: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Value> {
    let Some((stream, _)) = trace.split_once('/') else {
        bail!("a trace is called like {}, not '{trace}'", USUAL[0]);
    };
    let mut command = Command::new(simulation);
    command.arg("workload");
    command.arg("--swf").arg(traces.join(format!("{stream}.swf")));
    command.arg("--lwf").arg(traces.join(format!("injected/{trace}.lwf")));
    command.args(["--variant", variant]);
    command.args(limit.into_iter().flat_map(|limit| ["--limit", limit])).args(more);
    let began = Instant::now();
    let said = output_of(&mut command)?;
    let took = began.elapsed().as_secs_f64();
    let figures: Value = serde_json::from_str(&said).context("the simulation does not say figures")?;
    Ok(json!({"trace": trace, "took_s": took, "figures": figures}))
}

fn heading() -> String {
    format!(
        "{:<9} {:>13} {:>6} {:>5} {:>7} {:>6} {:>11} {:>6} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6}",
        "",
        "reserved",
        "node-h",
        "late",
        "at most",
        "leased",
        "best effort",
        "node-h",
        "wait",
        "median",
        "95 %",
        "kWh",
        "saved",
        "took"
    )
}

/// Formats a row of the table.
fn line(row: &Value) -> Result<String> {
    let figures = &row["figures"];
    let number = |at: &Value| at.as_f64().context("a figure is missing");
    let part = |share: &Value, of: &str, all: &str| -> Result<String> {
        Ok(format!("{:.1}%", 100.0 * number(&share[of])? / number(&share[all])?.max(f64::MIN_POSITIVE)))
    };
    let of_all = |share: &Value| -> Result<String> {
        Ok(format!("{} of {}", number(&share["accepted"])?, number(&share["requests"])?))
    };
    let hours = |share: &Value| part(share, "accepted_node_hours", "asked_node_hours");
    let (reserved, batch, waiting) =
        (&figures["reservations"], &figures["best_effort"], &figures["waiting_s"]);
    let minutes = |at: &Value| -> Result<String> { Ok(format!("{:.1}m", number(at)? / 60.0)) };
    Ok(format!(
        "{:<9} {:>13} {:>6} {:>5} {:>6.2}s {:>5.1}% {:>11} {:>6} {:>8} {:>8} {:>8} {:>8.0} {:>7.0} {:>5.0}s",
        figures["variant"].as_str().context("a name is missing")?,
        of_all(reserved)?,
        hours(reserved)?,
        number(&figures["late_starts"])?,
        number(&figures["longest_handover_s"])?,
        100.0 * number(&figures["utilisation"])?,
        of_all(batch)?,
        hours(batch)?,
        minutes(&waiting["mean"])?,
        minutes(&waiting["median"])?,
        minutes(&waiting["p95"])?,
        number(&figures["used_kwh"])?,
        number(&figures["saved_kwh"])?,
        number(&row["took_s"])?,
    ))
}

/// Fails if any reservation started late: an accepted start time must be met.
pub(super) fn conclude(rows: &[Value]) -> Result<()> {
    let late = |row: &&Value| row["figures"]["late_starts"].as_u64() != Some(0);
    let late: Vec<String> = rows
        .iter()
        .filter(late)
        .map(|row| format!("{} with {}", row["trace"], row["figures"]["variant"]))
        .collect();
    if late.is_empty() { Ok(()) } else { bail!("reservations were late: {}", late.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(late: u64) -> Value {
        let share =
            json!({"requests": 4, "accepted": 3, "asked_node_hours": 8.0, "accepted_node_hours": 2.0});
        let figures = json!({
            "variant": "plain", "reservations": share, "best_effort": share, "late_starts": late,
            "longest_handover_s": 0.75, "utilisation": 0.5, "used_kwh": 12.0, "saved_kwh": 0.0,
            "waiting_s": {"mean": 90.0, "median": 0.0, "p95": 600.0, "most": 700.0},
        });
        json!({"trace": "a/b", "took_s": 2.0, "figures": figures})
    }

    #[test]
    fn a_row_says_shares_and_waiting() {
        let line = line(&row(0)).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = "plain 3 of 4 25.0% 0 0.75s 50.0% 3 of 4 25.0% 1.5m 0.0m 10.0m 12 0 2s";
        assert_eq!(words.join(" "), expected);
        assert!(super::line(&json!({"figures": {}})).is_err());
    }

    #[test]
    fn a_reservation_that_is_late_fails_the_bench() {
        assert!(conclude(&[row(0), row(0)]).is_ok());
        assert!(conclude(&[row(0), row(1)]).is_err());
        assert!(conclude(&[json!({"figures": {}})]).is_err());
    }
}
