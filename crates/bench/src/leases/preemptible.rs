//! Cost of preemptible instances: for requests that ask where one can run, and for leases that start on their
//! hosts.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chores::run::Executable;
use e2e::leasing::http::{Caller, list};
use e2e::leasing::server::Launch;
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::{Cloud, together};
use super::report::{Report, Row};
use super::starts;

/// Maximum latency of asking which of a thousand hosts an instance can run on, in milliseconds at the 99th
/// percentile. The decision without the request is measured in the core.
const WANTED_MILLIS: f64 = 1.0;
/// Maximum wait until an instance per host is running.
const PATIENCE: Duration = Duration::from_mins(2);
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Measures the requests, then lease starts on all hosts after an instance was preempted on each.
pub fn run(ours: &Executable, hosts: usize, samples: usize, report: &mut Report) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(ours, directory.path())
        .with_machines(hosts)
        .with(["--preemptible-enabled", "true", "--preemptible-least-lifetime", "1s"])
        .with(["--leases-grace", "5s", "--preemptible-margin", "5s"]);
    let server = launch.start()?;
    let mut cloud = Cloud::new(hosts);
    eprintln!("taking on {hosts} hosts");
    cloud.take_on_hosts(server.caller())?;
    eprintln!("asking on which hosts preemptible instances can run");
    let hints = json!({"preemptible": true});
    let without = json!({"scheduler_hints": hints});
    let with = json!({"scheduler_hints": hints, "vcpus": 2, "memory_mb": 4096, "disk_gb": 20});
    for (what, question) in [("", &without), (" with room", &with)] {
        let times = asked(server.caller(), question, hosts, samples)?;
        let row = Row::of(&format!("which of {hosts} hosts{what} may have an instance"), times)?;
        report.add(row.wanted_below(WANTED_MILLIS * hosts as f64 / 1000.0));
    }
    eprintln!("starting {hosts} preemptible instances");
    start(server.caller(), &with, hosts)?;
    eprintln!("waiting for {hosts} leases that begin where they were");
    starts::run(&server, &mut cloud, ", after as many preemptible instances", report)?;
    server.stop()?;
    Ok(())
}

/// Latencies of asking for all hosts.
fn asked(caller: &Caller, question: &Value, hosts: usize, samples: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..samples {
        let started = Instant::now();
        let (status, body) =
            caller.wait(caller.http().fetch(Method::POST, "/v1/instances/filter", Some(question)))?;
        times.push(started.elapsed());
        ensure!(status == 200, "the question was answered with {status}");
        let answers = list(serde_json::from_slice(&body)?, "hosts")?;
        ensure!(answers.len() == hosts, "{} of {hosts} hosts are in the answer", answers.len());
    }
    Ok(times)
}

/// Starts an instance per host.
fn start(caller: &Caller, size: &Value, hosts: usize) -> Result<()> {
    let mut instance = size.clone();
    instance["name"] = json!("batch");
    for answer in together(caller, "/v1/instances", vec![instance; hosts]) {
        answer?.expect(201)?;
    }
    let begun = Instant::now();
    loop {
        let all = list(caller.get("/v1/instances")?.expect(200)?, "instances")?;
        if all.iter().all(|instance| instance["status"] == "ACTIVE") {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "not all instances run after {PATIENCE:?}");
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
