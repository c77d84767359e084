//! Promises about revisions: a service that follows the changes knows the contents of the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use leases::ids::{FloatingIpId, HostId};
use leases::instance::InstanceKind;
use leases::plan::Action;
use tokio::task::JoinSet;

use super::records::{accept, everything, loaded, refuse};
use super::sample::*;
use crate::{
    Changes, Commit, Delta, Finished, Holder, LeaseRecord, Revision, Snapshot, Store, Version, Write,
};

/// Changes since that revision. Panics if the store asks for a reload.
pub(super) async fn delta(store: &Arc<dyn Store>, since: Revision) -> Delta {
    match store.changes_since(since).await.expect("works") {
        Changes::Delta(delta) => *delta,
        Changes::Reload => panic!("what has changed since revision {} is not known", since.number),
    }
}

/// Updates a snapshot with a delta.
pub(super) fn follow(mut known: Snapshot, delta: Delta) -> Snapshot {
    fn change<K: Ord, R>(records: Vec<R>, delta: BTreeMap<K, Option<R>>, key: impl Fn(&R) -> K) -> Vec<R> {
        let mut by_key: BTreeMap<K, R> = records.into_iter().map(|record| (key(&record), record)).collect();
        for (key, record) in delta {
            match record {
                Some(record) => by_key.insert(key, record),
                None => by_key.remove(&key),
            };
        }
        by_key.into_values().collect()
    }
    known.revision = delta.revision;
    known.leases = change(known.leases, delta.leases, |record| record.lease.id);
    known.hosts = change(known.hosts, delta.hosts, |record| record.host.id);
    known.floating_ips = change(known.floating_ips, delta.floating_ips, |record| record.floating_ip.id);
    known.flavors = change(known.flavors, delta.flavors, |record| record.id.clone());
    known.free_pools = change(known.free_pools, delta.free_pools, |record| record.pool.id);
    known.instances = change(known.instances, delta.instances, |record| record.instance.id);
    known.properties = change(known.properties, delta.properties, |record| record.name.clone());
    known.preemptible_projects =
        change(known.preemptible_projects, delta.preemptible_projects, |record| record.pattern.to_string());
    for (action, step) in delta.steps {
        known.history.failures.remove(&action);
        known.history.failures.extend(step.failures.map(|failures| (action, failures)));
        known.history.done.remove(&action);
        known.history.done.extend(step.done.map(|at| (action, at)));
    }
    known
}

async fn expect_followed(store: &Arc<dyn Store>, known: Snapshot) -> Snapshot {
    let changes = delta(store, known.revision).await;
    let followed = follow(known, changes);
    assert_eq!(format!("{followed:?}"), format!("{:?}", loaded(store).await));
    followed
}

/// Commits without record changes make one as well; rejected commits don't.
pub async fn every_commit_makes_the_next_revision(store: &Arc<dyn Store>) {
    let mut last = loaded(store).await.revision;
    let telling = Commit { notifications: vec![notification("n")], ..Commit::new(at(0)) };
    for commit in [commit(add_hosts([1])), telling, commit([])] {
        let advance = store.commit(&commit).await.expect("accepted");
        assert_eq!((advance.from, advance.to.number), (last, last.number + 1));
        assert_eq!(loaded(store).await.revision, advance.to);
        last = advance.to;
    }
    refuse(store, &commit(add_hosts([1]))).await;
    assert_eq!(loaded(store).await.revision, last);
}

/// Records are added, changed and removed.
pub async fn changes_bring_an_old_snapshot_up_to_date(store: &Arc<dyn Store>) {
    let empty = loaded(store).await;
    assert_eq!(delta(store, empty.revision).await, Delta { revision: empty.revision, ..Delta::default() });
    accept(store, everything()).await;
    let full = expect_followed(store, empty.clone()).await;
    let [old, gone] = [&full.leases[0], &full.leases[1]].map(LeaseRecord::clone);
    let moved = lease(1, window(0, 50), vec![hosts(&[2])]).lease;
    accept(store, [replace(&old, moved), forget(&gone), Write::RemoveFloatingIp(FloatingIpId(1))]).await;
    accept(store, [add(&gone), Write::RemoveFlavor("f".into()), Write::Property(property("size"))]).await;
    accept(store, [Write::PreemptibleProject(preemptible_project("spot-*"))]).await;
    accept(store, [remove_host(3), Write::Flavor(flavor("g"))]).await;
    let pool = Write::RemoveFreePool { id: leases::ids::FreePoolId(8), expected: Version(1) };
    let host = Write::RemoveHost { id: leases::ids::HostId(9), expected: Version(7) };
    accept(store, [host, pool, add_free_pool(&free_pool(9, "slow"))]).await;
    let (id, expected) = (leases::ids::GuestId(5), Version(1));
    let started = instance(6, InstanceKind::Preemptible);
    accept(store, [Write::ForgetInstance { id, expected }, add_instance(&started)]).await;
    let after = expect_followed(store, full).await;
    assert_eq!((after.leases.len(), after.hosts.len(), after.properties.len()), (4, 2, 2));
    expect_followed(store, empty).await;
}

