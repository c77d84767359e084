//! The scenario that Blazar's specification of preemptible instances asks for (PRE-14): instances are
//! started, a lease of their hosts starts, they have been preempted with notice by then, and instances of the
//! lease run on its hosts.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use chores::cases::Cases;
use chores::run::Executable;
use serde_json::{Value, json};

use crate::leasing::acknowledged::of_hosts;
use crate::leasing::date::Minute;
use crate::leasing::http::{Caller, list, text};
use crate::leasing::server::Launch;

/// Longer than two minutes: a lease can start with the second full minute from now.
const PATIENCE: Duration = Duration::from_secs(150);
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Number of hosts, and number of preemptible instances.
const HOSTS: usize = 2;
const INSTANCES: usize = 4;

pub fn run(cases: &mut Cases, ours: &Executable) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let launch = Launch::new(ours, directory.path())
        .with_machines(HOSTS)
        .with(["--preemptible-enabled", "true", "--preemptible-least-lifetime", "1s"])
        .with(["--leases-grace", "5s", "--preemptible-margin", "5s"]);
    let server = launch.start()?;
    let caller = server.caller();
    for host in 1..=HOSTS {
        caller.post("/v1/os-hosts", &json!({"id": host.to_string()}))?.expect(201)?;
    }
    let mut lease = None;
    cases.check("pre_14_preemptible_instances_run_where_nobody_has_the_host", || {
        for _ in 0..INSTANCES {
            let preemptible = json!({"scheduler_hints": {"preemptible": true}});
            caller.post("/v1/instances", &instance(&preemptible))?.expect(201)?;
        }
        until("all run", || {
            let all = instances(caller)?;
            Ok(all.len() == INSTANCES && all.iter().all(|instance| instance["status"] == "ACTIVE"))
        })
    });
    cases.check("pre_14_they_are_gone_with_notice_when_a_lease_of_their_hosts_starts", || {
        // At least 20 seconds ahead, so that the instances have time to leave.
        let start = Minute::begins_in(20);
        let made = caller.post("/v1/leases", &of_hosts(&start.sent(), HOSTS, &start.plus(60).sent()))?;
        let made = made.expect(201)?["lease"].take();
        ensure!(made["events"][0]["event_type"] == "before_start_lease", "no event before the start: {made}");
        let id = text(&made, "id")?.to_owned();
        until("their owner knows", || {
            Ok(instances(caller)?.iter().all(|instance| instance["departure"].is_object()))
        })?;
        let active = caller.until_lease_is(&id, "ACTIVE", PATIENCE)?;
        ensure!(active["events"][0]["status"] == "DONE", "{}", active["events"]);
        // Records are deleted once it's certain that no instance has moved elsewhere.
        until("no guest is left", || Ok(instances(caller)?.is_empty()))?;
        let told = list(caller.get("/v1/notifications?limit=1000")?.expect(200)?, "notifications")?;
        for event in ["instance.departure.planned", "instance.preempted"] {
            let count = told.iter().filter(|told| told["event_type"] == event).count();
            ensure!(count == INSTANCES, "{event} was told {count} times");
        }
        let order = |event: &str| told.iter().rposition(|told| told["event_type"] == event);
        let (cleared, started) = (order("lease.event.before_start_lease"), order("lease.event.start_lease"));
        ensure!(cleared.is_some() && cleared < started, "they had not left before the start: {told:?}");
        lease = Some(id);
        Ok(())
    });
    cases.check("pre_14_instances_of_the_lease_run_on_its_hosts", || {
        let id = lease.as_deref().context("there is no lease")?;
        let made = caller.post("/v1/instances", &instance(&json!({"scheduler_hints": {"lease": id}})))?;
        made.expect(201)?;
        until("it runs", || Ok(instances(caller)?.iter().all(|instance| instance["status"] == "ACTIVE")))?;
        let none = json!({"scheduler_hints": {"preemptible": true}});
        caller.post("/v1/instances", &instance(&none))?.expect(409).map(drop)
    });
    cases.check("pre_14_what_was_preempted_is_accounted_for", || {
        let usage = caller.get("/v1/preemptible")?.expect(200)?["preemptible"].take();
        let counted = (usage["begun"].as_u64(), usage["preempted"].as_u64());
        ensure!(counted == (Some(INSTANCES as u64), Some(INSTANCES as u64)), "{usage}");
        ensure!(usage["hours_lost"].as_f64().is_some_and(|hours| hours > 0.0), "{usage}");
        Ok(())
    });
    Ok(())
}

fn instance(more: &Value) -> Value {
    let mut body = json!({"name": "batch", "vcpus": 2, "memory_mb": 1024, "disk_gb": 1});
    if let (Some(body), Some(more)) = (body.as_object_mut(), more.as_object()) {
        body.extend(more.clone());
    }
    body
}

fn instances(caller: &Caller) -> Result<Vec<Value>> {
    list(caller.get("/v1/instances")?.expect(200)?, "instances")
}

fn until(what: &str, is_so: impl Fn() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > PATIENCE {
            bail!("it is not so after {PATIENCE:?}: {what}");
        }
        sleep(BETWEEN_LOOKS);
    }
    Ok(())
}
