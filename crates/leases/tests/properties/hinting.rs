//! Allocated hosts always satisfy the hints of their lease, and are allocated whenever enough such hosts
//! exist (CLS-11).

use std::collections::{BTreeMap, BTreeSet};

use leases::admission::{Admission, HealingInterval, Rules};
use leases::calendar::Calendar;
use leases::hints::{Hints, Location, OtherLeases};
use leases::host::{Health, Host, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::HostId;
use leases::lease::{Allocation, Lease};
use leases::requirement::{Operator, Requirement};
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use proptest::prelude::*;

use crate::generate::{at, cases, new_lease, project};

/// Rack of each host, if known, and whether the host is taken.
type Hosts = Vec<(Option<u8>, bool)>;

fn hosts() -> impl Strategy<Value = Hosts> {
    proptest::collection::vec((proptest::option::of(0..3u8), proptest::bool::weighted(0.2)), 1..9)
}

fn hints() -> impl Strategy<Value = Hints> {
    let some = || proptest::option::weighted(0.3, proptest::collection::btree_set(1..9u64, 1..6));
    let location = prop_oneof![Just(None), Just(Some(Location::Same)), Just(Some(Location::Different))];
    (some(), some(), some(), proptest::option::weighted(0.2, 0..3u8), location).prop_map(
        |(named, same, different, rack, location)| {
            let others = |hosts: Option<BTreeSet<u64>>| {
                hosts.map(|hosts| OtherLeases {
                    hosts: hosts.into_iter().map(HostId).collect(),
                    ..OtherLeases::default()
                })
            };
            let query = rack.map(|rack| {
                Requirement::compare(Operator::Equal, "rack", format!("r{rack}")).expect("well formed")
            });
            // Host names can't be combined with hosts of other leases.
            let same = same.filter(|_| named.is_none());
            Hints {
                query: query.unwrap_or_default(),
                hosts: named.into_iter().flatten().map(|id| format!("node{id}")).collect(),
                same_host: others(same),
                different_host: others(different),
                location,
                group: None,
            }
        },
    )
}

fn inventory(hosts: &Hosts) -> Inventory {
    let host = |(position, (rack, _)): (usize, &(Option<u8>, bool))| {
        let id = position as u64 + 1;
        let mut host = Host::new(HostId(id), format!("node{id}"), 16, 65_536, 1000);
        host.capabilities.extend(rack.map(|rack| ("rack".to_owned(), format!("r{rack}"))));
        host
    };
    Inventory::new(hosts.iter().enumerate().map(host), [])
}

fn rack(inventory: &Inventory, host: HostId) -> Option<&String> {
    inventory.host(host).and_then(|host| host.capabilities.get("rack"))
}

/// Whether a single host satisfies the hints, according to the documentation.
fn wanted(inventory: &Inventory, hints: &Hints, id: HostId) -> bool {
    let host = inventory.host(id).expect("there");
    (hints.hosts.is_empty() || hints.hosts.contains(&host.name))
        && hints.same_host.as_ref().is_none_or(|others| others.hosts.contains(&id))
        && hints.different_host.as_ref().is_none_or(|others| !others.hosts.contains(&id))
        && hints.query.matches(host)
        && (hints.location.is_none() || rack(inventory, id).is_some())
}

/// Maximum number of these hosts that can be allocated together.
fn most(inventory: &Inventory, hints: &Hints, hosts: &BTreeSet<HostId>) -> usize {
    let mut racks: BTreeMap<_, usize> = BTreeMap::new();
    for host in hosts {
        *racks.entry(rack(inventory, *host)).or_default() += 1;
    }
    match hints.location {
        None => hosts.len(),
        Some(Location::Same) => racks.into_values().max().unwrap_or(0),
        Some(Location::Different) => racks.len(),
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn hosts_are_where_hints_want_them_and_given_if_there_are_any(
        hosts in hosts(), hints in hints(), min in 1..4u32, more in 0..3u32, failing in 0..9usize,
    ) {
        let mut inventory = inventory(&hosts);
        let (window, max) = (leases::window::Window::new(at(0), at(60)).expect("forwards"), min + more);
        let taken: BTreeSet<HostId> =
            (1..).zip(&hosts).filter(|(_, (_, taken))| *taken).map(|(id, _)| HostId(id)).collect();
        let asked = |min, max| vec![ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range"))];
        let mut calendar = Calendar::default();
        if !taken.is_empty() {
            let terms = Terms::new(window, None, asked(1, 1)).expect("terms");
            let given = vec![Allocation::Hosts(taken.clone())];
            calendar.put(&Lease::new(new_lease(1, 1), terms, given, None), at(0)).expect("free");
        }
        let rules = Rules::default();
        let terms = Terms::new(window, None, asked(min, max)).expect("terms").hinting(hints.clone());
        let usable: BTreeSet<HostId> = inventory
            .hosts()
            .map(|host| host.id)
            .filter(|id| !taken.contains(id) && wanted(&inventory, &hints, *id))
            .collect();
        let best = most(&inventory, &hints, &usable);
        let facts = HostFacts::nothing();
        let decided = Admission::new(&calendar, &inventory, &rules, &facts, at(0)).decide(&project(), &terms);
        let Ok(given) = decided else {
            prop_assert!(best < min as usize, "{best} could be had");
            return Ok(());
        };
        let had = given[0].hosts();
        prop_assert!(had.is_subset(&usable));
        prop_assert_eq!(had.len(), best.min(max as usize));
        prop_assert_eq!(most(&inventory, &hints, &had), had.len());
        // If a host fails, its replacement must satisfy the hints, too.
        let lease = Lease::new(new_lease(2, 1), terms, given, None);
        calendar.put(&lease, at(0)).expect("free");
        let failed = *had.iter().nth(failing % had.len()).expect("not empty");
        inventory.host_mut(failed).expect("there").health = Health::Failed;
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let healed = admission.heal(&lease, HealingInterval::default()).expect("one is missing");
        let after = healed.reservations[0].allocation.hosts();
        prop_assert!(!after.contains(&failed) && after.is_subset(&usable));
        prop_assert_eq!(most(&inventory, &hints, &after), after.len());
    }
}
