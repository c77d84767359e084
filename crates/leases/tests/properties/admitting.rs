//! Admitted leases never overlap or overcommit hosts, after any sequence of creations, changes and deletions.
//! Refused requests couldn't have been met.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use leases::admission::{
    Admission, Changes, HealingInterval, HostsChange, InstancesChange, Refusal, Rules, TermsChange, heal_all,
};
use leases::calendar::Calendar;
use leases::host::{Health, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::{HostId, LeaseId};
use leases::lease::{Allocation, Lease};
use leases::resources::Resources;
use leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use leases::terms::{Affinity, ReservationTerms, Terms};
use leases::window::Window;
use proptest::prelude::*;

use crate::generate::{HORIZON, HOSTS, asked, at, cases, inventory, minutes, new_lease, project, windows};

#[derive(Clone, Debug)]
enum Turn {
    Create(Window, Vec<ReservationTerms>),
    /// Changes a lease: new start, new end, new number.
    Change(usize, Option<i64>, Option<i64>, Option<u32>),
    Start(usize),
    Delete(usize),
    Fail(u64),
    Recover(u64),
    Heal,
    Later(i64),
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let create = (windows(), proptest::collection::vec(asked(), 1..3)).prop_map(|(w, a)| Turn::Create(w, a));
    let minute = || proptest::option::of(0..HORIZON + 20);
    let change = (0..8usize, minute(), minute(), proptest::option::of(1..6u32))
        .prop_map(|(lease, start, end, number)| Turn::Change(lease, start, end, number));
    let turn = prop_oneof![
        8 => create,
        8 => change,
        2 => (0..8usize).prop_map(Turn::Start),
        1 => (0..8usize).prop_map(Turn::Delete),
        1 => (1..=HOSTS).prop_map(Turn::Fail),
        1 => (1..=HOSTS).prop_map(Turn::Recover),
        2 => Just(Turn::Heal),
        1 => (1..8i64).prop_map(Turn::Later),
    ];
    proptest::collection::vec(turn, 1..30)
}

struct Cloud {
    inventory: Inventory,
    calendar: Calendar,
    rules: Rules,
    facts: HostFacts<'static>,
    leases: Vec<Lease>,
    now: i64,
    next: u128,
}

impl Cloud {
    fn new(cleaning: i64) -> Self {
        let rules = Rules { before_end_lead: Some(minutes(3)), ..Rules::default() };
        let (inventory, calendar) = (inventory(), Calendar::new(minutes(cleaning)));
        let facts = HostFacts::nothing();
        Self { inventory, calendar, rules, facts, leases: Vec::new(), now: 0, next: 1 }
    }

    fn admission(&self) -> Admission<'_> {
        Admission::new(&self.calendar, &self.inventory, &self.rules, &self.facts, at(self.now))
    }

    fn turn(&mut self, turn: &Turn) {
        match turn {
            Turn::Create(window, asked) => self.create(*window, asked),
            Turn::Change(lease, start, end, number) => {
                if let Some(position) = self.pick(*lease) {
                    self.change(position, *start, *end, *number);
                }
            }
            Turn::Start(lease) => {
                let started = self.pick(*lease).map(|position| &mut self.leases[position]);
                if let Some(lease) = started.filter(|lease| lease.window.contains(at(self.now))) {
                    lease.status = LeaseStatus::Active;
                    lease.events.start = EventStatus::Done;
                    lease.reservations.iter_mut().for_each(|r| r.status = ReservationStatus::Active);
                }
            }
            Turn::Delete(lease) => {
                if let Some(position) = self.pick(*lease) {
                    let lease = self.leases.remove(position);
                    self.calendar.put(&lease.deleted(at(self.now)), at(self.now)).expect("never refused");
                }
            }
            Turn::Fail(host) => self.health(*host, Health::Failed),
            Turn::Recover(host) => self.health(*host, Health::Up),
            Turn::Heal => {
                let interval = HealingInterval::default();
                let (calendar, inventory) = (&mut self.calendar, &self.inventory);
                let healed = heal_all(
                    calendar,
                    inventory,
                    &self.rules,
                    &self.facts,
                    &self.leases,
                    interval,
                    at(self.now),
                );
                for lease in healed {
                    self.replace(&lease);
                }
            }
            Turn::Later(by) => self.now += by,
        }
    }

    fn pick(&self, lease: usize) -> Option<usize> {
        (!self.leases.is_empty()).then(|| lease % self.leases.len())
    }

    fn health(&mut self, host: u64, health: Health) {
        self.inventory.host_mut(HostId(host)).expect("there").health = health;
    }

    fn replace(&mut self, new: &Lease) {
        self.leases.iter_mut().filter(|lease| lease.id == new.id).for_each(|lease| *lease = new.clone());
    }

    fn create(&mut self, window: Window, asked: &[ReservationTerms]) {
        let terms = Terms::new(window, None, asked.to_vec()).expect("terms");
        match self.admission().decide(&project(), &terms) {
            Ok(given) => {
                for (asked, given) in asked.iter().zip(&given) {
                    assert_met(asked, given);
                }
                let new = new_lease(self.next, given.len());
                let lease = Lease::new(new, terms, given, self.rules.before_end_lead);
                self.calendar.put(&lease, at(self.now)).expect("admitted");
                self.leases.push(lease);
                self.next += 1;
            }
            Err(Refusal::StartInPast) => assert!(window.start() < at(self.now)),
            Err(Refusal::NotEnough { .. }) => {
                if let [asked] = asked {
                    self.assert_cannot_be_met(window, asked);
                }
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn change(&mut self, position: usize, start: Option<i64>, end: Option<i64>, number: Option<u32>) {
        let lease = self.leases[position].clone();
        let reservations = lease.reservations.iter().filter_map(|r| {
            let change = match (&r.terms, number?) {
                (ReservationTerms::Hosts(_), n) => {
                    TermsChange::Hosts(HostsChange { min: Some(n), max: Some(n), ..HostsChange::default() })
                }
                (ReservationTerms::Instances(_), n) => TermsChange::Instances(InstancesChange {
                    amount: NonZeroU32::new(n),
                    ..InstancesChange::default()
                }),
                _ => TermsChange::None,
            };
            Some((r.id, change))
        });
        let changes = Changes {
            start: start.map(at),
            end: end.map(at),
            reservations: reservations.collect(),
            ..Changes::default()
        };
        let Ok(updated) = self.admission().update(&lease, &changes) else { return };
        let new = updated.lease;
        assert!(new.consistent());
        assert_eq!((new.id, &new.owner, new.status), (lease.id, &lease.owner, lease.status));
        let before_end = new.before_end.expect("always one");
        assert!(new.window.start() <= before_end && before_end <= new.window.end());
        if lease.status == LeaseStatus::Active {
            assert_eq!(new.window.start(), lease.window.start());
            for (old, new) in lease.reservations.iter().zip(&new.reservations) {
                assert_nothing_lost(&old.allocation, &new.allocation);
            }
        }
        self.calendar.put(&new, at(self.now)).expect("admitted");
        self.replace(&new);
    }

    /// Checks every minute from now on.
    fn assert_nothing_is_given_twice(&self) {
        for minute in self.now..2 * HORIZON + 20 {
            let (mut whole, mut shared) = (BTreeMap::new(), BTreeMap::new());
            let mut addresses = BTreeMap::new();
            for lease in self.leases.iter().filter(|l| l.window.contains(at(minute))) {
                for reservation in &lease.reservations {
                    match &reservation.allocation {
                        Allocation::Hosts(hosts) => {
                            for host in hosts {
                                let other: Option<LeaseId> = whole.insert(*host, lease.id);
                                assert_eq!(other, None, "host {host} in minute {minute}");
                            }
                        }
                        Allocation::Slots(slots) => {
                            let size = reservation.terms.slots().expect("slots").size;
                            for (host, count) in slots {
                                shared.entry(*host).or_insert_with(Resources::default).add(*count, &size);
                            }
                        }
                        Allocation::FloatingIps(ips) => {
                            for ip in ips {
                                assert_eq!(addresses.insert(*ip, lease.id), None, "{ip}, {minute}");
                            }
                        }
                    }
                }
            }
            for (host, used) in shared {
                assert!(!whole.contains_key(&host), "host {host} in minute {minute}");
                let capacity = self.inventory.host(host).expect("there").capacity();
                let fits = used.vcpus <= capacity.vcpus
                    && used.memory_mib <= capacity.memory_mib
                    && used.disk_gib <= capacity.disk_gib;
                assert!(fits, "host {host} in minute {minute}: {used:?}");
            }
        }
    }

    /// Recounts by checking every minute. Whole hosts include cleaning time.
    fn assert_cannot_be_met(&self, window: Window, asked: &ReservationTerms) {
        let cleaned = window.widened(self.calendar.cleaning_time());
        let free = |host: HostId| self.calendar.host_free(host, &cleaned, None);
        let works = || self.inventory.hosts().filter(|host| host.health == Health::Up);
        match asked {
            ReservationTerms::Hosts(terms) => {
                let count = works().filter(|host| free(host.id)).count();
                assert!(count < terms.min() as usize, "{count} are free");
            }
            ReservationTerms::Instances(terms) => {
                let size = terms.size.resources();
                let room = works()
                    .filter(|host| self.calendar.host_open_to_slots(host.id, &cleaned, None))
                    .map(|host| {
                        let minutes = (0..2 * HORIZON).filter(|minute| window.contains(at(*minute)));
                        let used = |minute| {
                            let minute = crate::generate::window(minute, minute + 1);
                            self.calendar.peak_use(host.id, &minute, None)
                        };
                        minutes.map(|minute| host.capacity().slots(&used(minute), &size)).min().unwrap_or(0)
                    });
                let possible = match terms.affinity {
                    Affinity::Any => room.sum(),
                    Affinity::OneHost => room.max().unwrap_or(0),
                    Affinity::DistinctHosts => room.filter(|slots| *slots > 0).count() as u32,
                };
                assert!(possible < terms.amount.get(), "{possible} fit");
            }
            _ => {}
        }
    }
}

fn assert_met(asked: &ReservationTerms, given: &Allocation) {
    let amount = given.amount();
    match asked {
        ReservationTerms::Hosts(terms) => {
            assert!(u64::from(terms.min()) <= amount && amount <= u64::from(terms.max()));
        }
        ReservationTerms::Instances(terms) => {
            assert_eq!(amount, u64::from(terms.amount.get()));
            let hosts = given.hosts().len() as u64;
            match terms.affinity {
                Affinity::Any => {}
                Affinity::OneHost => assert_eq!(hosts, 1),
                Affinity::DistinctHosts => assert_eq!(hosts, amount),
            }
        }
        ReservationTerms::Flavor(terms) => assert_eq!(amount, u64::from(terms.amount.get())),
        ReservationTerms::FloatingIps(terms) => assert_eq!(amount, u64::from(terms.amount())),
    }
}

fn assert_nothing_lost(old: &Allocation, new: &Allocation) {
    match (old, new) {
        (Allocation::Hosts(old), Allocation::Hosts(new)) => assert!(old.is_subset(new)),
        (Allocation::FloatingIps(old), Allocation::FloatingIps(new)) => assert!(old.is_subset(new)),
        (Allocation::Slots(old), Allocation::Slots(new)) => {
            assert!(old.iter().all(|(host, count)| new.get(host).is_some_and(|now| now >= count)));
        }
        _ => panic!("another type"),
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn nothing_is_given_twice_and_nothing_refused_that_could_be_had(turns in turns(), cleaning in 0..3i64) {
        let mut cloud = Cloud::new(cleaning);
        for turn in &turns {
            cloud.turn(turn);
            cloud.assert_nothing_is_given_twice();
        }
    }
}
