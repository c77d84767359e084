//! Reservations that the fleet prepares as a whole, as a cloud does.

use std::sync::Arc;

use fleet::simulated::{Fault, PlannedFault, SimulatedFleet, Verb};
use leases::plan::Prepared;
use leases::terms::{Affinity, InstancesTerms, ReservationTerms};
use service::ServiceError;
use simulation::{World, caller};
use store::LeaseRecord;
use tokio::task::JoinHandle;

use crate::terms::{asking, at, hosts, make, settings, slots, status, world_with};

async fn cloud(hosts: u32) -> World {
    world_with(hosts, settings(), None, SimulatedFleet::preparing).await
}

fn apart() -> ReservationTerms {
    let ReservationTerms::Instances(terms) = slots(2, 1) else { unreachable!("room for instances") };
    ReservationTerms::Instances(InstancesTerms { affinity: Affinity::DistinctHosts, ..terms })
}

/// The pending answer to the client that requested the lease.
fn prepared(world: &World, lease: &Arc<LeaseRecord>) -> JoinHandle<Result<Arc<LeaseRecord>, ServiceError>> {
    let (service, lease) = (world.service.clone(), lease.clone());
    tokio::spawn(async move { service.leases().prepared(&caller("p"), lease).await })
}

/// Makes the next call of that kind fail.
fn fault(verb: Verb, fault: Fault) -> PlannedFault {
    PlannedFault { verb: Some(verb), host: None, after: 0, times: 1, fault }
}

#[tokio::test]
async fn a_reservation_is_prepared_when_its_lease_is_made_and_finished_when_it_has_ended() {
    let mut world = cloud(3).await;
    let lease = make(&mut world, asking(60, 90, vec![apart(), hosts(1)])).await.expect("free");
    let ids: Vec<_> = lease.lease.reservations.iter().map(|reservation| reservation.id).collect();
    assert_eq!(world.service.leases().prepared_for(ids[0]), Some(Prepared::default()), "not yet");
    let answer = prepared(&world, &lease);
    world.run_until(at(1)).await;
    assert_eq!(answer.await.expect("no panic").expect("prepared").lease.id, lease.lease.id);
    let made = world.service.leases().prepared_for(ids[0]).expect("a cloud");
    assert!(made.aggregate.is_some() && made.server_group.is_some(), "{made:?}");
    let of_hosts = world.service.leases().prepared_for(ids[1]).expect("a cloud");
    assert!(of_hosts.aggregate.is_some() && of_hosts.server_group.is_none(), "{of_hosts:?}");
    world.run_until(at(61)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!(world.service.leases().prepared_for(ids[0]), Some(made), "what clients were told stays true");
    world.run_until(at(92)).await;
    assert_eq!((status(&world, lease.lease.id), world.fleet.prepared()), ("TERMINATED", Vec::new()));
}

#[tokio::test]
async fn a_lease_whose_reservation_cannot_be_prepared_is_withdrawn() {
    let mut world = cloud(2).await;
    world.fleet.plan_fault(PlannedFault { times: u32::MAX, ..fault(Verb::Prepare, Fault::Refuse) });
    let lease = make(&mut world, asking(60, 90, vec![apart()])).await.expect("free");
    let answer = prepared(&world, &lease);
    world.run_until(at(1)).await;
    match answer.await.expect("no panic") {
        Err(ServiceError::Fleet(why)) => assert!(why.contains("Prepare was refused"), "{why}"),
        other => panic!("{other:?}"),
    }
    world.touched();
    world.run_until(at(5)).await;
    assert_eq!((status(&world, lease.lease.id), world.fleet.prepared()), ("gone", Vec::new()));
}

#[tokio::test]
async fn whatever_becomes_of_a_call_nothing_is_left_of_a_reservation() {
    for verb in [Verb::Prepare, Verb::Finish] {
        for kind in [Fault::Refuse, Fault::TimeOutBefore, Fault::TimeOutAfter, Fault::Late, Fault::Duplicate]
        {
            let mut world = cloud(2).await;
            let lease = make(&mut world, asking(10, 30, vec![hosts(1), slots(1, 1)])).await.expect("free");
            world.fleet.plan_fault(fault(verb, kind));
            world.run_until(at(12)).await;
            assert_eq!(status(&world, lease.lease.id), "ACTIVE", "{verb:?} {kind:?}");
            world.run_until(at(60)).await;
            assert_eq!(status(&world, lease.lease.id), "TERMINATED", "{verb:?} {kind:?}");
            assert_eq!(world.fleet.prepared(), [], "{verb:?} {kind:?}");
        }
    }
}

#[tokio::test]
async fn a_lease_that_is_deleted_while_it_is_prepared_leaves_nothing_behind() {
    let mut world = cloud(1).await;
    let lease = make(&mut world, asking(60, 90, vec![hosts(1)])).await.expect("free");
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    world.touched();
    world.run_until(at(2)).await;
    assert_eq!((status(&world, lease.lease.id), world.fleet.prepared()), ("gone", Vec::new()));
    // A lease that is already prepared behaves the same way.
    let lease = make(&mut world, asking(60, 90, vec![hosts(1)])).await.expect("free");
    world.run_until(at(3)).await;
    assert_eq!(world.fleet.prepared().len(), 1);
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    world.touched();
    world.run_until(at(4)).await;
    assert_eq!((status(&world, lease.lease.id), world.fleet.prepared()), ("gone", Vec::new()));
}
