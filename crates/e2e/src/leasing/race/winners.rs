//! Races with a known number of winners.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::ground::{DAY, DAYS_AHEAD, Ground, RUNNERS, create};
use crate::leasing::acknowledged::whole_hosts;
use crate::leasing::date::Minute;
use crate::leasing::fleet::{ADDRESSES, MACHINES, NETWORK};
use crate::leasing::http::{Answer, Caller, list, text};
use crate::leasing::overlap::no_overlap;

/// Clients that compete for the same resources at the same time.
pub struct Race {
    what: &'static str,
    /// Reservations to request. Clients take them in turn if there are several.
    wanted: Vec<Value>,
    winners: usize,
}

/// All races. The numbers of machines and of addresses are equal.
pub fn all(caller: &Caller) -> Result<Vec<Race>> {
    let number = MACHINES.len();
    // An instance as large as a host.
    let vcpus = caller.hosts()?.iter().filter_map(|host| host["vcpus"].as_u64()).min().context("no hosts")?;
    let room = |amount: usize| {
        json!({"resource_type": "virtual:instance", "vcpus": vcpus, "memory_mb": 256, "disk_gb": 0,
               "amount": amount, "affinity": null, "resource_properties": ""})
    };
    let addresses = |amount: usize| {
        json!({"resource_type": "virtual:floatingip", "network_id": NETWORK, "amount": amount,
               "required_floatingips": []})
    };
    let race = |what, winners, wanted: &[Value]| Race { what, winners, wanted: wanted.to_vec() };
    Ok(vec![
        race("all hosts", 1, &[whole_hosts(number, number)]),
        race("all room for instances", 1, &[room(number)]),
        race("all addresses", 1, &[addresses(ADDRESSES.len())]),
        race("all hosts or all room", 1, &[whole_hosts(number, number), room(number)]),
        race("a host each", number, &[whole_hosts(1, 1)]),
        race("an address each", ADDRESSES.len(), &[addresses(1)]),
        race("a host or a full host of instances each", number, &[whole_hosts(1, 1), room(1)]),
    ])
}

impl Race {
    pub fn sentence(&self) -> String {
        format!("w1_of_{RUNNERS}_requests_for {}, {} are accepted", self.what, self.winners)
    }

    /// Checks the number of accepted requests, and that all remaining requests are refused because of a
    /// shortage.
    pub fn run(&self, ground: &Ground) -> Result<()> {
        let start = Minute::now().plus(DAYS_AHEAD * DAY);
        let request = |runner: usize| {
            let wanted = &self.wanted[runner % self.wanted.len()];
            create(&format!("runner {runner}"), start, start.plus(DAY), wanted)
        };
        let answers = ground.together(&(0..RUNNERS).map(request).collect::<Vec<_>>())?;
        let accepted = answers.iter().filter(|answer| answer.status == 201).count();
        let refused = answers.iter().filter(|answer| answer.message().starts_with("Not enough ")).count();
        let there = leases_at_each(ground)?;
        let checked = no_overlap(&ground.caller);
        ground.clear()?;
        ensure!(accepted == self.winners, "{accepted} were accepted: {answers:?}");
        let losers = RUNNERS - self.winners;
        ensure!(refused == losers, "{refused} were refused because of a shortage: {}", said(&answers));
        ensure!(there.iter().all(|there| *there == self.winners), "services show {there:?} leases");
        checked
    }
}

/// Summary of the answers, with the count of each.
fn said(answers: &[Answer]) -> String {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for answer in answers {
        let hint = answer.body["hint"].as_str().unwrap_or_default();
        *times.entry(format!("{} {} {hint}", answer.status, answer.message())).or_default() += 1;
    }
    let said: Vec<String> =
        times.iter().map(|(said, times)| format!("{times} times {}", said.trim())).collect();
    said.join("; ")
}

