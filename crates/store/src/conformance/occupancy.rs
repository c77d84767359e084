//! Promises about occupancy of leased hosts.

use std::sync::Arc;

use leases::ids::{GuestId, HostId, LeaseId};
use leases::occupants::{Changes, Fact, Fence, Interval};
use leases::project::ProjectId;

use super::sample::*;
use crate::Store;

fn project(name: &str) -> ProjectId {
    ProjectId(name.into())
}

/// An open interval that starts at that minute.
fn open(lease: u128, fact: Fact, start: i64) -> Interval {
    Interval {
        lease: LeaseId(lease),
        project: project(&format!("p'{lease}")),
        host: HostId(u64::from(u32::MAX)),
        fact,
        begins: false,
        start: at(start),
        end: None,
    }
}

fn until(interval: Interval, end: i64) -> Interval {
    Interval { end: Some(at(end)), ..interval }
}

fn instance(id: u128, name: Option<&str>) -> Fact {
    Fact::Instance(GuestId(id), name.map(project))
}

/// Intervals that together set every field.
pub(super) fn some_occupancy() -> Changes {
    let opened = vec![
        Interval { begins: true, ..open(1, Fact::Fence(Fence::Held), 0) },
        open(1, instance(u128::MAX, Some("ü\"")), 1),
        open(1, instance(7, None), 2),
        until(open(1, Fact::Unseen, 3), 5),
        until(open(2, Fact::Fence(Fence::Released), 4), 4),
    ];
    Changes { closed: Vec::new(), opened, seen_until: Some(at(6)) }
}

/// More intervals than one statement inserts.
pub(super) fn many_intervals() -> Changes {
    let opened = (0..1200).map(|minute| until(open(3, Fact::Unseen, minute), minute)).collect();
    Changes { closed: Vec::new(), opened, seen_until: None }
}

async fn record(store: &Arc<dyn Store>, closed: Vec<Interval>, opened: Vec<Interval>) {
    let changes = Changes { closed, opened, seen_until: None };
    store.record_occupancy(&changes).await.expect("works");
}

async fn of_lease(store: &Arc<dyn Store>, lease: u128) -> Vec<Interval> {
    let found = store.occupancy(LeaseId(lease), 0, 1000).await.expect("works");
    assert!(found.is_sorted_by_key(|(number, _)| *number));
    found.into_iter().map(|(_, interval)| interval).collect()
}

/// Each lease is read by itself, page by page.
pub async fn occupancy_is_read_as_it_was_recorded(store: &Arc<dyn Store>) {
    assert_eq!(store.occupancy_seen_until().await.expect("works"), None);
    let changes = some_occupancy();
    store.record_occupancy(&changes).await.expect("works");
    assert_eq!(of_lease(store, 1).await, changes.opened[..4]);
    assert_eq!(of_lease(store, 2).await, changes.opened[4..]);
    assert_eq!(of_lease(store, 3).await, []);
    assert_eq!(store.open_occupancy().await.expect("works"), changes.opened[..3]);
    let page = async |after| store.occupancy(LeaseId(1), after, 3).await.expect("works");
    let first = page(0).await;
    let rest = page(first[2].0).await;
    assert_eq!((first.len(), &rest[0].1, rest.len()), (3, &changes.opened[3], 1));
    assert_eq!(page(rest[0].0).await, []);
    // Changes without a time keep the previous one.
    record(store, vec![], vec![]).await;
    assert_eq!(store.occupancy_seen_until().await.expect("works"), Some(at(6)));
    let later = Changes { seen_until: Some(at(9)), ..Changes::default() };
    store.record_occupancy(&later).await.expect("works");
    assert_eq!(store.occupancy_seen_until().await.expect("works"), Some(at(9)));
}

/// Two services can record the same interval.
pub async fn occupancy_is_opened_and_closed_once(store: &Arc<dyn Store>) {
    let (held, guest) = (open(1, Fact::Fence(Fence::Held), 0), open(1, instance(7, Some("q")), 0));
    record(store, vec![], vec![held.clone(), guest.clone()]).await;
    record(store, vec![], vec![open(1, Fact::Fence(Fence::Held), 5), open(1, instance(7, None), 5)]).await;
    assert_eq!(of_lease(store, 1).await, [held.clone(), guest.clone()]);
    // The project of an instance can become known later.
    let again = open(1, instance(7, Some("q")), 9);
    record(store, vec![until(open(1, instance(7, None), 0), 8)], vec![again.clone()]).await;
    assert_eq!(store.open_occupancy().await.expect("works"), [held.clone(), again.clone()]);
    // An end before its start, and an end of something that isn't open.
    record(store, vec![until(again.clone(), 3), until(open(4, Fact::Unseen, 0), 1)], vec![]).await;
    assert_eq!(of_lease(store, 1).await, [held.clone(), until(guest, 8), until(again, 9)]);
    assert_eq!(store.open_occupancy().await.expect("works"), [held]);
}

/// Open intervals and projects below the limit lose nothing.
pub async fn occupancy_expires_by_age_and_by_size(store: &Arc<dyn Store>) {
    let held = open(1, Fact::Fence(Fence::Held), 0);
    let closed = |lease, minute| until(open(lease, instance(7, Some("q")), minute), minute);
    let mut opened = vec![held.clone()];
    opened.extend((1..=20).map(|minute| closed(1, minute)));
    opened.extend((1..=3).map(|minute| closed(2, minute)));
    record(store, vec![], opened.clone()).await;
    let prune = async |before: Option<i64>, most, limit| {
        store.prune_occupancy(before.map(at), most, limit).await.expect("works")
    };
    assert!(!prune(None, u64::MAX, 2).await);
    assert!(!prune(Some(1), u64::MAX, 2).await, "the first ends then");
    assert!(prune(Some(5), u64::MAX, 2).await);
    while prune(Some(5), u64::MAX, 2).await {}
    let left: Vec<Interval> = opened[..1].iter().chain(&opened[5..21]).cloned().collect();
    assert_eq!(of_lease(store, 1).await, left);
    assert_eq!(of_lease(store, 2).await, []);
    // Project `p'1` has 17 intervals. The limit leaves the open one and five more.
    record(store, vec![], (1..=3).map(|minute| closed(2, minute)).collect()).await;
    let most = (128 + 3) + 5 * (128 + 3 + 1);
    assert!(prune(None, most, 4).await);
    assert_eq!(of_lease(store, 1).await.len(), 13);
    while prune(None, most, 4).await {}
    let left: Vec<Interval> = opened[..1].iter().chain(&opened[16..21]).cloned().collect();
    assert_eq!(of_lease(store, 1).await, left);
    assert_eq!(of_lease(store, 2).await.len(), 3);
    assert!(!prune(None, 0, 100).await);
    assert_eq!((of_lease(store, 1).await, of_lease(store, 2).await), (vec![held], vec![]));
}
