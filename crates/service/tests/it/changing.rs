//! Changing leases.

use std::collections::{BTreeMap, BTreeSet};

use fleet::simulated::{Between, SimulatedFleet, Timing};
use jiff::SignedDuration;
use leases::admission::{Changes, HostsChange, InstancesChange, Refusal, TermsChange};
use leases::ids::HostId;
use leases::lease_pool::Ratio;
use leases::plan::GuestOwner;
use leases::terms::InstanceSize;
use service::{LeaseChanges, LeasePoolChange, NewLease, ServiceError};
use simulation::caller;

use crate::terms::{
    NOON, asking, at, change, dates, hosts, hosts_of, make, of_first, settings, slots, status, window, world,
    world_with,
};

#[tokio::test]
async fn a_change_without_content_changes_nothing() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    let commits = world.store.commits();
    let same = change(&mut world, lease.lease.id, Changes::default()).await;
    assert_eq!(*same.expect("nothing to refuse"), *lease);
    assert_eq!(world.store.commits(), commits);
}

#[tokio::test]
async fn w9_a_refused_update_changes_nothing() {
    let mut world = world(1).await;
    let record = make(&mut world, asking(10, 120, vec![slots(2, 4)])).await.expect("fits");
    let (id, lease) = (record.lease.id, record.lease.clone());
    let out_of_limits = Changes { before_end: Some(at(130)), ..Changes::default() };
    let refused = change(&mut world, id, out_of_limits).await;
    assert!(matches!(refused, Err(ServiceError::Refused(Refusal::Terms(_)))));
    assert_eq!(world.service.leases().get(id).expect("there").lease, lease);
    world.run_until(at(11)).await;
    assert_eq!(status(&world, id), "ACTIVE");
    let larger = InstancesChange { size: InstanceSize::new(8, 1, 1).ok(), ..InstancesChange::default() };
    let before = world.service.leases().get(id).expect("there");
    let refused = change(&mut world, id, of_first(&record, TermsChange::Instances(larger))).await;
    assert!(matches!(refused, Err(ServiceError::Refused(Refusal::OnlyAmount(_)))));
    assert_eq!(world.service.leases().get(id).expect("there"), before);
    world.run_until(at(121)).await;
    assert_eq!(status(&world, id), "TERMINATED");
}

#[tokio::test]
async fn w4_a_lease_can_be_extended_while_it_starts() {
    let slow = Timing { call: Between::secs(5, 5), ..Timing::IMMEDIATE };
    let mut seen = BTreeSet::new();
    for second in 0..20 {
        let mut world = world_with(2, settings(), None, |fleet| fleet.with_timing(slow)).await;
        let minute = (world.now().as_second() - NOON) / 60 + 1;
        let reserved = vec![hosts(1), slots(2, 4)];
        let lease = make(&mut world, asking(minute, minute + 10, reserved)).await.expect("free");
        let id = lease.lease.id;
        world.run_until(at(minute) + SignedDuration::from_secs(second * 3)).await;
        seen.insert(status(&world, id));
        change(&mut world, id, dates(None, Some(minute + 20))).await.expect("allowed in any state");
        world.run_until(at(minute + 15)).await;
        assert_eq!(status(&world, id), "ACTIVE", "extended {second} * 3 s after its start");
        world.run_until(at(minute + 25)).await;
        assert_eq!(status(&world, id), "TERMINATED", "extended {second} * 3 s after its start");
    }
    assert!(seen.contains("STARTING"), "{seen:?}");
}

#[tokio::test]
async fn w11_a_started_lease_cannot_be_moved_away_in_its_first_minute() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(0) + SignedDuration::from_secs(30)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    let moved = change(&mut world, lease.lease.id, dates(Some(30), Some(90))).await;
    assert!(matches!(moved, Err(ServiceError::Refused(Refusal::Started))));
}

#[tokio::test]
async fn w12_a_lease_that_has_ended_cannot_be_extended_in_its_last_minute() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(60) + SignedDuration::from_secs(20)).await;
    assert_eq!(status(&world, lease.lease.id), "TERMINATED");
    let extended = change(&mut world, lease.lease.id, dates(None, Some(90))).await;
    assert!(matches!(extended, Err(ServiceError::Refused(Refusal::Over))));
    make(&mut world, asking(60, 90, vec![hosts(1)])).await.expect("nobody has it any more");
}

