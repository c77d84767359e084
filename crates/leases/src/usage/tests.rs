//! Usage in histories of leases and instances (USE, CLS-12).

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::free_pool::DEFAULT_NAME;
use crate::host::Inventory;
use crate::instance::{Instance, InstanceKind, InstanceStatus};
use crate::lease::{Allocation, Lease};
use crate::lease_type::LeaseType;
use crate::plan::GuestSize;
use crate::project::ProjectId;
use crate::requirement::Requirement;
use crate::scoped::{Scope, Scoped};
use crate::status::{EventStatus, LeaseStatus, ReservationStatus};
use crate::terms::{Affinity, InstanceSize, InstancesTerms, ReservationTerms};
use crate::testing::{at, host, lease, owner, window};

/// Length of a history, in minutes.
const MINUTES: i64 = 120;
/// Number of leases in a history, and of hosts.
const LEASES: u128 = 3;
const HOSTS: u64 = 5;

/// An action on a lease. Histories combine deeds with pauses in minutes.
#[derive(Clone, Debug)]
enum Deed {
    Start { length: i64 },
    MoveEnd { by: i64 },
    Take(u64),
    Lose(u64),
    Exchange(u64, u64),
    End,
    Delete,
    StartInstance(u64),
    MoveInstance(u64),
    StopInstance,
    StartBeside(u64),
    StopBeside,
}

fn deed() -> impl Strategy<Value = Deed> {
    let host = 1..=HOSTS;
    prop_oneof![
        3 => (1..60_i64).prop_map(|length| Deed::Start { length }),
        3 => (-30..40_i64).prop_map(|by| Deed::MoveEnd { by }),
        2 => host.clone().prop_map(Deed::Take),
        1 => host.clone().prop_map(Deed::Lose),
        2 => (host.clone(), host.clone()).prop_map(|(from, to)| Deed::Exchange(from, to)),
        1 => Just(Deed::End),
        1 => Just(Deed::Delete),
        2 => host.clone().prop_map(Deed::StartInstance),
        1 => host.clone().prop_map(Deed::MoveInstance),
        1 => Just(Deed::StopInstance),
        1 => host.prop_map(Deed::StartBeside),
        1 => Just(Deed::StopBeside),
    ]
}

/// State of leases and instances.
#[derive(Clone, Debug, Default)]
struct World {
    leases: BTreeMap<u128, Lease>,
    instances: BTreeMap<u128, Instance>,
}

fn instance(number: u128, lease: Option<u128>, on: u64) -> Instance {
    let kind = lease.map_or(InstanceKind::Regular, |lease| InstanceKind::Reserved {
        lease: LeaseId(lease),
        reservation: ReservationId(lease * 10),
    });
    let size = GuestSize { vcpus: 2, memory_mib: 100, disk_gib: 3 };
    let new = Instance::new(GuestId(number), String::new(), owner(), kind, size, HostId(on));
    new.becoming(InstanceStatus::Active)
}

fn active(lease: &mut Lease) {
    lease.status = LeaseStatus::Active;
    lease.events.start = EventStatus::Done;
    lease.reservations[0].status = ReservationStatus::Active;
}

