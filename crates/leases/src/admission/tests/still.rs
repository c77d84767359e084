//! Checks of decisions against leases that were made in the meantime.

use proptest::prelude::*;

use super::*;
use crate::admission::still_fit;

/// A lease of slots with `vcpus` CPUs each.
fn of_slots(number: u128, window: Window, vcpus: u32, on: &[(u64, u32)]) -> Lease {
    let amount = on.iter().map(|(_, count)| count).sum();
    let terms = Terms::new(window, None, vec![instances(vcpus, amount, Affinity::Any)]).expect("terms");
    Lease::new(new_lease(number, 1), terms, vec![slots(on.iter().copied())], None)
}

/// A lease's share of a host: the whole host, or a number of CPUs.
#[derive(Clone, Copy, Debug)]
enum Part {
    All,
    Cpus(u32),
}

type Drawn = ((i64, i64), u64, Part);

fn lease_of(number: u128, ((start, length), host, part): Drawn) -> Lease {
    let window = window(start, start + length);
    match part {
        Part::All => crate::testing::lease(number, window, &[host]),
        Part::Cpus(count) => of_slots(number, window, 1, &[(host, count)]),
    }
}

/// Recounts minute by minute: no booking overlaps another, and hosts are cleaned.
fn counted(leases: &[Drawn], cleaning: i64) -> bool {
    let clash = |(a, b): (&Drawn, &Drawn)| {
        let whole = matches!(a.2, Part::All) || matches!(b.2, Part::All);
        let gap = if whole { cleaning } else { 0 };
        let apart = a.0.0 + a.0.1 + gap <= b.0.0 || b.0.0 + b.0.1 + gap <= a.0.0;
        a.1 == b.1 && whole && !apart
    };
    let pairs = || leases.iter().enumerate().flat_map(|(i, a)| leases[i + 1..].iter().map(move |b| (a, b)));
    let cpus = |host: u64, minute: i64| -> u32 {
        let at = leases
            .iter()
            .filter(|lease| lease.1 == host && (lease.0.0..lease.0.0 + lease.0.1).contains(&minute));
        at.map(|lease| if let Part::Cpus(count) = lease.2 { count } else { 0 }).sum()
    };
    !pairs().any(clash) && (1..=3).all(|host| (0..60).all(|minute| cpus(host, minute) <= 16))
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let part = prop_oneof![Just(Part::All), (1u32..=12).prop_map(Part::Cpus)];
    ((0i64..30, 1i64..20), 1u64..=3, part)
}

proptest! {
    /// Enters leases one after another as long as they fit. Each fits exactly if the recount agrees.
    #[test]
    fn what_still_fits_is_what_a_recount_finds(leases in prop::collection::vec(drawn(), 1..8), cleaning in 0i64..5) {
        let inventory = inventory(3);
        let mut calendar = Calendar::new(minutes(cleaning));
        let mut entered: Vec<Drawn> = Vec::new();
        for (number, one) in leases.into_iter().enumerate() {
            let lease = lease_of(number as u128 + 1, one);
            let fits = still_fit(&calendar, &inventory, &[&lease], at(0));
            let beside: Vec<Drawn> = entered.iter().copied().chain([one]).collect();
            prop_assert_eq!(fits, counted(&beside, cleaning));
            if fits {
                calendar.put(&lease, at(0)).expect("it fits");
                entered = beside;
            }
        }
    }
}

#[test]
fn leases_that_were_decided_together_do_not_stand_in_their_own_way_nor_on_each_other() {
    let inventory = inventory(2);
    let mut calendar = Calendar::new(minutes(0));
    let before = crate::testing::lease(1, window(0, 60), &[1]);
    calendar.put(&before, at(0)).expect("free");
    // One lease moves away, so that another can have its host.
    let moved = crate::testing::lease(1, window(0, 60), &[2]);
    let new = crate::testing::lease(2, window(0, 60), &[1]);
    assert!(still_fit(&calendar, &inventory, &[&moved, &new], at(0)));
    assert!(!still_fit(&calendar, &inventory, &[&new], at(0)));
    let twice = crate::testing::lease(3, window(30, 90), &[2]);
    assert!(!still_fit(&calendar, &inventory, &[&moved, &twice], at(0)));
}

#[test]
fn slots_on_a_host_that_is_gone_do_not_fit() {
    let lease = of_slots(1, window(0, 60), 1, &[(7, 1)]);
    assert!(!still_fit(&Calendar::new(minutes(0)), &inventory(2), &[&lease], at(0)));
}
