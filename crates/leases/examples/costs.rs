//! Cost of decisions in units of work, and time per unit: `cargo run --release -p leases --example costs`.
//!
//! Sets up 10,000 hosts (or the number in the first argument) and up to as many leases, then measures typical
//! requests and the most expensive ones. The value of [`leases::work::DEFAULT_UNITS`] comes from these
//! measurements.

use std::collections::BTreeSet;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use leases::admission::{Admission, Changes, Rules};
use leases::calendar::Calendar;
use leases::host::{Host, Inventory};
use leases::host_facts::{Guests, HostFacts};
use leases::ids::{GuestId, HostId, LeaseId, ReservationId};
use leases::lease::{EndAction, Lease, NewLease};
use leases::lease_type::LeaseType;
use leases::plan::{Guest, GuestOwner, GuestSize, Mobility, Observed, ObservedHost};
use leases::project::{Owner, ProjectId, UserId};
use leases::requirement::{Operator, Requirement};
use leases::terms::{Affinity, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms, Terms};
use leases::window::Window;
use leases::work::Budget;

fn hour(number: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_hours(number)
}

fn inventory(hosts: u64) -> Inventory {
    let host = |id| {
        let mut host = Host::new(HostId(id), format!("node{id}.example.org"), 64, 262_144, 4000);
        for capability in 0..10 {
            host.capabilities.insert(format!("c{capability}"), (id % (capability + 2)).to_string());
        }
        host
    };
    Inventory::new((1..=hosts).map(host), [])
}

fn owner() -> Owner {
    Owner { project: ProjectId("project".into()), user: UserId("user".into()) }
}

fn on_hosts(min: u32, max: u32, wanted: &Requirement) -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range").requiring(wanted.clone()))
}

fn instances(amount: u32, affinity: Affinity) -> ReservationTerms {
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(1, 1, 1).expect("a size"),
        amount: amount.try_into().expect("some"),
        affinity,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    })
}

/// An expression that compares with `values` values that no host has.
fn long(values: usize) -> Requirement {
    let compare = |number| {
        Requirement::compare(
            Operator::NotEqual,
            format!("c{}", number % 10),
            format!("{}{number}", "x".repeat(50)),
        )
    };
    let parts = (0..values).map(|number| compare(number).expect("well formed")).collect();
    Requirement::all(parts).expect("well formed")
}

fn during(start: i64, hours: i64, asked: Vec<ReservationTerms>) -> Terms {
    let window = Window::starting(hour(start), SignedDuration::from_hours(hours));
    Terms::new(window, None, asked).expect("terms")
}

/// One attempt per host to make a random lease within a year: 1 to 30 hosts, or instances.
fn leases(inventory: &Inventory, calendar: &mut Calendar) -> Vec<Lease> {
    let (rules, mut leases, mut number) = (Rules::default(), Vec::new(), 1_u64);
    let mut below = |limit: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) % limit
    };
    for id in 0..inventory.hosts().len() as u128 {
        let asked = if below(3) == 0 {
            instances(1 + below(40) as u32, Affinity::Any)
        } else {
            let count = 1 + below(30) as u32;
            on_hosts(count, count, &Requirement::NONE)
        };
        let terms = during(below(8000) as i64, 1 + below(168) as i64, vec![asked]);
        let facts = HostFacts::nothing();
        let admission = Admission::new(calendar, inventory, &rules, &facts, hour(0));
        let Ok(given) = admission.decide(&owner().project, &terms) else { continue };
        let (name, end_action, reservations) =
            (String::new(), EndAction::DeleteGuests, vec![ReservationId(id)]);
        let new = NewLease { id: LeaseId(id), name, owner: owner(), end_action, reservations };
        let lease = Lease::new(new, terms, given, None);
        calendar.put(&lease, hour(0)).expect("admitted");
        leases.push(lease);
    }
    leases
}

fn report(what: &str, admission: &Admission<'_>, decide: impl Fn(&Admission<'_>) -> String) {
    let budget = Budget::unlimited();
    let begun = Instant::now();
    let decided = decide(&admission.with_budget(&budget));
    let took = begun.elapsed();
    let per_unit = took.as_nanos() as f64 / budget.spent().max(1) as f64;
    println!(
        "{what:<46} {:>12} units {took:>12.3?} {per_unit:>7.1} ns a unit; {decided:.40}",
        budget.spent()
    );
}