impl World {
    /// The world after a deed at `minute`. An impossible deed changes nothing.
    fn after(&self, number: u128, deed: &Deed, minute: i64) -> Self {
        let mut world = self.clone();
        let inside = number + 100;
        let beside = number + 200;
        if let Deed::Start { length } = deed {
            world.leases.entry(number).or_insert_with(|| {
                let mut new = lease(number, window(minute, minute + length), &[number as u64]);
                new.owner.project.0 = format!("p{}", number % 2);
                active(&mut new);
                new
            });
            return world;
        }
        if let Deed::StartBeside(on) = deed {
            world.instances.entry(beside).or_insert_with(|| instance(beside, None, *on));
        }
        if matches!(deed, Deed::StopBeside) {
            world.instances.remove(&beside);
        }
        let Some(lease) = world.leases.get_mut(&number) else { return world };
        let started = lease.window.start();
        let hosts = |lease: &mut Lease, change: &dyn Fn(&mut BTreeSet<HostId>)| {
            if let Allocation::Hosts(hosts) = &mut lease.reservations[0].allocation {
                change(hosts);
            }
        };
        match deed {
            Deed::MoveEnd { by } if lease.status == LeaseStatus::Active => {
                // Ends can be in the past, and late leases can continue. Usage already counted stays.
                let end = lease.window.end() + SignedDuration::from_mins(*by);
                lease.window = Window::starting(started, end.max(started).duration_since(started));
            }
            Deed::Take(host) => hosts(lease, &|hosts| hosts.extend([HostId(*host)])),
            Deed::Lose(host) => hosts(lease, &|hosts| hosts.retain(|id| id.0 != *host)),
            Deed::Exchange(from, to) => hosts(lease, &|hosts| {
                if hosts.remove(&HostId(*from)) {
                    hosts.insert(HostId(*to));
                }
            }),
            Deed::End if lease.status == LeaseStatus::Active => {
                lease.status = LeaseStatus::Terminating;
                lease.events.end = EventStatus::InProgress;
            }
            Deed::Delete => {
                world.leases.remove(&number);
            }
            Deed::StartInstance(on) => {
                world.instances.entry(inside).or_insert_with(|| instance(inside, Some(number), *on));
            }
            Deed::MoveInstance(to) => {
                if let Some(instance) = world.instances.get_mut(&inside) {
                    instance.host = HostId(*to);
                }
            }
            Deed::StopInstance => {
                if let Some(instance) = world.instances.get_mut(&inside) {
                    instance.status = InstanceStatus::Deleting;
                }
            }
            _ => {}
        }
        world
    }

    fn lease_of(&self, instance: &Instance) -> Option<&Lease> {
        instance.kind.lease().and_then(|id| self.leases.get(&id.0))
    }
}

/// Inventory of all histories.
fn all_hosts() -> Inventory {
    Inventory::new((1..=HOSTS).map(host), [])
}

/// Entries to record for the change from one world to another.
fn entries(before: &World, after: &World, now: Timestamp, inventory: &Inventory) -> Entries {
    let mut account = Account::new(now, |id| inventory.host(id));
    let ids: BTreeSet<_> = before.leases.keys().chain(after.leases.keys()).collect();
    for id in ids {
        let sides = (before.leases.get(id), after.leases.get(id));
        if sides.0 != sides.1 {
            account.lease(sides.0, sides.1);
        }
    }
    let ids: BTreeSet<_> = before.instances.keys().chain(after.instances.keys()).collect();
    for id in ids {
        let side = |world: &'_ World| world.instances.get(id).cloned();
        let (was, is) = (side(before), side(after));
        account.instance(
            was.as_ref().map(|instance| (instance, before.lease_of(instance))),
            is.as_ref().map(|instance| (instance, after.lease_of(instance))),
        );
    }
    account.entries()
}

/// Holdings in the minute that begins at `minute`, by project, read directly from the world.
fn schedule(world: &World, minute: i64) -> BTreeMap<String, Totals> {
    let mut held: BTreeMap<String, Totals> = BTreeMap::new();
    let goes_on = |lease: &Lease| lease.status == LeaseStatus::Active && at(minute) < lease.window.end();
    for lease in world.leases.values().filter(|lease| goes_on(lease)) {
        let totals = held.entry(lease.owner.project.0.clone()).or_default();
        let hosts = lease.reservations[0].allocation.hosts().len() as u128;
        totals.hosts_us += hosts;
        totals.of_hosts.cores_us += hosts * 16;
        totals.of_hosts.memory_mib_us += hosts * 65_536;
        totals.of_hosts.disk_gib_us += hosts * 1000;
    }
    for instance in world.instances.values().filter(|instance| instance.status == InstanceStatus::Active) {
        let leased = instance.kind.lease().is_some();
        if leased && !world.lease_of(instance).is_some_and(goes_on) {
            continue;
        }
        let totals = held.entry(instance.owner.project.0.clone()).or_default();
        let used = if leased { &mut totals.in_leases } else { &mut totals.beside_leases };
        used.count_us += 1;
        used.amounts.cores_us += 2;
        used.amounts.memory_mib_us += 100;
        used.amounts.disk_gib_us += 3;
    }
    held
}

