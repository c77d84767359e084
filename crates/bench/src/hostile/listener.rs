//! A webhook listener that rejects one message. Measures the delay of the messages queued behind it.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use e2e::leasing::acknowledged::of_hosts;
use e2e::leasing::date::Minute;
use e2e::leasing::server::Launch;
use serde_json::json;

use super::Options;
use super::fake::{self, Response};
use super::load::{Others, Waits};
use super::report::Row;

const NAME: &str = "a message that a listener refuses";
/// Maximum delay of later messages, during which the rejected one is attempted three times.
const WANTED: Duration = Duration::from_secs(30);
/// Timeout for later messages.
const PATIENCE: Duration = Duration::from_mins(1);

pub fn run(options: &Options) -> Result<Option<Row>> {
    if !options.wants(NAME) {
        return Ok(None);
    }
    let (told, messages) = channel();
    let told = Arc::new(Mutex::new(told));
    let address = fake::serve(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let refused = body.contains("refused by the listener");
        if let Ok(told) = told.lock() {
            // The receiver is gone after the measurement.
            let _ = told.send(body);
        }
        Some(Response::new(if refused { 413 } else { 200 }, &""))
    })?;
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(&options.ours, directory.path());
    let server = launch.with([format!("--notifications-url=http://{address}/")]).start()?;
    let caller = server.caller();
    caller.post("/v1/os-hosts", &json!({"name": "r1-h01"}))?.expect(201)?;
    let start = Minute::now().plus(24 * 60);
    for (name, hours) in [("refused by the listener", 0), ("of others", 2)] {
        let start = start.plus(60 * hours);
        let mut lease = of_hosts(&start.sent(), 1, &start.plus(60).sent());
        lease["name"] = json!(name);
        caller.post("/v1/leases", &lease)?.expect(201)?;
    }
    let mut waits = Waits::default();
    waits.times.push(until_told(&messages, "of others"));
    let others = Others { more: Some(("message", WANTED, waits)), ..Others::default() };
    let row = Row { fleet: "other services".to_owned(), name: NAME.to_owned(), others, ..Row::default() };
    server.kill()?;
    Ok(Some(row))
}

fn until_told(messages: &Receiver<String>, text: &str) -> Duration {
    let began = Instant::now();
    while let Ok(message) = messages.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
        if message.contains(text) {
            break;
        }
    }
    began.elapsed()
}
