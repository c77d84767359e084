//! Compares the calendar and the availability with a recount of the records, minute by minute and without
//! sharing any code. The records have random leases, instance reservations, offers, instances and closed
//! hosts, with time for cleaning.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{HostId, OffersId};
use leases::lease::Allocation;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use service::{LeaseFilter, Settings};
use store::LeaseRecord;

use crate::site::{Site, hosts_lease};

const HOSTS: u64 = 4;
/// Minutes for cleaning a host before and after a lease of the whole host.
const CLEANING: i64 = 20;
/// The requested window, its first minute, its length, and the length of spans, in minutes.
const WINDOW: &str = "start=2030-01-02T00:00:00Z&end=2030-01-03T12:00:00Z";
const FIRST: i64 = 1_893_542_400 / 60;
const LENGTH: i64 = 36 * 60;
const SPAN: i64 = 45;
/// Capacity of a host: virtual CPUs, memory in MiB, disk in GiB.
const HAS: [u64; 3] = [16, 65_536, 1000];

/// Use of a host or a part of it.
#[derive(Clone, Debug)]
struct Taken {
    from: i64,
    until: i64,
    /// Virtual CPUs, memory and disk. `None` for the whole host.
    part: Option<[u64; 3]>,
}

fn minute(at: Timestamp) -> i64 {
    at.as_second().div_euclid(60)
}

/// Adds the use of each host by a record.
fn take(record: &LeaseRecord, taken: &mut BTreeMap<u64, Vec<Taken>>) {
    let (from, until) = (minute(record.lease.window.start()), minute(record.lease.window.end()));
    for reservation in &record.lease.reservations {
        let hosts: Vec<(HostId, Option<[u64; 3]>)> = match &reservation.allocation {
            Allocation::Hosts(hosts) => hosts.iter().map(|host| (*host, None)).collect(),
            Allocation::Slots(slots) => {
                // Each instance was requested with two virtual CPUs, 2 GiB and 100 GiB.
                let part = |count: u32| Some([2, 2048, 100].map(|size| size * u64::from(count)));
                slots.iter().map(|(host, count)| (*host, part(*count))).collect()
            }
            Allocation::FloatingIps(_) => Vec::new(),
        };
        for (host, part) in hosts {
            taken.entry(host.0).or_default().push(Taken { from, until, part });
        }
    }
}

/// Use of a host by the alternatives for one refusal. Only one of them can be accepted, so whole hosts are
/// counted once.
fn joined(mut taken: Vec<Taken>) -> Vec<Taken> {
    taken.sort_by_key(|one| one.from);
    let mut joined: Vec<Taken> = Vec::new();
    for one in taken {
        match joined.last_mut() {
            Some(last) if last.part.is_none() && one.part.is_none() && one.from <= last.until => {
                last.until = last.until.max(one.until);
            }
            _ => joined.push(one),
        }
    }
    joined
}

/// Use of a host in a minute, by resource. `None` if the whole host is used.
fn used(taken: &[Taken], minute: i64) -> Option<[u64; 3]> {
    let mut sum = [0; 3];
    for one in taken.iter().filter(|one| one.from <= minute && minute < one.until) {
        for (sum, part) in sum.iter_mut().zip(one.part?) {
            *sum += part;
        }
    }
    Some(sum)
}

/// Used share of a host in a minute, in thousandths.
fn share(taken: &[Taken], minute: i64) -> u64 {
    used(taken, minute).map_or(1000, |used| {
        let shares = used.iter().zip(HAS).map(|(used, has)| (used * 1000).div_ceil(has));
        shares.max().unwrap_or(0).min(1000)
    })
}

/// Whether a lease of the whole host is within the time for cleaning. With `parts`, leases of a part count,
/// too.
fn near(taken: &[Taken], minute: i64, parts: bool) -> bool {
    let near = |one: &Taken| one.from - CLEANING <= minute && minute < one.until + CLEANING;
    taken.iter().any(|one| near(one) && (parts || one.part.is_none()))
}