fn main() {
    let hosts: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let (inventory, rules) = (inventory(hosts), Rules::default());
    let mut calendar = Calendar::new(SignedDuration::from_mins(30));
    let leases = leases(&inventory, &mut calendar);
    println!("{hosts} hosts, {} leases", leases.len());
    let facts = HostFacts::nothing();
    let admission = Admission::new(&calendar, &inventory, &rules, &facts, hour(0));
    let project = owner().project;
    let create = |what: &str, terms: Terms| {
        report(what, &admission, |admission| match admission.grant(&project, &terms) {
            Ok(_) => "granted".to_owned(),
            Err(refusal) => refusal.to_string(),
        });
    };
    let (none, all) = (Requirement::NONE, hosts as u32);
    create("a host", during(500, 10, vec![on_hosts(1, 1, &none)]));
    create("20 hosts by an expression", during(500, 10, vec![on_hosts(20, 20, &long(2))]));
    create("half of the hosts", during(500, 10, vec![on_hosts(all / 2, all / 2, &none)]));
    create("all hosts, refused", during(500, 10, vec![on_hosts(all, all, &none)]));
    for affinity in [Affinity::Any, Affinity::OneHost, Affinity::DistinctHosts] {
        for amount in [8, 1000, 20_000, 20 * all] {
            create(
                &format!("{amount} instances, {affinity:?}"),
                during(500, 10, vec![instances(amount, affinity)]),
            );
        }
    }
    let best_effort =
        |terms: Terms, deadline| terms.of_type(LeaseType::BestEffort { deadline: hour(deadline) });
    create("20 hosts as soon as possible", best_effort(during(0, 10, vec![on_hosts(20, 20, &none)]), 700));
    let most = all * 9 / 10;
    create(
        "nine of ten hosts as soon as possible",
        best_effort(during(0, 4, vec![on_hosts(most, most, &none)]), 168),
    );
    create(
        "instances as soon as possible, refused",
        best_effort(during(0, 4, vec![instances(64 * all, Affinity::Any)]), 168),
    );
    create("3 reservations", during(500, 10, vec![on_hosts(1, 5, &long(2)); 3]));
    create("50 reservations", during(500, 10, vec![on_hosts(1, 1, &none); 50]));
    create("one of 500 values", during(500, 10, vec![on_hosts(1, 1, &long(500))]));
    let longs = |number| (0..number).map(|_| on_hosts(1, 1, &long(249))).collect::<Vec<_>>();
    create("10 reservations of 249 values", during(500, 10, longs(10)));
    create("50 reservations of 249 values", during(500, 10, longs(50)));

    let refused = during(500, 10, vec![on_hosts(all, all, &none)]);
    report("offers instead of all hosts", &admission, |admission| {
        format!("{} offers", admission.offers(&project, &refused, hour(90 * 24)).len())
    });
    let refused = during(500, 10, vec![instances(100 * all, Affinity::Any)]);
    report("offers instead of too many instances", &admission, |admission| {
        format!("{} offers", admission.offers(&project, &refused, hour(90 * 24)).len())
    });
    let later =
        Changes { end: Some(leases[0].window.end() + SignedDuration::from_hours(1)), ..Changes::default() };
    report("an hour more", &admission, |admission| match admission.update(&leases[0], &later) {
        Ok(_) => "granted".to_owned(),
        Err(refusal) => refusal.to_string(),
    });
    let year = Changes {
        end: Some(leases[0].window.end() + SignedDuration::from_hours(8000)),
        ..Changes::default()
    };
    report("offers instead of a year more", &admission, |admission| {
        format!("{} offers", admission.offers_of_change(&leases[0], &year, hour(90 * 24)).len())
    });
    hunts(&inventory, hosts);
}

/// Measures hunts on a fleet where every host has 8 guests of other projects.
fn hunts(inventory: &Inventory, hosts: u64) {
    let (rules, now) = (Rules::default(), hour(0));
    let mut observed = Observed::default();
    for id in 1..=hosts {
        let guest = |number: u64| {
            let size =
                GuestSize { vcpus: 2, memory_mib: 8192 * (2 + (id + number) % 4) as u32, disk_gib: 100 };
            let guest = Guest::new(GuestId((id * 8 + number).into()), GuestOwner::Other);
            Guest { size, mobility: Some(Mobility::default()), ..guest }
        };
        let guests = (0..8).map(guest).collect();
        observed.hosts.insert(HostId(id), ObservedHost { guests, ..ObservedHost::free() });
    }
    let occupied: BTreeSet<HostId> = observed.hosts.keys().copied().collect();
    let guests = Guests::from(observed).into();
    let facts = HostFacts { occupied: occupied.into(), guests, ..HostFacts::nothing() };
    let calendar = Calendar::new(SignedDuration::ZERO);
    let admission = Admission::new(&calendar, inventory, &rules, &facts, now);
    for count in [1, 20, 200, hosts as u32 / 4] {
        let terms = during(0, 12, vec![on_hosts(count, count, &Requirement::NONE)]);
        let terms = terms.of_type(LeaseType::BestEffort { deadline: hour(48) });
        report(&format!("hunt for {count} hosts"), &admission, |admission| {
            match admission.grant(&owner().project, &terms) {
                Ok(grant) => format!("{} moves", grant.hunt.map_or(0, |hunt| hunt.moves.len())),
                Err(refusal) => refusal.hint().unwrap_or_default(),
            }
        });
    }
}
