//! Races: many requests at the same moment for what only one of them can have (Blazar's defects W1, W2, W18).
//!
//! Which request wins is left to chance, and so differs from run to run. What holds afterwards does not.

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use super::cases::Cases;
use super::date::Minute;
use super::fleet::{ADDRESSES, MACHINES, NETWORK};
use super::http::{Answer, Caller, list, text};
use super::server::Launch;
use crate::random::Random;
use crate::run::Executable;
use crate::tally::Tally;

/// Requests of a race.
const RUNNERS: usize = 12;
/// A window lies so far in the future that no lease of a race begins, in days.
const DAYS_AHEAD: i64 = 30;
const DAY: i64 = 24 * 60;

/// Runs so many rounds of each race on a service of its own.
pub fn run(ours: &Executable, seed: u64, rounds: usize) -> Result<Tally> {
    let directory = tempfile::tempdir()?;
    let server = Launch::new(ours, directory.path()).start()?;
    let caller = server.caller();
    for machine in MACHINES {
        caller.post("/v1/os-hosts", &json!({"name": machine}))?.expect(201)?;
    }
    for address in ADDRESSES {
        let address = json!({"floating_network_id": NETWORK, "floating_ip_address": address});
        caller.post("/v1/floatingips", &address)?.expect(201)?;
    }
    let mut cases = Cases::new("races");
    let mut random = Random::new(seed);
    for round in 0..rounds {
        for (name, reservation) in
            [("hosts", all_hosts()), ("instances", all_room(caller)?), ("addresses", all_addresses())]
        {
            cases.check(
                &format!("w1_of_{RUNNERS}_requests_for_all_{name}_one_is_accepted, round {round}"),
                || one_wins(caller, &reservation),
            );
        }
        let turn = random.below(usize::MAX) as u64;
        cases.check(
            &format!("w18_changes_at_the_same_moment_leave_no_host_in_two_leases, seed {turn}"),
            || scramble(caller, &mut Random::new(turn)),
        );
    }
    Ok(cases.tally())
}

fn all_hosts() -> Value {
    hosts(MACHINES.len(), MACHINES.len())
}

fn hosts(min: usize, max: usize) -> Value {
    json!({"resource_type": "physical:host", "min": min, "max": max,
           "hypervisor_properties": "", "resource_properties": ""})
}

/// One instance as large as the host on every host.
fn all_room(caller: &Caller) -> Result<Value> {
    let vcpus = caller.hosts()?.iter().filter_map(|host| host["vcpus"].as_u64()).min().context("no hosts")?;
    Ok(json!({"resource_type": "virtual:instance", "vcpus": vcpus, "memory_mb": 256, "disk_gb": 0,
              "amount": MACHINES.len(), "affinity": null, "resource_properties": ""}))
}

fn all_addresses() -> Value {
    json!({"resource_type": "virtual:floatingip", "network_id": NETWORK, "amount": ADDRESSES.len(),
           "required_floatingips": []})
}

fn request(name: &str, start: Minute, end: Minute, reservation: &Value) -> Value {
    json!({"name": name, "start_date": start.sent(), "end_date": end.sent(), "reservations": [reservation]})
}

/// Sends everything at once.
fn together(caller: &Caller, requests: &[(Method, String, Option<Value>)]) -> Result<Vec<Answer>> {
    let http = caller.http();
    let sent = requests.iter().map(|(method, path, body)| http.send(method.clone(), path, body.as_ref()));
    caller.wait(join_all(sent)).into_iter().collect()
}

/// Everybody wants everything; one gets it, the others are told that there is not enough.
fn one_wins(caller: &Caller, reservation: &Value) -> Result<()> {
    let start = Minute::now().plus(DAYS_AHEAD * DAY);
    let create = |i: usize| {
        let body = request(&format!("runner {i}"), start, start.plus(DAY), reservation);
        (Method::POST, "/v1/leases".to_owned(), Some(body))
    };
    let answers = together(caller, &(0..RUNNERS).map(create).collect::<Vec<_>>())?;
    let accepted = answers.iter().filter(|answer| answer.status == 201).count();
    let refused = answers.iter().filter(|answer| answer.message().starts_with("Not enough ")).count();
    let there = caller.leases()?.len();
    let checked = no_overlap(caller);
    clear(caller)?;
    ensure!(accepted == 1, "{accepted} were accepted");
    ensure!(refused == RUNNERS - 1, "{refused} were told that there is not enough: {answers:?}");
    ensure!(there == 1, "{there} leases are there");
    checked
}

/// Leases are made, moved and deleted side by side. What is there afterwards fits together.
fn scramble(caller: &Caller, random: &mut Random) -> Result<()> {
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
                0 => {
                    let body = request(&format!("{turn}.{i}"), start, end, &hosts(min, MACHINES.len()));
                    (Method::POST, "/v1/leases".to_owned(), Some(body))
                }
                3 => (Method::DELETE, path(random.one_of(&leases))?, None),
                _ => {
                    let body = json!({"start_date": start.sent(), "end_date": end.sent()});
                    (Method::PUT, path(random.one_of(&leases))?, Some(body))
                }
            });
        }
        for answer in together(caller, &requests)? {
            ensure!(answer.status < 500, "answered {}: {}", answer.status, answer.body);
        }
        no_overlap(caller)?;
        caller.leases()?.iter().try_for_each(events_in_order)?;
    }
    clear(caller)
}

/// No host is in two leases of whole hosts at the same time, and every lease has the hosts that it was promised.
pub fn no_overlap(caller: &Caller) -> Result<()> {
    let allocations = list(caller.get("/v1/os-hosts/allocations")?.expect(200)?, "allocations")?;
    let mut leases = caller.leases()?;
    // One whose time is over has nothing to come, though its hosts may still be on their way back.
    let now = Minute::now().shown();
    leases.retain(|lease| lease["end_date"].as_str().is_some_and(|end| *end > *now));
    let reservations = leases.iter().flat_map(|lease| lease["reservations"].as_array().into_iter().flatten());
    let mut held = vec![Vec::new(); allocations.len()];
    let of_hosts = |reservation: &&Value| reservation["resource_type"] == "physical:host";
    for reservation in reservations.filter(of_hosts) {
        let mut found = 0;
        for (host, windows) in allocations.iter().zip(&mut held) {
            let of_host = host["reservations"].as_array().context("no reservations")?;
            for held in of_host.iter().filter(|held| held["id"] == reservation["id"]) {
                let start = Minute::read(text(held, "start_date")?)?;
                windows.push((start, Minute::read(text(held, "end_date")?)?));
                found += 1;
            }
        }
        let min = reservation["min"].as_u64().context("no min")?;
        ensure!(found >= min, "{found} hosts instead of {min}: {reservation}");
    }
    for (host, windows) in allocations.iter().zip(&mut held) {
        windows.sort_unstable();
        let overlap = windows.windows(2).find(|pair| pair[1].0 < pair[0].1);
        ensure!(overlap.is_none(), "host {} is in two leases at once: {host}", host["resource_id"]);
    }
    Ok(())
}

/// Start, then what is before the end, then the end.
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

fn clear(caller: &Caller) -> Result<()> {
    for lease in caller.leases()? {
        caller.delete(&format!("/v1/leases/{}", text(&lease, "id")?))?.expect(204)?;
    }
    Ok(())
}
