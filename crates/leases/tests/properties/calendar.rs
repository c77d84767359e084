//! The calendar agrees with a model that checks every minute.

use std::collections::BTreeSet;

use leases::calendar::Calendar;
use leases::ids::{HostId, LeaseId};
use leases::lease::{Allocation, Lease};
use leases::terms::{Affinity, HostsTerms, ReservationTerms};
use leases::window::Window;
use leases::work::UNLIMITED;
use proptest::prelude::*;

use crate::generate::{HORIZON, HOSTS, at, cases, given, instances, minutes, window, windows};

/// Adds or removes a lease.
#[derive(Clone, Debug)]
enum Turn {
    Put(u128, Window, BTreeSet<u64>, bool),
    Remove(u128),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let hosts = proptest::collection::btree_set(1..=HOSTS, 1..3);
    let put = (1..9u128, windows(), hosts, any::<bool>())
        .prop_map(|(number, window, hosts, whole)| Turn::Put(number, window, hosts, whole));
    proptest::collection::vec(prop_oneof![5 => put, 1 => (1..9u128).prop_map(Turn::Remove)], 1..20)
}

fn lease(number: u128, window: Window, hosts: &BTreeSet<u64>, whole: bool) -> Lease {
    let hosts = hosts.iter().map(|id| HostId(*id));
    if whole {
        let asked = HostsTerms::new(1, 9).expect("a range");
        given(number, window, ReservationTerms::Hosts(asked), Allocation::Hosts(hosts.collect()))
    } else {
        let asked = ReservationTerms::Instances(instances(number as u32, 1, 9, Affinity::Any));
        given(number, window, asked, Allocation::Slots(hosts.map(|host| (host, 2)).collect()))
    }
}

/// A list of leases, searched minute by minute.
#[derive(Default)]
struct Model(Vec<Lease>);

impl Model {
    /// Leases on the host in this minute, and whether they hold the whole host.
    fn on(&self, host: HostId, minute: i64) -> Vec<(&Lease, bool)> {
        let here = |lease: &&Lease| {
            lease.window.contains(at(minute)) && lease.reservations[0].allocation.hosts().contains(&host)
        };
        let whole = |lease: &Lease| matches!(lease.reservations[0].allocation, Allocation::Hosts(_));
        self.0.iter().filter(here).map(|lease| (lease, whole(lease))).collect()
    }

    fn free(&self, host: HostId, minute: i64) -> bool {
        self.on(host, minute).is_empty()
    }

    fn vcpus(&self, host: HostId, minute: i64) -> u64 {
        self.on(host, minute).iter().filter(|(_, whole)| !whole).map(|(lease, _)| 2 * lease.id.0 as u64).sum()
    }

    /// Whether the lease fits next to the existing ones.
    fn admits(&self, new: &Lease) -> bool {
        let others = Self(self.0.iter().filter(|lease| lease.id != new.id).cloned().collect());
        let whole = matches!(new.reservations[0].allocation, Allocation::Hosts(_));
        (0..2 * HORIZON).filter(|minute| new.window.contains(at(*minute))).all(|minute| {
            new.reservations[0]
                .allocation
                .hosts()
                .into_iter()
                .all(|host| others.on(host, minute).iter().all(|(_, other_whole)| !whole && !other_whole))
        })
    }
}

fn play(turns: &[Turn]) -> (Calendar, Model) {
    let (mut calendar, mut model) = (Calendar::default(), Model::default());
    for turn in turns {
        match turn {
            Turn::Put(number, window, hosts, whole) => {
                let lease = lease(*number, *window, hosts, *whole);
                let before = calendar.clone();
                let entered = calendar.put(&lease, at(0)).is_ok();
                assert_eq!(entered, model.admits(&lease), "{lease:?}");
                if entered {
                    model.0.retain(|other| other.id != lease.id);
                    model.0.push(lease);
                } else {
                    assert_eq!(calendar, before);
                }
            }
            Turn::Remove(number) => {
                calendar.remove(LeaseId(*number));
                model.0.retain(|lease| lease.id != LeaseId(*number));
            }
        }
    }
    (calendar, model)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn every_question_has_the_naive_answer(turns in turns(), window in windows()) {
        let (calendar, model) = play(&turns);
        let inside = || (0..2 * HORIZON).filter(|minute| window.contains(at(*minute)));
        for host in (1..=HOSTS).map(HostId) {
            let free = inside().all(|minute| model.free(host, minute));
            prop_assert_eq!(calendar.host_free(host, &window, None), free);
            let open = inside().all(|minute| model.on(host, minute).iter().all(|(_, whole)| !whole));
            prop_assert_eq!(calendar.host_open_to_slots(host, &window, None), open);
            let peak = inside().map(|minute| model.vcpus(host, minute)).max();
            prop_assert_eq!(Some(calendar.peak_use(host, &window, None).vcpus), peak);
            let gaps = calendar.free_gaps(host, &window, None);
            for minute in inside() {
                let in_gap = gaps.iter().any(|gap| gap.contains(at(minute)));
                prop_assert_eq!(in_gap, model.free(host, minute));
            }
            prop_assert!(gaps.windows(2).all(|pair| pair[0].end() < pair[1].start()));
        }
    }

    #[test]
    fn the_earliest_slot_is_the_first_minute_that_will_do(
        turns in turns(),
        count in 1..4usize,
        length in 1..15i64,
        cleaning in 0..3i64,
    ) {
        let (_, model) = play(&turns);
        let hosts: Vec<HostId> = (1..=HOSTS).map(HostId).collect();
        let free_from = |start: i64| -> Vec<HostId> {
            let needed = (start - cleaning).max(0)..start + length + cleaning;
            hosts.iter().copied().filter(|host| needed.clone().all(|m| model.free(*host, m))).collect()
        };
        let expected = (0..=HORIZON - length).find(|start| free_from(*start).len() >= count);
        let calendar = Calendar::new(minutes(cleaning)).with_leases(&model.0, at(0)).expect("as before");
        let found = calendar.earliest_slot(&hosts, count, minutes(length), &window(0, HORIZON), None, &UNLIMITED);
        prop_assert_eq!(found.as_ref().map(|slot| slot.window.start()), expected.map(at));
        if let (Some(slot), Some(start)) = (found, expected) {
            let free = free_from(start);
            prop_assert_eq!(slot.hosts.len(), count);
            prop_assert!(slot.hosts.iter().all(|host| free.contains(host)));
        }
    }

    #[test]
    fn the_order_of_arrival_does_not_matter(turns in turns()) {
        let (calendar, model) = play(&turns);
        let backwards = Calendar::default().with_leases(model.0.iter().rev(), at(0)).expect("no conflict");
        prop_assert_eq!(calendar, backwards);
    }
}
