//! `cargo xtask demo`: the leasing service with hosts and leases. `cargo xtask demo balance`: balances a
//! cluster and explains an allocation, on a terminal of 100 columns.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use chores::arguments::Arguments;
use chores::run::{Executable, output_of};
use chores::{console, places};

use crate::programs::Program;

/// Crates that aren't optimized for the demo: a service with few leases doesn't need it, and is ready minutes
/// earlier.
const UNOPTIMIZED: [&str; 7] = ["cluster", "placement", "htools", "leases", "store", "fleet", "service"];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let balance = arguments.switch("balance");
    let given = arguments.text("--ours")?;
    if !balance && given.is_none() {
        // The service's build includes the console. Without Node.js, the demo runs without it.
        if let Err(error) = console::build() {
            eprintln!("The console is left out: {error:#}");
        }
    }
    let unoptimized = if balance { &[][..] } else { &UNOPTIMIZED };
    let ours = given.map_or_else(|| places::ours_in_sight(unoptimized), |path| Ok(Executable::new(path)))?;
    if balance { balancing(arguments, &ours) } else { leasing(arguments, &ours) }
}

/// Replaces this process by `allot demo`, so that Ctrl-C reaches only that.
fn leasing(mut arguments: Arguments, ours: &Executable) -> Result<()> {
    let mut command = ours.command("demo");
    for option in ["--listen", "--speed", "--directory", "--log-level"] {
        if let Some(value) = arguments.text(option)? {
            command.args([option, &value]);
        }
    }
    arguments.finish()?;
    Err(command.exec()).context("cannot run allot demo")
}

fn balancing(arguments: Arguments, ours: &Executable) -> Result<()> {
    arguments.finish()?;
    let directory = tempfile::tempdir()?;
    let prefix = directory.path().join("demo").display().to_string();
    let mut generate = Program::Differential.command()?;
    generate.args(["cluster", "--nodes=20", "--instances-per-node=10", "--seed=7", "--out", &prefix]);
    output_of(&mut generate)?;

    heading("A cluster of 20 nodes and 200 instances that has grown out of balance");
    println!("Per node: memory (MiB), disk (GiB), virtual CPUs, primary and secondary instances.\n");
    let fields = "-pname,tmem,umem,rmem,tdsk,fdsk,ucpu,pcnt,scnt,pfmem,pfdsk";
    let first = run(ours, directory.path(), "hbal", &["-t", "demo.data", "-l", "0", fields])?;
    print_table(&first.1, "Initial cluster status:\n");

    heading("The first ten moves of hbal");
    println!("Each line moves one instance; the score is the cluster's after it, lower is better.\n");
    show(ours, directory.path(), "hbal", &["-t", "demo.data", "-l", "10"])?;

    heading("All moves with their commands, grouped into sets that can run in parallel");
    let started = Instant::now();
    let balanced = ["-t", "demo.data", "-q", "-C", "-S", "demo", fields];
    let shown = run(ours, directory.path(), "hbal", &balanced)?;
    let elapsed = started.elapsed();
    let lines: Vec<&str> = shown.0.lines().collect();
    let commands = lines.iter().position(|line| line.starts_with("Commands")).unwrap_or(0);
    print_some(&lines[commands..], 14);

    heading("The nodes after all moves");
    print_table(&shown.1, "Final cluster status:\n");
    println!("\nBalanced to the end in {:.0} ms.", elapsed.as_secs_f64() * 1000.0);

    heading("The node for a new instance of 2 GiB, and the reasons");
    show(ours, directory.path(), "hail", &["--explain", "demo.allocate.json"])?;

    let started = Instant::now();
    run(ours, directory.path(), "hail", &["demo.allocate.json"])?;
    println!("\nThe answer alone takes {:.1} ms.", started.elapsed().as_secs_f64() * 1000.0);
    println!("More clusters: cargo xtask cluster --nodes 50 --seed 3 --out /tmp/example");
    Ok(())
}

/// Prints the table that follows `title`, up to the next empty line.
fn print_table(text: &str, title: &str) {
    let table = text.split_once(title).map_or("", |(_, table)| table);
    print_some(&table.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>(), usize::MAX);
}

fn heading(text: &str) {
    println!("\n{text}\n{}", "-".repeat(text.chars().count()));
}

fn show(ours: &Executable, directory: &Path, program: &str, arguments: &[&str]) -> Result<()> {
    println!("$ allot {program} {}", arguments.join(" "));
    let (out, err) = run(ours, directory, program, arguments)?;
    print_some(&out.lines().chain(err.lines()).collect::<Vec<_>>(), usize::MAX);
    Ok(())
}

/// Prints up to `most` lines, truncated to the terminal's width, and the number of omitted lines.
fn print_some(lines: &[&str], most: usize) {
    const WIDTH: usize = 100;
    for line in lines.iter().take(most) {
        println!("{}", line.chars().take(WIDTH).collect::<String>());
    }
    if lines.len() > most {
        println!("... and {} more lines", lines.len() - most);
    }
}

fn run(ours: &Executable, directory: &Path, program: &str, arguments: &[&str]) -> Result<(String, String)> {
    let mut command = ours.command(program);
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((text(&output.stdout), text(&output.stderr)))
}