fn add(to: &mut Amounts, more: Amounts, times: u128) {
    to.cores_us += more.cores_us * times;
    to.memory_mib_us += more.memory_mib_us * times;
    to.disk_gib_us += more.disk_gib_us * times;
}

fn add_all(to: &mut Totals, more: &Totals, times: u128) {
    to.hosts_us += more.hosts_us * times;
    to.slots_us += more.slots_us * times;
    to.addresses_us += more.addresses_us * times;
    add(&mut to.of_hosts, more.of_hosts, times);
    add(&mut to.of_room, more.of_room, times);
    to.in_leases.count_us += more.in_leases.count_us * times;
    add(&mut to.in_leases.amounts, more.in_leases.amounts, times);
    to.beside_leases.count_us += more.beside_leases.count_us * times;
    add(&mut to.beside_leases.amounts, more.beside_leases.amounts, times);
}

/// Plays a history. Returns the world at each minute, and the recorded entries.
fn run(deeds: &[(i64, u128, Deed)]) -> (Vec<World>, Ledger, Vec<Event>) {
    let inventory = all_hosts();
    let (mut worlds, mut ledger, mut events) = (Vec::new(), Ledger::default(), Vec::new());
    let mut world = World::default();
    let mut minute = 0;
    for (pause, number, deed) in deeds {
        while (worlds.len() as i64) < minute + pause {
            worlds.push(world.clone());
        }
        minute += pause;
        let after = world.after(*number, deed, minute);
        let entries = entries(&world, &after, at(minute), &inventory);
        ledger.enter(&entries);
        events.extend(entries.events);
        world = after;
    }
    while (worlds.len() as i64) < MINUTES.max(minute + 1) {
        worlds.push(world.clone());
    }
    (worlds, ledger, events)
}

/// Expected usage in the period, by project, according to the worlds.
fn scheduled(worlds: &[World], period: Window) -> BTreeMap<String, Totals> {
    let mut all: BTreeMap<String, Totals> = BTreeMap::new();
    for (minute, world) in worlds.iter().enumerate() {
        let minute = minute as i64;
        let both = window(minute, minute + 1).since(period.start()).before(period.end());
        for (project, held) in schedule(world, minute) {
            add_all(all.entry(project).or_default(), &held, both.length().as_micros() as u128);
        }
    }
    all.retain(|_, totals| *totals != Totals::default());
    all
}

/// Recorded usage in the period, by project, without counts of starts.
fn counted(ledger: &Ledger, period: Window) -> BTreeMap<String, Totals> {
    let by = By { project: true, ..By::default() };
    let query = Query { periods: vec![period], by, ..Query::default() };
    let mut all = BTreeMap::new();
    for (group, mut totals) in by_group(&sums(ledger.spans(), &query)) {
        (totals.leases_started, totals.in_leases.started, totals.beside_leases.started) = (0, 0, 0);
        all.insert(group.project.expect("summed by it").0, totals);
    }
    all.retain(|_, totals| *totals != Totals::default());
    all
}

fn seconds(start: i64, end: i64) -> Window {
    let at = |second| Timestamp::from_second(second).expect("in range");
    Window::new(at(start.min(end)), at(start.max(end))).expect("forwards")
}

