//! Latency of requests, as a client sees it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Caller, Http, text};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::cloud::{Cloud, id};
use super::report::{Report, Row, Unit};

/// Maximum latency of changes, in milliseconds at the 99th percentile.
const WANTED_CHANGE: f64 = 50.0;
/// Maximum latency of the allocations of all hosts, in milliseconds.
const WANTED_LIST: f64 = 200.0;
/// Number of requests for each list.
const LISTS: usize = 30;
/// Number of concurrent clients.
const CLIENTS: usize = 4;

/// Creates, extends and deletes leases: first with a single client, then with several concurrent ones.
pub fn changes(caller: &Caller, cloud: &mut Cloud, samples: usize, report: &mut Report) -> Result<()> {
    for clients in [1, CLIENTS] {
        let requests = |_| (0..samples / clients).map(|_| cloud.lease()).collect();
        let requests: Vec<_> = (0..clients).map(requests).map(|all| (caller.http().clone(), all)).collect();
        let started = Instant::now();
        let times = change(caller, &requests)?;
        let elapsed = started.elapsed();
        let by = if clients == 1 { String::new() } else { format!(" ({clients} clients at once)") };
        let changes = times.changes();
        report.add(Row::of(&format!("create a lease{by}"), times.create)?.wanted_below(WANTED_CHANGE));
        report.add(Row::of(&format!("extend a lease{by}"), times.extend)?.wanted_below(WANTED_CHANGE));
        report.add(Row::of(&format!("delete a lease{by}"), times.delete)?.wanted_below(WANTED_CHANGE));
        let rate = changes as f64 / elapsed.as_secs_f64();
        report.add(Row::one(&format!("changes{by}"), Unit::PerSecond, rate));
    }
    Ok(())
}

/// Runs clients concurrently, each with its own leases and its own service.
pub fn change(caller: &Caller, clients: &[(Http, Vec<Value>)]) -> Result<Times> {
    let done = caller.wait(join_all(clients.iter().map(|(http, requests)| client(http, requests))));
    let mut times = Times::default();
    for client in done {
        times.append(client?);
    }
    Ok(times)
}

/// Latencies of changes.
#[derive(Debug, Default)]
pub struct Times {
    pub create: Vec<Duration>,
    pub extend: Vec<Duration>,
    pub delete: Vec<Duration>,
}

impl Times {
    fn append(&mut self, other: Self) {
        self.create.extend(other.create);
        self.extend.extend(other.extend);
        self.delete.extend(other.delete);
    }

    /// Total number of changes.
    pub fn changes(&self) -> usize {
        self.create.len() + self.extend.len() + self.delete.len()
    }
}

/// Creates, extends and deletes one lease after another. Refusals count too, because deciding on them takes
/// as long.
async fn client(http: &Http, requests: &[Value]) -> Result<Times> {
    let mut times = Times::default();
    for request in requests {
        let started = Instant::now();
        let created = http.send(Method::POST, "/v1/leases", Some(request)).await?;
        times.create.push(started.elapsed());
        if created.is_shortage() {
            continue;
        }
        let created = created.expect(201)?;
        let path = format!("/v1/leases/{}", id(&created)?);
        let end = Minute::read(text(&created["lease"], "end_date")?)?.plus(60);
        let started = Instant::now();
        http.send(Method::PUT, &path, Some(&json!({"end_date": end.sent()}))).await?;
        times.extend.push(started.elapsed());
        let started = Instant::now();
        http.send(Method::DELETE, &path, None).await?.expect(204)?;
        times.delete.push(started.elapsed());
    }
    Ok(times)
}

/// Reads complete lists.
pub fn lists(caller: &Caller, report: &mut Report) -> Result<()> {
    let timed = |path: &str| -> Result<Vec<Duration>> {
        let mut times = Vec::new();
        for _ in 0..LISTS {
            let started = Instant::now();
            // Not parsed: parsing a long list takes this client longer than it took the service to write it.
            let (status, _) = caller.wait(caller.http().fetch(Method::GET, path, None))?;
            times.push(started.elapsed());
            ensure!(status == 200, "{path} was answered with {status}");
        }
        Ok(times)
    };
    report.add(
        Row::of("allocations of all hosts", timed("/v1/os-hosts/allocations")?)?.wanted_below(WANTED_LIST),
    );
    report.add(Row::of("all hosts", timed("/v1/os-hosts")?)?);
    report.add(Row::of("all leases", timed("/v1/leases")?)?);
    Ok(())
}
