//! Random commits, applied to a store and to the model.

use std::collections::BTreeMap;
use std::sync::Arc;

use ambient::{Ids, SeededIds};
use leases::host::Host;
use leases::ids::{FloatingIpId, HostId, LeaseId};
use leases::lease::{Allocation, Lease};
use leases::status::LeaseStatus;

use super::changes::{delta, follow};
use super::records::loaded;
use super::sample::*;
use crate::memory::MemoryStore;
use crate::{Commit, HostRecord, LeaseRecord, Revision, Snapshot, Store, Version, Write};

const HOSTS: u64 = 4;
const LEASES: u128 = 12;
const COMMITS: usize = 400;

/// Random choices, drawn from a seed.
struct Draw(SeededIds);

impl Draw {
    fn below(&self, limit: u64) -> u64 {
        // The version and variant of a UUID aren't in the low bits.
        (self.0.uuid() as u64 & u64::from(u32::MAX)) % limit.max(1)
    }

    fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn some(&self, from: u64) -> Vec<u64> {
        (1..=from).filter(|_| self.chance(40)).collect()
    }
}

/// Records as text, without the revision, which differs between stores.
fn records(snapshot: &Snapshot) -> String {
    format!("{:?}", Snapshot { revision: Revision::default(), ..snapshot.clone() })
}

/// Both stores give the same answers, word for word, and hold the same records afterward, whether loaded or
/// followed.
pub async fn random_commits_are_answered_as_the_model_answers_them(store: &Arc<dyn Store>) {
    let model: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let draw = Draw(SeededIds::new(1));
    for store in [store, &model] {
        let mut writes = add_hosts(1..=HOSTS);
        writes.extend([1, 2].map(|number| Write::AddFloatingIp(floating_ip(number))));
        store.commit(&commit(writes)).await.expect("accepted");
    }
    let mut known = loaded(&model).await;
    let mut followed = loaded(store).await;
    let (mut accepted, mut refused) = (0, BTreeMap::<String, usize>::new());
    for round in 0..COMMITS {
        let commit = random_commit(&draw, &known);
        let (answer, expected) = (store.commit(&commit).await, model.commit(&commit).await);
        let answer = answer.map(|advance| advance.to.number - advance.from.number);
        let expected = expected.map(|advance| advance.to.number - advance.from.number);
        assert_eq!(format!("{answer:?}"), format!("{expected:?}"), "commit {round}: {commit:#?}");
        match expected {
            Ok(_) => {
                known = loaded(&model).await;
                accepted += 1;
                assert!(
                    records(&loaded(store).await) == records(&known),
                    "after commit {round}: {commit:#?}"
                );
                // Sometimes a delta covers several commits.
                if draw.chance(50) {
                    let changes = delta(store, followed.revision).await;
                    followed = follow(followed, changes);
                    assert!(records(&followed) == records(&known), "followed to commit {round}: {commit:#?}");
                }
            }
            Err(refusal) => {
                let kind = format!("{refusal:?}");
                let kind = kind.split([' ', '(']).next().unwrap_or_default().to_owned();
                *refused.entry(kind).or_default() += 1;
            }
        }
    }
    // Otherwise the test tried too little.
    assert!(accepted > COMMITS / 10 && refused.len() >= 4, "{accepted} accepted, refused: {refused:?}");
}

fn random_commit(draw: &Draw, known: &Snapshot) -> Commit {
    let count = 1 + draw.below(3);
    commit((0..count).map(|_| match draw.below(10) {
        0 => random_host(draw, known),
        1 if draw.chance(50) => Write::RemoveFloatingIp(FloatingIpId((1 + draw.below(2)).into())),
        1 => Write::AddFloatingIp(floating_ip(1 + draw.below(2) as u16)),
        _ => random_lease(draw, known),
    }))
}

fn random_host(draw: &Draw, known: &Snapshot) -> Write {
    let id = HostId(1 + draw.below(HOSTS));
    let old = known.hosts.iter().find(|record| record.host.id == id);
    let expected = old.map(|record| record.version);
    match expected {
        Some(expected) if draw.chance(40) => Write::RemoveHost { id, expected },
        _ => {
            let version = expected.map_or(Version::FIRST, Version::next);
            let host = Host { vcpus: 8 + draw.below(12) as u32, ..host(id.0).host };
            Write::Host { record: Box::new(HostRecord { host, version, ..super::sample::host(1) }), expected }
        }
    }
}

fn random_lease(draw: &Draw, known: &Snapshot) -> Write {
    let number = 1 + u128::from(draw.below(LEASES as u64));
    let old = known.leases.iter().find(|record| record.lease.id == LeaseId(number));
    let Some(old) = old else {
        let mut new = lease(number, random_window(draw), random_given(draw));
        new.lease.name = random_name(draw);
        return add(&new);
    };
    if draw.chance(5) {
        return Write::ForgetLease { id: LeaseId(number), expected: old.version.next() };
    }
    match draw.below(6) {
        0 => forget(old),
        1 => replace(old, Lease { window: random_window(draw), ..old.lease.clone() }),
        2 => {
            let statuses = LeaseStatus::ALL;
            let status = statuses[draw.below(statuses.len() as u64) as usize];
            replace(old, Lease { status, ..old.lease.clone() })
        }
        3 => replace(old, old.lease.deleted(old.lease.window.start())),
        _ => {
            let LeaseRecord { lease: new, .. } = lease(number, old.lease.window, random_given(draw));
            replace(old, Lease { name: random_name(draw), ..new })
        }
    }
}

/// A name that is often too long to be stored inline, and often shared by several leases.
fn random_name(draw: &Draw) -> String {
    draw.below(3).to_string().repeat(if draw.chance(70) { 300 } else { 3 })
}

fn random_window(draw: &Draw) -> leases::window::Window {
    let start = draw.below(12) as i64;
    window(start, start + draw.below(6) as i64)
}

fn random_given(draw: &Draw) -> Vec<Allocation> {
    let one = || match draw.below(5) {
        0 | 1 => hosts(&draw.some(HOSTS)),
        2 | 3 => {
            let some = draw.some(HOSTS).into_iter().map(|host| (host, 1 + draw.below(3) as u32));
            slots(&some.collect::<Vec<_>>())
        }
        _ => addresses(&draw.some(2).into_iter().map(|number| number as u16).collect::<Vec<_>>()),
    };
    (0..draw.below(3)).map(|_| one()).collect()
}