fn history() -> impl Strategy<Value = Vec<(i64, u128, Deed)>> {
    proptest::collection::vec((0..8_i64, 1..=LEASES, deed()), 1..15)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn usage_d_sums_over_any_interval_equal_the_schedule(
        deeds in history(),
        (start, end) in (0..MINUTES * 60, 0..MINUTES * 60),
    ) {
        let (worlds, ledger, _) = run(&deeds);
        let period = seconds(start, end);
        prop_assert_eq!(counted(&ledger, period), scheduled(&worlds, period), "{:?}", ledger.spans());
    }

    #[test]
    fn usage_d_sums_over_parts_make_up_the_sum_over_the_whole(
        deeds in history(),
        cuts in proptest::collection::btree_set(0..MINUTES * 60_000_000, 2..9),
        by in any::<[bool; 6]>(),
    ) {
        let (_, ledger, _) = run(&deeds);
        let at = |us: i64| Timestamp::from_microsecond(us).expect("in range");
        let cuts: Vec<_> = cuts.into_iter().map(at).collect();
        let part = |pair: &[Timestamp]| Window::new(pair[0], pair[1]).expect("sorted");
        let parts: Vec<_> = cuts.windows(2).map(part).collect();
        let whole = part(&[cuts[0], cuts[cuts.len() - 1]]);
        let [project, user, pool, flavor, lease, lease_type] = by;
        let by = By { project, user, pool, flavor, lease, lease_type };
        let of = |periods: Vec<Window>| {
            let query = Query { periods, by, ..Query::default() };
            let mut times: BTreeMap<_, (u128, u64)> = BTreeMap::new();
            for sum in sums(ledger.spans(), &query) {
                let group = Group { period: 0, ..sum.group };
                let entry = times.entry((group, sum.kind, sum.leased, sum.size)).or_default();
                *entry = (entry.0 + sum.time_us, entry.1 + sum.begun);
            }
            times
        };
        prop_assert_eq!(of(parts), of(vec![whole]));
    }

    #[test]
    fn usage_d_what_was_counted_for_the_past_is_final(deeds in history()) {
        let inventory = all_hosts();
        let (mut world, mut ledger, mut minute) = (World::default(), Ledger::default(), 0);
        for (pause, number, deed) in &deeds {
            minute += pause;
            let past = window(0, minute);
            let before = counted(&ledger, past);
            let after = world.after(*number, deed, minute);
            ledger.enter(&entries(&world, &after, at(minute), &inventory));
            prop_assert_eq!(counted(&ledger, past), before, "{:?}", deed);
            world = after;
        }
    }

    #[test]
    fn what_is_open_is_what_leases_and_instances_hold(deeds in history()) {
        let (worlds, ledger, _) = run(&deeds);
        let last = worlds.last().expect("a minute");
        let inventory = all_hosts();
        let fresh = entries(&World::default(), last, at(0), &inventory);
        let keys = |spans: &[Span]| -> BTreeSet<String> {
            spans.iter().filter(|span| span.open).map(Span::key).collect()
        };
        prop_assert_eq!(keys(ledger.spans()), keys(&fresh.opened));
    }
}

/// Names of the events recorded for a change of a lease.
fn told(before: &Lease, change: impl FnOnce(&mut Lease)) -> Vec<&'static str> {
    let mut after = before.clone();
    change(&mut after);
    let inventory = all_hosts();
    let mut account = Account::new(at(5), |id| inventory.host(id));
    account.lease(Some(before), Some(&after));
    let entries = account.entries();
    entries.events.iter().map(|event| event.what.name()).collect()
}

