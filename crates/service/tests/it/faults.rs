//! Faults of the fleet and of the store.

use std::collections::BTreeSet;

use fleet::simulated::{Between, Fault, Faults, Happening, PlannedFault, Timing, Verb};
use leases::host::Health;
use leases::ids::HostId;
use leases::plan::{Action, GuestOwner, Place};
use service::Task;
use simulation::{Happened, StoreFault, World, caller};

use crate::terms::{
    asking, at, between, hosts, hosts_of, make, minutes, settings, status, world, world_with,
};

#[tokio::test]
async fn w22_a_failed_step_is_tried_again_and_the_lease_says_why_it_waits() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let host = hosts_of(&lease)[0];
    let fault = PlannedFault { times: 3, ..PlannedFault::next(Verb::Hold, host, Fault::Refuse) };
    world.fleet.plan_fault(fault);
    world.run_until(at(10)).await;
    let waiting = world.service.leases().get(lease.lease.id).expect("there").lease.clone();
    assert_eq!(waiting.status.name(), "STARTING");
    let reason = waiting.reason.expect("it says why");
    assert!(reason.contains("could not hand host"), "{reason}");
    assert_eq!(world.service.statistics().failing_steps, 1);
    world.run_until(at(11)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!(world.service.leases().get(lease.lease.id).expect("there").lease.reason, None);
    assert_eq!(world.service.statistics().failing_steps, 0);
}

#[tokio::test]
async fn a_service_whose_fleet_does_not_answer_is_degraded_until_it_does() {
    let silent = Faults { unanswered: 1.0, ..Faults::NONE };
    let degraded =
        |world: &World| (world.service.fleet_obstacle().is_some(), world.service.statistics().degraded);

    let mut world = world(1).await;
    assert_eq!(degraded(&world), (false, 0));
    world.fleet.set_faults(silent);
    world.run_until(at(1)).await;
    assert_eq!(degraded(&world), (false, 0), "one look may fail");
    world.run_until(at(30)).await;
    assert_eq!(degraded(&world), (true, 1));
    world.fleet.set_faults(Faults::NONE);
    world.run_until(at(60)).await;
    assert_eq!(degraded(&world), (false, 0));

    world.fleet.set_faults(silent);
    world.restart().await.expect("the store works");
    world.run_until(at(61)).await;
    assert_eq!(degraded(&world), (true, 1), "nothing is known of the fleet");
}

