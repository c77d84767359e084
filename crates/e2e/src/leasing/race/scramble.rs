//! Concurrent changes to leases, and the invariants that must hold after them.

use anyhow::{Context, Result, ensure};
use chores::random::Random;
use reqwest::Method;
use serde_json::{Value, json};

use super::ground::{DAY, DAYS_AHEAD, Ground, RUNNERS, create};
use crate::leasing::acknowledged::whole_hosts;
use crate::leasing::date::Minute;
use crate::leasing::fleet::MACHINES;
use crate::leasing::http::text;
use crate::leasing::overlap::no_overlap;

/// Creates, moves and deletes leases concurrently, and checks that the result is consistent.
pub fn scramble(ground: &Ground, random: &mut Random) -> Result<()> {
    let caller = &ground.caller;
    let base = Minute::now().plus(DAYS_AHEAD * DAY);
    let window = |random: &mut Random| {
        let start = base.plus(random.between(0, 20) * 60);
        (start, start.plus(random.between(1, 12) * 60))
    };
    for turn in 0..4 {
        let leases = caller.leases()?;
        let mut requests = Vec::new();
        for i in 0..RUNNERS {
            let (start, end) = window(random);
            let min = 1 + random.below(MACHINES.len());
            let path = |lease: &Value| Ok::<_, anyhow::Error>(format!("/v1/leases/{}", text(lease, "id")?));
            requests.push(match random.below(if leases.is_empty() { 1 } else { 4 }) {
                0 => create(&format!("{turn}.{i}"), start, end, &whole_hosts(min, MACHINES.len())),
                3 => (Method::DELETE, path(random.one_of(&leases))?, None),
                _ => {
                    let body = json!({"start_date": start.sent(), "end_date": end.sent()});
                    (Method::PUT, path(random.one_of(&leases))?, Some(body))
                }
            });
        }
        for answer in ground.together(&requests)? {
            ensure!(answer.status < 500, "answered {}: {}", answer.status, answer.body);
        }
        no_overlap(caller)?;
        caller.leases()?.iter().try_for_each(events_in_order)?;
    }
    ground.clear()
}

/// Checks the order of a lease's events: start, before-end action, end.
fn events_in_order(lease: &Value) -> Result<()> {
    let time = |kind: &str| {
        let mut events = lease["events"].as_array().into_iter().flatten();
        let event = events
            .find(|event| event["event_type"] == kind)
            .with_context(|| format!("no {kind}: {lease}"))?;
        Minute::read(text(event, "time")?)
    };
    let (start, before_end, end) = (time("start_lease")?, time("before_end_lease")?, time("end_lease")?);
    ensure!(start <= before_end && before_end <= end, "events are out of order: {lease}");
    ensure!(
        start == Minute::read(text(lease, "start_date")?)?,
        "the start event is at another time: {lease}"
    );
    ensure!(end == Minute::read(text(lease, "end_date")?)?, "the end event is at another time: {lease}");
    Ok(())
}
