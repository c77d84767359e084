//! Records of the instances seen on leased hosts.

use std::time::Duration;

use fleet::simulated::{Between, Faults, Happening, Timing};
use fleet::{Isolation as _, OperationKey};
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId, LeaseId};
use leases::occupants::{Fact, Fence, Interval};
use leases::plan::GuestOwner;
use leases::terms::Terms;
use leases::window::Window;
use service::{NewLease, Occupancy, Settings};
use simulation::{World, caller};
use store::Store;
use tokio::sync::watch;

use crate::sharing::two;
use crate::terms::{asking, at, hosts, hosts_of, make, settings, slots, status, world, world_with};

async fn occupancy(world: &World, lease: LeaseId) -> Occupancy {
    world.service.usage().occupancy(lease, 0, 1000).await.expect("works")
}

async fn intervals(world: &World, lease: LeaseId) -> Vec<Interval> {
    let occupancy = occupancy(world, lease).await;
    occupancy.intervals.into_iter().map(|(_, interval)| interval).collect()
}

fn names(intervals: &[Interval]) -> Vec<&'static str> {
    intervals.iter().map(|interval| interval.fact.name()).collect()
}

fn unseen(intervals: &[Interval]) -> Vec<&Interval> {
    intervals.iter().filter(|interval| interval.fact == Fact::Unseen).collect()
}

fn of_instance(intervals: &[Interval], id: GuestId) -> Vec<&Interval> {
    let is_of = |interval: &&Interval| interval.fact.instance().is_some_and(|(instance, _)| instance == id);
    intervals.iter().filter(is_of).collect()
}

/// A lease of a host from the beginning to minute 600, at minute 10.
async fn running(world: &mut World) -> (LeaseId, HostId) {
    let lease = make(world, asking(0, 600, vec![hosts(1)])).await.expect("free");
    world.run_until(at(10)).await;
    (lease.lease.id, hosts_of(&lease)[0])
}

#[tokio::test]
async fn hosts_are_recorded_from_the_handover_to_the_release() {
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(quick)).await;
    let others = [1, 2].map(|host| {
        world.fleet.start_guest(HostId(host), GuestOwner::Preemptible, None).expect("a free host")
    });
    let lease = make(&mut world, asking(1, 60, vec![hosts(1), slots(1, 2)])).await.expect("free");
    let (id, host) = (lease.lease.id, *lease.lease.reservations[0].allocation.hosts().first().expect("one"));
    world.run_until(at(10)).await;
    let owner = GuestOwner::Lease(id);
    let twenty = SignedDuration::from_mins(20);
    let short = world.fleet.start_guest(host, owner, Some(twenty)).expect("its own host");
    let long = world.fleet.start_guest(host, owner, None).expect("its own host");
    world.run_until(at(90)).await;
    let found = intervals(&world, id).await;
    let facts = ["fenced", "instance", "verified", "held", "instance", "instance", "released"];
    assert_eq!(names(&found), facts);
    assert!(found.iter().all(|one| one.host == host), "others may be on hosts of room: {found:?}");
    assert_eq!(
        found.iter().map(|one| one.begins).collect::<Vec<_>>(),
        [true, false, false, false, false, false, false]
    );
    let end = |one: &Interval| one.end.expect("it is over");
    let (fenced, verified, held, released) = (&found[0], &found[2], &found[3], &found[6]);
    assert!(at(1) <= fenced.start && end(fenced) <= verified.start, "{found:?}");
    assert!(end(verified) <= held.start && held.start < at(3), "{found:?}");
    assert!(at(59) < end(held) && end(held) <= released.start && released.start < at(62), "{found:?}");
    let left = others.iter().flat_map(|id| of_instance(&found, *id)).collect::<Vec<_>>();
    assert_eq!(
        (left.len(), &left[0].fact.instance().expect("one").1.expect("known").0),
        (1, &"somebody".to_owned())
    );
    assert!(end(left[0]) < verified.start, "nothing was found when it was verified: {found:?}");
    for (instance, minutes) in [(short, 20), (long, 50)] {
        let [own] = of_instance(&found, instance)[..] else { panic!("once: {found:?}") };
        assert_eq!(own.fact.instance().expect("one").1, Some(&own.project));
        let lasted = end(own).duration_since(own.start).as_mins();
        assert!((minutes - 2..=minutes).contains(&lasted), "{lasted} of {minutes} minutes");
    }
    assert!(world.store.open_occupancy().await.expect("works").is_empty());
}

