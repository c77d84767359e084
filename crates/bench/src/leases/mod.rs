//! `cargo xtask bench leases`: latency, memory and throughput of the leasing service, measured through its
//! API.
//!
//! The service and its clients share the machine. Rows show the limits. With `--throughput`, it measures
//! changes per second by many clients and sums of usage instead, on both databases. `--only` selects a part.

pub mod cloud;
mod latency;
mod preemptible;
mod refusals;
pub mod report;
mod starts;
mod throughput;
mod usage;

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use chores::arguments::Arguments;
use chores::places::{self, cargo};
use chores::run::{Executable, output_of};
use e2e::leasing::server::{Launch, Server};

use self::cloud::Cloud;
use self::report::{Report, Row, Unit};

/// Sizes of the measured clouds.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    hosts: usize,
    leases: usize,
    many: usize,
    samples: usize,
}

/// Parts, for `--only`.
const PARTS: [&str; 5] = ["service", "preemptible", "start-up", "usage", "core"];

pub fn main(mut arguments: Arguments) -> Result<()> {
    let sizes = Sizes {
        hosts: arguments.value("--hosts", 1000)?,
        leases: arguments.value("--leases", 10_000)?,
        many: arguments.value("--many", 100_000)?,
        samples: arguments.value("--samples", 1000)?,
    };
    let json = arguments.switch("--json");
    let throughput = arguments.switch("--throughput");
    let only = arguments.text("--only")?;
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    if let Some(only) = only.as_deref().filter(|only| !PARTS.contains(only)) {
        bail!("no part is called '{only}': {}", PARTS.join(", "));
    }
    ensure!(!throughput || only.is_none(), "--only cannot be used with --throughput");
    let wanted = |part| only.as_deref().is_none_or(|only| only == part);
    let ours = ours.map_or_else(places::released, Ok)?;
    let mut report = Report::default();
    if throughput {
        let Sizes { hosts, many, samples, .. } = sizes;
        throughput::run(&ours, throughput::Sizes { hosts, leases: many, samples }, &mut report)?;
    } else {
        if wanted("service") {
            service(&ours, sizes, &mut report)?;
        }
        if wanted("preemptible") {
            preemptible::run(&ours, sizes.hosts, sizes.samples, &mut report)?;
        }
        if wanted("start-up") {
            start_up(&ours, sizes, &mut report)?;
        }
        if wanted("usage") {
            usage::run(&ours, None, &mut report)?;
        }
        if wanted("core") {
            core(&mut report)?;
        }
    }
    report.print(json);
    report.conclude()
}

/// Measurements on a running service.
fn service(ours: &Executable, sizes: Sizes, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(ours, directory.path()).with_machines(sizes.hosts);
    let server = launch.start()?;
    let mut cloud = Cloud::new(sizes.hosts);
    let empty = memory_mib(&server)?;
    eprintln!("taking on {} hosts", sizes.hosts);
    cloud.take_on_hosts(server.caller())?;
    let with_hosts = memory_mib(&server)?;
    eprintln!("asking for {} leases", sizes.leases);
    cloud.fill(server.caller(), sizes.leases)?;
    let with_leases = memory_mib(&server)?;
    report.add(Row::one("memory without hosts", Unit::Mebibytes, empty));
    let each =
        |before: f64, after: f64, number: usize| (after - before).max(0.0) * 1024.0 / number.max(1) as f64;
    report.add(Row::one("memory of a host", Unit::Kibibytes, each(empty, with_hosts, sizes.hosts)));
    report.add(Row::one("memory of a lease", Unit::Kibibytes, each(with_hosts, with_leases, sizes.leases)));
    eprintln!("measuring");
    latency::changes(server.caller(), &mut cloud, sizes.samples, report)?;
    latency::lists(server.caller(), report)?;
    refusals::run(server.caller(), &mut cloud, sizes.samples / 2, report)?;
    eprintln!("waiting for {} leases that begin at the same time", sizes.hosts);
    starts::run(&server, &mut cloud, "", report)?;
    server.stop()?;
    Ok(())
}

/// Measures the start of a service with very many leases, which are inserted while it is stopped.
fn start_up(ours: &Executable, sizes: Sizes, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(ours, directory.path()).with_machines(sizes.hosts);
    let cloud = Cloud::new(sizes.hosts);
    let server = launch.start()?;
    cloud.take_on_hosts(server.caller())?;
    server.stop()?;
    eprintln!("entering {} leases", sizes.many);
    cloud.enter(&directory.path().join("allot.db"), sizes.many)?;
    let started = Instant::now();
    let server = launch.start()?;
    let took = started.elapsed();
    let name = format!("start-up with {} leases", server.caller().leases()?.len());
    report.add(Row::one(&name, Unit::Seconds, took.as_secs_f64()).wanted_below(5.0));
    let memory = memory_mib(&server)?;
    report.add(Row::one(&format!("memory with {} leases", sizes.many), Unit::Mebibytes, memory));
    server.stop()?;
    Ok(())
}

/// Measurements of the core, from its example `speed`.
fn core(report: &mut Report) -> Result<()> {
    eprintln!("measuring the core");
    let mut example = cargo();
    example.args(["run", "--quiet", "--release", "--package", "leases", "--example", "speed"]);
    let said = output_of(&mut example)?;
    let slots = said.lines().filter(|line| line.starts_with("earliest slot of 20 hosts"));
    let times: Vec<[f64; 2]> = slots.map(report::milliseconds).collect::<Result<_>>()?;
    // There is a line per length of the slot; the slowest counts.
    let slowest = times.into_iter().max_by(|a, b| a[1].total_cmp(&b[1]));
    let [median, ninety_ninth] =
        slowest.context("the example does not say how long the earliest slot takes")?;
    let row = Row::one("earliest slot of 20 hosts in a year, in the core", Unit::Milliseconds, median);
    report.add(row.with_ninety_ninth(ninety_ninth).wanted_below(5.0));
    let hunt = said.lines().find(|line| line.starts_with("hunt for 20 of 1,000"));
    let hunt = hunt.context("the example does not say how long a hunt takes to plan")?;
    let [median, ninety_ninth] = report::milliseconds(hunt)?;
    let row = Row::one("plan of a hunt for 20 of 1,000 hosts with 8,000 guests", Unit::Milliseconds, median);
    report.add(row.with_ninety_ninth(ninety_ninth).wanted_below(1000.0));
    let filter = said.lines().find(|line| line.starts_with("which of 1,000 hosts may have an instance"));
    let filter = filter.context("the example does not say how long it takes to ask for hosts")?;
    let [median, ninety_ninth] = report::milliseconds(filter)?;
    let row = Row::one("which of 1,000 hosts may have an instance, in the core", Unit::Milliseconds, median);
    report.add(row.with_ninety_ninth(ninety_ninth).wanted_below(0.5));
    Ok(())
}

/// Resident memory of the process, in MiB.
fn memory_mib(server: &Server) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.process())).context("no /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse().context("VmRSS isn't a number")?;
    Ok(kib / 1024.0)
}
