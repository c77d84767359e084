//! Random leases and guests on hosts that are switched according to plan, minute by minute. No lease starts
//! late, no host in use loses power, and the limit on concurrent boots holds.

use std::collections::BTreeSet;

use leases::admission::{Admission, RepackRules, Rules};
use leases::calendar::Calendar;
use leases::energy::{
    BUSY_WATTS, Figures, Ground, Metered, PowerRules, PowerState, Sleep, Switch, plan, readiness, report,
    settle,
};
use leases::free_pool::FreePool;
use leases::host::{Health, Host, Inventory};
use leases::host_facts::HostFacts;
use leases::ids::{GuestId, HostId, ReservationId};
use leases::lease::{Allocation, Lease};
use leases::plan::{Guest, GuestOwner, Observed, ObservedHost, Place, Powered};
use leases::terms::{HostsTerms, ReservationTerms, Terms};
use proptest::prelude::*;

use crate::generate::{at, cases, minutes, new_lease, project, window};

/// Length of a history, in minutes.
const END: i64 = 900;

#[derive(Clone, Debug)]
enum Event {
    /// A request for this many hosts, with start and length in minutes from now.
    Ask(u32, i64, i64),
    /// Starts a guest on the host if it is on and free, or ends the guest there.
    Guest(u64),
    /// Moves leases that start at least this many minutes from now to hosts that draw less power.
    Repack(i64),
}

#[derive(Clone, Debug)]
struct Ways {
    /// Boot time of each host, in minutes.
    boots: Vec<i64>,
    /// Power draw of each host at work, in watts, if known.
    watts: Vec<Option<u32>>,
    rules: PowerRules,
    cleaning: i64,
    events: Vec<(i64, Event)>,
}

fn ways() -> impl Strategy<Value = Ways> {
    let event = prop_oneof![
        4 => (1..6u32, 0..150i64, 1..200i64).prop_map(|(n, start, length)| Event::Ask(n, start, length)),
        1 => (1..12u64).prop_map(Event::Guest),
        2 => (0..60i64).prop_map(Event::Repack),
    ];
    let events = proptest::collection::vec((0..END, event), 1..60);
    let boots = proptest::collection::vec((1..=5i64, proptest::option::weighted(0.9, 0..4u32)), 1..12);
    (boots, 0..3u32, 1..4u32, 5..70i64, 1..4u32, 0..10i64, events).prop_map(
        |(boots, spare_hosts, boots_at_once, rest, rests_a_day, cleaning, mut events)| {
            events.sort_by_key(|(minute, _)| *minute);
            let shortest_rest = minutes(rest);
            let horizon = minutes(24 * 60);
            let rules = PowerRules {
                spare_hosts,
                boots_at_once,
                shortest_rest,
                rests_a_day,
                horizon,
                ..PowerRules::default()
            };
            let (boots, watts) =
                boots.into_iter().map(|(boot, watts)| (boot, watts.map(|w| w * 100))).unzip();
            Ways { boots, watts, rules, cleaning, events }
        },
    )
}

struct Rack {
    ways: Ways,
    inventory: Inventory,
    calendar: Calendar,
    leases: Vec<Lease>,
    guests: BTreeSet<HostId>,
    now: i64,
}

impl Rack {
    fn new(ways: Ways) -> Self {
        let host = |(id, watts): (u64, &Option<u32>)| {
            let mut host = Host::new(HostId(id), format!("node{id}"), 8, 8000, 80);
            host.capabilities.extend(watts.map(|watts| (BUSY_WATTS.to_owned(), watts.to_string())));
            host
        };
        let hosts = (1..).zip(&ways.watts).map(host);
        let calendar = Calendar::new(minutes(ways.cleaning));
        let (leases, guests) = (Vec::new(), BTreeSet::new());
        Self { inventory: Inventory::new(hosts, []), calendar, leases, guests, now: 0, ways }
    }

    fn leased(&self) -> BTreeSet<HostId> {
        let going = self.leases.iter().filter(|lease| lease.window.contains(at(self.now)));
        going.flat_map(|lease| lease.reservations[0].allocation.hosts()).collect()
    }

    fn state(&self, host: HostId) -> PowerState {
        self.inventory.host(host).expect("there").power.state
    }

