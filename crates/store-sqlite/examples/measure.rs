//! Measures the store under the load of a large installation: `cargo run --release -p store-sqlite --example
//! measure`. Optional arguments are the numbers of leases and hosts.

use std::error::Error;
use std::time::Instant;

use leases::ids::HostId;
use leases::lease::Lease;
use leases::plan::Action;
use leases::status::LeaseStatus;
use store::conformance::sample::{add, add_host, at, commit, elaborate_host, hosts, lease, replace, window};
use store::{Finished, Holder, HostRecord, LeaseRecord, Store, Version, Write};
use store_sqlite::SqliteStore;

/// Leases per commit.
const BATCH: usize = 1000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let fleet: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("allot.db");
    let store = SqliteStore::open(&path).await?;
    timed("enter hosts of 30 capabilities", store.commit(&commit((1..=fleet).map(large_host)))).await?;

    let records: Vec<LeaseRecord> = (0..count).map(|number| small_lease(number, fleet)).collect();
    let begun = Instant::now();
    for batch in records.chunks(BATCH) {
        store.commit(&commit(batch.iter().map(add))).await?;
    }
    let each = begun.elapsed() / u32::try_from(count)?;
    println!("{:>10.1} us  enter each of {count} leases of four hosts, {BATCH} at a time", micros(each));

    let all: Vec<u64> = (1..=fleet).collect();
    let everything = lease(u128::MAX, window(-9, -1), vec![hosts(&all)]);
    timed("enter a lease of all hosts", store.commit(&commit([add(&everything)]))).await?;
    let one = small_lease(count, fleet);
    timed("enter one lease", store.commit(&commit([add(&one)]))).await?;
    let start = |record: &LeaseRecord| {
        replace(record, Lease { status: LeaseStatus::Starting, ..record.lease.clone() })
    };
    timed("start 1000 leases", store.commit(&commit(records.iter().take(1000).map(start)))).await?;

    let steps: Vec<Action> = (1..=1000).map(|host| Action::Fence(HostId(host))).collect();
    let claims = timed("claim 1000 steps", store.claim(&steps, &Holder("me".into()), at(0), at(1))).await?;
    let result: Result<(), String> = Err("no route".into());
    let failed = claims.into_iter().map(|claim| Finished { claim, result: result.clone() });
    timed("finish 1000 steps", store.finish(&failed.collect::<Vec<_>>(), at(0))).await?;

    store.close().await?;
    drop(store);
    println!("{:>10.1} MB  file", std::fs::metadata(&path)?.len() as f64 / 1e6);
    let store = timed("open", SqliteStore::open(&path)).await?;
    let snapshot = timed("load", store.load()).await?;
    assert_eq!(snapshot.leases.len() as u64, count + 2);
    Ok(())
}

async fn timed<T, E>(what: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let begun = Instant::now();
    let result = work.await;
    println!("{:>10.1} ms  {what}", micros(begun.elapsed()) / 1000.0);
    result
}

fn micros(duration: std::time::Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn large_host(id: u64) -> Write {
    let mut host = elaborate_host(id).host;
    host.capabilities = (0..30).map(|n| (format!("capability{n}"), format!("value {id} {n}"))).collect();
    add_host(HostRecord { host, version: Version::FIRST, ..elaborate_host(id) })
}

/// Four adjacent hosts for an hour. The next lease has the next four, and after the last hosts come the
/// first.
fn small_lease(number: u64, fleet: u64) -> LeaseRecord {
    let groups = (fleet / 4).max(1);
    let (group, round) = (number % groups, i64::try_from(number / groups).unwrap_or(0));
    let ids: Vec<u64> = (1..=4).map(|host| group * 4 + host).collect();
    lease(number.into(), window(round * 60, round * 60 + 60), vec![hosts(&ids)])
}
