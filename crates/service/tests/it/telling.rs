//! Notifications and audit records.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leases::admission::Changes;
use leases::project::ProjectId;
use service::{NewLease, Service};
use simulation::{caller, operator};
use store::{Store, Wording};
use tokio::task::JoinHandle;

use crate::sharing::two;
use crate::terms::{asking, at, change, dates, hosts, make, slots, world};

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
    let told = world.service.notifications().after(None, 0, 100).await.expect("works");
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
    world.service.notifications().wait_after(None, told[6].number).await;
}

#[tokio::test]
async fn who_waits_for_a_notification_is_woken_by_it() {
    let mut world = world(1).await;
    let service = world.service.clone();
    let waiting = tokio::spawn(async move { service.notifications().wait_after(None, 0).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    make(&mut world, asking(10, 20, vec![hosts(1)])).await.expect("free");
    waiting.await.expect("no panic");
}

/// Counts how often a client that waits for its project's notifications is woken.
fn count_wakes(service: Arc<Service>, project: &str) -> (JoinHandle<()>, Arc<AtomicUsize>) {
    let project = ProjectId(project.to_owned());
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let waiting = tokio::spawn(async move {
        let mut waiting = pin!(service.notifications().wait_after(Some(&project), 0));
        poll_fn(|context| {
            counted.fetch_add(1, Ordering::Relaxed);
            waiting.as_mut().poll(context)
        })
        .await;
    });
    (waiting, polls)
}

/// Lets all tasks run until they wait.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn waiting_clients_are_not_woken_by_what_they_cannot_see() {
    let world = two(1).await;
    for (lease, service) in (0..).map(|replica| Arc::clone(world.service_of(replica))).take(2).enumerate() {
        let (foreign, wakes) = count_wakes(Arc::clone(&service), "other");
        let (own, _) = count_wakes(Arc::clone(&service), "p");
        settle().await;
        let before = wakes.load(Ordering::Relaxed);
        let start = 10 + 20 * lease as i64;
        let asked = asking(start, start + 10, vec![hosts(1)]);
        world.service_of(0).leases().create(&caller("p"), asked, None).await.expect("free");
        service.refresh().await.expect("works");
        settle().await;
        assert_eq!(wakes.load(Ordering::Relaxed), before);
        assert!(!foreign.is_finished());
        own.await.expect("no panic");
        foreign.abort();
    }
}

#[tokio::test]
async fn listeners_are_told_long_text_by_reference() {
    let mut world = world(4).await;
    let text = "é".repeat(8000);
    let wording = Wording { resource_properties: Some(text.as_str().into()), ..Wording::default() };
    let few = NewLease { wording: vec![wording], ..asking(10, 20, vec![hosts(1)]) };
    let many = asking(30, 40, vec![slots(1, 1); 50]);
    let wording = Wording { resource_properties: Some("é".repeat(500).into()), ..Wording::default() };
    let many = NewLease { wording: vec![wording; 50], ..many };
    let few = make(&mut world, few).await.expect("free").lease.id;
    let many = make(&mut world, many).await.expect("free").lease.id;
    change(&mut world, many, dates(None, Some(50))).await.expect("free");
    let told = world.service.notifications().after(None, 0, 100).await.expect("works");
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|told| told.content.payload.len() <= 12 * 1024));
    let payload: serde_json::Value = serde_json::from_str(&told[0].content.payload).expect("JSON");
    let shown = payload["reservations"][0]["resource_properties"].as_str().expect("text");
    assert!(shown.starts_with("sha256:") && shown.ends_with(&format!(" bytes:16000 see:/v1/leases/{few}")));
    let payload: serde_json::Value = serde_json::from_str(&told[2].content.payload).expect("JSON");
    assert_eq!(payload["lease_id"], many.to_string());
    assert_eq!(payload["reservations_count"], 50);
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