    /// State of the machines.
    fn observed(&self) -> Observed {
        let leased = self.leased();
        let seen = |host: &Host| {
            let boots = minutes(self.ways.boots[host.id.0 as usize - 1]);
            let (powered, health) = match host.power.state {
                PowerState::On => (Powered::On, Health::Up),
                PowerState::Booting { since, .. } if at(self.now).duration_since(since) >= boots => {
                    (Powered::On, Health::Up)
                }
                PowerState::Booting { .. } => (Powered::On, Health::Failed),
                _ => (Powered::Off, Health::Failed),
            };
            let place = match host.power.state {
                _ if leased.contains(&host.id) => Place::Held(ReservationId(1)),
                PowerState::On => Place::FreePool,
                _ => Place::Fenced { verified_for: None },
            };
            let guest = Guest::new(GuestId(host.id.0.into()), GuestOwner::Other);
            let guests = self.guests.contains(&host.id).then_some(guest).into_iter().collect();
            (host.id, ObservedHost { place, health, powered, guests, ..ObservedHost::free() })
        };
        Observed { hosts: self.inventory.hosts().map(seen).collect(), ..Observed::default() }
    }

    /// Energy of all leases in watt-minutes, as far as power draws are known.
    fn drawn(&self) -> i64 {
        let watts = |host: HostId| i64::from(self.ways.watts[host.0 as usize - 1].unwrap_or(0));
        let drawn = |lease: &Lease| {
            let hosts = lease.reservations[0].allocation.hosts();
            lease.window.length().as_mins() * hosts.into_iter().map(watts).sum::<i64>()
        };
        self.leases.iter().map(drawn).sum()
    }

