//! Tests of energy planning and of the power states of hosts.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::calendar::Calendar;
use crate::free_pool::FreePool;
use crate::host::{Health, Inventory, MFLOPS};
use crate::ids::{GuestId, HostId, ReservationId};
use crate::lease::Lease;
use crate::plan::{Action, Guest, GuestOwner, Observed, ObservedHost, Place, Powered};
use crate::testing::{at, inventory, lease, minutes, window};

/// Hosts of a pool, with their records and observations.
struct Rack {
    inventory: Inventory,
    calendar: Calendar,
    observed: Observed,
    kept: BTreeSet<HostId>,
    rules: PowerRules,
}

impl Rack {
    /// Hosts that are on, and free except for these leases. One is a spare host.
    fn new(hosts: u64, leases: &[Lease]) -> Self {
        let rules = PowerRules { spare_hosts: 1, horizon: minutes(24 * 60), ..PowerRules::default() };
        let observed = (1..=hosts).map(|id| (HostId(id), ObservedHost::free())).collect();
        Self {
            inventory: inventory(hosts),
            calendar: Calendar::default().with_leases(leases, at(0)).expect("free"),
            observed: Observed { hosts: observed, ..Observed::default() },
            kept: BTreeSet::new(),
            rules,
        }
    }

    fn seen(&mut self, host: u64) -> &mut ObservedHost {
        self.observed.hosts.get_mut(&HostId(host)).expect("there")
    }

    fn power(&mut self, host: u64, state: PowerState) {
        self.inventory.host_mut(HostId(host)).expect("there").power.state = state;
        let off = Power { state, ..Power::default() }.excuses_silence();
        let seen = self.seen(host);
        (seen.place, seen.powered) = if off {
            (Place::Fenced { verified_for: None }, Powered::Off)
        } else {
            (Place::FreePool, Powered::On)
        };
    }

    fn capability(&mut self, host: u64, name: &str, value: &str) {
        let host = self.inventory.host_mut(HostId(host)).expect("there");
        host.capabilities.insert(name.to_owned(), value.to_owned());
    }

    fn plan(&self, now: i64) -> EnergyPlan {
        plan(&Ground {
            calendar: &self.calendar,
            inventory: &self.inventory,
            observed: &self.observed,
            kept: &self.kept,
            rules: &self.rules,
            now: at(now),
        })
    }

    fn switches(&self, now: i64) -> Vec<(u64, Switch)> {
        self.plan(now).switches.iter().map(|(host, switch)| (host.0, *switch)).collect()
    }

    fn pool(&self, now: i64) -> PoolPlan {
        self.plan(now).pools.remove(&FreePool::DEFAULT).expect("the pool")
    }
}

fn off(since: i64) -> PowerState {
    PowerState::Off { since: at(since) }
}

#[test]
fn energy_a_how_many_hosts_are_needed_and_which_may_be_off_from_when_to_when() {
    let mut rack = Rack::new(4, &[lease(1, window(600, 700), &[1, 2]), lease(2, window(650, 800), &[3])]);
    for host in 1..=4 {
        rack.capability(host, IDLE_WATTS, "100");
    }
    let pool = rack.pool(0);
    let needed: Vec<_> = pool.needed.iter().map(|need| (need.from, need.hosts)).collect();
    let expected = [(0, 1), (600, 3), (650, 4), (700, 2), (800, 1)].map(|(minute, n)| (at(minute), n));
    assert_eq!(needed, expected, "leases, and a spare host");
    assert_eq!((pool.hosts, pool.most_needed()), (4, 4));
    let rests: Vec<_> = pool.rests.iter().map(|r| (r.host.0, r.from, r.until)).collect();
    let until = |minute: i64| Some(at(minute - 7));
    for (host, from, until) in &rests {
        let bookings: Vec<_> = rack.calendar.bookings(HostId(*host)).map(|(window, _)| window).collect();
        let end = until.unwrap_or(at(24 * 60));
        assert!(bookings.iter().all(|b| b.end() <= *from || end < b.start()), "{host} is leased");
    }
    // At 600 there are three leased hosts and a spare one, so only one of hosts 3 and 4 stays off until 650.
    for rest in [(2, at(0), until(600)), (3, at(0), until(600)), (4, at(0), until(650))] {
        assert!(rests.contains(&rest), "{rest:?} in {rests:?}");
    }
    assert!(pool.saved_milliwatt_seconds > 0);
}

