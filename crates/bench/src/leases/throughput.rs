//! Lease changes per second, on SQLite and on PostgreSQL shared by one to three services. For comparison, it
//! measures the maximum rates of the disk and of the database, because a change is acknowledged only when it
//! is durable.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use chores::run::{Executable, output_of};
use e2e::leasing::hooks::Hooks;
use e2e::leasing::http::Http;
use e2e::leasing::server::{Launch, Server};
use scratch_postgres::ScratchPostgres;

use super::cloud::Cloud;
use super::latency::{Times, change};
use super::report::{Report, Row, Unit};
use super::usage;

/// Number of concurrent clients.
const CLIENTS: usize = 16;
/// Duration of the measurements of the disk and of the database alone.
const ALONE: Duration = Duration::from_secs(5);
/// Request timeout.
const PATIENCE: Duration = Duration::from_mins(1);
/// Names of the services that share PostgreSQL.
const NAMES: [&str; 3] = ["one", "two", "three"];

/// Minimum work of any lease change in PostgreSQL. One row counts revisions, so that they become visible in
/// order, and changes take turns to update it.
const COUNTER: &str = "UPDATE counter SET number = number + 1";

/// Size of the cloud, and number of samples.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub hosts: usize,
    pub leases: usize,
    pub samples: usize,
}

/// Runs all measurements. The leases are created once, and copied to PostgreSQL.
pub fn run(ours: &Executable, sizes: Sizes, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let hooks = Hooks::new(directory.path(), sizes.hosts)?;
    let launch = Launch::new(ours, directory.path()).with_hooks(&hooks);
    report.add(Row::one(
        "durable writes, the disk alone",
        Unit::PerSecond,
        durable_writes(directory.path())?,
    ));
    let mut cloud = Cloud::new(sizes.hosts);
    let server = launch.start()?;
    eprintln!("taking on {} hosts", sizes.hosts);
    cloud.take_on_hosts(server.caller())?;
    server.stop()?;
    eprintln!("entering {} leases", sizes.leases);
    cloud.enter(&directory.path().join("allot.db"), sizes.leases)?;
    let server = launch.start()?;
    measure("SQLite", &[server], &mut cloud, sizes, report)?;

    let postgres = durable_postgres()?;
    postgres.run("CREATE DATABASE allot").map_err(|error| anyhow!(error))?;
    let commits = commits(&postgres, directory.path())?;
    report.add(Row::one("commits at one row, PostgreSQL alone", Unit::PerSecond, commits));
    let (file, url) = (directory.path().join("allot.db"), postgres.url("allot"));
    let mut copy = Command::new(ours.path());
    copy.args(["database", "copy", &format!("sqlite://{}", file.display()), &url]);
    output_of(&mut copy)?;
    let launch = launch.with_database(&url);
    for number in 1..=NAMES.len() {
        let start = |name: &&str| launch.clone().with_name(name).start();
        let servers = NAMES[..number].iter().map(start).collect::<Result<Vec<_>>>()?;
        let name = if number == 1 { "" } else { "s" };
        measure(&format!("PostgreSQL, {number} service{name}"), &servers, &mut cloud, sizes, report)?;
    }
    usage::run(ours, Some(&postgres), report)
}

/// Measures changes by clients that are distributed over the services. No lease starts during this time.
fn measure(
    name: &str,
    servers: &[Server],
    cloud: &mut Cloud,
    sizes: Sizes,
    report: &mut Report,
) -> Result<()> {
    eprintln!("measuring {name}");
    let https = servers.iter().map(|server| Http::new(server.url(), PATIENCE)).collect::<Result<Vec<_>>>()?;
    let each = (sizes.samples / CLIENTS).max(1);
    let clients = (0..CLIENTS).map(|client| {
        let requests = (0..each).map(|_| cloud.small_lease()).collect();
        (https[client % https.len()].clone(), requests)
    });
    let clients: Vec<_> = clients.collect();
    let started = Instant::now();
    let times = change(servers.first().context("no service")?.caller(), &clients)?;
    let rate = times.changes() as f64 / started.elapsed().as_secs_f64();
    report.add(Row::one(&format!("changes, {name}"), Unit::PerSecond, rate));
    let Times { create, extend, delete } = times;
    report.add(Row::of("  create", create)?);
    report.add(Row::of("  extend", extend)?);
    report.add(Row::of("  delete", delete)?);
    Ok(())
}

/// Number of blocks per second that one process can append durably, one after another. More changes per
/// second are only possible if several share a write.
fn durable_writes(directory: &Path) -> Result<f64> {
    let path = directory.join("durable");
    let mut file = File::create(&path)?;
    let (started, mut written) = (Instant::now(), 0_u32);
    while started.elapsed() < ALONE {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
        written += 1;
    }
    let rate = f64::from(written) / started.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(rate)
}

/// A PostgreSQL server with durable commits, unlike the usual scratch server.
fn durable_postgres() -> Result<ScratchPostgres> {
    let postgres = ScratchPostgres::start().map_err(|error| anyhow!(error))?;
    for setting in ["fsync = on", "full_page_writes = on", "autovacuum = on"] {
        postgres.run(&format!("ALTER SYSTEM SET {setting}")).map_err(|error| anyhow!(error))?;
    }
    postgres.run("SELECT pg_reload_conf()").map_err(|error| anyhow!(error))?;
    Ok(postgres)
}

/// Updates of a single row per second by the same number of clients, measured with pgbench.
fn commits(postgres: &ScratchPostgres, directory: &Path) -> Result<f64> {
    for statement in ["CREATE TABLE counter (number bigint)", "INSERT INTO counter VALUES (0)"] {
        postgres.run(statement).map_err(|error| anyhow!(error))?;
    }
    let script = directory.join("count.sql");
    fs::write(&script, format!("{COUNTER};\n"))?;
    let socket = postgres.socket();
    let sockets = socket.parent().context("a socket is in a directory")?;
    let mut pgbench = Command::new(postgres.program("pgbench"));
    pgbench.args(["--no-vacuum", "--client", &CLIENTS.to_string(), "--time", &ALONE.as_secs().to_string()]);
    pgbench.arg("--file").arg(&script).arg("--host").arg(sockets).args(["--username", "postgres"]);
    let said = output_of(pgbench.arg("postgres"))?;
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    tps.with_context(|| format!("pgbench does not say how fast it was:\n{said}"))
}
