//! Leases that hunt: guests of other projects are moved out of their way. Tests are named by the criteria of
//! CLS.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleet::simulated::{Fault, PlannedFault, SimulatedFleet, Timing, Verb};
use jiff::SignedDuration;
use leases::ids::{GuestId, HostId};
use leases::lease::EndAction;
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, Place};
use leases::project::ProjectId;
use leases::requirement::{Operator, Requirement};
use leases::terms::{HostsTerms, ReservationTerms};
use service::{HostQuestion, NewLease, Placing};
use simulation::{Happened, Setup, World, caller};

use store::LeaseRecord;

use crate::terms::{asking, at, between, hosts, hosts_of, make, settings, status, world, world_with};

/// A best-effort lease of `count` hosts for an hour, with its deadline in minutes.
fn best_effort(count: u32, deadline: i64) -> NewLease {
    let new = asking(0, 60, vec![hosts(count)]);
    NewLease { terms: new.terms.of_type(LeaseType::BestEffort { deadline: at(deadline) }), ..new }
}

fn start(world: &World, host: u64) -> GuestId {
    world.fleet.start_guest(HostId(host), GuestOwner::Other, None).expect("a free host")
}

/// Puts a foreign guest on each of `hosts` hosts, and lets the service observe them.
async fn inhabited(mut world: World, hosts: u64) -> World {
    (1..=hosts).for_each(|host| _ = start(&world, host));
    world.run_until(at(1)).await;
    world
}

fn slow(fleet: SimulatedFleet) -> SimulatedFleet {
    fleet.with_timing(Timing { migration_mib_per_second: 64, ..Timing::IMMEDIATE })
}

/// Number of guests, and number of hosts outside the free pool.
fn guests_and_fences(world: &World, hosts: u64) -> (usize, usize) {
    let seen = |host| world.fleet.look(HostId(host)).expect("taken on");
    let guests = (1..=hosts).map(|host| seen(host).guests.len()).sum();
    (guests, (1..=hosts).filter(|host| seen(*host).place != Place::FreePool).count())
}

