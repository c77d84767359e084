//! Promises about powered-off hosts: a period in which a host was off is recorded by the commit that ends it.

use std::sync::Arc;

use jiff::SignedDuration;
use leases::energy::Sleep;
use leases::free_pool::FreePool;
use leases::ids::{FreePoolId, HostId};

use super::sample::*;
use crate::{Commit, CommitError, Store};

fn sleep(host: u64, start: i64, end: i64) -> Sleep {
    Sleep {
        host: HostId(host),
        pool: FreePool::DEFAULT,
        window: window(start, end),
        saved_milliwatts: 90_500,
        off_milliwatts: 7_000,
        over: true,
        boot: None,
        failed: true,
    }
}

/// One sleep of each kind.
pub(super) fn some_sleeps() -> Vec<Sleep> {
    let boot = Some(SignedDuration::from_micros(123_456_789));
    let woken = Sleep { boot, failed: false, pool: FreePoolId(9), ..sleep(2, 20, 30) };
    vec![sleep(1, 0, 10), woken, Sleep { saved_milliwatts: u32::MAX, ..sleep(u64::MAX, 5, 5) }]
}

/// Sleeps are found by a period that they touch, and expire with old usage.
pub async fn energy_f_times_that_hosts_were_off_for_are_kept(store: &Arc<dyn Store>) {
    let slept = some_sleeps();
    let commit = Commit { slept: slept.clone(), ..Commit::new(at(30)) };
    store.commit(&commit).await.expect("accepted");
    let read = async |start, end| store.sleeps(&window(start, end)).await.expect("works");
    assert_eq!(read(-100, 100).await, slept);
    assert_eq!(read(11, 21).await, slept[1..2]);
    assert_eq!(read(10, 20).await, slept[..1], "it ends there");
    store.prune_usage(at(7), 100).await.expect("works");
    assert_eq!(read(-100, 100).await, slept[..2]);
}

/// A commit that lost a race must not record a sleep twice.
pub async fn energy_f_a_refused_commit_leaves_no_time(store: &Arc<dyn Store>) {
    let change = add_hosts([1]);
    store.commit(&Commit { writes: change.clone(), ..Commit::new(at(0)) }).await.expect("accepted");
    let again = Commit { writes: change, slept: some_sleeps(), ..Commit::new(at(1)) };
    let refused = store.commit(&again).await.expect_err("it is there");
    assert!(matches!(refused, CommitError::Stale { .. }), "{refused}");
    assert_eq!(store.sleeps(&window(-100, 100)).await.expect("works"), []);
}
