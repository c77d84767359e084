//! Fills a store that already has hosts with leases, many thousand times faster than through a service:
//! `cargo run --release -p store-sqlite --example fill FILE LEASES FIRST_SECOND YEARS`. Each lease is for one
//! host for up to a day, anywhere in the years after that second of the Unix epoch, and every host gets about
//! as many.

use std::error::Error;

use jiff::{SignedDuration, Timestamp};
use leases::ids::HostId;
use leases::window::Window;
use store::conformance::sample::{add, commit, hosts, lease};
use store::{LeaseRecord, Store};
use store_sqlite::SqliteStore;

/// Leases per commit.
const BATCH: usize = 1000;
/// Longest lease, in hours.
const LONGEST: u64 = 24;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, count, first, years] = arguments.as_slice() else {
        return Err("arguments: FILE LEASES FIRST_SECOND YEARS".into());
    };
    let (count, first) = (count.parse()?, Timestamp::from_second(first.parse()?)?);
    let store = SqliteStore::open(file).await?;
    let snapshot = store.load().await?;
    let ids: Vec<HostId> = snapshot.hosts.iter().map(|record| record.host.id).collect();
    let each = count / u64::try_from(ids.len())?.max(1) + 1;
    let share = years.parse::<u64>()? * 365 * 24 / each;
    if ids.is_empty() || share < 2 * LONGEST {
        return Err(format!("{count} leases do not fit on {} hosts", ids.len()).into());
    }
    let known = u64::try_from(snapshot.leases.len())?;
    let records: Vec<LeaseRecord> = (0..count)
        .map(|number| {
            let (host, turn) = (ids[(number % ids.len() as u64) as usize], number / ids.len() as u64);
            let drawn = mixed(number);
            let start = turn * share + drawn % (share - LONGEST);
            let hours = 1 + (drawn >> 32) % LONGEST;
            let window = Window::starting(first + span(start), span(hours));
            let number = u128::from(known + number);
            LeaseRecord { created_at: first, ..lease(number, window, vec![hosts(&[host.0])]) }
        })
        .collect();
    for batch in records.chunks(BATCH) {
        store.commit(&commit(batch.iter().map(add))).await?;
    }
    store.close().await?;
    Ok(())
}

fn span(hours: u64) -> SignedDuration {
    SignedDuration::from_hours(i64::try_from(hours).unwrap_or(i64::MAX / 3600))
}

/// Mixes the bits of a number, always with the same result (the finalizer of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