    /// Repacks one lease, if that saves energy. Everything but its hosts stays the same, and its new hosts
    /// are free.
    fn repack(&mut self, notice: i64) {
        let rules = Rules::default();
        let settled = at(self.now + notice);
        let waking = readiness(&self.inventory, &self.calendar, &self.ways.rules, at(self.now));
        let (occupied, waking) = (self.guests.clone().into(), Some(waking).into());
        let facts = HostFacts { occupied, waking, ..HostFacts::nothing() };
        let admission = Admission::new(&self.calendar, &self.inventory, &rules, &facts, at(self.now));
        let wanted = RepackRules { settled, least_milliwatt_seconds: 1 };
        let Some((lease, saved)) = admission.repack(&self.leases, None, &wanted).repacked else { return };
        let number = self.leases.iter().position(|other| other.id == lease.id).expect("one of them");
        let (before, drawn) = (self.leases[number].clone(), self.drawn());
        assert!(before.window.start() >= settled, "{before:?} is about to start");
        let hosts = |lease: &Lease| lease.reservations[0].allocation.hosts();
        assert_eq!(hosts(&lease).len(), hosts(&before).len());
        assert!(hosts(&lease).difference(&hosts(&before)).all(|host| !self.guests.contains(host)));
        self.calendar.put(&lease, at(self.now)).expect("nobody else has them");
        let mut same = lease.clone();
        (same.reservations, same.marks) = (before.reservations.clone(), before.marks.clone());
        assert_eq!(same, before);
        self.leases[number] = lease;
        let less = u128::try_from((drawn - self.drawn()) * 60_000).expect("never more than before");
        assert_eq!(less, saved);
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Repack(notice) => self.repack(notice),
            Event::Guest(host) => {
                let host = HostId(host);
                let there = self.inventory.host(host).is_some_and(|host| host.power.is_on());
                if self.guests.remove(&host) || !there {
                    return;
                }
                // Like the service, only starts guests on hosts without bookings.
                let booked = self.calendar.bookings(host).any(|(booked, _)| booked.end() > at(self.now));
                if !booked {
                    self.guests.insert(host);
                }
            }
            Event::Ask(count, start, length) => {
                let asked = HostsTerms::new(count, count).expect("a range");
                let (start, rules) = (self.now + start, Rules::default());
                let window = window(start, start + length);
                let terms = Terms::new(window, None, vec![ReservationTerms::Hosts(asked)]).expect("terms");
                let waking = readiness(&self.inventory, &self.calendar, &self.ways.rules, at(self.now));
                let facts = HostFacts { waking: Some(waking).into(), ..HostFacts::nothing() };
                let admission = Admission::new(&self.calendar, &self.inventory, &rules, &facts, at(self.now));
                let Ok(given) = admission.decide(&project(), &terms) else { return };
                // Guests aren't moved in this test, so their hosts aren't leased.
                if given[0].hosts().iter().any(|host| self.guests.contains(host)) {
                    return;
                }
                let number = self.leases.len() as u128 + 1;
                let lease = Lease::new(new_lease(number, 1), terms, given, None);
                self.calendar.put(&lease, at(self.now)).expect("admitted");
                self.leases.push(lease);
            }
        }
    }

    fn settle(&mut self) {
        let observed = self.observed();
        for (id, seen) in &observed.hosts {
            let host = self.inventory.host_mut(*id).expect("there");
            if let Some(settled) = settle(&host.power, Some(seen), &self.ways.rules, at(self.now)) {
                host.power = settled.power;
                assert_eq!(settled.alarm, None, "host {id}, minute {}", self.now);
            }
        }
    }

    fn switch(&mut self) {
        let observed = self.observed();
        let plan = plan(&Ground {
            calendar: &self.calendar,
            inventory: &self.inventory,
            observed: &observed,
            kept: &BTreeSet::new(),
            rules: &self.ways.rules,
            now: at(self.now),
        });
        let leased = self.leased();
        for (id, switch) in plan.switches {
            let host = self.inventory.host_mut(id).expect("there");
            match switch {
                Switch::On => host.power = host.power.switched_on(at(self.now)),
                Switch::Off => {
                    assert!(host.power.is_on() && !self.guests.contains(&id) && !leased.contains(&id));
                    host.power = host.power.switched_off(at(self.now));
                    let lately = host.power.rests_before(at(self.now));
                    assert!(lately <= self.ways.rules.rests_a_day as usize, "host {id}, {lately} times");
                    self.assert_spare_hosts();
                }
            }
        }
    }

    fn assert_spare_hosts(&self) {
        let leased = self.leased();
        let spare = |host: &&Host| {
            host.power.is_on() && !leased.contains(&host.id) && !self.guests.contains(&host.id)
        };
        let left = self.inventory.hosts().filter(spare).count();
        assert!(left >= self.ways.rules.spare_hosts as usize, "{left} left in minute {}", self.now);
    }

    fn check(&self) {
        let minute = self.now;
        let booting = |host: &&Host| matches!(host.power.state, PowerState::Booting { .. });
        let booting = self.inventory.hosts().filter(booting).count();
        assert!(booting <= self.ways.rules.boots_at_once as usize, "{booting} boot in minute {minute}");
        for host in &self.leased() {
            assert_eq!(self.state(*host), PowerState::On, "host {host} is leased in minute {minute}");
        }
        for host in &self.guests {
            assert_eq!(self.state(*host), PowerState::On, "a guest is on host {host} in minute {minute}");
        }
    }
}

/// A host: time since which it exists, power draw at work, idle and off, windows in which it was held, and
/// window in which it was off.
type Day = (i64, [Option<u32>; 2], u32, Vec<(i64, i64)>, Option<(i64, i64)>);