#[test]
fn energy_b_a_host_is_woken_its_boot_time_and_a_margin_before_its_lease() {
    let mut rack = Rack::new(3, &[lease(1, window(600, 700), &[2])]);
    rack.power(2, off(0));
    rack.power(3, off(0));
    assert_eq!(rack.switches(592), []);
    assert_eq!(rack.plan(592).wake_at, Some(at(593)));
    assert_eq!(rack.switches(593), [(2, Switch::On)], "five minutes to boot, two of margin");
    let measured = &mut rack.inventory.host_mut(HostId(2)).expect("there").power.boots;
    measured.extend([minutes(4), minutes(9), minutes(6)]);
    assert_eq!(rack.switches(588), []);
    assert_eq!(rack.switches(589), [(2, Switch::On)], "the slowest of its last boots took nine");
}

#[test]
fn energy_b_no_more_boot_at_once_than_may_and_all_are_there_in_time() {
    let mut rack = Rack::new(5, &[lease(1, window(600, 700), &[1, 2, 3, 4])]);
    rack.rules.boots_at_once = 2;
    (1..=4).for_each(|host| rack.power(host, off(0)));
    assert_eq!(rack.switches(587), []);
    assert_eq!(rack.switches(588).len(), 2, "ten minutes and two of margin before");
    for host in [3, 4] {
        rack.power(host, PowerState::Booting { since: at(588), off_since: Some(at(0)) });
    }
    assert_eq!(rack.switches(592), []);
    for host in [3, 4] {
        rack.power(host, PowerState::On);
    }
    assert_eq!(rack.switches(593).len(), 2);
}

#[test]
fn energy_c_what_somebody_uses_is_never_off_nor_are_the_last_spare_hosts() {
    let mut rack = Rack::new(8, &[lease(1, window(0, 700), &[1]), lease(2, window(50, 700), &[2])]);
    rack.rules.spare_hosts = 2;
    rack.seen(3).guests.push(Guest::new(GuestId(1), GuestOwner::Preemptible));
    rack.seen(4).guests.push(Guest::new(GuestId(2), GuestOwner::Other));
    rack.seen(5).place = Place::Releasing(ReservationId(9));
    rack.capability(6, SAVING, NEVER);
    assert_eq!(rack.switches(0), [(8, Switch::Off)], "6 and 7 are spare");
    rack.rules.spare_hosts = 0;
    assert_eq!(rack.switches(0), [(7, Switch::Off), (8, Switch::Off)]);
    rack.kept.insert(HostId(7));
    rack.seen(8).slots.insert(ReservationId(1), 1);
    assert_eq!(rack.switches(0), []);
    assert!(rack.pool(0).needed[0].hosts >= 5);
}

#[test]
fn energy_c_a_spare_host_that_is_used_is_replaced_by_one_that_is_off() {
    let mut rack = Rack::new(3, &[]);
    rack.power(2, off(0));
    rack.power(3, off(0));
    assert_eq!(rack.switches(10), []);
    rack.seen(1).guests.push(Guest::new(GuestId(1), GuestOwner::Other));
    assert_eq!(rack.switches(10), [(2, Switch::On)]);
    rack.rules = rack.rules.all_on();
    assert_eq!(rack.switches(10), [(2, Switch::On), (3, Switch::On)]);
}

#[test]
fn energy_e_a_host_is_not_switched_off_for_a_short_time_or_too_often() {
    let mut rack = Rack::new(2, &[lease(1, window(66, 700), &[2])]);
    rack.rules.spare_hosts = 0;
    rack.calendar.put(&lease(2, window(50, 700), &[1]), at(0)).expect("free");
    assert_eq!(rack.switches(0), [], "not an hour, and the time to boot");
    rack.calendar.remove(crate::ids::LeaseId(1));
    rack.calendar.put(&lease(1, window(72, 700), &[2]), at(0)).expect("free");
    assert_eq!(rack.switches(0), [(2, Switch::Off)]);
    let mut power = Power::default();
    for minute in [0, 60, 120] {
        power = Power { state: PowerState::On, ..power.switched_off(at(minute)) };
    }
    let mut rack = Rack::new(2, &[]);
    rack.inventory.host_mut(HostId(2)).expect("there").power = power;
    assert_eq!(rack.switches(200), [(1, Switch::Off)], "the other one is spare now");
    rack.capability(1, SAVING, NEVER);
    assert_eq!(rack.switches(200), []);
    assert_eq!(rack.switches(24 * 60), [(2, Switch::Off)]);
}

