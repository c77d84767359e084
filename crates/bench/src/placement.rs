//! `cargo xtask bench placement`: time and memory compared with the reference, which must have the same
//! output.

use std::path::Path;

use anyhow::{Result, bail};
use chores::arguments::Arguments;
use chores::places;
use chores::run::Executable;
use differential::known;

use super::measure::{Cost, best, generate, measure};

/// A row of the table.
struct Row {
    name: &'static str,
    program: &'static str,
    /// Arguments; `C` stands for the prefix of the cluster's files.
    arguments: &'static str,
    /// Options of the generator, in addition to the options that all rows share.
    cluster: &'static str,
    /// Speed of the reference.
    reference: Reference,
    /// Limit of our cost.
    wanted: Wanted,
}

#[derive(Clone, Copy, PartialEq)]
enum Reference {
    /// Takes less than 20 s.
    Fast,
    /// Takes longer: skipped with `--quick`.
    Slow,
    /// Takes hours: never run.
    Never,
}

#[derive(Clone, Copy)]
enum Wanted {
    /// At least this many times cheaper than the reference.
    Ratio(f64),
    /// Maximum elapsed time, in seconds.
    Seconds(f64),
    /// Maximum multiple of the processor time that only reading the same cluster's request takes.
    Reading(f64),
}

const fn row(
    name: &'static str,
    program: &'static str,
    arguments: &'static str,
    cluster: &'static str,
    reference: Reference,
    wanted: Wanted,
) -> Row {
    Row { name, program, arguments, cluster, reference, wanted }
}

const ROWS: &[Row] = &[
    row(
        "hail relocate drbd, 1,000 nodes",
        "hail",
        "C.reloc.json",
        "--nodes 1000 --requests reloc",
        Reference::Fast,
        Wanted::Ratio(150.0),
    ),
    row(
        "hail relocate drbd, 5,000 nodes",
        "hail",
        "C.reloc.json",
        "--nodes 5000 --requests reloc",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hail allocate drbd, 1,000 nodes",
        "hail",
        "C.alloc-drbd.json",
        "--nodes 1000 --requests alloc-drbd",
        Reference::Slow,
        Wanted::Ratio(100.0),
    ),
    row(
        "hail allocate plain, 200 nodes",
        "hail",
        "C.alloc-plain.json",
        "--nodes 200 --template plain --requests alloc-plain",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hail allocate rbd, 200 nodes",
        "hail",
        "C.alloc-rbd.json",
        "--nodes 200 --template rbd --requests alloc-rbd",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hail evacuate secondaries, 2,000 nodes",
        "hail",
        "C.evac-sec.json",
        "--nodes 2000 --requests evac-sec",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hail evacuate all, 200 nodes",
        "hail",
        "C.evac-all.json",
        "--nodes 200 --requests evac-all",
        Reference::Slow,
        Wanted::Ratio(300.0),
    ),
    row(
        "hbal -l 1, 80 nodes",
        "hbal",
        "-t C.data -l 1",
        "--nodes 80",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hbal -l 1, 200 nodes",
        "hbal",
        "-t C.data -l 1",
        "--nodes 200",
        Reference::Slow,
        Wanted::Ratio(3000.0),
    ),
    row(
        "hbal to the end, 40 nodes",
        "hbal",
        "-t C.data",
        "--nodes 40",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hbal to the end, 200 nodes",
        "hbal",
        "-t C.data",
        "--nodes 200",
        Reference::Never,
        Wanted::Seconds(30.0),
    ),
    row(
        "hbal to the end, 1,000 nodes",
        "hbal",
        "-t C.data",
        "--nodes 1000",
        Reference::Never,
        Wanted::Seconds(600.0),
    ),
    row(
        "hcheck without simulation, 5,000 nodes",
        "hcheck",
        "-t C.data --no-simulation",
        "--nodes 5000",
        Reference::Fast,
        Wanted::Ratio(20.0),
    ),
    row(
        "hsqueeze rbd, 20 nodes",
        "hsqueeze",
        "-t C.data",
        "--nodes 20 --template rbd",
        Reference::Slow,
        Wanted::Ratio(500.0),
    ),
    row(
        "hail allocate drbd, 10,000 nodes",
        "hail",
        "C.alloc-drbd.json",
        "--nodes 10000 --requests alloc-drbd,bogus",
        Reference::Never,
        Wanted::Reading(5.0),
    ),
    row(
        "hail relocate drbd, 10,000 nodes",
        "hail",
        "C.reloc.json",
        "--nodes 10000 --requests reloc,bogus",
        Reference::Never,
        Wanted::Reading(2.0),
    ),
    row(
        "hspace plain, 40 nodes",
        "hspace",
        "-t C.data --machine-readable",
        "--nodes 40 --template plain",
        Reference::Slow,
        Wanted::Ratio(1000.0),
    ),
    row(
        "hspace drbd, 80 nodes",
        "hspace",
        "-t C.data --machine-readable",
        "--nodes 80",
        Reference::Slow,
        Wanted::Ratio(500.0),
    ),
    row(
        "hspace plain, 2,000 nodes",
        "hspace",
        "-t C.data --machine-readable",
        "--nodes 2000 --template plain",
        Reference::Never,
        Wanted::Seconds(60.0),
    ),
    row(
        "hspace drbd, 2,000 nodes",
        "hspace",
        "-t C.data --machine-readable",
        "--nodes 2000",
        Reference::Never,
        Wanted::Seconds(60.0),
    ),
    row(
        "hroller, 1,000 nodes",
        "hroller",
        "-t C.data",
        "--nodes 1000",
        Reference::Slow,
        Wanted::Ratio(500.0),
    ),
    row(
        "hroller, 5,000 nodes",
        "hroller",
        "-t C.data",
        "--nodes 5000",
        Reference::Never,
        Wanted::Seconds(20.0),
    ),
    row(
        "hroller, 5,000 nodes without mirrors",
        "hroller",
        "-t C.data",
        "--nodes 5000 --template plain",
        Reference::Never,
        Wanted::Seconds(20.0),
    ),
];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let quick = arguments.switch("--quick");
    let only = arguments.text("--only")?.unwrap_or_default();
    let ours = arguments.text("--ours")?.map_or_else(places::released, |path| Ok(Executable::new(path)))?;
    arguments.finish()?;
    let reference = places::reference()?;
    println!("| run | reference CPU s | reference MiB | ours CPU s | ours MiB | ratio | wanted | |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |");
    let (mut missed, mut left_out) = (0, 0);
    let rows: Vec<&Row> = ROWS.iter().filter(|row| row.name.contains(&only)).collect();
    if rows.is_empty() {
        bail!("no row's name contains '{only}'");
    }
    for row in rows {
        if quick && row.reference == Reference::Slow {
            left_out += 1;
            continue;
        }
        missed += usize::from(!measure_row(row, &ours, &reference)?);
    }
    if left_out > 0 {
        println!("\n{left_out} rows left out, since the reference needs over 20 s for each");
    }
    if missed > 0 {
        bail!("{missed} rows missed their limits");
    }
    Ok(())
}