#[test]
fn usage_a_every_change_of_state_is_an_event() {
    let pending = lease(1, window(0, 60), &[1, 2]);
    let mut going = pending.clone();
    active(&mut going);
    let later = |lease: &mut Lease| lease.window = window(0, 90);
    assert_eq!(told(&going, later), ["lease.extended"]);
    assert_eq!(told(&going, |lease| lease.window = window(0, 30)), ["lease.shortened"]);
    assert_eq!(told(&pending, |lease| lease.window = window(10, 70)), ["lease.rescheduled"]);
    assert_eq!(
        told(&pending, |lease| lease.window = window(10, 90)),
        ["lease.rescheduled", "lease.extended"]
    );
    let exchange = |lease: &mut Lease| {
        lease.reservations[0].allocation = Allocation::Hosts([HostId(1), HostId(3)].into());
    };
    assert_eq!(told(&going, exchange), ["lease.reallocated"]);
    let lose = |lease: &mut Lease| {
        lease.reservations[0].allocation = Allocation::Hosts([HostId(1)].into());
        lease.reservations[0].missing_resources = true;
    };
    assert_eq!(told(&going, lose), ["lease.reallocated", "lease.degraded"]);
    let mut poor = going.clone();
    poor.reservations[0].missing_resources = true;
    assert_eq!(told(&poor, |lease| lease.reservations[0].missing_resources = false), ["lease.healed"]);
    let mut statuses = Vec::new();
    for status in LeaseStatus::ALL {
        statuses.extend(told(&Lease { status: LeaseStatus::Creating, ..pending.clone() }, |lease| {
            lease.status = status;
        }));
    }
    assert_eq!(
        statuses,
        [
            "lease.waiting",
            "lease.starting",
            "lease.started",
            "lease.updating",
            "lease.ending",
            "lease.ended",
            "lease.deleting",
            "lease.failed"
        ]
    );
    let fails = |lease: &mut Lease| {
        lease.status = LeaseStatus::Error;
        lease.events.start = EventStatus::Error;
    };
    assert_eq!(told(&pending, fails), ["lease.failed"]);
    let hasty = Lease { lease_type: LeaseType::BestEffort { deadline: at(5) }, ..pending.clone() };
    assert_eq!(told(&hasty, fails), ["lease.timed_out"]);
    let at_once = Lease { lease_type: LeaseType::Immediate { deadline: at(5) }, ..pending.clone() };
    let undone = |lease: &mut Lease| {
        lease.status = LeaseStatus::Deleting;
        lease.events.start = EventStatus::Error;
    };
    assert_eq!(told(&at_once, undone), ["lease.timed_out", "lease.deleting"]);
    assert_eq!(told(&pending, |lease| lease.name = "another".into()), [""; 0]);
}

#[test]
fn usage_a_an_event_says_whose_lease_it_is_with_its_type_its_hosts_and_its_times() {
    let lease = lease(1, window(0, 60), &[2, 1]);
    let inventory = all_hosts();
    let mut account = Account::new(at(5), |id| inventory.host(id));
    account.lease(None, Some(&lease));
    account.lease(Some(&lease), None);
    let entries = account.entries();
    let [created, deleted] = &entries.events[..] else { panic!("{entries:?}") };
    assert_eq!((created.what, deleted.what), (Occurrence::Created, Occurrence::Deleted));
    assert_eq!((created.at, created.lease, &created.owner), (at(5), Some(LeaseId(1)), &owner()));
    assert_eq!(created.lease_type.as_deref(), Some("SCHEDULE"));
    assert_eq!((&created.hosts[..], created.window), (&[HostId(1), HostId(2)][..], Some(window(0, 60))));
    assert!(entries.opened.is_empty(), "a lease that has not started holds nothing");
}