#[tokio::test]
async fn a_host_that_a_running_lease_gets_is_recorded_from_its_fence_on() {
    let quick = Timing { shut_down: Between::secs(20, 20), ..Timing::IMMEDIATE };
    let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(quick)).await;
    let (id, failed) = running(&mut world).await;
    let spare = HostId(3 - failed.0);
    world.fleet.start_guest(spare, GuestOwner::Preemptible, None).expect("a free host");
    world.fleet.happen(Happening::HostFails(failed));
    world.run_until(at(20)).await;
    let mut found = intervals(&world, id).await;
    found.retain(|one| one.host == spare);
    assert_eq!(names(&found), ["fenced", "instance", "verified", "held"], "{found:?}");
    assert!(found[0].begins && found[1].end.is_some_and(|end| end < found[2].start), "{found:?}");
}

#[tokio::test]
async fn a_fence_that_is_lost_is_recorded_with_the_instances_seen_meanwhile() {
    let mut world = world(2).await;
    let (id, host) = running(&mut world).await;
    let reservation = world.service.leases().get(id).expect("it runs").lease.reservations[0].id;
    let key = OperationKey { key: "by hand".to_owned(), fence: 1, ..OperationKey::default() };
    world.fleet.release(host, reservation, &key).await.expect("done");
    let stranger = world.fleet.start_guest(host, GuestOwner::Preemptible, None).expect("nothing prevents it");
    world.run_until(at(30)).await;
    let found = intervals(&world, id).await;
    let lost = found.iter().position(|one| one.fact == Fact::Fence(Fence::Unfenced)).expect("it is seen");
    let [seen] = of_instance(&found, stranger)[..] else { panic!("once: {found:?}") };
    assert!(seen.start >= found[lost].start && seen.end.is_some(), "{found:?}");
    let after = names(&found[lost..]);
    assert_eq!((after.contains(&"fenced"), after.last()), (true, Some(&"held")), "{found:?}");
    assert!(!names(&found).contains(&"released"), "{found:?}");
}

/// A fleet that takes 45 s for an answer: a look at all hosts takes 90 s, and one begins every two minutes.
async fn slow_world() -> World {
    let slow = Timing { question: Between::secs(45, 45), ..Timing::IMMEDIATE };
    world_with(3, settings(), None, |fleet| fleet.with_timing(slow)).await
}

/// A lease of a host from `start` to minute 600.
async fn starting(world: &mut World, start: Timestamp) -> LeaseId {
    let window = Window::new(start, at(600)).expect("forwards");
    let terms = Terms::new(window, None, vec![hosts(1)]).expect("terms");
    let new = NewLease { terms, ..asking(10, 600, vec![hosts(1)]) };
    make(world, new).await.expect("free").lease.id
}

/// Observations of single hosts end while an observation of all hosts is running.
#[tokio::test]
async fn a_round_that_takes_longer_than_a_pause_is_no_gap() {
    for seconds in (0..120).step_by(10) {
        let mut world = slow_world().await;
        let start = at(10) + SignedDuration::from_secs(seconds);
        let id = starting(&mut world, start).await;
        for minute in [16, 20, 24, 28] {
            make(&mut world, asking(minute, minute + 3, vec![hosts(1)])).await.expect("free");
            world.run_until(at(minute + 3)).await;
        }
        world.run_until(at(34)).await;
        let found = intervals(&world, id).await;
        assert_eq!(names(&found), ["fenced", "verified", "held"], "{seconds}: {found:?}");
        assert!(start <= found[0].start, "{seconds}: it was fenced at the start: {found:?}");
        let seen_until = occupancy(&world, id).await.seen_until;
        assert!(seen_until.is_some_and(|until| at(31) <= until), "{seconds}: {seen_until:?}");
    }
}

#[tokio::test]
async fn a_round_that_is_lost_is_a_gap_however_long_rounds_take() {
    let mut world = slow_world().await;
    let id = starting(&mut world, at(10)).await;
    world.run_until(at(34)).await;
    world.fleet.set_faults(Faults { unanswered: 1.0, ..Faults::NONE });
    world.run_until(at(36)).await;
    world.fleet.set_faults(Faults::NONE);
    world.run_until(at(45)).await;
    let found = intervals(&world, id).await;
    let [gap] = unseen(&found)[..] else { panic!("one gap: {found:?}") };
    let end = gap.end.expect("the fleet answers again");
    assert!(at(32) <= gap.start && gap.start <= at(35) && at(36) <= end && end < at(39), "{found:?}");
    world.kill(0);
    world.run_until(at(50)).await;
    world.restart_one(0).await.expect("it starts");
    world.run_until(at(60)).await;
    let found = intervals(&world, id).await;
    let [_, gap] = unseen(&found)[..] else { panic!("two gaps: {found:?}") };
    let end = gap.end.expect("it looks again");
    assert!(at(41) <= gap.start && gap.start <= at(45) && at(50) <= end && end < at(53), "{found:?}");
}

