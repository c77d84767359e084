//! Promises about long text, which is stored once for all leases.

use std::collections::BTreeMap;
use std::sync::Arc;

use leases::extra_specs::ExtraSpecs;
use leases::hints::Hints;
use leases::lease::{Lease, Reservation};
use leases::status::{EventStatus, LeaseStatus, ReservationStatus};
use leases::terms::{HostsTerms, ReservationTerms};

use super::races::race;
use super::records::{accept, loaded};
use super::sample::*;
use crate::encoding::{MOST_INLINE, hex};
use crate::{LeaseRecord, Store, Wording, Write};

/// Text that starts with `start` and is one byte too long to be stored inline.
fn long(start: &str) -> Arc<str> {
    format!("{start:x<length$}", length = MOST_INLINE + 1).into()
}

/// A lease without hosts whose reservations have `words` as their `resource_properties`.
fn worded(number: u128, words: &[&str]) -> LeaseRecord {
    let mut record = lease(number, window(0, 60), words.iter().map(|_| hosts(&[])).collect());
    record.wording = wording(&record.lease, words);
    record
}

fn wording(lease: &Lease, words: &[&str]) -> BTreeMap<leases::ids::ReservationId, Wording> {
    let words = words
        .iter()
        .map(|words| Wording { resource_properties: Some((*words).into()), ..Wording::default() });
    lease.reservations.iter().map(|reservation| reservation.id).zip(words).collect()
}

/// The next version of a lease, with other `resource_properties`.
fn reworded(old: &LeaseRecord, words: &[&str]) -> LeaseRecord {
    LeaseRecord { wording: wording(&old.lease, words), version: old.version.next(), ..old.clone() }
}

fn change(old: &LeaseRecord, new: &LeaseRecord) -> Write {
    Write::Lease { record: Box::new(new.clone()), expected: Some(old.version) }
}

/// Text of any length is read as it was written, even if it looks like a reference to other text.
pub async fn text_of_any_length_is_read_as_it_was_written(store: &Arc<dyn Store>) {
    let stored = long("stored");
    let reference = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let literal = format!("text:{reference}");
    let quoted = format!("\"{reference}\"");
    let texts = ["", "sha256:", "text:", reference, &literal, &quoted, &stored[1..], &stored, "\0"];
    let mut records: Vec<LeaseRecord> = Vec::new();
    for (text, number) in texts.iter().zip(1..) {
        let mut record = worded(number, &[text, &"\u{1a}\0ö".repeat(100), &text.repeat(300)]);
        (*text).clone_into(&mut record.lease.name);
        record.lease.reason = Some(text.repeat(3));
        Arc::make_mut(&mut record.lease.hints).hosts = (0..50).map(|host| format!("{text}{host}")).collect();
        records.push(record);
    }
    accept(store, records.iter().map(add)).await;
    assert_eq!(loaded(store).await.leases, records);
}

/// A lease keeps its text while other leases that share it change theirs or are forgotten.
pub async fn leases_keep_their_text_while_others_change_theirs(store: &Arc<dyn Store>) {
    let [one, two, three] = ["one", "two", "three"].map(long);
    let [a, b, c] = [(1, &one), (2, &one), (3, &two)].map(|(number, text)| worded(number, &[text, text]));
    accept(store, [add(&a), add(&b), add(&c)]).await;
    let expect = async |records: &[&LeaseRecord]| {
        let expected: Vec<LeaseRecord> = records.iter().map(|record| (*record).clone()).collect();
        assert_eq!(loaded(store).await.leases, expected);
    };
    expect(&[&a, &b, &c]).await;
    // Leases 1 and 3 each start to use the other's text.
    let (swapped_a, swapped_c) = (reworded(&a, &[&two, &one]), reworded(&c, &[&one, &one]));
    accept(store, [change(&a, &swapped_a), change(&c, &swapped_c)]).await;
    expect(&[&swapped_a, &b, &swapped_c]).await;
    accept(store, [forget(&b)]).await;
    expect(&[&swapped_a, &swapped_c]).await;
    // Lease 1 starts to use `three` and stops using `two`, and a new lease uses both in the same commit.
    let replaced = reworded(&swapped_a, &[&three, "short"]);
    accept(store, [change(&swapped_a, &replaced), add(&worded(4, &[&two, &three]))]).await;
    expect(&[&replaced, &swapped_c, &worded(4, &[&two, &three])]).await;
    // Lease 1 is forgotten and created again in one commit, which then writes it a second time. Only the last text
    // counts.
    let again = worded(1, &[&three, &one]);
    let last = reworded(&again, &[&two, &two]);
    accept(store, [forget(&replaced), add(&again), change(&again, &last)]).await;
    accept(store, [forget(&swapped_c)]).await;
    expect(&[&last, &worded(4, &[&two, &three])]).await;
}