#[test]
fn usage_a_names_of_events_are_read_as_they_are_written() {
    for what in Occurrence::ALL {
        assert_eq!(Occurrence::from_name(what.name()), Some(what));
    }
    for kind in [Kind::Lease, Kind::Host, Kind::Room, Kind::Address, Kind::Instance] {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
}

#[test]
fn usage_b_room_and_addresses_are_counted_by_slots_and_by_addresses() {
    use crate::terms::{Affinity, InstanceSize, InstancesTerms, ReservationTerms};
    let mut lease = lease(1, window(0, 60), &[]);
    active(&mut lease);
    lease.reservations[0].terms = ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(2, 1024, 10).expect("a size"),
        amount: std::num::NonZeroU32::new(5).expect("some"),
        affinity: Affinity::Any,
        requirement: crate::requirement::Requirement::NONE,
        survives: None,
        extras: None,
    });
    lease.reservations[0].allocation = Allocation::Slots([(HostId(1), 2), (HostId(2), 3)].into());
    let mut ips = lease.reservations[0].clone();
    ips.id = ReservationId(11);
    ips.allocation = Allocation::FloatingIps([FloatingIpId(7), FloatingIpId(8)].into());
    lease.reservations.push(ips);
    let inventory = all_hosts();
    let mut account = Account::new(at(0), |id| inventory.host(id));
    account.lease(None, Some(&lease));
    let mut ledger = Ledger::default();
    ledger.enter(&account.entries());
    let query = Query { periods: vec![window(0, 30)], ..Query::default() };
    let totals = by_group(&sums(ledger.spans(), &query))[&Group::default()];
    let half_hour = 1_800_000_000;
    assert_eq!((totals.slots_us, totals.addresses_us), (5 * half_hour, 2 * half_hour));
    assert_eq!(totals.reserved().cores_us, 10 * half_hour);
    assert_eq!(totals.reserved().memory_mib_us, 5120 * half_hour);
    assert_eq!((totals.hosts_us, totals.leases_started), (0, 1));
    let pools = Query { pool: Some(DEFAULT_NAME.into()), ..query };
    assert_eq!(by_group(&sums(ledger.spans(), &pools))[&Group::default()].addresses_us, 0);
}

#[test]
fn usage_b_an_instance_that_its_lease_leaves_behind_is_counted_beside_leases() {
    let mut going = lease(1, window(0, 60), &[1]);
    active(&mut going);
    let inside = instance(100, Some(1), 1);
    let left = Instance { kind: InstanceKind::Regular, ..inside.clone() };
    let building = Instance { status: InstanceStatus::Building, ..inside.clone() };
    let inventory = all_hosts();
    let mut ledger = Ledger::default();
    let mut step = |minute, before: &Instance, after: &Instance, over: bool| {
        let mut account = Account::new(at(minute), |id| inventory.host(id));
        let lease = (!over).then_some(&going);
        account.instance(Some((before, Some(&going))), Some((after, lease)));
        ledger.enter(&account.entries());
    };
    step(10, &building, &inside, false);
    // In the same commit as the end of its lease.
    step(20, &inside, &left, true);
    let query = Query { periods: vec![window(0, 30)], ..Query::default() };
    let totals = by_group(&sums(ledger.spans(), &query))[&Group::default()];
    let ten = 600_000_000;
    let (within, beside) = (totals.in_leases, totals.beside_leases);
    assert_eq!((within.started, within.count_us), (1, ten));
    assert_eq!((beside.started, beside.count_us), (0, ten), "it was started once");
}

#[test]
fn a_reservation_is_as_large_as_its_spans() {
    let inventory = all_hosts();
    let mut going = lease(1, window(0, 60), &[1, 2]);
    active(&mut going);
    let size_of = |lease: &Lease| Size::of_reservation(&lease.reservations[0], |id| inventory.host(id));
    let sum_of = |lease: &Lease| {
        let mut account = Account::new(at(0), |id| inventory.host(id));
        account.lease(None, Some(lease));
        let spans = account.entries().opened.into_iter().filter(|span| span.held != Held::Lease);
        spans.map(|span| span.size).fold(Size::default(), Size::plus)
    };
    assert_eq!(size_of(&going), Size { count: 2, cores: 32, memory_mib: 131_072, disk_gib: 2000 });
    assert_eq!(size_of(&going), sum_of(&going));
    let without_hosts = Size::of_reservation(&going.reservations[0], |_| None);
    assert_eq!(without_hosts, Size { count: 2, ..Size::default() });
    going.reservations[0].terms = ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(4, 1024, 10).expect("a size"),
        amount: NonZeroU32::new(3).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    });
    going.reservations[0].allocation = Allocation::Slots([(HostId(1), 2), (HostId(2), 1)].into());
    assert_eq!(size_of(&going), Size { count: 3, cores: 12, memory_mib: 3072, disk_gib: 30 });
    assert_eq!(size_of(&going), sum_of(&going));
    let ips = [FloatingIpId(1), FloatingIpId(2)];
    going.reservations[0].allocation = Allocation::FloatingIps(ips.into());
    assert_eq!(size_of(&going), Size { count: 2, ..Size::default() });
    assert_eq!(size_of(&going), sum_of(&going));
}

