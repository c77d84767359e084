//! Notifications and audit records.

use leases::admission::Changes;
use simulation::{caller, operator};
use store::Store;

use crate::terms::{asking, at, change, dates, hosts, make, world};

#[tokio::test]
async fn listeners_are_told_what_blazar_tells_them() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 120, vec![hosts(1)])).await.expect("free");
    let id = lease.lease.id;
    world.run_until(at(61)).await;
    let renamed = Changes { name: Some("other".to_owned()), ..Changes::default() };
    change(&mut world, id, renamed).await.expect("renamed");
    change(&mut world, id, dates(None, Some(240))).await.expect("free");
    world.run_until(at(241)).await;
    world.service.leases().delete(&caller("p"), id).await.expect("deleted");
    let told = world.service.notifications().after(0, 100).await.expect("works");
    let types: Vec<&str> = told.iter().map(|told| told.content.event_type.as_str()).collect();
    let expected = [
        "lease.create",
        "lease.event.start_lease",
        "lease.event.before_end_lease",
        "lease.event.before_end_lease.stop",
        "lease.update",
        "lease.event.before_end_lease",
        "lease.event.end_lease",
        "lease.delete",
    ];
    assert_eq!(types, expected);
    let payload: serde_json::Value = serde_json::from_str(&told[1].content.payload).expect("JSON");
    assert_eq!(payload["lease_id"], id.to_string());
    assert_eq!(payload["status"], "ACTIVE");
    assert_eq!(payload.get("id"), None);
    world.service.notifications().wait_after(told[6].number).await;
}

#[tokio::test]
async fn who_waits_for_a_notification_is_woken_by_it() {
    let mut world = world(1).await;
    let service = world.service.clone();
    let waiting = tokio::spawn(async move { service.notifications().wait_after(0).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    waiting.await.expect("no panic");
}

#[tokio::test]
async fn whatever_a_caller_changes_is_on_record() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    change(&mut world, lease.lease.id, dates(None, Some(30))).await.expect("free");
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("deleted");
    let host = world.service.hosts().all()[0].host.id;
    let change = vec![("a".to_owned(), Some("b".to_owned()))];
    world.service.hosts().update(&operator(), host, change).await.expect("changed");
    world.service.hosts().remove(&operator(), host).await.expect("free");
    let mut actions: Vec<String> =
        world.store.audit(100).await.expect("works").into_iter().map(|record| record.action).collect();
    actions.reverse();
    let expected =
        ["host.create", "lease.create", "lease.update", "lease.delete", "host.update", "host.delete"];
    assert_eq!(actions, expected);
}
