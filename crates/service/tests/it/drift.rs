//! Differences between store and fleet, and their repair.

use std::collections::BTreeSet;

use async_trait::async_trait;
use fleet::simulated::{Between, Fault, PlannedFault, SimulatedFleet, Timing, Verb};
use fleet::{Difference, Inventory as _, Isolation as _, OperationKey};
use futures::future::join_all;
use leases::ids::{HostId, ReservationId};
use leases::plan::Place;
use leases::project::ProjectId;
use service::{Drift, Projects};
use simulation::{World, caller, operator};
use store::Store as _;

use crate::terms::{asking, at, hosts, make, settings, status, world, world_with};

const ONE: HostId = HostId(1);
const NOBODY: ReservationId = ReservationId(7);

async fn drift(world: &World) -> Vec<Drift> {
    world.service.repairs().drift(None).await.expect("the fleet answers")
}

async fn repair(world: &World) -> Vec<Drift> {
    world.service.repairs().repair(&operator(), None).await.expect("the fleet answers")
}

#[tokio::test]
async fn store_and_fleet_agree_while_leases_come_and_go() {
    let mut world = world(2).await;
    assert_eq!(drift(&world).await, []);
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    assert_eq!(drift(&world).await, [], "what is on its way is no difference");
    world.run_until(at(1)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    assert_eq!((drift(&world).await, repair(&world).await), (Vec::new(), Vec::new()));
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn what_somebody_has_changed_in_the_cloud_is_told_to_the_owner_and_to_operators() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world.run_until(at(1)).await;
    let lease = world.service.leases().get(lease.lease.id).expect("it runs").lease.clone();
    let told = |world: &World| {
        [false, true].map(|operator| world.service.repairs().changed_in_cloud(&lease, operator))
    };
    let changed = Difference {
        reservation: Some(lease.reservations[0].id),
        host: None,
        what: "flavor f was deleted".to_owned(),
        for_owner: "a flavor was deleted",
        is_undone: true,
    };
    world.fleet.differ(vec![changed]);
    assert_eq!(told(&world), [None, None], "nobody has looked");
    let found = drift(&world).await;
    let name = format!("lease {}: flavor f was deleted", lease.name);
    assert!(
        matches!(&found[..], [Drift::Cloud { .. }]) && found[0].to_string().starts_with(&name),
        "{found:?}"
    );
    world.run_until(at(3)).await;
    assert_eq!(
        told(&world),
        ["a flavor was deleted", "flavor f was deleted"].map(|text| Some(text.to_owned()))
    );
    world.fleet.differ(Vec::new());
    world.run_until(at(5)).await;
    assert_eq!((told(&world), drift(&world).await), ([None, None], Vec::new()));
}

#[tokio::test]
async fn a_host_that_the_fleet_does_not_know_as_one_is_taken_on_again() {
    let world = world(2).await;
    world.fleet.abandon(ONE).await.expect("free");
    let found = drift(&world).await;
    assert!(matches!(&found[..], [Drift::NotTakenOn { host: ONE, .. }]), "{found:?}");
    assert_eq!(drift(&world).await, found, "looking changes nothing");
    assert_eq!(repair(&world).await, []);
    assert_eq!(world.fleet.look(ONE).map(|seen| seen.place), Some(Place::FreePool));
}

#[tokio::test]
async fn a_machine_that_is_no_host_any_more_is_given_back_wherever_it_is() {
    let world = world(2).await;
    world.service.hosts().remove(&operator(), ONE).await.expect("free");
    let key = |name: &str| OperationKey { key: name.to_owned(), fence: 1, ..OperationKey::default() };
    for steps in 0..=3 {
        // The progress of a lease that is missing in a restored backup.
        world.fleet.adopt(ONE).await.expect("empty");
        if steps > 0 {
            world.fleet.fence(ONE, &key(&format!("fence {steps}"))).await.expect("done");
        }
        if steps > 1 {
            world.fleet.verify(ONE, NOBODY, &key(&format!("verify {steps}"))).await.expect("done");
        }
        if steps > 2 {
            world.fleet.hold(ONE, NOBODY, &key(&format!("hold {steps}"))).await.expect("done");
            assert_eq!(world.fleet.look(ONE).map(|seen| seen.place), Some(Place::Held(NOBODY)));
        }
        let found = drift(&world).await;
        assert!(matches!(&found[..], [Drift::Stray { host: ONE, .. }]), "{steps}: {found:?}");
        assert_eq!(repair(&world).await, [], "{steps}");
        let all = [ONE].into();
        assert!(world.fleet.observe(&all, &[]).await.expect("an answer").hosts.is_empty(), "{steps}");
    }
    let audit = world.store.audit(100).await.expect("works");
    assert_eq!(audit.iter().filter(|record| record.action == "host.repair").count(), 4);
}

#[tokio::test]
async fn what_failed_for_a_lease_that_is_gone_is_forgotten() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    world
        .fleet
        .plan_fault(PlannedFault { times: 1000, ..PlannedFault::next(Verb::Hold, ONE, Fault::Refuse) });
    world.run_until(at(1)).await;
    let found = drift(&world).await;
    let name = world.service.hosts().get(ONE).expect("there").host.name.clone();
    assert!(
        matches!(&found[..], [Drift::StepFails { step, .. }] if step.starts_with(&format!("hand host {name} to "))),
        "{found:?}"
    );
    assert_eq!(world.service.statistics().failing_steps, 1);
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    world.run_until(at(5)).await;
    assert_eq!((drift(&world).await, world.service.statistics().failing_steps), (Vec::new(), 0));
}