/// Concurrent leases with the same text all keep it: a store must not delete a text without references while another
/// commit adds a reference to it.
pub async fn of_parallel_leases_with_the_same_text_each_has_it(store: &Arc<dyn Store>) {
    let [one, two] = ["one", "two"].map(long);
    let mut old = worded(1, &[&one, &two]);
    accept(store, [add(&old)]).await;
    for round in 1..=20 {
        // One commit removes the last reference while others add references.
        let new: Vec<LeaseRecord> =
            (0..5).map(|number| worded(round * 100 + number, &[&one, &two])).collect();
        let mut commits: Vec<_> = new.iter().map(|record| commit([add(record)])).collect();
        commits.push(commit([forget(&old)]));
        for result in race(store, commits).await {
            result.expect("accepted");
        }
        assert_eq!(loaded(store).await.leases, new);
        // Each lease drops one of its two texts, which other leases keep.
        let kept = [&one, &two, &one, &two, &one];
        let changed: Vec<_> = new.iter().zip(kept).map(|(old, text)| reworded(old, &[text, text])).collect();
        let commits = new.iter().zip(&changed).map(|(old, new)| commit([change(old, new)])).collect();
        for result in race(store, commits).await {
            result.expect("accepted");
        }
        assert_eq!(loaded(store).await.leases, changed);
        accept(store, changed[1..].iter().map(forget)).await;
        old = changed.into_iter().next().expect("some");
    }
}

/// Text of 257 bytes is stored once for all leases, and is deleted with the last of them. `count` returns the number of
/// stored texts and the number of references.
pub async fn long_text_is_stored_once(store: &Arc<dyn Store>, count: impl AsyncFn() -> (u64, u64)) {
    let [one, two] = ["one", "two"].map(long);
    let records: Vec<LeaseRecord> = (1..=5).map(|number| worded(number, &[&one, &one[1..], &one])).collect();
    accept(store, records.iter().map(add)).await;
    assert_eq!(count().await, (1, 5));
    let changed = reworded(&records[0], &[&two, &one]);
    accept(store, [change(&records[0], &changed)]).await;
    assert_eq!(count().await, (2, 6));
    let changed_again = reworded(&changed, &["short", &two]);
    accept(store, [change(&changed, &changed_again)]).await;
    assert_eq!(count().await, (2, 5));
    accept(store, [forget(&changed_again)]).await;
    assert_eq!(count().await, (1, 4));
    accept(store, records[1..4].iter().map(forget)).await;
    assert_eq!(count().await, (1, 1));
    assert_eq!(loaded(store).await.leases, records[4..]);
    accept(store, [forget(&records[4])]).await;
    assert_eq!(count().await, (0, 0));
}

