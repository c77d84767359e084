//! Leases that are due in the same minute: the delay of each start, and the latency of concurrent lease
//! creations.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use e2e::leasing::acknowledged::whole_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::http::{Caller, Http, LIMIT, list};
use e2e::leasing::server::Server;
use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::sleep;

use super::cloud::{Cloud, id, together};
use super::report::{Report, Row};

/// Maximum delay of a lease's start.
const WANTED_MILLIS: f64 = 1000.0;
/// Pause between lease creations during the starts.
const EVERY: Duration = Duration::from_millis(5);
/// Duration of these creations: leases start, and cycles continue.
const MEANWHILE: Duration = Duration::from_secs(5);
/// Time after which leases that haven't started are given up.
const PATIENCE_SECONDS: i64 = 60;

/// Starts a lease on each host. `before` names the preceding load in the report.
pub fn run(server: &Server, cloud: &mut Cloud, before: &str, report: &mut Report) -> Result<()> {
    let caller = server.caller();
    let last = newest(caller)?;
    // A full minute that leaves time to request all leases.
    let start = Minute::now().plus(2);
    let lease = json!({"name": "starts", "start_date": start.sent(), "end_date": start.plus(30).sent(),
                       "reservations": [whole_hosts(1, 1)]});
    let mut waiting = BTreeSet::new();
    for answer in together(caller, "/v1/leases", vec![lease; cloud.hosts()]) {
        waiting.insert(id(&answer?.expect(201)?)?);
    }
    ensure!(Timestamp::now() < start.instant(), "asking for the leases took longer than until their start");
    let meanwhile: Vec<Value> = (0..1000).map(|_| cloud.small_lease()).collect();
    let (late, created) = thread::scope(|scope| -> Result<_> {
        let others = scope.spawn(|| created(server.url(), start, &meanwhile));
        let late = arrivals(caller, start, &mut waiting, last)?;
        Ok((late, others.join().map_err(|_| anyhow!("the thread that creates leases panicked"))??))
    })?;
    ensure!(waiting.is_empty(), "{} of {} leases did not begin", waiting.len(), cloud.hosts());
    let name = format!("lateness of {} starts at once{before}", cloud.hosts());
    report.add(Row::of(&name, late)?.wanted_below(WANTED_MILLIS));
    report.add(Row::of(&format!("create a lease while {} start{before}", cloud.hosts()), created)?);
    Ok(())
}

/// Latencies of lease creations, one after another, from that minute on. Refusals count too.
fn created(url: &str, start: Minute, requests: &[Value]) -> Result<Vec<Duration>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let http = Http::new(url, LIMIT)?;
        let until_then = start.instant().duration_since(Timestamp::now());
        sleep(Duration::try_from(until_then).unwrap_or_default()).await;
        let (began, mut times) = (Instant::now(), Vec::new());
        for request in requests {
            if began.elapsed() > MEANWHILE {
                break;
            }
            let asked = Instant::now();
            http.send(Method::POST, "/v1/leases", Some(request)).await?;
            times.push(asked.elapsed());
            sleep(EVERY).await;
        }
        Ok(times)
    })
}

/// Follows notifications and records when each lease is reported as started. This is the client's time, which
/// is later than the service's.
fn arrivals(
    caller: &Caller,
    start: Minute,
    waiting: &mut BTreeSet<String>,
    mut last: u64,
) -> Result<Vec<Duration>> {
    let mut late = Vec::new();
    while !waiting.is_empty() && Timestamp::now().duration_since(start.instant()).as_secs() < PATIENCE_SECONDS
    {
        let Told { at, newest, begun } = notifications(caller, last, 5)?;
        last = newest;
        let lateness = Duration::try_from(at.duration_since(start.instant())).unwrap_or_default();
        late.extend(begun.iter().filter(|lease| waiting.remove(*lease)).map(|_| lateness));
    }
    Ok(late)
}

/// Number of the newest notification.
fn newest(caller: &Caller) -> Result<u64> {
    let mut last = 0;
    loop {
        let Told { newest, .. } = notifications(caller, last, 0)?;
        if newest == last {
            return Ok(last);
        }
        last = newest;
    }
}

/// A batch of notifications.
struct Told {
    /// Time of arrival, taken before parsing, because parsing all the notifications takes long.
    at: Timestamp,
    /// Number of the last one.
    newest: u64,
    /// Leases that start according to this batch.
    begun: Vec<String>,
}

/// Notifications after the one with that number.
fn notifications(caller: &Caller, after: u64, wait_seconds: u32) -> Result<Told> {
    let path = format!("/v1/notifications?after={after}&limit=1000&wait={wait_seconds}");
    let (status, body) = caller.wait(caller.http().fetch(Method::GET, &path, None))?;
    let at = Timestamp::now();
    ensure!(status == 200, "notifications were answered with {status}");
    let answer: Value = serde_json::from_slice(&body)?;
    let newest = answer["last"].as_u64().unwrap_or(after);
    let all = list(answer, "notifications")?;
    let begun = all.iter().filter(|one| one["event_type"] == "lease.event.start_lease");
    let lease = |one: &Value| one["payload"]["lease_id"].as_str().map(str::to_owned);
    Ok(Told { at, newest, begun: begun.filter_map(lease).collect() })
}
