//! Promises about expiry.

use std::sync::Arc;

use jiff::Timestamp;
use leases::status::LeaseStatus;
use leases::usage::Query;

use super::bookings::with_status;
use super::records::{accept, loaded};
use super::sample::*;
use super::usage::some_usage;
use crate::{Changes, Commit, LeaseRecord, Store, UsageFilter, Write};

/// The parts are small, so however much is old, other requests don't wait long.
pub async fn what_is_old_is_forgotten_a_part_at_a_time(store: &Arc<dyn Store>) {
    for minute in 0..5 {
        let audit = vec![crate::AuditRecord { at: at(minute), ..audit("a") }];
        let notifications = vec![notification("n")];
        let commit = Commit { audit, notifications, ..Commit::new(at(minute)) };
        store.commit(&commit).await.expect("accepted");
    }
    let left = async || {
        let audit = store.audit(9).await.expect("works").len();
        (audit, store.notifications(None, 0, 9).await.expect("works").len())
    };
    let prune = async || store.prune(at(4), Timestamp::MIN, 2).await.expect("works");
    assert!(prune().await, "there is more");
    assert_eq!(left().await, (3, 3));
    assert!(prune().await);
    assert_eq!(left().await, (1, 1));
    assert!(!prune().await, "the last is not old");
    assert_eq!(left().await, (1, 1));

    let events = some_usage();
    store.commit(&Commit { usage: events, ..Commit::new(at(9)) }).await.expect("accepted");
    let old = store.usage_events(&UsageFilter::default(), 0, 9).await.expect("works").len();
    let mut parts = 1;
    while store.prune_usage(at(1_000_000), 1).await.expect("works") {
        parts += 1;
    }
    assert!(parts > old, "one at a time: {old}");
    assert!(store.usage_events(&UsageFilter::default(), 0, 9).await.expect("works").is_empty());
}

/// A listener that never returns can't fill the store.
pub async fn notifications_that_nobody_takes_are_forgotten_in_the_end(store: &Arc<dyn Store>) {
    for minute in 0..4 {
        let commit = Commit { notifications: vec![notification("n")], ..Commit::new(at(minute)) };
        store.commit(&commit).await.expect("accepted");
    }
    let all = store.notifications(None, 0, 10).await.expect("works");
    store.set_delivered("away", all[0].number).await.expect("works");
    store.prune(at(4), at(2), 100).await.expect("works");
    assert_eq!(store.notifications(None, 0, 10).await.expect("works"), all[2..]);
    assert_eq!(store.delivered("away").await.expect("works"), all[0].number, "it goes on where it was");
}

/// Followers see the leases as deleted, but their usage remains.
pub async fn leases_that_are_over_are_forgotten_and_their_usage_is_not(store: &Arc<dyn Store>) {
    const LEASES: u128 = 300;
    accept(store, add_hosts([1])).await;
    let over = |number: u128| {
        let record = lease(number, window(0, 60), vec![hosts(&[1])]);
        LeaseRecord { lease: with_status(&record.lease, LeaseStatus::Terminated), ..record }
    };
    let going = lease(LEASES, window(60, 90), vec![hosts(&[1])]);
    let usage = some_usage();
    let writes = (0..LEASES).map(|number| add(&over(number))).chain([add(&going)]).collect();
    store.commit(&Commit { writes, usage, ..Commit::new(at(0)) }).await.expect("accepted");
    let periods = vec![window(-1000, 1000)];
    let query = Query { periods, ..Query::default() };
    let (before, sums) = (loaded(store).await, store.usage(&query).await.expect("works"));
    let events = store.usage_events(&UsageFilter::default(), 0, 9).await.expect("works");

    let forgotten: Vec<Write> = (0..LEASES).map(|number| forget(&over(number))).collect();
    accept(store, forgotten).await;
    let after = loaded(store).await;
    assert_eq!(after.leases, [going]);
    assert_eq!(store.usage(&query).await.expect("works"), sums);
    assert_eq!(store.usage_events(&UsageFilter::default(), 0, 9).await.expect("works"), events);
    let Changes::Delta(changes) = store.changes_since(before.revision).await.expect("works") else {
        panic!("one commit is not too much to be followed");
    };
    assert_eq!(changes.leases.len(), LEASES as usize);
    assert!(changes.leases.values().all(Option::is_none));
    assert_eq!(changes.revision, after.revision);
}

/// Sizes in bytes are optional, but the number of records in journals is always known.
pub async fn records_are_counted(store: &Arc<dyn Store>) {
    let audit = vec![audit("a"), audit("b")];
    let commit = Commit { audit, notifications: vec![notification("n")], ..Commit::new(at(0)) };
    store.commit(&commit).await.expect("accepted");
    let sizes = store.sizes().await.expect("works");
    let kinds: Vec<_> = sizes.records.keys().copied().collect();
    assert_eq!(kinds, ["audit", "notifications", "usage_events", "usage_spans"]);
    assert!(sizes.free_bytes <= sizes.bytes);
    assert!(!store.reclaim().await.expect("works"), "there is nothing to give back");
}
