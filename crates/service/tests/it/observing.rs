//! Observations of all hosts before decisions about leases that start now, and guests that were asked to
//! leave needlessly.

use std::sync::Arc;

use fleet::simulated::{Between, Faults, SimulatedFleet, Timing};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::lease_type::LeaseType;
use leases::plan::GuestOwner;
use leases::project::ProjectId;
use service::{NewLease, Service};
use simulation::{World, caller};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::running::until;
use crate::terms::{asking, at, change, dates, hosts, hosts_of, make, settings, world, world_with};

fn best_effort(count: u32) -> NewLease {
    let new = asking(0, 60, vec![hosts(count)]);
    NewLease { terms: new.terms.of_type(LeaseType::BestEffort { deadline: at(30) }), ..new }
}

/// A running loop of a service.
struct Loop {
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Loop {
    /// Starts the loop, and waits until it has observed all hosts.
    async fn start(world: &World) -> Self {
        let (stop, stopped) = watch::channel(false);
        let cycles = world.service.statistics().cycles;
        let running = tokio::spawn(world.service.clone().run(stopped));
        until(|| world.service.statistics().cycles > cycles).await;
        idle().await;
        Self { stop, running }
    }

    async fn end(self) {
        self.stop.send_replace(true);
        self.running.await.expect("no panic");
    }
}

/// Lets other tasks run until they wait for time to pass.
async fn idle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// The instant this many seconds after the beginning.
fn second(seconds: i64) -> Timestamp {
    at(0) + SignedDuration::from_secs(seconds)
}

async fn previews(service: &Arc<Service>, count: usize, now: Timestamp) {
    let new = NewLease { asked_at: now, ..asking(1, 60, vec![hosts(1)]) };
    let asked = (0..count).map(|_| async {
        service.leases().preview(&caller("p"), &new).await.expect("free");
    });
    join_all(asked).await;
}

#[tokio::test]
async fn a_best_effort_lease_is_planned_by_what_is_there_when_it_is_asked_for() {
    let mut world = world(4).await;
    let running = Loop::start(&world).await;
    world.clock.set(second(20));
    for host in 1..=4 {
        world.fleet.start_guest(HostId(host), GuestOwner::Other, None).expect("a free host");
    }
    let lease = make(&mut world, best_effort(1)).await.expect("a plan");
    assert_eq!(lease.lease.hunt.as_ref().map(|hunt| hunt.moves.len()), Some(1), "before the answer");
    assert_eq!(lease.lease.reason, None);
    running.end().await;
}

#[tokio::test]
async fn changes_and_offers_for_now_are_decided_by_what_is_there() {
    let mut world = world(2).await;
    let running = Loop::start(&world).await;
    let later = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.clock.set(second(20));
    world.fleet.start_guest(hosts_of(&later)[0], GuestOwner::Other, None).expect("a free host");
    let sooner = change(&mut world, later.lease.id, dates(Some(1), None)).await.expect("another host");
    assert_ne!(hosts_of(&sooner), hosts_of(&later), "somebody is there");
    running.end().await;
}

#[tokio::test]
async fn one_look_serves_all_decisions_that_wait_for_it_and_there_is_at_most_one_in_a_second() {
    let world = world(3).await;
    let running = Loop::start(&world).await;
    world.clock.set(second(20));
    let before = world.fleet.questions();
    let looks = || world.fleet.questions() - before;
    previews(&world.service, 50, second(20)).await;
    assert_eq!(looks(), 1);
    for now in [20, 20, 21, 21, 22] {
        world.clock.set(second(now));
        previews(&world.service, 20, second(now)).await;
    }
    assert_eq!(looks(), 3, "a look in each second");
    // No observation is made for leases that start later.
    world.clock.set(second(25));
    let new = NewLease { asked_at: second(25), ..asking(10, 60, vec![hosts(1)]) };
    world.service.leases().preview(&caller("p"), &new).await.expect("free");
    assert_eq!(looks(), 3);
    running.end().await;
}

#[tokio::test]
async fn if_the_fleet_does_not_answer_in_time_the_last_observation_decides_and_the_lease_says_so() {
    let slow = |fleet: SimulatedFleet| {
        fleet.with_timing(Timing { question: Between::secs(10, 10), ..Timing::IMMEDIATE })
    };
    let mut world = world_with(2, settings(), None, slow).await;
    world.run_until(at(1)).await;
    while world.under_way() > 0 {
        world.next(at(3)).await.expect("it ends");
    }
    let running = Loop::start(&world).await;
    // Until the observation is no longer fresh.
    let (now, asked) = loop {
        let now = world.now() + SignedDuration::from_secs(1);
        world.clock.set(now);
        idle().await;
        let minute = now.duration_since(at(0)).as_mins() + 1;
        let new = NewLease { asked_at: now, ..asking(minute, minute + 60, vec![hosts(1)]) };
        let service = world.service.clone();
        let asked = tokio::spawn(async move { service.leases().preview(&caller("p"), &new).await });
        idle().await;
        if !asked.is_finished() {
            break (now, asked);
        }
        assert_eq!(asked.await.expect("no panic").expect("free").lease.reason, None);
    };
    world.clock.set(now + SignedDuration::from_secs(2));
    let lease = asked.await.expect("no panic").expect("free");
    let reason = lease.lease.reason.expect("it says so");
    assert!(reason.starts_with("the fleet does not answer") && reason.contains("checked again"), "{reason}");
    // Other requests don't have to wait for the same observation.
    let minute = now.duration_since(at(0)).as_mins() + 1;
    let other = make(&mut world, asking(minute, minute + 60, vec![hosts(1)])).await.expect("free");
    assert!(other.lease.reason.is_some());
    let hint = world.service.leases().stale_hint(&asking(minute, minute + 60, vec![hosts(3)]).terms);
    assert!(hint.is_some_and(|hint| hint.starts_with("the fleet does not answer")));
    running.end().await;
}

#[tokio::test]
async fn a_fleet_that_fails_holds_up_no_decision() {
    let mut world = world(2).await;
    let running = Loop::start(&world).await;
    world.fleet.set_faults(Faults { unanswered: 1.0, ..Faults::NONE });
    world.clock.set(second(20));
    let lease = make(&mut world, asking(1, 60, vec![hosts(1)])).await.expect("free");
    assert!(lease.lease.reason.is_some(), "it says on what it was decided");
    world.fleet.set_faults(Faults::NONE);
    world.clock.set(second(22));
    let lease = make(&mut world, asking(1, 60, vec![hosts(1)])).await.expect("free");
    assert_eq!(lease.lease.reason, None);
    running.end().await;
}

#[tokio::test]
async fn a_guest_that_was_asked_to_leave_in_vain_is_started_again_and_its_project_is_told() {
    let mut world = world_with(1, settings(), None, SimulatedFleet::keeping_shut_off_guests).await;
    let host = HostId(1);
    let guest = world.fleet.start_guest(host, GuestOwner::Preemptible, None).expect("a free host");
    world.run_until(at(1)).await;
    let lease = make(&mut world, asking(1, 60, vec![hosts(1)])).await.expect("free");
    let seen = |world: &World| world.fleet.look(host).expect("taken on").guests.pop().expect("it is there");
    // It has shut down, and is about to be deleted.
    let asked = loop {
        let asked = seen(&world);
        if asked.stopping_since.is_some() {
            break asked;
        }
        world.next(at(2)).await.expect("it is asked to leave");
    };
    assert!(asked.has_shut_down);
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("accepted");
    world.touched();
    world.run_until(at(3)).await;
    let resumed = seen(&world);
    assert_eq!((resumed.id, resumed.stopping_since, resumed.has_shut_down), (guest, None, false));
    let project = ProjectId("somebody".into());
    let told = world.service.notifications().after(Some(&project), 0, 10).await.expect("the store works");
    let told: Vec<_> = told.into_iter().map(|told| told.content).collect();
    assert_eq!(
        told.iter().map(|told| told.event_type.as_str()).collect::<Vec<_>>(),
        ["instance.departure.withdrawn"]
    );
    assert!(told[0].payload.contains(&guest.to_string()), "{}", told[0].payload);
}
