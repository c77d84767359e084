//! Reported availability equals a recount of all bookings, minute by minute.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use leases::admission::{Admission, Rules};
use leases::calendar::Calendar;
use leases::host_facts::HostFacts;
use leases::ids::{FloatingIpId, HostId};
use leases::lease::{Allocation, Lease};
use leases::terms::{Affinity, FloatingIpsTerms, HostsTerms, ReservationTerms, Terms};
use leases::window::Window;
use proptest::prelude::*;

use crate::generate::{
    ADDRESSES, HORIZON, HOSTS, at, cases, given, instances, inventory, minutes, network, project, window,
    windows,
};

/// A booking of whole hosts, of slots with this many vCPUs each, or of addresses.
#[derive(Clone, Debug)]
enum Booked {
    Hosts(BTreeSet<u64>),
    Slots(BTreeSet<u64>, u32),
    Addresses(BTreeSet<u64>),
}

fn booked() -> impl Strategy<Value = (Window, Booked)> {
    let hosts = || proptest::collection::btree_set(1..=HOSTS, 1..4);
    let addresses = proptest::collection::btree_set(1..=u64::from(ADDRESSES), 1..3);
    let booked = prop_oneof![
        2 => hosts().prop_map(Booked::Hosts),
        2 => (hosts(), 1..4u32).prop_map(|(hosts, vcpus)| Booked::Slots(hosts, vcpus)),
        1 => addresses.prop_map(Booked::Addresses),
    ];
    (windows(), booked)
}

fn lease(number: u128, window: Window, booked: &Booked) -> Lease {
    let ids = |hosts: &BTreeSet<u64>| hosts.iter().map(|id| HostId(*id)).collect::<BTreeSet<_>>();
    match booked {
        Booked::Hosts(hosts) => {
            let asked = ReservationTerms::Hosts(HostsTerms::new(1, 9).expect("a range"));
            given(number, window, asked, Allocation::Hosts(ids(hosts)))
        }
        Booked::Slots(hosts, vcpus) => {
            let asked = ReservationTerms::Instances(instances(*vcpus, 1, 9, Affinity::Any));
            given(
                number,
                window,
                asked,
                Allocation::Slots(ids(hosts).into_iter().map(|host| (host, 1)).collect()),
            )
        }
        Booked::Addresses(addresses) => {
            let asked =
                ReservationTerms::FloatingIps(FloatingIpsTerms::new(network(), 1, []).expect("terms"));
            let ids = addresses.iter().map(|id| FloatingIpId(u128::from(*id))).collect();
            given(number, window, asked, Allocation::FloatingIps(ids))
        }
    }
}

fn vcpus(host: u64) -> u32 {
    if host.is_multiple_of(2) { 4 } else { 8 }
}