/// Results of steps are part of the changes. A result that doesn't change the history makes no revision.
pub async fn the_history_of_steps_is_followed_like_records(store: &Arc<dyn Store>) {
    let (fence, unfence) = (Action::Fence(HostId(1)), Action::Unfence(HostId(1)));
    let finish = async |action, result: Result<(), &str>, now| {
        let holder = Holder("me".into());
        let claim = store.claim(&[action], &holder, at(now), at(now + 1)).await.expect("works").remove(0);
        let result = result.map_err(str::to_owned);
        store.finish(&[Finished { claim, result }], at(now)).await.expect("works")
    };
    let known = loaded(store).await;
    let first = finish(fence, Err("no route"), 1).await.expect("a failure is new");
    assert_eq!((first.from, first.to.number), (known.revision, known.revision.number + 1));
    assert_eq!(finish(unfence, Ok(()), 2).await, None);
    let known = expect_followed(store, known).await;
    assert!(finish(fence, Ok(()), 3).await.is_some());
    let known = expect_followed(store, known).await;
    finish(unfence, Err("refused"), 4).await;
    assert!(store.prune_steps(&[fence, unfence]).await.expect("works").is_some());
    assert_eq!(store.prune_steps(&[fence, unfence]).await.expect("works"), None);
    let known = expect_followed(store, known).await;
    assert!(known.history.failures.is_empty());
}

/// A restored store gives the same numbers to other revisions, so a follower of the lost ones must reload.
pub async fn who_knows_another_history_is_told_to_load_everything(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let here = loaded(store).await.revision;
    let elsewhere = Revision { mark: !here.mark, ..here };
    let ahead = Revision { number: here.number + 1, ..here };
    for unknown in [elsewhere, ahead, Revision { number: u64::MAX, ..here }] {
        let changes = store.changes_since(unknown).await.expect("works");
        assert!(matches!(changes, Changes::Reload), "{unknown:?}: {changes:?}");
        store.wait_for_change(unknown).await.expect("it is of another revision");
    }
}

/// The change can come before or after the wait begins.
pub async fn who_waits_for_a_change_is_woken(store: &Arc<dyn Store>) {
    let mut known = loaded(store).await.revision;
    for host in 1..=3 {
        let (waiting, since) = (Arc::clone(store), known);
        let waiter = tokio::spawn(async move {
            let mut changes = delta(&waiting, since).await;
            while changes.revision == since {
                waiting.wait_for_change(since).await.expect("works");
                changes = delta(&waiting, since).await;
            }
            changes
        });
        accept(store, add_hosts([host])).await;
        let changes = waiter.await.expect("it ends");
        assert!(changes.hosts[&HostId(host)].is_some());
        known = changes.revision;
        store.wait_for_change(Revision { number: known.number - 1, ..known }).await.expect("works");
    }
}

/// A commit that becomes visible after one with a higher number would never be seen.
pub async fn of_parallel_commits_a_follower_misses_none(store: &Arc<dyn Store>) {
    const WRITERS: u128 = 8;
    const EACH: u128 = 12;
    let mut known = loaded(store).await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(store);
        writers.spawn(async move {
            for number in 0..EACH {
                accept(&store, [add(&lease(writer * EACH + number, window(0, 9), vec![]))]).await;
            }
        });
    }
    while known.leases.len() < (WRITERS * EACH) as usize {
        store.wait_for_change(known.revision).await.expect("works");
        let changes = delta(store, known.revision).await;
        let before = known.leases.len();
        let new = changes.leases.len();
        let count = (changes.revision.number - known.revision.number) as usize;
        known = follow(known, changes);
        assert!(new == count && known.leases.len() == before + new, "each revision brings its lease, once");
    }
    writers.join_all().await;
    expect_followed(store, known).await;
}

/// A leader stays until its time is over or it resigns. Each role has its own.
pub async fn one_holder_leads_in_a_role_at_a_time(store: &Arc<dyn Store>) {
    let [one, other] = ["one", "other"].map(|name| Holder(name.to_owned()));
    let lead = async |role, holder: &Holder, now, until| {
        store.lead(role, holder, at(now), at(until)).await.expect("works")
    };
    assert!(lead("energy", &one, 0, 10).await);
    assert!(!lead("energy", &other, 9, 19).await);
    assert!(lead("usage", &other, 9, 19).await);
    assert!(lead("energy", &one, 9, 19).await, "who leads goes on");
    assert!(!lead("energy", &other, 18, 28).await);
    assert!(lead("energy", &other, 19, 29).await);
    assert!(!lead("energy", &one, 20, 30).await);
    assert!(!lead("energy", &other, 21, 21).await, "given up");
    assert!(lead("energy", &one, 21, 31).await);
}