/// Number of instances with four virtual CPUs that fit on a host in a minute.
fn room(taken: &[Taken], minute: i64) -> u64 {
    if near(taken, minute, false) {
        return 0;
    }
    used(taken, minute).map_or(0, |used| (HAS[0] - used[0]) / 4)
}

fn at(random: &mut StdRng, most: u32) -> (u32, String) {
    let quarter = random.random_range(0..most);
    (quarter, text(quarter))
}

fn text(quarter: u32) -> String {
    let hour = quarter / 4;
    format!("2030-01-{:02} {:02}:{:02}", 2 + hour / 24, hour % 24, 15 * (quarter % 4))
}

/// Sends a random request. Returns its kind.
async fn something(site: &Site, random: &mut StdRng) -> &'static str {
    let (start, from) = at(random, 120);
    let until = text(start + random.random_range(1..20));
    match random.random_range(0..10) {
        0..4 => {
            let count = random.random_range(1..3);
            site.post("/v1/leases", &hosts_lease(count, count, &from, &until)).await;
            "hosts"
        }
        4..8 => {
            let rooms = json!({"name": "rooms", "start_date": from, "end_date": until, "reservations": [{
                "resource_type": "virtual:instance", "vcpus": 2, "memory_mb": 2048, "disk_gb": 100,
                "amount": random.random_range(1..9), "affinity": null, "resource_properties": ""}]});
            site.post("/v1/leases", &rooms).await;
            "rooms"
        }
        8 => {
            let wish = hosts_lease(2, 3, &from, &until);
            // A refused request has offers, one of which is held.
            site.post("/v1/leases?hold_offers=true", &wish).await;
            "offers"
        }
        _ => {
            let instance =
                json!({"name": "i", "vcpus": random.random_range(1..4), "memory_mb": 1024, "disk_gb": 10});
            site.post("/v1/instances", &instance).await;
            "instances"
        }
    }
}

#[tokio::test]
async fn the_calendar_and_what_is_free_are_what_a_recount_of_the_records_finds() {
    let (mut offers, mut instances, mut rooms, mut closed) = (0, 0, 0, 0);
    for seed in 0..12 {
        let mut random = StdRng::seed_from_u64(seed);
        let settings = Settings { cleaning_time: SignedDuration::from_mins(CLEANING), ..Settings::default() };
        let site = Site::of_settings(settings).await;
        site.add_hosts(HOSTS as u32).await;
        for _ in 0..1000 {
            // Hosts must be observed before instances can be placed.
            tokio::task::yield_now().await;
        }
        for _ in 0..30 {
            something(&site, &mut random).await;
        }
        let shut = random.random_range(0..=HOSTS);
        if shut > 0 {
            site.put(&format!("/v1/os-hosts/{shut}"), &json!({"reservable": false})).await.ok(200);
            closed += 1;
        }
        let mut taken: BTreeMap<u64, Vec<Taken>> = BTreeMap::new();
        for record in site.service.leases().all(&LeaseFilter::default()) {
            take(&record, &mut taken);
        }
        // Offers and instances don't reduce the hosts that can be leased. The calendar shows both.
        let leased = taken.clone();
        let mut offered: BTreeMap<Option<OffersId>, BTreeMap<u64, Vec<Taken>>> = BTreeMap::new();
        for record in site.service.offers().all(None) {
            offers += 1;
            take(&record, offered.entry(record.lease.standing.group()).or_default());
        }
        for (host, of_host) in offered.into_values().flatten() {
            taken.entry(host).or_default().extend(joined(of_host));
        }
        let machines = site.get("/v1/os-hosts").await.ok(200)["hosts"].as_array().expect("a list").clone();
        let of_no_lease = site.get("/v1/instances").await.ok(200);
        for instance in of_no_lease["instances"].as_array().expect("a list") {
            instances += 1;
            let host = machines.iter().find(|host| host["hypervisor_hostname"] == instance["host"]);
            let host = host.expect("it has a host")["id"].as_str().expect("text").parse().expect("a number");
            let number = |name: &str| instance[name].as_u64().expect("a number");
            let part = Some([number("vcpus"), number("memory_mb"), number("disk_gb")]);
            taken.entry(host).or_default().push(Taken { from: i64::MIN, until: i64::MAX, part });
        }
        rooms += taken.values().flatten().filter(|one| one.part.is_some()).count();
        let none = Vec::new();
        let of = |taken: &BTreeMap<u64, Vec<Taken>>, host: u64| taken.get(&host).unwrap_or(&none).clone();
        check_calendar(&site, seed, &|host| of(&taken, host)).await;
        let hosts: Vec<Vec<Taken>> =
            (1..=HOSTS).filter(|host| *host != shut).map(|host| of(&leased, host)).collect();
        let free = |minute: i64| hosts.iter().filter(|taken| !near(taken, minute, true)).count() as u64;
        check_steps(&site, seed, "", hosts.len() as u64, free).await;
        let room = |minute: i64| hosts.iter().map(|taken| room(taken, minute)).sum();
        check_steps(&site, seed, "&vcpus=4&memory_mb=512&disk_gb=1", 4 * hosts.len() as u64, room).await;
    }
    assert!(
        offers > 3 && instances > 5 && rooms > 100 && closed > 5,
        "{offers} {instances} {rooms} {closed}"
    );
}