/// Number free in a minute, counted over all bookings.
fn recounted(entered: &[(Window, Booked)], asked: &ReservationTerms, cleaning: i64, minute: i64) -> u64 {
    let near =
        |window: &Window, margin: i64| window.overlaps(&self::window(minute - margin, minute + 1 + margin));
    let free_host = |host: u64| {
        let taken = |(window, booked): &(Window, Booked)| match booked {
            Booked::Hosts(hosts) | Booked::Slots(hosts, _) => hosts.contains(&host) && near(window, cleaning),
            Booked::Addresses(_) => false,
        };
        u64::from(!entered.iter().any(taken))
    };
    let slots = |host: u64| {
        let mut used = 0;
        for (window, booked) in entered {
            match booked {
                Booked::Hosts(hosts) if hosts.contains(&host) && near(window, cleaning) => return 0,
                Booked::Slots(hosts, vcpus) if hosts.contains(&host) && near(window, 0) => used += vcpus,
                _ => {}
            }
        }
        u64::from(vcpus(host).saturating_sub(used) / 2)
    };
    if let ReservationTerms::FloatingIps(_) = asked {
        let taken = |id: u64| {
            let takes = |(window, booked): &(Window, Booked)| {
                matches!(booked, Booked::Addresses(ids) if ids.contains(&id)) && near(window, 0)
            };
            entered.iter().any(takes)
        };
        return (1..=u64::from(ADDRESSES)).filter(|id| !taken(*id)).count() as u64;
    }
    if let ReservationTerms::Hosts(_) = asked {
        return (1..=HOSTS).map(free_host).sum();
    }
    (1..=HOSTS).map(slots).sum()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn what_is_free_when_is_what_a_recount_finds(
        bookings in proptest::collection::vec(booked(), 0..12),
        cleaning in 0..3i64,
        (start, length) in (0..HORIZON, 0..HORIZON),
    ) {
        let (inventory, mut calendar) = (inventory(), Calendar::new(minutes(cleaning)));
        let mut entered = Vec::new();
        for (number, (window, booked)) in (1..).zip(bookings) {
            if calendar.put(&lease(number, window, &booked), at(0)).is_ok() {
                entered.push((window, booked));
            }
        }
        let rules = Rules::default();
        let facts = HostFacts::nothing();
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let within = window(start, start + length);
        for (asked, total) in [
            (ReservationTerms::Hosts(HostsTerms::new(2, 3).expect("a range")), HOSTS),
            (ReservationTerms::Instances(instances(2, 1, 7, Affinity::Any)), 4 + 2 + 4 + 2 + 4),
            (
                ReservationTerms::FloatingIps(FloatingIpsTerms::new(network(), 1, []).expect("terms")),
                ADDRESSES.into(),
            ),
        ] {
            let found = admission.availability(&project(), &asked, within).expect("cheap");
            prop_assert_eq!(found.total, total);
            let free = |minute: i64| {
                let here: Vec<_> = found.steps.iter().filter(|(step, _)| step.contains(at(minute))).collect();
                prop_assert_eq!(here.len(), 1);
                Ok(here[0].1)
            };
            for minute in start..start + length {
                prop_assert_eq!(free(minute)?, recounted(&entered, &asked, cleaning, minute), "{} {:?}", minute, &asked);
            }
            let bounds = found.steps.windows(2);
            prop_assert!(bounds.into_iter().all(|pair| pair[0].0.end() == pair[1].0.start() && pair[0].1 != pair[1].1));
        }
    }
}

/// Windows granted to leases that are created one after another.
fn granted(
    admission: &Admission<'_>,
    asked: &ReservationTerms,
    within: Window,
    length: SignedDuration,
) -> Vec<Window> {
    let (mut found, mut rest) = (Vec::new(), within);
    while found.len() < 3 && rest.length() >= length {
        let terms = Terms::new(Window::starting(rest.start(), length), None, vec![asked.clone()]);
        let terms = terms.and_then(|terms| terms.anywhere_in(rest)).expect("terms");
        let Ok(grant) = admission.grant(&project(), &terms) else { break };
        rest = rest.since(grant.terms.window().end());
        found.push(grant.terms.window());
    }
    found
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn the_earliest_times_are_those_at_which_leases_would_be_made(
        bookings in proptest::collection::vec(booked(), 0..12),
        cleaning in 0..3i64,
        (start, within, length) in (0..HORIZON, 0..2 * HORIZON, 1..HORIZON),
        count in 1..6u32,
    ) {
        let (inventory, mut calendar) = (inventory(), Calendar::new(minutes(cleaning)));
        for (number, (window, booked)) in (1..).zip(bookings) {
            // Conflicting bookings are skipped.
            let _ = calendar.put(&lease(number, window, &booked), at(0));
        }
        let rules = Rules::default();
        let facts = HostFacts::nothing();
        let admission = Admission::new(&calendar, &inventory, &rules, &facts, at(0));
        let within = window(start, start + within);
        for asked in [
            ReservationTerms::Hosts(HostsTerms::new(count, count).expect("a range")),
            ReservationTerms::Instances(instances(2, 1, count, Affinity::Any)),
        ] {
            let found = admission.earliest_windows(&project(), &asked, within, (minutes(length), 3)).expect("cheap");
            prop_assert_eq!(found, granted(&admission, &asked, within, minutes(length)), "{:?}", asked);
        }
    }
}