/// A lease with more text than a request is allowed to contain.
fn wordy_lease() -> LeaseRecord {
    let mut record = lease(1, window(0, 60), vec![hosts(&[1]), hosts(&[2]), slots(&[(3, 1)])]);
    let name = |number: usize| format!("{number:0>255}");
    let specs = (0..100).map(|number| (format!("hw:{}", &name(number)[3..]), name(number)));
    let specs = ExtraSpecs::new(specs).expect("not too many");
    for reservation in &mut record.lease.reservations[..2] {
        let mut terms = HostsTerms::new(1, 1).expect("a range");
        Arc::make_mut(&mut terms.properties).extra_specs = specs.clone();
        reservation.terms = ReservationTerms::Hosts(terms);
    }
    let words: Arc<str> = "ö".repeat(16_384).into();
    let words = Wording { hypervisor_properties: Some(Arc::clone(&words)), resource_properties: Some(words) };
    record.wording = record.lease.reservations.iter().map(|one| (one.id, words.clone())).collect();
    record.lease.name = "\u{1f600}".repeat(80);
    record.lease.reason = Some("y".repeat(100_000));
    record.lease.hunt = elaborate_lease(1, window(0, 60)).lease.hunt;
    if let Some(hunt) = &mut record.lease.hunt {
        hunt.moves = hunt.moves.iter().cycle().take(1000).copied().collect();
    }
    record.lease.hints = Arc::new(Hints { hosts: (0..500).map(name).collect(), ..Hints::default() });
    let elaborate = elaborate_lease(1, window(0, 60)).lease;
    (record.lease.marks, record.lease.before_start) = (elaborate.marks, elaborate.before_start);
    record.lease.series = elaborate.series;
    let owner = &mut record.lease.owner;
    (owner.project.0, owner.user.0) = (hex(u128::MAX).repeat(2), hex(u128::MAX).repeat(2));
    record
}

/// A status change writes little, however much text the lease has. `sizes` returns the bytes of the largest row of a
/// lease and of a reservation. `forbid` makes every later write of text or references fail.
pub async fn a_status_change_writes_no_text(
    store: &Arc<dyn Store>,
    sizes: impl AsyncFn() -> (u64, u64),
    forbid: impl AsyncFn(),
) {
    accept(store, add_hosts([1, 2, 3])).await;
    let old = wordy_lease();
    accept(store, [add(&old)]).await;
    forbid().await;
    let mut lease = old.lease.clone();
    lease.status = LeaseStatus::Terminating;
    lease.events.start = EventStatus::InProgress;
    let active = |reservation: &mut Reservation| reservation.status = ReservationStatus::Active;
    lease.reservations.iter_mut().for_each(active);
    lease.marks.used = false;
    accept(store, [replace(&old, lease.clone())]).await;
    assert_eq!(loaded(store).await.leases[0].lease, lease);
    let (of_lease, of_reservation) = sizes().await;
    assert!((200..=2048).contains(&of_lease), "{of_lease}");
    assert!((200..=1024).contains(&of_reservation), "{of_reservation}");
}

/// Text that earlier versions stored inline can be read, and moves to the table of texts when its lease is written.
/// `inline` writes a long text into the rows; `count` returns the number of stored texts and of references.
pub async fn long_text_in_rows_is_read_and_moves(
    store: &Arc<dyn Store>,
    inline: impl AsyncFn(&str),
    count: impl AsyncFn() -> (u64, u64),
) {
    let text = long("old");
    let old = worded(1, &["short"]);
    accept(store, [add(&old)]).await;
    inline(&text).await;
    let read = LeaseRecord { wording: wording(&old.lease, &[&text]), ..old.clone() };
    let read = LeaseRecord { lease: Lease { name: text.to_string(), ..old.lease.clone() }, ..read };
    assert_eq!(loaded(store).await.leases, std::slice::from_ref(&read));
    assert_eq!(count().await, (0, 0));
    let ended = LeaseRecord { version: read.version.next(), ..read.clone() };
    accept(store, [change(&read, &ended)]).await;
    assert_eq!(loaded(store).await.leases, [ended]);
    assert_eq!(count().await, (1, 1));
}