#[test]
fn energy_d_the_hosts_that_draw_most_are_off_first() {
    let mut rack = Rack::new(3, &[]);
    for (host, watts) in [(1, "200"), (2, "400.5"), (3, "100")] {
        rack.capability(host, IDLE_WATTS, watts);
    }
    assert_eq!(rack.switches(0), [(1, Switch::Off), (2, Switch::Off)]);
    rack.rules.spare_hosts = 2;
    assert_eq!(rack.switches(0), [(2, Switch::Off)]);
    rack.capability(3, IDLE_WATTS, "many");
    rack.capability(2, IDLE_WATTS, "-3");
    assert_eq!(rack.switches(0), [(1, Switch::Off)], "of the others nobody knows");
}

#[test]
fn energy_d_hosts_with_most_mflops_per_watt_stay_on() {
    let mut rack = Rack::new(4, &[]);
    for (host, mflops) in [(1, Some("1000")), (2, Some("2000")), (3, None), (4, None)] {
        rack.capability(host, IDLE_WATTS, if host == 4 { "many" } else { "200" });
        if let Some(mflops) = mflops {
            rack.capability(host, MFLOPS, mflops);
        }
    }
    for (spare, off) in [(3, vec![3]), (2, vec![3, 4]), (1, vec![1, 3, 4])] {
        rack.rules.spare_hosts = spare;
        let switches: Vec<_> = off.into_iter().map(|host| (host, Switch::Off)).collect();
        assert_eq!(rack.switches(0), switches);
    }
}

#[test]
fn energy_g_a_host_that_does_not_come_up_has_failed_half_a_margin_before_its_lease() {
    let rules = PowerRules::default();
    let power = Power { state: off(0), ..Power::default() }.switched_on(at(593));
    let booting = ObservedHost { health: Health::Failed, ..ObservedHost::free() };
    assert_eq!(settle(&power, Some(&booting), &rules, at(598)), None);
    let failed = settle(&power, Some(&booting), &rules, at(599)).expect("it does not come up");
    assert_eq!(failed.power.state, PowerState::Failed { since: at(593) });
    let slept = Slept { from: at(0), until: at(593), boot: None, failed: true };
    assert_eq!((failed.slept, failed.alarm), (Some(slept), Some(Alarm::BootFailed)));
    assert!(!failed.power.excuses_silence(), "it counts as failed from now on");
    let back = settle(&failed.power, Some(&ObservedHost::free()), &rules, at(610)).expect("it is up");
    assert_eq!((back.power.boots.as_slice(), back.power.is_on()), ([minutes(17)].as_slice(), true));
    assert_eq!(back.alarm, Some(Alarm::CameUpLate));
}

#[test]
fn a_host_is_fenced_before_it_is_switched_off_and_stays_on_if_a_guest_was_faster() {
    let (rules, host) = (PowerRules::default(), HostId(1));
    let power = Power::default().switched_off(at(0));
    let free = ObservedHost::free();
    assert_eq!(step(host, &power, Some(&free)), Some(Action::Fence(host)));
    let fenced = ObservedHost { place: Place::Fenced { verified_for: None }, ..free };
    assert_eq!(step(host, &power, Some(&fenced)), Some(Action::PowerOff(host)));
    let guest = Guest::new(GuestId(1), GuestOwner::Preemptible);
    let used = ObservedHost { guests: vec![guest], ..fenced.clone() };
    assert_eq!(step(host, &power, Some(&used)), None);
    let settled = settle(&power, Some(&used), &rules, at(1)).expect("it stays on").power;
    assert_eq!(settled.state, PowerState::Booting { since: at(1), off_since: None });
    let on = settle(&settled, Some(&used), &rules, at(1)).expect("it is on").power;
    assert!(on.is_on() && on.boots.is_empty());
    let dark = ObservedHost { powered: Powered::Off, health: Health::Failed, ..fenced };
    let slept = settle(&power, Some(&dark), &rules, at(2)).expect("it is off").power;
    assert_eq!((slept.state, step(host, &slept, Some(&dark))), (off(2), None));
    let late = settle(&power, Some(&fenced_again(&dark)), &rules, at(10)).expect("given up");
    assert_eq!(late.alarm, Some(Alarm::ShutdownFailed));
}

#[test]
fn energy_g_a_host_that_does_not_come_up_is_switched_on_again_after_growing_pauses() {
    let host = HostId(1);
    let booting = Power { state: off(0), ..Power::default() }.switched_on(at(10));
    let pauses = [(10, 30), (11, 60), (13, 180), (60, 300)];
    for (last, seconds) in pauses {
        let next = next_switch_on(&booting, at(last));
        assert_eq!(next.duration_since(at(last)).as_secs(), seconds, "{last}");
    }
    assert_eq!(next_switch_on(&Power::default(), at(10)), at(10));
    let failed = Power { state: PowerState::Failed { since: at(10) }, ..Power::default() };
    let unknown = ObservedHost { health: Health::Unknown, ..ObservedHost::free() };
    assert_eq!(step(host, &failed, Some(&unknown)), Some(Action::PowerOn(host)), "its checks fail");
    assert_eq!(step(host, &booting, Some(&unknown)), None, "it boots");
    let on = ObservedHost { health: Health::Failed, ..ObservedHost::free() };
    assert_eq!(step(host, &failed, Some(&on)), None, "it has power");
}

