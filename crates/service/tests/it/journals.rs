//! Size limits of projects in journals.

use std::collections::BTreeMap;

use leases::ids::LeaseId;
use leases::project::ProjectId;
use service::{Caller, LeaseChanges, Settings};
use simulation::{World, caller};
use store::{AuditFilter, AuditRecord, Journal, Notification, Store, WriteLimits};

use crate::terms::{asking, at, dates, hosts, make, minutes, settings, world_with};

const KEPT: u64 = 20_000;

/// Changes the end of a lease of project `p`, which writes a notification and an audit record.
async fn change(world: &World, who: &Caller, id: LeaseId, end: i64) {
    let changes =
        LeaseChanges { asked_at: world.now(), changes: dates(None, Some(end)), wording: BTreeMap::new() };
    world.service.leases().update(who, id, changes).await.expect("free");
}

async fn told(world: &World, project: &str) -> Vec<Notification> {
    let project = ProjectId(project.into());
    world.service.notifications().after(Some(&project), 0, 1000).await.expect("works")
}

async fn audit_of(world: &World, project: &str) -> Vec<AuditRecord> {
    let filter = AuditFilter { project: Some(ProjectId(project.into())), ..AuditFilter::default() };
    let page = world.service.audit().page(&filter, None, 1000).await.expect("works");
    page.into_iter().map(|(_, record)| record).collect()
}

async fn share(world: &World, journal: Journal) -> u64 {
    let sizes = world.store.journals_over(0).await.expect("works");
    let own = sizes.iter().find(|size| size.journal == journal && size.project.0 == "p");
    own.map_or(0, |size| size.bytes)
}

/// Project `p` writes more than its limit, project `quiet` doesn't, and a listener receives a single notification.
async fn flood() -> (World, LeaseId) {
    let writes = WriteLimits { rows: 20, ..WriteLimits::default() };
    let settings = Settings { keep_bytes: KEPT, writes, ..settings() };
    let mut world = world_with(2, settings, None, |fleet| fleet).await;
    let quiet = asking(100, 200, vec![hosts(1)]);
    world.service.leases().create(&caller("quiet"), quiet, None).await.expect("free");
    let id = make(&mut world, asking(100, 200, vec![hosts(1)])).await.expect("free").lease.id;
    let administrator = Caller { administrator: true, ..caller("p") };
    change(&world, &administrator, id, 300).await;
    for number in 0..150 {
        change(&world, &caller("p"), id, 400 + number).await;
    }
    world.service.notifications().set_delivered("away", 1).await.expect("works");
    world.touched();
    (world, id)
}

#[tokio::test]
async fn a_project_that_writes_too_much_loses_its_own_oldest_records() {
    let (mut world, _) = flood().await;
    let others = async |world: &World| (told(world, "quiet").await, audit_of(world, "quiet").await);
    let before = others(&world).await;
    assert!(!before.0.is_empty() && !before.1.is_empty());
    let (told_before, audited_before) = (told(&world, "p").await, audit_of(&world, "p").await);
    assert_eq!((told_before.len(), audited_before.len()), (152, 152));
    for journal in [Journal::Audit, Journal::Notifications] {
        assert!(share(&world, journal).await > KEPT, "{journal}");
    }
    world.run_until(at(30)).await;
    for journal in [Journal::Audit, Journal::Notifications] {
        let bytes = share(&world, journal).await;
        assert!(KEPT / 2 < bytes && bytes <= KEPT, "{journal}: {bytes}");
    }
    assert_eq!(others(&world).await, before);
    let (left, mut audited) = (told(&world, "p").await, audit_of(&world, "p").await);
    assert!(told_before.ends_with(&left), "the newest are left");
    assert!(audited.pop().is_some_and(|record| record.protected), "the administrator's");
    assert!(audited.len() < 150 && audited_before.starts_with(&audited), "the newest are left");
    assert_eq!(world.service.statistics().notifications_lost, (told_before.len() - left.len()) as u64);
}

#[tokio::test]
async fn what_is_too_much_goes_in_parts_and_goes_on_after_a_crash() {
    let (mut world, id) = flood().await;
    let mut count = told(&world, "p").await.len();
    let mut parts = 0;
    while parts < 2 && world.next(at(30)).await.is_some() {
        let left = told(&world, "p").await.len();
        assert!(left + 20 >= count, "at most 20 at once");
        parts += usize::from(left < count);
        count = left;
    }
    assert!(parts == 2 && share(&world, Journal::Notifications).await > KEPT);
    world.restart().await.expect("the store works");
    change(&world, &caller("p"), id, 1000).await;
    let newest = told(&world, "p").await.pop();
    let now = world.now();
    world.touched();
    world.run_until(now + minutes(20)).await;
    assert!(share(&world, Journal::Notifications).await <= KEPT);
    assert_eq!(told(&world, "p").await.pop(), newest);
}
