//! Latency of refusals. Before the service refuses a request, it checks whether moving waiting leases would
//! make room, and looks for alternatives to offer.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use e2e::leasing::http::Caller;
use reqwest::Method;
use serde_json::Value;

use super::cloud::{Cloud, id};
use super::report::{Report, Row};

/// Maximum latency of a refusal, in milliseconds at the 99th percentile.
const WANTED: f64 = 50.0;
/// Accepted requests per refused one above which the cloud counts as too empty.
const MOST_ACCEPTED: usize = 20;

/// Measures refusals by a single client: with offers that are only shown, and with offers that are held.
pub fn run(caller: &Caller, cloud: &mut Cloud, samples: usize, report: &mut Report) -> Result<()> {
    for (name, path) in [
        ("refuse a lease, with offers", "/v1/leases"),
        ("refuse a lease, and hold offers", "/v1/leases?hold_offers=true"),
    ] {
        let (times, offers) = refused(caller, cloud, samples, path)?;
        let name = format!("{name} ({:.1} each)", offers as f64 / times.len().max(1) as f64);
        report.add(Row::of(&name, times)?.wanted_below(WANTED));
    }
    Ok(())
}

/// Latencies of refusals, and their total number of offers.
fn refused(caller: &Caller, cloud: &mut Cloud, samples: usize, path: &str) -> Result<(Vec<Duration>, usize)> {
    let (mut times, mut offers, mut accepted) = (Vec::new(), 0, 0);
    while times.len() < samples {
        let request = cloud.wide_lease();
        let started = Instant::now();
        let answer = caller.wait(caller.http().send(Method::POST, path, Some(&request)))?;
        let took = started.elapsed();
        if answer.is_shortage() {
            times.push(took);
            offers += answer.body["offers"].as_array().map_or(0, Vec::len);
            continue;
        }
        accepted += 1;
        if accepted > MOST_ACCEPTED * (times.len() + 10) {
            bail!("{accepted} requests for many hosts were accepted and {} refused", times.len());
        }
        let made: Value = answer.expect(201)?;
        let path = format!("/v1/leases/{}", id(&made)?);
        caller.wait(caller.http().send(Method::DELETE, &path, None))?.expect(204)?;
    }
    Ok((times, offers))
}