#[tokio::test]
async fn w15_a_lease_can_be_shrunk_on_a_full_cloud() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 60, vec![slots(4, 4)])).await.expect("fits");
    let smaller = InstancesChange { amount: std::num::NonZeroU32::new(3), ..InstancesChange::default() };
    let smaller = of_first(&lease, TermsChange::Instances(smaller));
    let changed = change(&mut world, lease.lease.id, smaller).await.expect("fits");
    assert_eq!(changed.lease.reservations[0].allocation.amount(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w18_of_parallel_updates_each_is_decided_on_what_the_one_before_left() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let id = lease.lease.id;
    let updates = (0..20).map(|number| {
        let service = world.service.clone();
        let changes = LeaseChanges {
            asked_at: at(0),
            changes: dates(None, Some(61 + number)),
            wording: BTreeMap::new(),
        };
        tokio::spawn(async move { service.leases().update(&caller("p"), id, changes).await })
    });
    let answers = futures::future::join_all(updates.collect::<Vec<_>>()).await;
    let mut ends: Vec<_> = answers
        .into_iter()
        .map(|answer| answer.expect("no panic").expect("free"))
        .map(|record| (record.version, record.lease.window.end()))
        .collect();
    ends.sort();
    let last = world.service.leases().get(id).expect("there");
    assert_eq!(ends.last(), Some(&(last.version, last.lease.window.end())));
    assert_eq!(ends.iter().map(|(version, _)| version.0).collect::<Vec<_>>(), (2..=21).collect::<Vec<_>>());
    assert!(last.lease.before_end.is_some_and(|at| at < last.lease.window.end()));
}

#[tokio::test]
async fn a_running_lease_that_grows_gets_more_hosts_and_stays_active() {
    let mut world = world(3).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let grown = HostsChange { min: Some(3), max: Some(3), ..HostsChange::default() };
    let changed = change(&mut world, lease.lease.id, of_first(&lease, TermsChange::Hosts(grown)));
    let changed = changed.await.expect("free");
    assert_eq!(changed.lease.status.name(), "ACTIVE");
    world.settle().await;
    assert_eq!(world.held(hosts_of(&changed)), 3);
}

#[tokio::test]
async fn a_lease_that_is_shortened_to_now_ends_now() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(5)).await;
    let changed = change(&mut world, lease.lease.id, dates(None, Some(5))).await;
    assert_eq!(changed.expect("allowed").lease.window, window(0, 5));
    world.settle().await;
    assert_eq!(status(&world, lease.lease.id), "TERMINATED");
    assert_eq!(world.held(hosts_of(&lease)), 0);
}

#[tokio::test]
async fn a_refused_extension_names_the_projects_own_lease_only_if_that_takes_the_host() {
    // The lease, the next lease of its project, the next lease of another project, and whether the refusal
    // names the former.
    let cases = [
        (hosts(1), Some(hosts(1)), None, true),
        (hosts(1), Some(slots(1, 1)), None, true),
        (hosts(1), None, Some(hosts(1)), false),
        (hosts(1), None, Some(slots(1, 1)), false),
        (slots(1, 2), Some(hosts(1)), None, true),
        // The lease of its project takes the capacity that the foreign lease leaves, so the refusal doesn't
        // name it.
        (slots(1, 2), Some(slots(1, 1)), Some(slots(1, 15)), false),
    ];
    for (extended, own, other, is_named) in cases {
        let mut world = world(1).await;
        let lease = make(&mut world, asking(0, 60, vec![extended])).await.expect("free").lease.id;
        if let Some(own) = own {
            let own = NewLease { name: "own".to_owned(), ..asking(60, 90, vec![own]) };
            make(&mut world, own).await.expect("free");
        }
        if let Some(other) = other {
            let other = NewLease { asked_at: world.now(), ..asking(60, 90, vec![other]) };
            world.service.leases().create(&caller("q"), other, None).await.expect("free");
            world.touched();
        }
        world.run_until(at(1)).await;
        let refused = change(&mut world, lease, dates(None, Some(80))).await;
        let Err(ServiceError::Refused(Refusal::EndsTooLate { taken_by, .. })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(taken_by.as_deref(), is_named.then_some("own"));
    }
}

#[tokio::test]
async fn lp_8_9_a_pools_ratio_is_not_lowered_below_what_guests_use_that_were_started_just_now() {
    let mut world = world_with(1, settings(), None, SimulatedFleet::preparing).await;
    let record = make(&mut world, asking(0, 120, vec![hosts(1)])).await.expect("free");
    let (lease, pool) = (record.lease.id, record.lease.reservations[0].id);
    world.run_until(at(1)).await;
    assert_eq!(status(&world, lease), "ACTIVE");
    let service = world.service.clone();
    let set = async |thousandths| {
        let cpu_ratio = Some(Ratio::from_thousandths(thousandths));
        let change = LeasePoolChange { cpu_ratio, ..LeasePoolChange::default() };
        service.lease_pools().update(&caller("p"), pool, change).await
    };
    set(1).await.expect("nobody is there");
    // The service isn't notified of guests that were started by other means.
    world.fleet.start_guest(HostId(1), GuestOwner::Lease(lease), None).expect("it may");
    let refused = set(2).await;
    assert!(
        matches!(&refused, Err(ServiceError::Conflict(why)) if why.contains("more than it")),
        "{refused:?}"
    );
    set(1000).await.expect("there is room for one");
    world.run_until(at(5)).await;
    let told = world.fleet.look(HostId(1)).and_then(|seen| seen.overcommit).expect("it can be told");
    assert_eq!(told.cpu.map(|told| told.ratio), Some(Ratio::new(1.0)));
}
