//! If any assignment of hosts serves all reservations of a lease, one is found, independent of the order of
//! reservations.

use leases::admission::{Admission, Rules};
use leases::calendar::Calendar;
use leases::host::{Host, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::requirement::{Operator, Requirement};
use leases::terms::{Affinity, HostsTerms, InstancesTerms, ReservationTerms, Terms};
use proptest::prelude::*;

use crate::generate::{at, cases, instances, project, window};

/// Whether a host has, or a reservation asks for, the properties p and q.
type Properties = [bool; 2];

const NAMES: [&str; 2] = ["p", "q"];

/// A host with its properties and number of CPUs.
#[derive(Clone, Debug)]
struct Machine {
    has: Properties,
    vcpus: u32,
}

/// A reservation: required properties and number.
#[derive(Clone, Debug)]
enum Asked {
    Hosts(Properties, u32),
    /// Instances of two CPUs each.
    Instances(Properties, u32, Affinity),
}

fn machines() -> impl Strategy<Value = Vec<Machine>> {
    let machine = (any::<Properties>(), 1..4u32).prop_map(|(has, half)| Machine { has, vcpus: 2 * half });
    prop::collection::vec(machine, 1..7)
}

fn reservations() -> impl Strategy<Value = Vec<Asked>> {
    let hosts = (any::<Properties>(), 1..4u32).prop_map(|(wants, count)| Asked::Hosts(wants, count));
    let affinity = prop_oneof![Just(Affinity::Any), Just(Affinity::OneHost), Just(Affinity::DistinctHosts)];
    let slots = (any::<Properties>(), 1..6u32, affinity);
    let slots = slots.prop_map(|(wants, count, affinity)| Asked::Instances(wants, count, affinity));
    (prop::collection::vec(hosts, 1..4), prop::option::of(slots), any::<bool>()).prop_map(
        |(hosts, slots, first)| {
            let (before, after) = if first { (slots, None) } else { (None, slots) };
            before.into_iter().chain(hosts).chain(after).collect()
        },
    )
}

fn suits(machine: &Machine, wants: Properties) -> bool {
    machine.has.iter().zip(wants).all(|(has, wants)| *has || !wants)
}

fn requirement(wants: Properties) -> Requirement {
    let wanted = NAMES.iter().zip(wants).filter(|(_, wants)| *wants);
    let equal = |name| Requirement::compare(Operator::Equal, name, "yes").expect("well formed");
    let all: Vec<Requirement> = wanted.map(|(name, _)| equal(*name)).collect();
    if all.is_empty() { Requirement::NONE } else { Requirement::all(all).expect("well formed") }
}

fn terms(asked: &Asked) -> ReservationTerms {
    match asked {
        Asked::Hosts(wants, count) => ReservationTerms::Hosts(
            HostsTerms::new(*count, *count).expect("a range").requiring(requirement(*wants)),
        ),
        Asked::Instances(wants, count, affinity) => ReservationTerms::Instances(InstancesTerms {
            requirement: requirement(*wants),
            ..instances(2, 1, *count, *affinity)
        }),
    }
}

fn inventory(machines: &[Machine]) -> Inventory {
    let host = |(id, machine): (u64, &Machine)| {
        let mut host = Host::new(HostId(id), format!("node{id}"), machine.vcpus, 1000, 1000);
        for (name, _) in NAMES.iter().zip(machine.has).filter(|(_, has)| *has) {
            host.capabilities.insert((*name).to_owned(), "yes".to_owned());
        }
        host
    };
    Inventory::new((1..).zip(machines).map(host), [])
}

/// Exhaustive search for an assignment that serves all reservations.
fn can_be_served(machines: &[Machine], asked: &[Asked], taken: &mut Vec<Option<usize>>) -> bool {
    if taken.len() < machines.len() {
        let hosts = asked.iter().enumerate().filter(|(_, asked)| matches!(asked, Asked::Hosts(..)));
        let owners: Vec<Option<usize>> = hosts.map(|(part, _)| Some(part)).chain([None]).collect();
        return owners.into_iter().any(|owner| {
            taken.push(owner);
            let served = can_be_served(machines, asked, taken);
            taken.pop();
            served
        });
    }
    asked.iter().enumerate().all(|(part, asked)| match asked {
        Asked::Hosts(wants, count) => {
            let given = machines.iter().zip(&*taken).filter(|(_, owner)| **owner == Some(part));
            given.filter(|(machine, _)| suits(machine, *wants)).count() >= *count as usize
        }
        Asked::Instances(wants, count, affinity) => {
            let left = machines.iter().zip(&*taken).filter(|(_, owner)| owner.is_none());
            let room =
                left.filter(|(machine, _)| suits(machine, *wants)).map(|(machine, _)| machine.vcpus / 2);
            match affinity {
                Affinity::Any => room.sum::<u32>() >= *count,
                Affinity::OneHost => room.max().unwrap_or(0) >= *count,
                Affinity::DistinctHosts => room.filter(|room| *room > 0).count() >= *count as usize,
            }
        }
    })
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_lease_takes_no_host_that_has_more_than_a_free_one_and_of_hosts_that_are_alike_the_first(
        machines in machines(),
        count in 1..7u32,
    ) {
        let count = count.min(machines.len() as u32);
        let inventory = inventory(&machines);
        let (calendar, rules, facts) = (Calendar::default(), Rules::default(), HostFacts::nothing());
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let asked = vec![terms(&Asked::Hosts([false, false], count))];
        let wanted = Terms::new(window(10, 20), None, asked).expect("terms");
        let given = admission.decide(&project(), &wanted).expect("all are free");
        let taken = given[0].hosts();
        let is_taken = |host: usize| taken.contains(&HostId(host as u64 + 1));
        for (own, machine) in machines.iter().enumerate().filter(|(own, _)| is_taken(*own)) {
            for (left, other) in machines.iter().enumerate().filter(|(left, _)| !is_taken(*left)) {
                let lacks_nothing = machine.has.iter().zip(other.has).all(|(own, other)| *own || !other);
                prop_assert!(machine.has == other.has || !lacks_nothing, "{own} instead of {left}: {given:?}");
                prop_assert!(machine.has != other.has || own < left, "{own} instead of {left}: {given:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn cls_10_i_a_lease_is_refused_only_if_no_assignment_serves_all_of_its_reservations(
        machines in machines(),
        asked in reservations(),
    ) {
        let inventory = inventory(&machines);
        let (calendar, rules, facts) = (Calendar::default(), Rules::default(), HostFacts::nothing());
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let wanted = Terms::new(window(10, 20), None, asked.iter().map(terms).collect()).expect("terms");
        let given = admission.decide(&project(), &wanted);
        prop_assert_eq!(given.is_ok(), can_be_served(&machines, &asked, &mut Vec::new()), "{:?}", given);
        if let Ok(given) = given {
            let mut all: Vec<HostId> = given.iter().flat_map(leases::lease::Allocation::hosts).collect();
            all.sort_unstable();
            let count = all.len();
            all.dedup();
            prop_assert_eq!(all.len(), count, "no host is given twice");
        }
    }
}
