//! Latency of summing the usage of a month.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use chores::places::cargo;
use chores::run::{Executable, output_of};
use e2e::leasing::date::Minute;
use e2e::leasing::server::Launch;
use reqwest::Method;
use scratch_postgres::ScratchPostgres;

use super::report::{Report, Row};

/// Number of projects, each with 30 leases a month.
const PROJECTS: usize = 1000;
/// Maximum latency, in milliseconds.
const WANTED: f64 = 1000.0;
/// Number of requests.
const SAMPLES: usize = 10;
/// Number of months to insert. A month is as long as in the example that inserts them.
const MONTHS: i64 = 12;
const MONTH_MINUTES: i64 = 720 * 60;

/// Inserts a year of past usage, and requests its last month. Also on PostgreSQL, if a server is given.
pub fn run(ours: &Executable, postgres: Option<&ScratchPostgres>, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(ours, directory.path()).with_machines(1);
    launch.start()?.stop()?;
    let file = directory.path().join("allot.db");
    let end = Minute::now();
    let start = end.plus(-MONTHS * MONTH_MINUTES);
    eprintln!("entering the usage of {PROJECTS} projects in a year");
    enter(&file, start)?;
    measure("SQLite", &launch, end, report)?;
    if let Some(postgres) = postgres {
        postgres.run("CREATE DATABASE used").map_err(|error| anyhow!(error))?;
        let url = postgres.url("used");
        let mut copy = Command::new(ours.path());
        copy.args(["database", "copy", &format!("sqlite://{}", file.display()), &url]);
        output_of(&mut copy)?;
        measure("PostgreSQL", &launch.with_database(&url), end, report)?;
    }
    Ok(())
}

fn enter(file: &Path, start: Minute) -> Result<()> {
    let mut example = cargo();
    example.args(["run", "--quiet", "--package", "store-sqlite", "--example", "usage", "--"]).arg(file);
    example.args([PROJECTS.to_string(), start.instant().as_second().to_string()]);
    output_of(&mut example).map(drop)
}

fn measure(database: &str, launch: &Launch, end: Minute, report: &mut Report) -> Result<()> {
    let server = launch.start()?;
    let caller = server.caller();
    let start = end.plus(-MONTH_MINUTES);
    let (start, end) = (start.instant(), end.instant());
    let path = format!("/v1/usage?start={start}&end={end}&group_by=project");
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..SAMPLES {
        let started = Instant::now();
        let answer = caller.wait(caller.http().send(Method::GET, &path, None))?;
        times.push(started.elapsed());
        let rows = answer.expect(200)?["usage"].as_array().map_or(0, Vec::len);
        ensure!(rows == PROJECTS, "{rows} of {PROJECTS} projects have usage");
    }
    let name = format!("usage of a month by {PROJECTS} projects, {database}");
    report.add(Row::of(&name, times)?.wanted_below(WANTED));
    server.stop()?;
    Ok(())
}