#[test]
fn prices_are_decimal_and_amounts_exact_to_the_millionth() {
    let decimal = |text: &str| text.parse::<Decimal>().expect("a number");
    for text in ["0", "0.25", "12", "12.000001", "0.1"] {
        assert_eq!(decimal(text).to_string(), text);
    }
    assert_eq!(decimal("1.50").to_string(), "1.5");
    for wrong in ["", ".", "1.", ".5", "-1", "1e3", "0.0000001", "1000000000.000001", "x", "1 "] {
        assert!(wrong.parse::<Decimal>().is_err(), "{wrong}");
    }
    let prices = Prices {
        currency: "EUR".into(),
        lease: decimal("10").into(),
        host_hour: decimal("0.1").into(),
        instance_hour: decimal("0.05").into(),
        ..Prices::default()
    };
    let hour = 3_600_000_000;
    let totals = Totals {
        leases_started: 1,
        hosts_us: 3 * hour,
        in_leases: Instances { started: 1, count_us: hour / 3, ..Instances::default() },
        ..Totals::default()
    };
    let group = Group::default();
    let lines = lines(&prices, &[(&group, &totals)]);
    assert_eq!(lines, ["lease 1 at 10: 10", "host 3 at 0.1: 0.3", "instance 0.333333 at 0.05: 0.016667"]);
    assert_eq!(prices.cost([(&group, &totals)]), Some(decimal("10.316667")));
    assert_eq!(prices.cost([(&group, &Totals::default())]), Some(Decimal::ZERO));
    assert_eq!(Prices::default().cost([(&group, &totals)]), None, "nothing has a price");
}

fn lines(prices: &Prices, groups: &[(&Group, &Totals)]) -> Vec<String> {
    let charges = prices.charges(groups.iter().copied());
    let line = |line: &Charge| {
        let Charge { item, quantity, unit_price, amount } = line;
        format!("{} {quantity} at {unit_price}: {amount}", item.name())
    };
    charges.iter().map(line).collect()
}

#[test]
fn the_price_for_a_project_precedes_that_for_a_flavor_a_pool_and_the_general_one() {
    let decimal = |text: &str| text.parse::<Decimal>().expect("a number");
    let mut prices = Prices { slot_hour: decimal("1").into(), ..Prices::default() };
    assert_eq!(prices.grouping(), By::default());
    for (scope, price) in
        [(Scope::pool("gpu"), "2"), (Scope::flavor("p3"), "3"), (Scope::project("staff"), "0")]
    {
        prices.slot_hour.insert(scope, decimal(price));
    }
    assert_eq!(prices.grouping(), By { project: true, flavor: true, pool: true, ..By::default() });
    let group = |project: &str, flavor: Option<&str>, pool: &str| Group {
        project: Some(ProjectId(project.to_owned())),
        flavor: flavor.map(str::to_owned),
        pool: Some(pool.to_owned()),
        ..Group::default()
    };
    let totals = Totals { slots_us: 3_600_000_000, ..Totals::default() };
    for (group, price) in [
        (group("web", None, "cpu"), "1"),
        (group("web", None, "gpu"), "2"),
        (group("web", Some("p3"), "gpu"), "3"),
        (group("web", Some("p4"), "gpu"), "2"),
        (group("staff", Some("p3"), "gpu"), "0"),
    ] {
        assert_eq!(
            lines(&prices, &[(&group, &totals)]),
            [format!("room 1 at {price}: {price}")],
            "{group:?}"
        );
    }
    // Everything with the same price is one line, in any group.
    let groups = [group("web", None, "cpu"), group("web", None, "gpu"), group("ci", None, "gpu")];
    let groups = groups.each_ref().map(|group| (group, &totals));
    assert_eq!(lines(&prices, &groups), ["room 1 at 1: 1", "room 2 at 2: 4"]);
}