fn fenced_again(dark: &ObservedHost) -> ObservedHost {
    ObservedHost { powered: Powered::On, health: Health::Up, ..dark.clone() }
}

#[test]
fn energy_f_what_was_saved_is_summed_by_pool_and_cut_at_the_period() {
    let sleep = |host, start, end, over| Sleep {
        host: HostId(host),
        pool: FreePool::DEFAULT,
        window: window(start, end),
        saved_milliwatts: 90_000,
        off_milliwatts: 10_000,
        over,
        boot: over.then(|| minutes(4)),
        failed: false,
    };
    let sleeps = [sleep(1, 0, 120, true), sleep(2, 60, 180, false), sleep(3, 500, 600, true)];
    let pools = report(&sleeps, &[], &[], window(60, 180));
    let expected = PoolReport {
        off_seconds: 3 * 3600,
        saved_milliwatt_seconds: 90_000 * 3 * 3600,
        used_milliwatt_seconds: 10_000 * 3 * 3600,
        switched_off: 1,
        switched_on: 1,
        longest_boot: Some(minutes(4)),
        ..PoolReport::default()
    };
    assert_eq!(pools, BTreeMap::from([(FreePool::DEFAULT, expected)]));
}

#[test]
fn energy_f_hosts_use_busy_watts_at_work_and_idle_watts_beside_it() {
    let figures =
        |idle, busy| Figures { idle_milliwatts: idle, busy_milliwatts: busy, off_milliwatts: 10_000 };
    let host =
        |id, since, figures| Metered { host: HostId(id), pool: FreePool::DEFAULT, since: at(since), figures };
    let hosts = [
        host(1, 0, figures(Some(100_000), Some(300_000))),
        host(2, 60, figures(Some(100_000), None)),
        host(3, 0, figures(None, Some(300_000))),
        host(4, 240, figures(Some(100_000), None)),
    ];
    let asleep = Sleep {
        host: HostId(1),
        pool: FreePool::DEFAULT,
        window: window(120, 180),
        saved_milliwatts: 90_000,
        off_milliwatts: 10_000,
        over: true,
        boot: None,
        failed: false,
    };
    // Two guests at the same time, and one recorded on a host that is off.
    let held = [(1, window(0, 60)), (1, window(30, 90)), (1, window(110, 130)), (2, window(200, 300))];
    let held = held.map(|(host, window)| (HostId(host), window));
    let pool = report(&[asleep], &hosts, &held, window(0, 240)).remove(&FreePool::DEFAULT).expect("a pool");
    assert_eq!((pool.busy_seconds, pool.idle_seconds), ((90 + 10 + 40) * 60, (80 + 140 + 240) * 60));
    assert_eq!(
        pool.busy_milliwatt_seconds,
        (100 * 300_000 + 40 * 100_000) * 60,
        "idle is all that is said of 2"
    );
    assert_eq!(pool.idle_milliwatt_seconds, (80 + 140) * 100_000 * 60);
    assert_eq!((pool.used_milliwatt_seconds, pool.hosts_not_metered), (10_000 * 3600, 1));
    let all = pool.busy_milliwatt_seconds + pool.idle_milliwatt_seconds + pool.used_milliwatt_seconds;
    assert_eq!(pool.total_milliwatt_seconds(), all);
}

#[test]
fn energy_b_hosts_that_are_off_can_be_had_one_batch_after_the_other() {
    let mut rack = Rack::new(5, &[lease(1, window(20, 700), &[4])]);
    rack.rules.boots_at_once = 2;
    (2..=5).for_each(|host| rack.power(host, off(0)));
    let ready = readiness(&rack.inventory, &rack.calendar, &rack.rules, at(0));
    let expected = [(2, 7), (3, 7), (4, 12), (5, 12)];
    let later: BTreeMap<_, _> =
        expected.into_iter().map(|(host, minute)| (HostId(host), at(minute))).collect();
    assert_eq!(ready, later, "host 4 is wanted late enough");
    let ready = readiness(&rack.inventory, &rack.calendar, &rack.rules, at(12));
    assert_eq!((ready[&HostId(4)], ready[&HostId(2)], ready[&HostId(3)]), (at(19), at(19), at(24)));
}