#[tokio::test]
async fn cls_03_e_a_hunt_clears_hosts_and_the_lease_is_active() {
    let mut world = inhabited(world_with(4, settings(), None, slow).await, 4).await;
    let lease = make(&mut world, best_effort(2, 30)).await.expect("a plan");
    let hunt = lease.lease.hunt.clone().expect("guests are moved");
    assert_eq!((lease.lease.state().name(), hunt.moves.len()), ("IN-PROGRESS", 2));
    world.settle().await;
    for host in hosts_of(&lease) {
        let place = world.fleet.look(host).expect("taken on").place;
        assert!(matches!(place, Place::Fenced { .. }), "from the first moment");
        assert!(world.fleet.start_guest(host, GuestOwner::Other, None).is_none());
    }
    world.run_until(at(10)).await;
    let active = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(active.lease.state().name(), "ACTIVE");
    assert_eq!(world.held(hosts_of(&active)), 2);
    assert_eq!(active.lease.window.length(), SignedDuration::from_hours(1), "as long as it was asked for");
    assert!(active.lease.window.start() > at(1), "from when it had its hosts");
    assert_eq!(guests_and_fences(&world, 4), (4, 2), "nobody was lost");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn cls_03_d_a_move_that_fails_for_good_is_planned_again() {
    let mut world = inhabited(world(4).await, 4).await;
    let lease = make(&mut world, best_effort(1, 55)).await.expect("a plan");
    let before = lease.lease.hunt.clone().expect("a hunt").moves[0];
    let fault = PlannedFault { times: 3, ..PlannedFault::next(Verb::Migrate, before.from, Fault::Refuse) };
    world.fleet.plan_fault(fault);
    world.run_until(at(5)).await;
    let after = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(after.lease.state().name(), "ACTIVE");
    let moves = &after.lease.hunt.as_ref().expect("a hunt").moves;
    assert!(!moves.contains(&before), "{moves:?}");
    assert_eq!((guests_and_fences(&world, 4), world.fleet.violations()), ((4, 1), Vec::new()));
}

#[tokio::test]
async fn cls_03_d_a_destination_that_fails_is_planned_again() {
    let mut world = inhabited(world_with(4, settings(), None, slow).await, 4).await;
    let lease = make(&mut world, best_effort(1, 55)).await.expect("a plan");
    let before = lease.lease.hunt.clone().expect("a hunt").moves[0];
    world.settle().await;
    world.fleet.fail(before.to);
    world.run_until(at(20)).await;
    let after = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(after.lease.state().name(), "ACTIVE", "{:?}", after.lease.reason);
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn a_hunt_that_could_not_be_planned_again_wakes_nobody_once_it_is_over() {
    let mut world = inhabited(world_with(3, settings(), None, slow).await, 3).await;
    let lease = make(&mut world, best_effort(1, 30)).await.expect("a plan");
    world.settle().await;
    let destinations = (1..=3).map(HostId).filter(|host| !hosts_of(&lease).contains(host));
    destinations.for_each(|host| world.fleet.fail(host));
    world.run_until(at(35)).await;
    let over = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(over.lease.state().name(), "TIMEDOUT");
    let mut cycles = 0;
    while let Some(happened) = world.next(at(95)).await {
        cycles += usize::from(matches!(happened, Happened::Cycled(_)));
    }
    // The fleet is observed twice a minute.
    assert!(cycles < 600, "{cycles} cycles in an hour");
}

/// Also if several leases hunt at once: their moves are replanned one after another, and withdrawn all at
/// once.
#[tokio::test]
async fn cls_03_d_nobody_is_moved_to_a_host_that_a_lease_was_given_meanwhile() {
    let mut world = inhabited(world(20).await, 20).await;
    let mut hunting = Vec::new();
    for _ in 0..6 {
        hunting.push(make(&mut world, best_effort(1, 55)).await.expect("a plan"));
    }
    let moves = |record: &Arc<LeaseRecord>| record.lease.hunt.clone().expect("a hunt").moves;
    let goals: BTreeSet<HostId> = hunting.iter().flat_map(moves).map(|mov| mov.to).collect();
    for goal in &goals {
        let name = world.service.hosts().get(*goal).expect("taken on").host.name.clone();
        let name = Requirement::compare(Operator::Equal, "hypervisor_hostname", name).expect("well formed");
        let named = ReservationTerms::Hosts(HostsTerms::new(1, 1).expect("a range").requiring(name));
        make(&mut world, asking(600, 660, vec![named])).await.expect("nobody has it then");
    }
    world.run_until(at(30)).await;
    for goal in goals {
        assert_eq!(world.fleet.look(goal).expect("taken on").guests.len(), 1, "the one that was there");
    }
    for lease in hunting {
        assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    }
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn cls_03_f_a_hunt_that_times_out_leaves_no_fence_and_moves_nobody_any_more() {
    let mut world = inhabited(world(3).await, 3).await;
    let lease = make(&mut world, best_effort(1, 5)).await.expect("a plan");
    world.fleet.plan_fault(PlannedFault {
        verb: Some(Verb::Migrate),
        host: None,
        after: 0,
        times: 1000,
        fault: Fault::TimeOutBefore,
    });
    world.run_until(at(4)).await;
    assert_eq!(status(&world, lease.lease.id), "STARTING");
    world.run_until(at(6)).await;
    let timed_out = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(timed_out.lease.state().name(), "TIMEDOUT");
    assert!(timed_out.lease.reason.as_deref().is_some_and(|why| why.contains("move guest")), "{timed_out:?}");
    world.run_until(at(120)).await;
    assert_eq!(guests_and_fences(&world, 3), (3, 0));
    let one_each = (1..=3).all(|host| world.fleet.look(HostId(host)).expect("taken on").guests.len() == 1);
    assert!(one_each, "nobody was moved");
}

#[tokio::test]
async fn cls_03_g_a_hunt_that_is_deleted_leaves_no_fence() {
    let mut world = inhabited(world_with(3, settings(), None, slow).await, 3).await;
    let lease = make(&mut world, best_effort(1, 55)).await.expect("a plan");
    world.settle().await;
    world.service.leases().delete(&simulation::caller("p"), lease.lease.id).await.expect("accepted");
    world.touched();
    world.run_until(at(20)).await;
    assert_eq!(status(&world, lease.lease.id), "gone");
    assert_eq!(guests_and_fences(&world, 3), (3, 0));
}

#[tokio::test]
async fn cls_03_k_two_hunts_go_on_beside_each_other() {
    let mut world = inhabited(world_with(6, settings(), None, slow).await, 6).await;
    let first = make(&mut world, best_effort(2, 55)).await.expect("a plan");
    let second = make(&mut world, best_effort(2, 55)).await.expect("another plan");
    let (ours, theirs) = (hosts_of(&first), hosts_of(&second));
    assert!(ours.iter().all(|host| !theirs.contains(host)));
    let goals = |lease: &store::LeaseRecord| lease.lease.hunt.clone().expect("a hunt").moves;
    assert!(goals(&first).iter().all(|mov| !theirs.contains(&mov.to)));
    assert!(goals(&second).iter().all(|mov| !ours.contains(&mov.to)));
    world.run_until(at(30)).await;
    assert_eq!((status(&world, first.lease.id), status(&world, second.lease.id)), ("ACTIVE", "ACTIVE"));
    assert_eq!((guests_and_fences(&world, 6), world.fleet.violations()), ((6, 4), Vec::new()));
}

#[tokio::test]
async fn a_hunt_survives_a_crash_at_any_moment() {
    for crash in 0..40 {
        let mut world = inhabited(world_with(3, settings(), None, slow).await, 3).await;
        let lease = make(&mut world, best_effort(1, 55)).await.expect("a plan");
        for _ in 0..crash {
            world.next(at(30)).await;
        }
        world.restart().await.expect("it starts");
        world.run_until(at(30)).await;
        assert_eq!(status(&world, lease.lease.id), "ACTIVE", "after a crash at {crash}");
        assert_eq!((guests_and_fences(&world, 3), world.fleet.violations()), ((3, 1), Vec::new()));
    }
}

#[tokio::test]
async fn several_services_carry_one_hunt_out() {
    let layout = fleet::simulated::Layout::uniform(1, 6, &fleet::simulated::Model::of_size(16, 65_536, 1000));
    let setup =
        Setup { seed: 3, begins: at(0), layout: layout.clone(), settings: settings(), enforcer: None };
    let mut world = World::shared(setup, &[SignedDuration::ZERO; 3], slow).await.expect("an empty store");
    world.take_on(&layout).await.expect("taken on");
    world.settle().await;
    let mut world = inhabited(world, 6).await;
    let lease = make(&mut world, best_effort(3, 55)).await.expect("a plan");
    world.run_until(at(30)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!((guests_and_fences(&world, 6), world.fleet.violations()), ((6, 3), Vec::new()));
}

#[tokio::test]
async fn an_external_scheduler_lets_a_guest_go_where_it_is_moved_to_and_nowhere_else() {
    let mut settings = settings();
    settings.open_pool = false;
    let world = world_with(4, settings, None, |fleet| fleet).await;
    let mut world = inhabited(world, 3).await;
    let lease = make(&mut world, best_effort(2, 55)).await.expect("a plan");
    let mov = lease.lease.hunt.clone().expect("guests are moved").moves[0];
    let ask = async |guest| {
        let (project, placing) = (ProjectId("somebody".into()), Placing::default());
        let names = world.service.hosts().all().iter().map(|host| host.host.name.clone()).collect();
        let question = HostQuestion { project, instance: Some(guest), placing, hosts: Some(names) };
        let answer = world.service.instances().hosts_for(&question).await.expect("an answer").hosts;
        let allowed = answer.into_iter().filter(|(_, verdict)| verdict.is_ok()).map(|(name, _)| name);
        allowed.collect::<Vec<_>>()
    };
    let to = world.service.hosts().get(mov.to).expect("taken on").host.name.clone();
    assert_eq!(ask(mov.guest).await, [to]);
    assert_eq!(ask(GuestId(99)).await, Vec::<String>::new(), "the free pool is closed to it");
}

#[tokio::test]
async fn operators_may_forbid_hunts() {
    let mut settings = settings();
    settings.rules.hunting.enabled = false;
    let mut world = inhabited(world_with(3, settings, None, |fleet| fleet).await, 3).await;
    assert!(make(&mut world, best_effort(1, 55)).await.is_err());
}

#[tokio::test]
async fn a_hunt_takes_hosts_that_are_empty_beyond_its_minimum() {
    let mut world = inhabited(world(6).await, 3).await;
    let new = asking(0, 60, vec![between(4, 5)]);
    let new = NewLease { terms: new.terms.of_type(LeaseType::BestEffort { deadline: at(55) }), ..new };
    let lease = make(&mut world, new).await.expect("a plan");
    let given = hosts_of(&lease).len();
    assert!((4..=5).contains(&given), "{given}");
    world.run_until(at(10)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn cls_09_guests_that_a_lease_leaves_behind_are_in_the_way_until_they_are_moved() {
    let mut world = world(3).await;
    let new = NewLease { end_action: Some(EndAction::KeepGuests), ..asking(0, 10, vec![hosts(1)]) };
    let first = make(&mut world, new).await.expect("free");
    world.run_until(at(1)).await;
    let host = hosts_of(&first)[0];
    world.fleet.start_guest(host, GuestOwner::Lease(first.lease.id), None).expect("its host");
    world.run_until(at(12)).await;
    assert_eq!(status(&world, first.lease.id), "TERMINATED");
    let seen = world.fleet.look(host).expect("taken on");
    assert_eq!((seen.place, seen.guests.len()), (Place::FreePool, 1), "nothing disruptive happens");
    let that_one = Requirement::compare(Operator::Equal, "id", host.0.to_string()).expect("well formed");
    let that_one = HostsTerms::new(1, 1).expect("a range").requiring(that_one);
    let asking = |lease_type| {
        let new = asking(12, 60, vec![ReservationTerms::Hosts(that_one.clone())]);
        NewLease { terms: new.terms.of_type(lease_type), ..new }
    };
    assert!(make(&mut world, asking(LeaseType::Immediate { deadline: at(14) })).await.is_err());
    let next = make(&mut world, asking(LeaseType::BestEffort { deadline: at(40) })).await.expect("a plan");
    assert_eq!(next.lease.hunt.as_ref().map(|hunt| hunt.moves.len()), Some(1));
    world.run_until(at(20)).await;
    assert_eq!(status(&world, next.lease.id), "ACTIVE");
    assert_eq!((guests_and_fences(&world, 3), world.fleet.violations()), ((1, 1), Vec::new()));
}

#[tokio::test]
async fn cls_09_a_lease_that_is_over_says_that_its_guests_have_stayed_for_as_long_as_they_do() {
    let mut world = world(1).await;
    let new = NewLease { end_action: Some(EndAction::KeepGuests), ..asking(0, 10, vec![hosts(1)]) };
    let lease = make(&mut world, new).await.expect("free");
    world.run_until(at(1)).await;
    let host = hosts_of(&lease)[0];
    let until_then = Some(SignedDuration::from_mins(13));
    world.fleet.start_guest(host, GuestOwner::Lease(lease.lease.id), until_then).expect("its host");
    world.run_until(at(12)).await;
    let reason =
        |world: &World| world.service.leases().get(lease.lease.id).expect("there").lease.reason.clone();
    assert!(reason(&world).is_some_and(|said| said.contains("have stayed")), "{:?}", reason(&world));
    world.run_until(at(16)).await;
    assert!(world.fleet.look(host).is_some_and(|seen| seen.guests.is_empty()));
    assert_eq!((status(&world, lease.lease.id), reason(&world)), ("TERMINATED", None));
}

/// Creates a lease of a host until minute 10 with `guests` guests that must be moved away at its end. Returns
/// the lease and its host.
async fn departing(world: &mut World, guests: usize) -> (std::sync::Arc<store::LeaseRecord>, HostId) {
    let new = NewLease { end_action: Some(EndAction::MoveGuests), ..asking(0, 10, vec![hosts(1)]) };
    let lease = make(world, new).await.expect("free");
    world.run_until(at(1)).await;
    let host = hosts_of(&lease)[0];
    for _ in 0..guests {
        world.fleet.start_guest(host, GuestOwner::Lease(lease.lease.id), None).expect("its host");
    }
    (lease, host)
}

#[tokio::test]
async fn cls_09_guests_are_moved_away_when_their_lease_ends_and_the_next_one_has_its_host() {
    let mut world = world_with(3, settings(), None, slow).await;
    let (first, host) = departing(&mut world, 2).await;
    let that_one = Requirement::compare(Operator::Equal, "id", host.0.to_string()).expect("well formed");
    let that_one = HostsTerms::new(1, 1).expect("a range").requiring(that_one);
    let next = make(&mut world, asking(10, 60, vec![ReservationTerms::Hosts(that_one)])).await.expect("free");
    world.run_until(at(20)).await;
    let over = world.service.leases().get(first.lease.id).expect("there");
    assert_eq!(over.lease.status.name(), "TERMINATED");
    assert_eq!(over.lease.hunt.as_ref().map(|hunt| hunt.moves.len()), Some(2));
    assert_eq!((status(&world, next.lease.id), hosts_of(&next)), ("ACTIVE", vec![host]));
    assert_eq!((guests_and_fences(&world, 3), world.fleet.violations()), ((2, 1), Vec::new()));
    assert!(world.fleet.look(host).expect("taken on").guests.is_empty());
}

#[tokio::test]
async fn cls_09_guests_that_can_go_nowhere_stay_when_their_lease_ends() {
    let mut world = world(2).await;
    let (first, host) = departing(&mut world, 1).await;
    make(&mut world, asking(5, 60, vec![hosts(1)])).await.expect("the other one");
    world.run_until(at(12)).await;
    assert_eq!(status(&world, first.lease.id), "TERMINATED");
    let seen = world.fleet.look(host).expect("taken on");
    assert_eq!((seen.place, seen.guests.len()), (Place::FreePool, 1));
}

#[tokio::test]
async fn cls_09_guests_are_moved_away_when_their_lease_is_deleted_and_it_is_forgotten() {
    let mut world = world(3).await;
    let (first, host) = departing(&mut world, 1).await;
    world.service.leases().delete(&caller("p"), first.lease.id).await.expect("there");
    world.run_until(at(3)).await;
    assert!(world.service.leases().get(first.lease.id).is_none());
    assert!(world.fleet.look(host).expect("taken on").guests.is_empty());
    assert_eq!((guests_and_fences(&world, 3), world.fleet.violations()), ((1, 0), Vec::new()));
}

/// Each end migration is planned with the work that is left to a cycle, and the next cycle continues after
/// the last one planned.
#[tokio::test]
async fn guests_of_all_leases_leave_though_a_cycle_has_work_for_few_of_them() {
    let settings = service::Settings { decision_work: 4_000, ..settings() };
    let mut world = world_with(8, settings, None, slow).await;
    let mut left = Vec::new();
    for _ in 0..4 {
        let new = NewLease { end_action: Some(EndAction::MoveGuests), ..asking(0, 10, vec![hosts(1)]) };
        let lease = make(&mut world, new).await.expect("free");
        left.push((lease.lease.id, hosts_of(&lease)[0]));
    }
    world.run_until(at(1)).await;
    for (lease, host) in left.iter().flat_map(|left| [left; 3]) {
        world.fleet.start_guest(*host, GuestOwner::Lease(*lease), None).expect("its host");
    }
    world.run_until(at(40)).await;
    for (lease, host) in left {
        assert_eq!(status(&world, lease), "TERMINATED");
        assert_eq!(world.fleet.look(host).expect("taken on").guests, [], "of {host}");
    }
    assert_eq!((guests_and_fences(&world, 8), world.fleet.violations()), ((12, 0), Vec::new()));
}
