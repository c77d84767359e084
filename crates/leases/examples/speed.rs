//! Latency of decisions on a large cloud: `cargo run --release -p leases --example speed`.
//!
//! Sets up 1,000 hosts with 30 capabilities each and fills a year with random leases. 10,000 leases are
//! requested unless the first argument gives another number; those that don't fit are skipped. Prints medians
//! and 99th percentiles.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, Changes, Rules, Wanted, Within};
use leases::calendar::Calendar;
use leases::hints::InstanceHints;
use leases::host::{Host, Inventory};
use leases::host_facts::{Guests, HostFacts};
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::lease::{EndAction, Lease, NewLease};
use leases::lease_type::LeaseType;
use leases::plan::{
    Guest, GuestOwner, GuestSize, History, Mobility, Observed, ObservedHost, PlanRules, World, plan,
};
use leases::project::{Owner, ProjectId, UserId};
use leases::requirement::{Operator, Requirement};
use leases::terms::{Affinity, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms};
use leases::window::Window;
use leases::work::UNLIMITED;

const HOSTS: u64 = 1000;
const YEAR_HOURS: i64 = 365 * 24;

/// A linear congruential generator, so every run has the same leases.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn hour(number: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(number)
}

fn inventory() -> Inventory {
    let host = |id| {
        let mut host = Host::new(HostId(id), format!("node{id}.example.org"), 64, 262_144, 4000);
        for capability in 0..30 {
            host.capabilities.insert(format!("capability{capability}"), (id % (capability + 2)).to_string());
        }
        host
    };
    Inventory::new((1..=HOSTS).map(host), [])
}

fn terms(numbers: &mut Numbers) -> Terms {
    let start = numbers.below(YEAR_HOURS as u64 - 200) as i64;
    let length = 1 + numbers.below(168) as i64;
    let window = Window::starting(hour(start), SignedDuration::from_hours(length));
    let asked = if numbers.below(3) == 0 {
        let size = InstanceSize::new(4, 16_384, 100).expect("a size");
        let amount = (1 + numbers.below(40) as u32).try_into().expect("some");
        let requirement = Requirement::NONE;
        ReservationTerms::Instances(InstancesTerms {
            size,
            amount,
            affinity: Affinity::Any,
            requirement,
            survives: None,
            extras: None,
        })
    } else {
        let count = 1 + numbers.below(30) as u32;
        let value = numbers.below(4).to_string();
        let wanted = Requirement::compare(Operator::Equal, "capability2", value).expect("well formed");
        ReservationTerms::Hosts(HostsTerms::new(count, count).expect("a range").requiring(wanted))
    };
    Terms::new(window, None, vec![asked]).expect("terms")
}

fn owner() -> Owner {
    Owner { project: ProjectId("project".into()), user: UserId("user".into()) }
}

/// Guests on random hosts: 8 per host on average, 16 to 40 GiB of memory each, as capacity allows.
fn inhabited(inventory: &Inventory, numbers: &mut Numbers) -> Observed {
    let mut observed = Observed::default();
    observed.hosts.extend(inventory.hosts().map(|host| (host.id, ObservedHost::free())));
    let mut number = 0;
    while number < 8 * HOSTS {
        let memory_mib = 8192 * (2 + numbers.below(4) as u32);
        let host = observed.hosts.get_mut(&HostId(1 + numbers.below(HOSTS))).expect("there");
        let used: u32 = host.guests.iter().map(|guest| guest.size.memory_mib).sum();
        if used + memory_mib <= 262_144 {
            number += 1;
            let size = GuestSize { vcpus: memory_mib / 8192, memory_mib, disk_gib: 100 };
            let guest = Guest::new(GuestId(number.into()), GuestOwner::Other);
            host.guests.push(Guest { size, mobility: Some(Mobility::default()), ..guest });
        }
    }
    observed
}

/// Measures offers for refused requests, and attempts to make room by moving other leases.
fn offers(inventory: &Inventory, calendar: &Calendar, leases: &[Lease], numbers: &mut Numbers) {
    let (rules, now) = (Rules::default(), hour(0));
    let facts = HostFacts::nothing();
    let admission = Admission::new(calendar, inventory, &rules, &facts, now);
    let latest = hour(90 * 24);
    let (mut offers, mut room, mut refused) = (Vec::new(), Vec::new(), 0);
    let mut found = 0;
    while refused < 200 {
        let terms = terms(numbers);
        let Err(lack) = admission.decide(&owner().project, &terms) else { continue };
        refused += 1;
        found += timed(&mut offers, || admission.offers(&owner().project, &terms, latest)).len();
        let decide = |admission: &Admission<'_>| {
            let grant = admission.grant(&owner().project, &terms)?;
            let reservations = vec![ReservationId(u128::MAX)];
            let (id, name, end_action) = (LeaseId(u128::MAX), String::new(), EndAction::DeleteGuests);
            let new = NewLease { id, name, owner: owner(), end_action, reservations };
            Ok(Lease::new(new, grant.terms, grant.allocations, None))
        };
        let wanted = Wanted::for_new(&owner().project, &terms);
        timed(&mut room, || admission.replan(leases, now, (&wanted, &lack), decide, |lease| lease));
    }
    report(&format!("offers for a refused request ({found} of {refused})"), offers);
    report("look whether others could make room", room);
}