/// Checks bars and spans of the calendar.
async fn check_calendar(site: &Site, seed: u64, taken: &dyn Fn(u64) -> Vec<Taken>) {
    let near = site.get(&format!("/v1/calendar?{WINDOW}")).await.ok(200);
    let far = site.get(&format!("/v1/calendar?{WINDOW}&bucket={SPAN}")).await.ok(200);
    let hosts = |answer: &Value| answer["calendar"]["hosts"].as_array().expect("a list").clone();
    assert_eq!((hosts(&near).len(), hosts(&far).len()), (HOSTS as usize, HOSTS as usize));
    for (bars, spans) in hosts(&near).iter().zip(hosts(&far)) {
        let host: u64 = bars["id"].as_str().expect("text").parse().expect("a number");
        let taken = taken(host);
        let mut expected: Vec<(i64, Option<i64>, bool)> = taken
            .iter()
            .filter(|one| one.from < FIRST + LENGTH && FIRST < one.until)
            .map(|one| (one.from.max(FIRST), (one.until < i64::MAX).then_some(one.until), one.part.is_none()))
            .collect();
        let at = |value: &Value| value.as_str().map(|at| minute(at.parse().expect("an instant")));
        let bars = bars["bars"].as_array().expect("a list").iter();
        let mut found: Vec<(i64, Option<i64>, bool)> = bars
            .map(|bar| {
                (at(&bar["start"]).expect("a start").max(FIRST), at(&bar["end"]), bar["whole"] == true)
            })
            .collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "seed {seed}, host {host}");
        let spans = spans["buckets"].as_array().expect("a list");
        assert_eq!(spans.len(), LENGTH.div_euclid(SPAN) as usize);
        for (number, found) in (0..).zip(spans) {
            let from = FIRST + number * SPAN;
            let total: u64 = (from..from + SPAN).map(|minute| share(&taken, minute)).sum();
            let expected = total.div_ceil(SPAN.unsigned_abs());
            assert_eq!(found.as_u64(), Some(expected), "seed {seed}, host {host}, span {number}");
        }
    }
}

/// Checks the free count minute by minute.
async fn check_steps(site: &Site, seed: u64, asked: &str, total: u64, free: impl Fn(i64) -> u64) {
    let answer = site.get(&format!("/v1/availability?{WINDOW}{asked}")).await.ok(200);
    assert_eq!(answer["availability"]["total"], total, "seed {seed}{asked}");
    let mut minutes = FIRST;
    for step in answer["availability"]["steps"].as_array().expect("a list") {
        let at = |name: &str| minute(step[name].as_str().expect("text").parse().expect("an instant"));
        assert_eq!(at("start"), minutes, "seed {seed}{asked}: steps follow each other");
        for minute in at("start")..at("end") {
            assert_eq!(step["free"], free(minute), "seed {seed}{asked}, minute {}", minute - FIRST);
        }
        minutes = at("end");
    }
    assert_eq!(minutes, FIRST + LENGTH);
}