#[tokio::test]
async fn a_service_that_was_away_says_since_when_nothing_was_seen() {
    let mut world = world(2).await;
    let (id, host) = running(&mut world).await;
    let start = |world: &World| world.fleet.start_guest(host, GuestOwner::Lease(id), None).expect("its own");
    let first = start(&world);
    world.run_until(at(12)).await;
    world.kill(0);
    // While no service observes the host, a guest starts and ends.
    world.run_until(at(20)).await;
    world.fleet.happen(Happening::GuestEnds(first));
    let missed = start(&world);
    world.fleet.happen(Happening::GuestEnds(missed));
    let last = start(&world);
    world.run_until(at(30)).await;
    assert_eq!(unseen(&intervals(&world, id).await), Vec::<&Interval>::new());
    assert!(
        occupancy(&world, id).await.seen_until.is_some_and(|until| until <= at(12)),
        "it isn't glossed over"
    );
    world.restart_one(0).await.expect("it starts");
    world.run_until(at(40)).await;
    let found = intervals(&world, id).await;
    let [gap] = unseen(&found)[..] else { panic!("one gap: {found:?}") };
    let end = gap.end.expect("it looks again");
    assert!(at(10) < gap.start && gap.start <= at(12) && at(30) <= end && end < at(31), "{found:?}");
    let [first] = of_instance(&found, first)[..] else { panic!("once: {found:?}") };
    assert_eq!(first.end, Some(gap.start), "it was seen until then");
    assert_eq!(of_instance(&found, missed), Vec::<&Interval>::new());
    let [last] = of_instance(&found, last)[..] else { panic!("once: {found:?}") };
    assert_eq!((last.start, last.end), (end, None));
    let held: Vec<_> = found.iter().filter(|one| one.fact == Fact::Fence(Fence::Held)).collect();
    assert_eq!((held.len(), held[0].end), (1, None), "the fence is what it was: {found:?}");
    assert_eq!(found.iter().filter(|one| one.begins).count(), 1);
}

#[tokio::test]
async fn a_fleet_or_a_host_that_does_not_answer_is_a_gap() {
    let mut world = world(2).await;
    let (id, host) = running(&mut world).await;
    world.fleet.set_faults(Faults { unanswered: 1.0, ..Faults::NONE });
    world.run_until(at(20)).await;
    assert!(occupancy(&world, id).await.seen_until.is_some_and(|until| until <= at(10)));
    world.fleet.set_faults(Faults::NONE);
    world.run_until(at(30)).await;
    let found = intervals(&world, id).await;
    let [gap] = unseen(&found)[..] else { panic!("one gap: {found:?}") };
    let (start, end) = (gap.start, gap.end.expect("it answers again"));
    assert!(at(9) <= start && start <= at(10) && at(20) <= end && end < at(24), "{found:?}");
    world.fleet.happen(Happening::HostFallsSilent(host));
    world.run_until(at(40)).await;
    let found = intervals(&world, id).await;
    let [_, gap] = unseen(&found)[..] else { panic!("two gaps: {found:?}") };
    assert!(at(29) <= gap.start && gap.start <= at(30) && gap.end.is_none(), "{found:?}");
    world.fleet.recover(host);
    world.run_until(at(50)).await;
    let found = intervals(&world, id).await;
    let end = unseen(&found)[1].end.expect("it is back");
    assert!(at(40) <= end && end < at(42), "{found:?}");
}