/// Measures a hunt on a fleet where all hosts have guests of other projects.
fn hunts(inventory: &Inventory, numbers: &mut Numbers) {
    let (rules, now) = (Rules::default(), hour(0));
    let observed = inhabited(inventory, numbers);
    let occupied: BTreeSet<HostId> = observed.hosts.keys().copied().collect();
    let guests = Guests::from(observed).into();
    let facts = HostFacts { occupied: occupied.into(), guests, ..HostFacts::nothing() };
    let calendar = Calendar::new(SignedDuration::ZERO);
    let admission = Admission::new(&calendar, inventory, &rules, &facts, now);
    let asked = HostsTerms::new(20, 20).expect("a range");
    let window = Window::starting(now, SignedDuration::from_hours(12));
    let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(asked)]).expect("terms");
    let terms = terms.of_type(LeaseType::BestEffort { deadline: hour(2) });
    let mut times = Vec::new();
    for _ in 0..5 {
        let grant = timed(&mut times, || admission.grant(&owner().project, &terms)).expect("a plan");
        assert!(grant.hunt.is_some_and(|hunt| !hunt.moves.is_empty()), "guests are moved");
    }
    report("hunt for 20 of 1,000 hosts with 8,000 guests", times);
}

/// Measures a typical query of an external scheduler: which hosts can take a preemptible instance, and for
/// how much time.
fn filters(inventory: &Inventory, calendar: &Calendar, numbers: &mut Numbers) {
    let (rules, project) = (Rules::default(), owner().project);
    let observed = inhabited(inventory, numbers);
    let facts = HostFacts::nothing();
    let admission = Admission::new(calendar, inventory, &rules, &facts, hour(1000));
    let within = Within::Gap(&project, SignedDuration::from_mins(12));
    let size = Some(GuestSize { vcpus: 2, memory_mib: 4096, disk_gib: 20 });
    let (mut times, hints) = (Vec::new(), InstanceHints::default());
    for _ in 0..200 {
        let hosts = (inventory.hosts(), &observed);
        let verdicts = timed(&mut times, || admission.filter(within, size, &hints, hosts));
        assert_eq!(verdicts.len() as u64, HOSTS);
    }
    report("which of 1,000 hosts may have an instance", times);
}

fn report(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what:<44} median {:>10.3?}  p99 {:>10.3?}", at(0.5), at(0.99));
}

fn timed<T>(times: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    times.push(begun.elapsed());
    result
}

fn main() {
    let asked: u128 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let (inventory, rules, now) = (inventory(), Rules::default(), hour(0));
    let (mut calendar, mut leases) = (Calendar::new(SignedDuration::from_mins(30)), Vec::new());
    let (mut decide, mut enter, mut extend) = (Vec::new(), Vec::new(), Vec::new());
    let mut numbers = Numbers(1);
    for number in 0..asked {
        let terms = terms(&mut numbers);
        let facts = HostFacts::nothing();
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, now);
        let Ok(given) = timed(&mut decide, || admission.decide(&owner().project, &terms)) else { continue };
        let new = NewLease {
            id: LeaseId(number),
            name: String::new(),
            owner: owner(),
            end_action: EndAction::DeleteGuests,
            reservations: vec![ReservationId(number)],
        };
        let lease = Lease::new(new, terms, given, None);
        timed(&mut enter, || calendar.put(&lease, now)).expect("admitted");
        leases.push(lease);
    }
    decide.drain(..decide.len() * 9 / 10);
    println!("{HOSTS} hosts, {asked} leases asked for, {} given", leases.len());
    report("decide about a new lease (the last tenth)", decide);
    report("enter a lease in the calendar", enter);
    for lease in leases.iter().take(500) {
        let end = lease.window.end() + SignedDuration::from_hours(1);
        let changes = Changes { end: Some(end), ..Changes::default() };
        let facts = HostFacts::nothing();
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, now);
        // Refusals count as well: they take time, too.
        timed(&mut extend, || admission.update(lease, &changes).is_ok());
    }
    report("extend a lease by an hour", extend);

    offers(&inventory, &calendar, &leases, &mut numbers);

    let hosts: Vec<HostId> = (1..=HOSTS).map(HostId).collect();
    let year = Window::starting(now, SignedDuration::from_hours(YEAR_HOURS));
    for (count, days) in [(20, 1), (20, 30), (20, 300), (1000, 1), (1000, 30)] {
        let mut times = Vec::new();
        let length = SignedDuration::from_hours(24 * days);
        for _ in 0..50 {
            timed(&mut times, || calendar.earliest_slot(&hosts, count, length, &year, None, &UNLIMITED));
        }
        report(&format!("earliest slot of {count} hosts for {days} days"), times);
    }

    let free = (1..=HOSTS).map(|id| (HostId(id), ObservedHost::free())).collect();
    let observed = Observed { hosts: free, ..Observed::default() };
    let (history, rules) = (History::default(), PlanRules::default());
    let mut times = Vec::new();
    for _ in 0..20 {
        let world = World::new(&observed, &history, &rules, hour(1000));
        timed(&mut times, || plan(&leases, world));
    }
    report("plan for all leases after a long outage", times);
    hunts(&inventory, &mut numbers);
    filters(&inventory, &calendar, &mut numbers);
}