#[tokio::test]
async fn a_lost_reply_is_not_a_lost_host() {
    for verb in [Verb::Fence, Verb::Verify, Verb::Hold, Verb::Release] {
        for fault in [Fault::TimeOutBefore, Fault::TimeOutAfter, Fault::Late, Fault::Duplicate] {
            let mut world = world(1).await;
            let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
            world.fleet.plan_fault(PlannedFault::next(verb, hosts_of(&lease)[0], fault));
            world.run_until(at(30)).await;
            assert_eq!(status(&world, lease.lease.id), "ACTIVE", "{verb:?} {fault:?}");
            world.run_until(at(90)).await;
            assert_eq!(status(&world, lease.lease.id), "TERMINATED", "{verb:?} {fault:?}");
            assert_eq!(world.held(hosts_of(&lease)), 0, "{verb:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn w20_a_failed_host_is_replaced_and_what_was_missing_comes_back() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(0, 600, vec![between(1, 1)])).await.expect("free");
    let id = lease.lease.id;
    world.run_until(at(1)).await;
    let first = hosts_of(&lease)[0];
    world.fleet.fail(first);
    world.run_until(at(2)).await;
    let replaced = world.service.leases().get(id).expect("there");
    let second = hosts_of(&replaced)[0];
    assert_ne!(first, second);
    assert!(replaced.lease.reservations[0].resources_changed && !replaced.lease.degraded());
    assert_eq!(world.held([second]), 1);
    world.fleet.fail(second);
    world.run_until(at(4)).await;
    assert!(world.service.leases().get(id).expect("there").lease.degraded());
    assert_eq!(world.service.statistics().failed_hosts, 2);
    world.fleet.recover(first);
    world.run_until(at(6)).await;
    let healed = world.service.leases().get(id).expect("there");
    assert!(!healed.lease.degraded());
    assert_eq!((hosts_of(&healed), world.held([first])), (vec![first], 1));
    world.fleet.recover(second);
    world.run_until(at(8)).await;
    assert_eq!(world.fleet.look(second).map(|seen| seen.place), Some(Place::FreePool), "it went back");
    let types: Vec<String> = world.store.contents_notifications().await;
    assert!(types.contains(&"lease.degraded".to_owned()) && types.contains(&"lease.healed".to_owned()));
    // The owner is told which host replaced which.
    let told = world.service.notifications().after(None, 0, 100).await.expect("works");
    let told: Vec<_> = told.iter().filter(|told| told.content.event_type == "lease.host_replaced").collect();
    assert_eq!((told.len(), told[0].content.lease), (1, Some(id)));
    assert_eq!(told[0].content.project, lease.lease.owner.project);
    let payload: serde_json::Value = serde_json::from_str(&told[0].content.payload).expect("JSON");
    let name = |host| world.service.hosts().get(host).expect("there").host.name.clone();
    let exchanged = serde_json::json!({"from": [name(first)], "to": [name(second)]});
    assert_eq!(payload["hosts_replaced"], exchanged);
    assert_eq!(payload["reservations"][0]["hosts"], serde_json::json!([name(second)]));
}

#[tokio::test]
async fn a_host_that_has_left_the_fleet_is_replaced() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let first = hosts_of(&lease)[0];
    world.fleet.happen(Happening::HostVanishes(first));
    world.run_until(at(11)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_ne!(hosts_of(&world.service.leases().get(lease.lease.id).expect("there")), [first]);
}

#[tokio::test]
async fn a_fleet_that_is_silent_for_long_takes_no_new_leases_and_loses_none() {
    let mut world = world(2).await;
    let running = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    world.fleet.set_faults(Faults { unanswered: 1.0, ..Faults::NONE });
    world.run_until(at(10)).await;
    assert!(world.service.hosts().all().iter().all(|host| host.host.health == Health::Unknown));
    make(&mut world, asking(20, 30, vec![hosts(1)])).await.expect_err("nobody knows how hosts are");
    assert_eq!(status(&world, running.lease.id), "ACTIVE");
    world.run_until(at(61)).await;
    assert_eq!(status(&world, running.lease.id), "TERMINATING", "whether it is over cannot be seen");
    world.fleet.set_faults(Faults::NONE);
    world.run_until(at(63)).await;
    assert_eq!(status(&world, running.lease.id), "TERMINATED");
    make(&mut world, asking(70, 80, vec![hosts(2)])).await.expect("all are well");
}

#[tokio::test]
async fn the_loop_outlives_a_store_that_does_not_work() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.store.set_down(true);
    world.run_until(at(15)).await;
    assert_eq!(status(&world, lease.lease.id), "PENDING");
    assert!(world.service.ready().await.is_err());
    world.store.set_down(false);
    world.run_until(at(16)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn claims_that_were_not_heard_of_hold_nobody_up_until_they_are_over() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.store.lose_next_claims();
    world.run_until(at(11)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn a_commit_of_the_loop_that_was_not_heard_of_is_not_done_twice() {
    for position in 0..6 {
        let mut world = world(1).await;
        let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
        let fine = std::iter::repeat_n(None, position);
        world.store.plan(fine.chain([Some(StoreFault::After)]));
        world.run_until(at(15)).await;
        assert_eq!(status(&world, lease.lease.id), "ACTIVE");
        world.run_until(at(25)).await;
        assert_eq!(status(&world, lease.lease.id), "TERMINATED");
        let types = world.store.contents_notifications().await;
        assert_eq!(
            types,
            [
                "lease.create",
                "lease.event.start_lease",
                "lease.event.before_end_lease",
                "lease.event.end_lease"
            ]
        );
    }
}

#[tokio::test]
async fn the_clock_may_be_set_back_and_forth() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    world.run_until(at(11)).await;
    world.clock.set(at(3));
    world.touched();
    world.run_until(at(5)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE", "what has begun goes on");
    world.clock.set(at(5000));
    world.run_until(at(5001)).await;
    assert_eq!(status(&world, lease.lease.id), "TERMINATED");
    world.clock.set(at(100) - minutes(1));
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
}

#[tokio::test]
async fn what_takes_long_is_asked_about_for_the_lease_that_wants_it_now() {
    let minutes = |minutes: i64| Between::secs(minutes * 60, minutes * 60);
    let timing = Timing { shut_down: minutes(60), deletion: minutes(10), ..Timing::IMMEDIATE };
    let mut world = world_with(1, settings(), None, |fleet| fleet.with_timing(timing)).await;
    world.run_until(at(1)).await;
    world.fleet.start_guest(HostId(1), GuestOwner::Preemptible, None).expect("in the free pool");
    let first = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(11)).await;
    assert_eq!(status(&world, first.lease.id), "STARTING", "the guest is being deleted");
    world.service.leases().delete(&caller("p"), first.lease.id).await.expect("there");
    // The second lease immediately needs the steps begun for the first, so they continue without a new claim.
    let second = make(&mut world, asking(11, 60, vec![hosts(1)])).await.expect("free again");
    let mut asked = BTreeSet::new();
    while let Some(happened) = world.next(at(15)).await {
        let Happened::Cycled(tasks) = happened else { continue };
        let steps =
            tasks.into_iter().filter_map(|task| if let Task::Step(step) = task { Some(step) } else { None });
        let deletions = steps.filter(|step| matches!(step.claim.action, Action::DeleteGuest(..)));
        asked.extend(deletions.map(|step| step.lease));
    }
    assert_eq!(asked, [Some(second.lease.id)].into());
}