/// Number of leases that each service shows.
fn leases_at_each(ground: &Ground) -> Result<Vec<usize>> {
    let list_leases = (Method::GET, "/v1/leases".to_owned(), None);
    let answers = ground.together(&vec![list_leases; ground.services.len()])?;
    answers.into_iter().map(|answer| Ok(list(answer.expect(200)?, "leases")?.len())).collect()
}

/// A lease holds all hosts but one for a day. Concurrently, some requests extend it by a day, some lease as
/// many hosts for that second day, and some delete the host that it doesn't hold.
///
/// Either the extension or one of the new leases is accepted, since there aren't enough hosts for both. And
/// the last host is either leased or deleted.
pub fn extended_created_or_removed(ground: &Ground) -> Result<()> {
    let checked = extended_created_or_removed_once(ground);
    ground.clear()?;
    let there = ground.caller.hosts()?;
    for machine in MACHINES {
        if !there.iter().any(|host| host["hypervisor_hostname"] == machine) {
            ground.caller.post("/v1/os-hosts", &json!({"name": machine}))?.expect(201)?;
        }
    }
    checked
}

fn extended_created_or_removed_once(ground: &Ground) -> Result<()> {
    let caller = &ground.caller;
    let (start, wanted) = (Minute::now().plus(DAYS_AHEAD * DAY), MACHINES.len() - 1);
    let (tomorrow, after) = (start.plus(DAY), start.plus(2 * DAY));
    let (method, path, body) = create("first", start, tomorrow, &whole_hosts(wanted, wanted));
    let first = caller.wait(caller.http().send(method, &path, body.as_ref()))?.expect(201)?;
    let lease = format!("/v1/leases/{}", text(&first["lease"], "id")?);
    let free = unallocated(caller)?.into_iter().next().context("no host is left")?;
    let request = |runner: usize| match runner % 3 {
        0 => (Method::PUT, lease.clone(), Some(json!({"end_date": after.sent()}))),
        1 => create(&format!("runner {runner}"), tomorrow, after, &whole_hosts(wanted, wanted)),
        _ => (Method::DELETE, format!("/v1/os-hosts/{free}"), None),
    };
    // Shuffled: in the order of the services, each kind of request would go to one service only.
    let order: Vec<usize> = (0..RUNNERS).map(|place| place / 4 + place % 4 * 3).collect();
    let answers = ground.together(&order.iter().map(|runner| request(*runner)).collect::<Vec<_>>())?;
    let succeeded = |kind: usize| {
        let answered = order.iter().zip(&answers).filter(|(runner, _)| *runner % 3 == kind);
        answered.filter(|(_, answer)| (200..300).contains(&answer.status)).count()
    };
    let (extended, created, removed) = (succeeded(0), succeeded(1), succeeded(2));
    let said =
        || format!("{extended} extensions, {created} leases and {removed} removals: {}", said(&answers));
    // Repeating an extension changes nothing, so it is accepted too.
    ensure!(extended == 0 || extended == RUNNERS / 3, "{}", said());
    ensure!(created + usize::from(extended > 0) == 1, "{}", said());
    let there = caller.hosts()?.iter().any(|host| host["id"] == free.as_str());
    let is_free = unallocated(caller)?.contains(&free);
    ensure!(
        removed == usize::from(!there),
        "the host is {}: {}",
        if there { "there" } else { "gone" },
        said()
    );
    ensure!(!is_free, "a host without leases was not removed: {}", said());
    no_overlap(caller)
}

/// Identifiers of hosts without an allocation.
fn unallocated(caller: &Caller) -> Result<Vec<String>> {
    let allocations = list(caller.get("/v1/os-hosts/allocations")?.expect(200)?, "allocations")?;
    let taken = |host: &Value| {
        let mut of_host = allocations.iter().filter(|allocated| allocated["resource_id"] == host["id"]);
        of_host.any(|allocated| allocated["reservations"].as_array().is_some_and(|held| !held.is_empty()))
    };
    let hosts = caller.hosts()?;
    hosts.iter().filter(|host| !taken(host)).map(|host| Ok(text(host, "id")?.to_owned())).collect()
}
