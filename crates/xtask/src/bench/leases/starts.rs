//! Leases that are all due in the same minute: how late each begins.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cloud::{Cloud, id, together};
use super::report::{Report, Row};
use crate::leasing::date::Minute;
use crate::leasing::http::{Caller, list};

/// A lease is to begin within that of its time.
const WANTED_MILLIS: f64 = 1000.0;
/// After that, leases that have not begun are given up.
const PATIENCE_SECONDS: i64 = 60;

/// As many leases of one host as there are hosts.
pub fn run(caller: &Caller, cloud: &Cloud, report: &mut Report) -> Result<()> {
    let last = newest(caller)?;
    // A full minute that leaves time to ask for all of them.
    let start = Minute::now().plus(2);
    let reservation = json!({"resource_type": "physical:host", "min": 1, "max": 1,
                             "hypervisor_properties": "", "resource_properties": ""});
    let lease = json!({"name": "starts", "start_date": start.sent(), "end_date": start.plus(30).sent(),
                       "reservations": [reservation]});
    let mut waiting = BTreeSet::new();
    for answer in together(caller, "/v1/leases", vec![lease; cloud.hosts()]) {
        waiting.insert(id(&answer?.expect(201)?)?);
    }
    ensure!(Timestamp::now() < start.instant(), "asking for the leases took longer than until their start");
    let late = arrivals(caller, start, &mut waiting, last)?;
    ensure!(waiting.is_empty(), "{} of {} leases did not begin", waiting.len(), cloud.hosts());
    let name = format!("lateness of {} starts at once", cloud.hosts());
    report.add(Row::of(&name, late)?.wanted_below(WANTED_MILLIS));
    Ok(())
}

/// Follows notifications, and notes when each lease is said to have begun: the client's time, which is later than
/// the service's.
fn arrivals(
    caller: &Caller,
    start: Minute,
    waiting: &mut BTreeSet<String>,
    mut last: u64,
) -> Result<Vec<Duration>> {
    let mut late = Vec::new();
    while !waiting.is_empty() && Timestamp::now().duration_since(start.instant()).as_secs() < PATIENCE_SECONDS
    {
        let (newest, begun) = notifications(caller, last, 5)?;
        last = newest;
        let now = Timestamp::now().duration_since(start.instant());
        for lease in begun {
            if waiting.remove(&lease) {
                late.push(Duration::try_from(now).unwrap_or_default());
            }
        }
    }
    Ok(late)
}

/// The number of the newest notification.
fn newest(caller: &Caller) -> Result<u64> {
    let mut last = 0;
    loop {
        let (newest, _) = notifications(caller, last, 0)?;
        if newest == last {
            return Ok(last);
        }
        last = newest;
    }
}

/// The number of the last notification of a batch after that one, and the leases that begin in it.
fn notifications(caller: &Caller, after: u64, wait_seconds: u32) -> Result<(u64, Vec<String>)> {
    let path = format!("/v1/notifications?after={after}&limit=1000&wait={wait_seconds}");
    let answer = caller.get(&path)?.expect(200)?;
    let last = answer["last"].as_u64().unwrap_or(after);
    let all = list(answer, "notifications")?;
    let begun = all.iter().filter(|one| one["event_type"] == "lease.event.start_lease");
    let lease = |one: &Value| one["payload"]["lease_id"].as_str().map(str::to_owned);
    Ok((last, begun.filter_map(lease).collect()))
}
