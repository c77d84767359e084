//! `cargo xtask bench calendar`: response times of calendar and availability requests in a large fleet.
//!
//! The service and its client share the machine. Responses are compressed as for a browser, and aren't
//! decompressed here. With `--console`, a browser then draws the same calendar and reports its times.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use chores::arguments::Arguments;
use chores::console;
use chores::places;
use chores::processor;
use chores::run::{Executable, must_run};
use e2e::leasing::date::Minute;
use e2e::leasing::http::Caller;
use e2e::leasing::server::Launch;
use reqwest::Method;
use serde_json::Value;

use super::leases::cloud::Cloud;
use super::leases::report::{Report, Row, Unit};

/// Maximum response time, in milliseconds at the 99th percentile.
const WANTED: f64 = 20.0;
/// Maximum number of pages of the whole calendar.
const MOST_PAGES: usize = 1000;

pub fn main(mut arguments: Arguments) -> Result<()> {
    let hosts = arguments.value("--hosts", 2000)?;
    let leases = arguments.value("--leases", 20_000)?;
    let samples: usize = arguments.value("--samples", 200)?;
    let json = arguments.switch("--json");
    let drawn = arguments.switch("--console");
    let ours = arguments.text("--ours")?.map(Executable::new);
    arguments.finish()?;
    ensure!(leases > 0, "--leases must be at least 1");
    let ours = ours.map_or_else(places::released, Ok)?;
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(&ours, directory.path()).with_machines(hosts);
    let server = launch.start()?;
    let caller = server.caller();
    let mut cloud = Cloud::new(hosts);
    eprintln!("taking on {hosts} hosts");
    cloud.take_on_hosts(caller)?;
    eprintln!("asking for {leases} leases");
    cloud.begin(caller, leases / 20)?;
    cloud.fill(caller, leases - leases / 20)?;
    eprintln!("measuring");
    let mut report = Report::default();
    let (now, busy) = (Minute::now().instant(), cloud.origin().plus(60 * 24 * 30).instant());
    let year = cloud.origin().plus(60 * 24 * 365).instant();
    let weeks = cloud.origin().plus(60 * 24 * 44).instant();
    for (name, path) in [
        ("calendar: as it opens, 200 hosts", "/v1/calendar".to_owned()),
        ("calendar: two weeks, 1,000 hosts by pool", calendar(busy, weeks, "&group_by=pool&limit=1000")),
        ("calendar: a year, 1,000 hosts", calendar(now, year, "&limit=1000")),
        ("calendar: a year in spans of a day, 1,000 hosts", calendar(now, year, "&limit=1000&bucket=1440")),
        ("free hosts in 30 days", "/v1/availability".to_owned()),
        ("free hosts in a year", free(now, year, "")),
        ("free hosts of one kind in a year", free(now, year, &of_a_kind())),
        ("room for instances in a year", free(now, year, "&vcpus=4&memory_mb=8192&disk_gb=20")),
        ("when 40 hosts are free for a week", free(now, year, "&amount=40&duration=P7D")),
    ] {
        let before = processor::of_process(server.process())?;
        report.add(measured(caller, name, &path, samples)?.wanted_below(WANTED));
        let each = (processor::of_process(server.process())? - before) * 1e3 / samples.max(1) as f64;
        report.add(Row::one("  processor time of each answer", Unit::Milliseconds, each));
    }
    let started = Instant::now();
    let (pages, bytes) = whole(caller, &calendar(now, year, "&limit=1000"))?;
    report.add(Row::one(
        "calendar: a year, all pages",
        Unit::Milliseconds,
        started.elapsed().as_secs_f64() * 1e3,
    ));
    eprintln!("the year has {pages} pages, {} KiB uncompressed", bytes / 1024);
    report.print(json);
    if drawn {
        draw(&ours, server.url())?;
    }
    server.stop()?;
    report.conclude()
}

/// Draws a service's calendar in a browser, and prints the times.
fn draw(ours: &Executable, url: &str) -> Result<()> {
    console::prepare()?;
    console::install()?;
    let test = ["node_modules/vitest/vitest.mjs", "run", "tests/scale.test.ts"];
    must_run(console::with_service(ours, &test).env("ALLOT_SCALE_URL", url))
}

fn calendar(start: jiff::Timestamp, end: jiff::Timestamp, more: &str) -> String {
    format!("/v1/calendar?start={start}&end={end}{more}")
}

fn free(start: jiff::Timestamp, end: jiff::Timestamp, more: &str) -> String {
    format!("/v1/availability?start={start}&end={end}{more}")
}

/// Filter that a quarter of the hosts match.
fn of_a_kind() -> String {
    "&resource_properties=[%22==%22,%22$capability2%22,%221%22]".to_owned()
}

fn measured(caller: &Caller, name: &str, path: &str, samples: usize) -> Result<Row> {
    let mut times: Vec<Duration> = Vec::new();
    let mut length = 0;
    for _ in 0..samples {
        let started = Instant::now();
        let (status, body) = caller.wait(caller.http().fetch_compressed(path))?;
        times.push(started.elapsed());
        length = body.len();
        if status != 200 {
            bail!("{path} was answered with {status}: {}", String::from_utf8_lossy(&body));
        }
    }
    eprintln!("{name}: {} KiB as sent", length / 1024);
    Row::of(name, times)
}

/// Reads the calendar page by page. Returns the number of pages and their total size in bytes.
fn whole(caller: &Caller, path: &str) -> Result<(usize, usize)> {
    let (mut bytes, mut marker) = (0, String::new());
    for page in 1..=MOST_PAGES {
        let (status, body) =
            caller.wait(caller.http().fetch(Method::GET, &format!("{path}{marker}"), None))?;
        ensure!(status == 200, "{path}{marker} was answered with {status}");
        bytes += body.len();
        let answer: Value = serde_json::from_slice(&body)?;
        match answer["calendar"]["next"].as_str() {
            Some(next) => marker = format!("&marker={next}"),
            None => return Ok((page, bytes)),
        }
    }
    bail!("the calendar has more than {MOST_PAGES} pages")
}