#[test]
fn preemptible_instances_cost_a_part_of_the_prices_of_cpus_and_memory() {
    let decimal = |text: &str| text.parse::<Decimal>().expect("a number");
    let core_hour = Scoped::from(decimal("0.03")).with(Scope::pool("gpu"), decimal("0.5"));
    let mut prices = Prices { core_hour, gib_hour: decimal("0.004").into(), ..Prices::default() };
    let hour = 3_600_000_000;
    let amounts = Amounts { cores_us: 8 * hour, memory_mib_us: 2048 * hour, disk_gib_us: 0 };
    let beside_leases = Instances { started: 1, count_us: hour, amounts };
    let totals = Totals { beside_leases, ..Totals::default() };
    let group = |lease_type: Option<&str>, pool: &str| Group {
        lease_type: lease_type.map(str::to_owned),
        pool: Some(pool.to_owned()),
        ..Group::default()
    };
    let (cpu, gpu) = (group(Some(PREEMPTIBLE), "cpu"), group(Some(PREEMPTIBLE), "gpu"));
    assert!(!prices.grouping().lease_type, "they are free");
    prices.preemptible = decimal("0.25").into();
    assert!(prices.grouping().lease_type);
    assert_eq!(
        lines(&prices, &[(&cpu, &totals)]),
        ["preemptible-core 8 at 0.0075: 0.06", "preemptible-memory 2 at 0.001: 0.002"]
    );
    assert_eq!(lines(&prices, &[(&gpu, &totals)])[0], "preemptible-core 8 at 0.125: 1");
    assert!(lines(&prices, &[(&group(None, "cpu"), &totals)]).is_empty(), "others are free");
}

#[test]
fn room_is_counted_under_its_flavor_and_so_is_a_lease_of_one_flavor() {
    use crate::terms::{Flavor, FlavorSize, FlavorTerms, InstanceSize, ReservationTerms};
    let size = FlavorSize { instance: InstanceSize::new(2, 1024, 10).expect("a size"), ephemeral_gib: 0 };
    let of_flavor = |id: &str| {
        let flavor = Flavor::new(id, size, &BTreeMap::new()).expect("a flavor");
        let amount = std::num::NonZeroU32::new(2).expect("some");
        ReservationTerms::Flavor(FlavorTerms { flavor, amount, survives: None })
    };
    let mut lease = lease(1, window(0, 60), &[]);
    active(&mut lease);
    lease.reservations[0].terms = of_flavor("p3");
    lease.reservations[0].allocation = Allocation::Slots([(HostId(1), 2)].into());
    let inside = instance(100, Some(1), 1);
    let inventory = all_hosts();
    let counted = |lease: &Lease| {
        let mut account = Account::new(at(0), |id| inventory.host(id));
        account.lease(None, Some(lease));
        account.instance(None, Some((&inside, Some(lease))));
        let spans = account.entries().opened;
        let counted = spans.iter().map(|span| (span.held.kind(), span.flavor.clone().unwrap_or_default()));
        counted.collect::<BTreeSet<_>>()
    };
    let of = |flavors: &[(Kind, &str)]| -> BTreeSet<(Kind, String)> {
        flavors.iter().map(|(kind, flavor)| (*kind, (*flavor).to_owned())).collect()
    };
    let all = [(Kind::Lease, "p3"), (Kind::Room, "p3"), (Kind::Instance, "p3")];
    assert_eq!(counted(&lease), of(&all));
    let mut other = lease.reservations[0].clone();
    (other.id, other.terms) = (ReservationId(11), of_flavor("p4"));
    lease.reservations.push(other);
    let both = [(Kind::Lease, ""), (Kind::Room, "p3"), (Kind::Room, "p4"), (Kind::Instance, "p3")];
    assert_eq!(counted(&lease), of(&both));
}
