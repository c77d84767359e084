//! `cargo xtask bench instructions`: detects slowdowns by counting instructions, which doesn't depend on the
//! machine's load.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::{Executable, write};
use chores::tally::{Tally, report_failure};
use differential::generate::{message, ordinary, text};

/// Maximum difference from the recorded count, in percent. Generous, because compilers and processors differ.
///
/// The first run has 21 million instructions. Of these, 0.7 million are in `memcpy` and 0.15 million in
/// `memcmp`: the C library picks their variant by processor, and callgrind counts every repetition of `rep
/// movsb`, which some variants use. Hiding AVX2 and ERMS (`GLIBC_TUNABLES=glibc.cpu.hwcaps=...`) changes that
/// run by 0.2 million, 1 %. Another 1.7 million are in the loader, which relocates more in a larger program:
/// 2 % more if the program grows by a quarter. The engine's own instructions are the same everywhere, and a
/// real regression exceeds all of this.
const TOLERANCE: f64 = 10.0;

/// Fixed runs: name, program, number of nodes, arguments.
const RUNS: [(&str, &str, usize, &str); 3] = [
    ("hail-relocate-200", "hail", 200, "relocate.json"),
    ("hail-allocate-100", "hail", 100, "allocate.json"),
    ("hbal-3-moves-40", "hbal", 40, "-t cluster.data -l 3"),
];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let bless = arguments.switch("--bless");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    let ours = ours.map_or_else(places::ours, Ok)?;
    if bless { record(&ours) } else { check(&ours)?.conclude("instructions") }
}

fn baseline() -> PathBuf {
    places::root().join("crates/bench/instructions.toml")
}

fn record(ours: &Executable) -> Result<()> {
    let mut content = String::from(
        "# Instructions of fixed runs (development build, one thread, callgrind).\n\
         # Recorded by `cargo xtask bench instructions --bless`; a change beyond 10 % fails.\n\n",
    );
    for (name, program, nodes, arguments) in RUNS {
        let count = count(ours, program, nodes, arguments)?;
        println!("{name}: {count}");
        writeln!(content, "{name} = {count}").expect("writing to a string");
    }
    write(&baseline(), content.as_bytes())
}

/// Counts instructions, and compares them with the recorded counts.
pub fn check(ours: &Executable) -> Result<Tally> {
    let path = baseline();
    let recorded = fs::read_to_string(&path).with_context(|| {
        format!("no {}: record one with 'cargo xtask bench instructions --bless'", path.display())
    })?;
    let mut tally = Tally::default();
    for (name, program, nodes, arguments) in RUNS {
        let expected = lookup(&recorded, name)
            .with_context(|| format!("{} lacks {name}: record it with --bless", path.display()))?;
        let counted = count(ours, program, nodes, arguments)?;
        let change = (counted as f64 / expected as f64 - 1.0) * 100.0;
        let good = change.abs() <= TOLERANCE;
        let remark = match (good, change > 0.0) {
            (true, _) => "",
            (false, true) => " TOO MANY",
            (false, false) => " fewer: record it with --bless",
        };
        let line = format!("{name}: {counted} instructions, recorded {expected} ({change:+.1} %){remark}");
        if good {
            println!("{line}");
        } else {
            report_failure(line);
        }
        tally.count(good);
    }
    Ok(tally)
}

fn lookup(recorded: &str, name: &str) -> Option<u64> {
    let mut lines = recorded.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| line.split_once(" = ").filter(|(key, _)| *key == name)?.1.parse().ok())
}

/// Number of instructions of a run.
fn count(ours: &Executable, program: &str, nodes: usize, arguments: &str) -> Result<u64> {
    places::need_program("valgrind", "valgrind")?;
    let directory = tempfile::tempdir()?;
    write_inputs(directory.path(), nodes)?;
    let inner = ours.command(program);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(inner.get_program());
    command.args(inner.get_args()).args(arguments.split(' ')).current_dir(directory.path());
    // Threads that wait for each other execute instructions too.
    command.env("RAYON_NUM_THREADS", "1").env_remove("HTOOLS");
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{command:?} failed:\n{report}");
    }
    let collected = report.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.and_then(|count| count.trim().parse().ok()).context("callgrind printed no count")
}

fn write_inputs(directory: &Path, nodes: usize) -> Result<()> {
    let cluster = ordinary::cluster(nodes, 8, 1);
    write(&directory.join("cluster.data"), text::render(&cluster).as_bytes())?;
    for (name, request) in
        [("relocate.json", ordinary::relocate(&cluster)), ("allocate.json", ordinary::allocate())]
    {
        write(&directory.join(name), message::render(&cluster, &request).to_string().as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_recorded_counts() {
        let recorded = "# a = 1\n\na = 2\nab = 3\n";
        assert_eq!(lookup(recorded, "a"), Some(2));
        assert_eq!(lookup(recorded, "ab"), Some(3));
        assert_eq!(lookup(recorded, "c"), None);
    }
}