#[tokio::test]
async fn comparisons_for_several_administrators_ask_the_fleet_one_after_another() {
    let slow = |fleet: SimulatedFleet| {
        fleet.with_timing(Timing { question: Between::secs(10, 10), ..Timing::IMMEDIATE })
    };
    let world = world_with(1, settings(), None, slow).await;
    let before = world.fleet.questions();
    let mut comparisons = Box::pin(join_all((0..5).map(|_| drift(&world))));
    for _ in 0..100 {
        assert!(futures::poll!(comparisons.as_mut()).is_pending(), "no answer yet");
        tokio::task::yield_now().await;
    }
    assert_eq!(world.fleet.questions() - before, 1);
}

/// Knows that one project was deleted, or fails.
struct Registry(Result<&'static str, &'static str>);

#[async_trait]
impl Projects for Registry {
    async fn deleted(&self, projects: &BTreeSet<ProjectId>) -> Result<BTreeSet<ProjectId>, String> {
        let deleted = ProjectId(self.0?.to_owned());
        assert!(!projects.is_empty(), "nobody is asked about nothing");
        Ok(projects.iter().filter(|project| **project == deleted).cloned().collect())
    }
}

#[tokio::test]
async fn leases_of_a_deleted_project_are_found_and_a_repair_deletes_them() {
    let mut world = world(3).await;
    let service = world.service.clone();
    let found =
        async |registry: Registry| service.repairs().drift(Some(&registry)).await.expect("the fleet answers");
    assert_eq!(found(Registry(Err("nobody is to be asked"))).await, []);
    let mut ids = Vec::new();
    for start in [0, 10] {
        let lease = make(&mut world, asking(start, 60, vec![hosts(1)])).await.expect("free");
        ids.push(lease.lease.id);
    }
    // A running lease isn't gone immediately when it is deleted.
    world.run_until(at(1)).await;
    let project = world.service.leases().get(ids[0]).expect("there").lease.owner.project.clone();
    assert_eq!(found(Registry(Ok("another"))).await, []);
    assert_eq!(found(Registry(Err("it is away"))).await, [], "it is not told what nobody knows");
    let name: &'static str = project.0.clone().leak();
    let said = found(Registry(Ok(name))).await;
    assert!(matches!(&said[..], [Drift::Ownerless { leases, .. }] if *leases == ids), "{said:?}");
    let text = said[0].to_string();
    assert!(text.contains("(and 1 more)") && text.contains(name), "{text}");
    let left = world.service.repairs().repair(&operator(), Some(&Registry(Ok(name)))).await;
    assert_eq!(left.expect("the fleet answers"), []);
    assert_eq!(ids.iter().filter(|id| world.service.leases().get(**id).is_some()).count(), 1);
    world.run_until(at(5)).await;
    assert!(ids.iter().all(|id| world.service.leases().get(*id).is_none()));
    let audit = world.store.audit(100).await.expect("works");
    assert_eq!(audit.iter().filter(|record| record.action == "lease.delete").count(), 2);
}