fn days() -> impl Strategy<Value = Vec<Day>> {
    let draws = || proptest::option::weighted(0.8, 0..500_000u32);
    let span = || (-20..120i64, 0..60i64).prop_map(|(start, length)| (start, start + length));
    let held = proptest::collection::vec(span(), 0..6);
    let watts = (draws(), draws()).prop_map(|(busy, idle)| [busy, idle]);
    let day = (-10..110i64, watts, 0..20_000u32, held, proptest::option::of(span()));
    proptest::collection::vec(day, 0..5)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn energy_f_what_hosts_used_is_their_hours_times_their_watts(
        days in days(),
        (start, length) in (0..100i64, 0..100i64),
    ) {
        let (mut hosts, mut held, mut sleeps) = (vec![], vec![], vec![]);
        // Minutes at work, idle and off, and milliwatt-minutes of each.
        let (mut hours, mut drawn) = ([0_u64; 3], [0_u128; 3]);
        for (id, (since, [busy, idle], off, spans, asleep)) in (1..).map(HostId).zip(days) {
            let figures = Figures { busy_milliwatts: busy, idle_milliwatts: idle, off_milliwatts: off };
            hosts.push(Metered { host: id, pool: FreePool::DEFAULT, since: at(since), figures });
            held.extend(spans.iter().map(|(start, end)| (id, window(*start, *end))));
            sleeps.extend(asleep.map(|(start, end)| Sleep {
                host: id,
                pool: FreePool::DEFAULT,
                window: window(start, end),
                saved_milliwatts: 0,
                off_milliwatts: off,
                over: true,
                boot: None,
                failed: false,
            }));
            let idle = idle.unwrap_or(0);
            for minute in start..start + length {
                let during = |span: &(i64, i64)| span.0 <= minute && minute < span.1;
                let (state, milliwatts) = if asleep.as_ref().is_some_and(during) {
                    (2, off)
                } else if minute < since {
                    continue;
                } else if spans.iter().any(during) {
                    (0, busy.unwrap_or(idle))
                } else {
                    (1, idle)
                };
                hours[state] += 60;
                drawn[state] += u128::from(milliwatts) * 60;
            }
        }
        let reported = report(&sleeps, &hosts, &held, window(start, start + length));
        let pool = reported.get(&FreePool::DEFAULT).cloned().unwrap_or_default();
        prop_assert_eq!([pool.busy_seconds, pool.idle_seconds, pool.off_seconds], hours);
        let sums =
            [pool.busy_milliwatt_seconds, pool.idle_milliwatt_seconds, pool.used_milliwatt_seconds];
        prop_assert_eq!(sums, drawn);
        prop_assert_eq!(pool.total_milliwatt_seconds(), drawn.iter().sum::<u128>());
    }

    #[test]
    fn energy_b_no_lease_is_late_and_no_more_boot_at_once_than_may(ways in ways()) {
        let mut rack = Rack::new(ways.clone());
        let mut events = ways.events.iter().peekable();
        while rack.now < END {
            rack.settle();
            while let Some((_, event)) = events.next_if(|(minute, _)| *minute <= rack.now) {
                rack.happen(event);
            }
            rack.switch();
            rack.check();
            rack.now += 1;
        }
    }

    #[test]
    fn energy_a_what_may_be_off_is_not_needed(ways in ways()) {
        let mut rack = Rack::new(ways.clone());
        for (_, event) in &ways.events {
            rack.happen(event);
        }
        let observed = rack.observed();
        let plan = plan(&Ground {
            calendar: &rack.calendar,
            inventory: &rack.inventory,
            observed: &observed,
            kept: &BTreeSet::new(),
            rules: &rack.ways.rules,
            now: at(0),
        });
        let Some(pool) = plan.pools.values().next() else { return Ok(()) };
        let end = at(24 * 60);
        for rest in &pool.rests {
            let until = rest.until.unwrap_or(end);
            let ready = until + minutes(7);
            let leased = rack.leases.iter().filter(|lease| {
                matches!(&lease.reservations[0].allocation, Allocation::Hosts(h) if h.contains(&rest.host))
            });
            let needed = leases_during(leased, rest.from, ready.min(end)).next();
            prop_assert!(needed.is_none(), "{rest:?} is leased: {needed:?}");
            let long = |until: jiff::Timestamp| {
                until.duration_since(rest.from) >= rack.ways.rules.shortest_rest
            };
            prop_assert!(rest.until.is_none_or(long), "{rest:?}");
        }
        for instant in pool.needed.iter().map(|need| need.from) {
            let off = pool.rests.iter().filter(|rest| {
                rest.from <= instant && rest.until.is_none_or(|until| instant < until)
            });
            let needed = pool.needed.iter().rev().find(|need| need.from <= instant).expect("from now on");
            let off: BTreeSet<HostId> = off.map(|rest| rest.host).collect();
            prop_assert!(off.len() + needed.hosts <= pool.hosts, "at {instant}: {off:?}, {needed:?}");
        }
    }
}

fn leases_during<'a>(
    leases: impl Iterator<Item = &'a Lease>,
    from: jiff::Timestamp,
    to: jiff::Timestamp,
) -> impl Iterator<Item = &'a Lease> {
    leases.filter(move |lease| lease.window.start() < to && from < lease.window.end())
}