/// Waits until all observations so far are recorded.
async fn recorded(world: &World, seen_until: Timestamp) {
    for _ in 0..5000 {
        if world.store.occupancy_seen_until().await.expect("works") >= Some(seen_until) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it isn't recorded until {seen_until}");
}

#[tokio::test]
async fn a_service_that_stops_records_its_last_look_before_it_waits_for_steps() {
    let slow = Timing { call: Between::secs(100, 100), ..Timing::IMMEDIATE };
    let mut world = world_with(3, settings(), None, |fleet| fleet.with_timing(slow)).await;
    let lease = make(&mut world, asking(10, 600, vec![hosts(1)])).await.expect("free");
    world.run_until(at(20)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    let host = hosts_of(&lease)[0];
    let next = make(&mut world, asking(20, 600, vec![hosts(1)])).await.expect("free");
    let others = [host, hosts_of(&next)[0]];
    let spare = [1, 2, 3].map(HostId).into_iter().find(|host| !others.contains(host)).expect("one is left");
    let (stop, stopped) = watch::channel(false);
    let running = tokio::spawn(world.service.clone().run(stopped));
    world.fleet.start_guest(host, GuestOwner::Lease(lease.lease.id), None).expect("its own host");
    let first = at(20) + SignedDuration::from_secs(31);
    world.clock.set(first);
    recorded(&world, first).await;
    // The next look comes before its time is recorded.
    world.fleet.fail(spare);
    let last = first + SignedDuration::from_secs(31);
    world.clock.set(last);
    let seen = async {
        while world.service.statistics().failed_hosts == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), seen).await.expect("it looks");
    assert_eq!(world.store.occupancy_seen_until().await.expect("works"), Some(first));
    stop.send_replace(true);
    recorded(&world, last).await;
    assert!(!running.is_finished(), "a host is being fenced");
    world.clock.set(at(30));
    running.await.expect("no panic");
}

/// The time of the last observation is recorded, but not of each one.
#[tokio::test]
async fn nothing_but_the_time_of_the_last_look_is_recorded_while_nothing_changes() {
    let mut world = world(2).await;
    let (id, _) = running(&mut world).await;
    let before = intervals(&world, id).await;
    let mut times = Vec::<Timestamp>::new();
    for minute in 11..=40 {
        world.run_until(at(minute)).await;
        times.extend(occupancy(&world, id).await.seen_until);
    }
    assert_eq!(intervals(&world, id).await, before);
    assert!(times.is_sorted() && times[29] >= at(38), "{times:?}");
    times.dedup();
    assert!((14..=30).contains(&times.len()), "at most once a minute: {times:?}");
}

#[tokio::test]
async fn records_outlive_their_lease_and_are_kept_as_long_as_usage() {
    for (kept, left) in [(None, true), (Some(SignedDuration::from_hours(24)), false)] {
        let settings = Settings { keep_usage: kept, ..settings() };
        let mut world = world_with(2, settings, None, |fleet| fleet).await;
        let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free").lease.id;
        world.run_until(at(90)).await;
        world.service.leases().delete(&caller("p"), lease).await.expect("over");
        world.touched();
        world.run_until(at(100)).await;
        assert!(world.service.leases().get(lease).is_none());
        let found = intervals(&world, lease).await;
        assert_eq!(names(&found).last(), Some(&"released"));
        world.run_until(at(3 * 24 * 60)).await;
        assert_eq!(!intervals(&world, lease).await.is_empty(), left, "{kept:?}");
    }
}

#[tokio::test]
async fn a_project_with_too_many_records_loses_its_oldest() {
    let settings = Settings { keep_bytes: 2000, ..settings() };
    let mut world = world_with(2, settings, None, |fleet| fleet).await;
    let (id, host) = running(&mut world).await;
    for minute in (10..70).step_by(2) {
        let runs = Some(SignedDuration::from_secs(90));
        world.fleet.start_guest(host, GuestOwner::Lease(id), runs).expect("its own host");
        world.run_until(at(minute + 2)).await;
    }
    world.run_until(at(100)).await;
    let found = intervals(&world, id).await;
    assert!((10..=15).contains(&found.len()), "{found:?}");
    assert_eq!(
        (&found[0].fact, found[0].begins),
        (&Fact::Fence(Fence::Held), false),
        "older ones are missing"
    );
    assert!(found.iter().any(|one| one.start > at(65)), "the newest are left: {found:?}");
}

#[tokio::test]
async fn of_two_services_one_records_and_the_other_takes_over() {
    let mut world = two(1).await;
    let lease = world.service_of(0).leases().create(&caller("p"), asking(1, 60, vec![hosts(1)]), None).await;
    let id = lease.expect("free").lease.lease.id;
    world.touched();
    world.run_until(at(20)).await;
    let before = intervals(&world, id).await;
    assert_eq!(names(&before).iter().filter(|name| **name == "held").count(), 1, "{before:?}");
    world.kill(0);
    world.run_until(at(30)).await;
    assert!(world.service_of(1).usage().occupancy(id, 0, 9).await.expect("works").seen_until >= Some(at(28)));
    world.run_until(at(70)).await;
    let store = world.store_of(1);
    let found = store.occupancy(id, 0, 100).await.expect("works");
    let found: Vec<Interval> = found.into_iter().map(|(_, interval)| interval).collect();
    let fences = names(&found).into_iter().filter(|name| !["instance", "unseen"].contains(name));
    let again: Vec<_> =
        names(&before).into_iter().filter(|name| *name != "unseen").chain(["released"]).collect();
    assert_eq!(fences.collect::<Vec<_>>(), again, "{found:?}");
    assert!(unseen(&found).len() <= 1 && found.iter().all(|one| one.end.is_some()), "{found:?}");
}