/// Measures and prints a row. Returns whether it is within its limit.
fn measure_row(row: &Row, ours: &Executable, reference: &Executable) -> Result<bool> {
    let directory = tempfile::tempdir()?;
    let mut words = vec!["--out", "C"];
    words.extend(row.cluster.split(' '));
    generate(directory.path(), &words)?;
    let arguments: Vec<String> = row.arguments.split(' ').map(str::to_owned).collect();
    let mine = best(ours, row.program, &arguments, directory.path())?;
    let theirs = match row.reference {
        Reference::Never => None,
        Reference::Fast | Reference::Slow => {
            Some(measure(reference, row.program, &arguments, directory.path())?)
        }
    };
    if let Some(theirs) = &theirs {
        let equal = known::normalise(&theirs.stdout) == known::normalise(&mine.stdout);
        if !equal || theirs.status != mine.status {
            bail!("{}: the output is not the reference's", row.name);
        }
    } else if mine.status != Some(0) {
        bail!("{}: exit status {:?}", row.name, mine.status);
    }
    // Times below the clock's resolution would give infinite ratios.
    let ratio = theirs.as_ref().map(|t| t.seconds / mine.seconds.max(0.01));
    let (wanted, good) = judge(row, &mine, ratio, ours, directory.path())?;
    let (seconds, memory) = theirs.map_or(("-".to_owned(), "-".to_owned()), |t| {
        (format!("{:.2}", t.seconds), format!("{:.0}", t.memory))
    });
    println!(
        "| {} | {seconds} | {memory} | {:.2} | {:.0} | {} | {wanted} | {} |",
        row.name,
        mine.seconds,
        mine.memory,
        ratio.map_or("-".to_owned(), |r| format!("{r:.0}")),
        if good { "pass" } else { "MISS" }
    );
    Ok(good)
}

fn judge(
    row: &Row,
    mine: &Cost,
    ratio: Option<f64>,
    ours: &Executable,
    directory: &Path,
) -> Result<(String, bool)> {
    Ok(match row.wanted {
        Wanted::Ratio(least) => (format!("{least} x"), ratio.is_some_and(|r| r >= least)),
        Wanted::Seconds(most) => (format!("{most} s"), mine.elapsed <= most),
        Wanted::Reading(most) => {
            // An unknown request type is rejected after everything has been read.
            let reading = best(ours, "hail", &["C.bogus.json".to_owned()], directory)?;
            let text = format!("{most} x reading ({:.2} s)", reading.seconds);
            (text, mine.seconds <= most * reading.seconds.max(0.01))
        }
    })
}
