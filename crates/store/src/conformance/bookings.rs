//! Promises about bookings: no host or address is in two leases at once.

use std::sync::Arc;

use leases::ids::{FloatingIpId, LeaseId, OffersId};
use leases::lease::{Allocation, Lease};
use leases::offer::OfferKind;
use leases::standing::Standing;
use leases::status::LeaseStatus;

use super::records::{accept, loaded, refuse};
use super::sample::*;
use crate::{CommitError, HostRecord, LeaseRecord, Store, Version, Write};

fn is_taken(refusal: &CommitError) -> bool {
    matches!(refusal, CommitError::Taken { .. })
}

fn has_no_room(refusal: &CommitError) -> bool {
    matches!(refusal, CommitError::NoRoom(_))
}

async fn try_lease(store: &Arc<dyn Store>, record: &LeaseRecord) -> CommitError {
    refuse(store, &commit([add(record)])).await
}

/// The windows overlap in every possible way.
pub async fn w1_a_host_is_in_one_lease_at_a_time(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2, 3])).await;
    accept(store, [add(&lease(1, window(10, 20), vec![hosts(&[1, 2])]))]).await;
    for (start, end) in [(10, 20), (0, 11), (19, 30), (0, 30), (12, 15)] {
        let refusal = try_lease(store, &lease(2, window(start, end), vec![hosts(&[2, 3])])).await;
        assert!(is_taken(&refusal), "{start}-{end}: {refusal}");
        assert_eq!(refusal.to_string(), "host 2 is taken at that time");
    }
    // Also within one commit.
    let both = [5, 6].map(|number| add(&lease(number, window(0, 30), vec![hosts(&[3])])));
    assert!(is_taken(&refuse(store, &commit(both)).await));
    accept(store, [add(&lease(2, window(10, 20), vec![hosts(&[3])]))]).await;
}

/// Windows are half-open, and an empty one takes nothing.
pub async fn w16_a_lease_may_start_when_another_ends(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    accept(store, [add(&lease(1, window(10, 20), vec![hosts(&[1])]))]).await;
    accept(store, [add(&lease(2, window(20, 30), vec![hosts(&[1])]))]).await;
    accept(store, [add(&lease(3, window(0, 10), vec![slots(&[(1, 4)])]))]).await;
    accept(store, [add(&lease(4, window(15, 15), vec![hosts(&[1])]))]).await;
    accept(store, [add(&lease(5, window(5, 5), vec![slots(&[(1, 9)])]))]).await;
}

/// The check uses the sum at each instant, not the sum over the window or the one at its start.
pub async fn w2_slots_fit_their_host_at_every_instant(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2])).await;
    let of = |number, start, end, count| lease(number, window(start, end), vec![slots(&[(1, count)])]);
    // At most 3 of 4 slots at once, since the first two leases follow each other.
    accept(store, [add(&of(1, 0, 10, 2)), add(&of(2, 10, 20, 2)), add(&of(3, 0, 30, 1))]).await;
    accept(store, [add(&of(4, 5, 15, 1))]).await;
    for (start, end) in [(5, 6), (0, 6), (14, 40), (0, 40), (9, 10)] {
        let refusal = try_lease(store, &of(5, start, end, 1)).await;
        assert!(has_no_room(&refusal), "{start}-{end}: {refusal}");
    }
    accept(store, [add(&of(5, 15, 20, 1)), add(&of(6, 0, 5, 1)), add(&of(7, 20, 30, 3))]).await;
    assert!(has_no_room(&try_lease(store, &of(8, 29, 30, 1)).await));
    // The scarcest resource decides. CPUs would suffice for four of these slots, but the special resource is
    // missing.
    let mut special = of(9, 50, 60, 1);
    special.lease.reservations[0].terms =
        elaborate_lease(1, window(0, 1)).lease.reservations[2].terms.clone();
    assert!(has_no_room(&try_lease(store, &special).await));
    // Two reservations of the same lease together need more slots than fit.
    let twice = lease(10, window(70, 80), vec![slots(&[(1, 3)]), slots(&[(1, 2)])]);
    assert!(has_no_room(&try_lease(store, &twice).await));
    let huge = lease(11, window(70, 80), vec![slots(&[(1, u32::MAX)])]);
    assert!(has_no_room(&try_lease(store, &huge).await));
    accept(store, [add(&lease(12, window(0, 30), vec![slots(&[(2, 4)])]))]).await;
}

/// A booking of any length counts until its end, and the next can begin right then. Lengths range from a
/// minute to years, and are a minute more or less than each quarter of an hour, hour, day and so on.
pub async fn w2_slots_count_to_their_end_whatever_their_length(store: &Arc<dyn Store>) {
    let near = |length: i64| [length - 1, length, length + 1];
    let mut lengths: Vec<i64> = (0..10).flat_map(|exponent| near(15 * 4_i64.pow(exponent))).collect();
    lengths.extend([1, 24 * 60, 7 * 24 * 60, 365 * 24 * 60]);
    let hosts: Vec<u64> = (1..=lengths.len() as u64).collect();
    accept(store, add_hosts(hosts.iter().copied())).await;
    let mut number = 0;
    for (&on, length) in hosts.iter().zip(lengths) {
        let mut of = |start, end, count| {
            number += 1;
            lease(number, window(start, end), vec![slots(&[(on, count)])])
        };
        accept(store, [add(&of(0, length, 3))]).await;
        let refusal = try_lease(store, &of(length - 1, length + 1, 2)).await;
        assert!(has_no_room(&refusal), "of {length} minutes: {refusal}");
        accept(store, [add(&of(length - 1, length + 1, 1)), add(&of(length, 2 * length, 3))]).await;
        let refusal = try_lease(store, &of(-5, length + 5, 1)).await;
        assert!(has_no_room(&refusal), "of {length} minutes: {refusal}");
        let whole = lease(1000, window(length - 1, length), vec![self::hosts(&[on])]);
        assert!(is_taken(&try_lease(store, &whole).await), "of {length} minutes");
        let whole = lease(1000, window(2 * length - 1, 2 * length + 1), vec![self::hosts(&[on])]);
        assert!(is_taken(&try_lease(store, &whole).await), "of {length} minutes");
    }
}

/// Whole-host bookings don't overlap, so only the last one that begins before a time can reach into it.
/// Bookings that begin later don't hide it.
pub async fn w16_a_long_lease_of_a_host_excludes_slots_until_its_end(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let whole = |number, start, end| lease(number, window(start, end), vec![hosts(&[1])]);
    accept(store, [add(&whole(1, 0, 100_000)), add(&whole(2, 100_000, 100_001))]).await;
    let room = |number, start, end| lease(number, window(start, end), vec![slots(&[(1, 1)])]);
    for (start, end) in
        [(5, 6), (99_999, 100_000), (99_999, 200_000), (100_000, 100_001), (-5, 1), (-5, 500_000)]
    {
        assert!(is_taken(&try_lease(store, &room(3, start, end)).await), "{start}-{end}");
        assert!(is_taken(&try_lease(store, &whole(3, start, end)).await), "{start}-{end}");
    }
    accept(store, [add(&room(3, 100_001, 100_002)), add(&room(4, -5, 0))]).await;
}

/// Whole hosts and slots exclude each other in both orders, and within a lease.
pub async fn w16_slots_and_whole_hosts_exclude_each_other_only_while_they_overlap(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2])).await;
    accept(store, [add(&lease(1, window(10, 20), vec![slots(&[(1, 1)])]))]).await;
    accept(store, [add(&lease(2, window(10, 20), vec![hosts(&[2])]))]).await;
    assert!(is_taken(&try_lease(store, &lease(3, window(19, 30), vec![hosts(&[1])])).await));
    assert!(is_taken(&try_lease(store, &lease(3, window(19, 30), vec![slots(&[(2, 1)])])).await));
    let own = lease(3, window(50, 60), vec![hosts(&[1]), slots(&[(1, 1)])]);
    assert!(is_taken(&try_lease(store, &own).await));
    accept(store, [add(&lease(3, window(20, 30), vec![hosts(&[1])]))]).await;
    accept(store, [add(&lease(4, window(20, 30), vec![slots(&[(2, 4)])]))]).await;
}

pub async fn an_address_is_in_one_lease_at_a_time(store: &Arc<dyn Store>) {
    accept(store, [1, 2].map(|number| Write::AddFloatingIp(floating_ip(number)))).await;
    accept(store, [add(&lease(1, window(10, 20), vec![addresses(&[1])]))]).await;
    let refusal = try_lease(store, &lease(2, window(19, 30), vec![addresses(&[1, 2])])).await;
    assert!(is_taken(&refusal), "{refusal}");
    accept(store, [add(&lease(2, window(20, 30), vec![addresses(&[1, 2])]))]).await;
}

/// Reservations of the same lease exclude each other too.
pub async fn a_lease_cannot_have_a_host_twice(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let twice = lease(1, window(10, 20), vec![hosts(&[1]), hosts(&[1])]);
    assert!(is_taken(&try_lease(store, &twice).await));
}

pub(super) fn with_status(lease: &Lease, status: LeaseStatus) -> Lease {
    Lease { status, ..lease.clone() }
}

/// A lease that is over still shows its allocations, but other leases can book them.
pub async fn a_lease_that_is_over_keeps_nothing(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2])).await;
    accept(store, [Write::AddFloatingIp(floating_ip(1))]).await;
    let given = || vec![hosts(&[1]), slots(&[(2, 4)]), addresses(&[1])];
    for (number, status) in
        [LeaseStatus::Terminated, LeaseStatus::Error, LeaseStatus::Deleting].into_iter().enumerate()
    {
        let record = lease(number as u128, window(0, 60), given());
        accept(store, [add(&record)]).await;
        let over = with_status(&record.lease, status);
        accept(store, [replace(&record, over.clone())]).await;
        assert_eq!(loaded(store).await.leases[number].lease, over);
    }
    let last = lease(9, window(0, 60), given());
    accept(store, [add(&last)]).await;
    // A lease that is revived takes its resources again.
    let first = LeaseRecord { version: Version(2), ..lease(0, window(0, 60), given()) };
    let back = replace(&first, with_status(&first.lease, LeaseStatus::Updating));
    assert!(is_taken(&refuse(store, &commit([back.clone()])).await));
    accept(store, [forget(&last), back]).await;
}

pub async fn w9_a_refused_change_of_a_lease_changes_nothing(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2, 3])).await;
    let first = lease(1, window(0, 10), vec![hosts(&[1, 2])]);
    accept(store, [add(&first), add(&lease(2, window(10, 20), vec![hosts(&[2])]))]).await;
    let longer = lease(1, window(0, 11), vec![hosts(&[1, 2])]).lease;
    assert!(is_taken(&refuse(store, &commit([replace(&first, longer)])).await));
    assert!(is_taken(&try_lease(store, &lease(3, window(0, 10), vec![hosts(&[1])])).await));
    let moved = lease(1, window(5, 30), vec![hosts(&[1, 3])]).lease;
    accept(store, [replace(&first, moved)]).await;
    accept(store, [add(&lease(3, window(0, 5), vec![hosts(&[1, 2, 3])]))]).await;
}

/// Even if the host has shrunk, so the lease wouldn't be accepted again.
pub async fn a_lease_can_always_be_shortened(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1])).await;
    let old = lease(1, window(0, 60), vec![slots(&[(1, 4)])]);
    accept(store, [add(&old)]).await;
    let mut small = host(1);
    (small.host.vcpus, small.version) = (4, Version(2));
    let shrunk: HostRecord = small;
    accept(store, [Write::Host { record: Box::new(shrunk), expected: Some(Version::FIRST) }]).await;
    let shorter = lease(1, window(10, 50), vec![slots(&[(1, 3)])]).lease;
    accept(store, [replace(&old, shorter.clone())]).await;
    assert_eq!(loaded(store).await.leases[0].lease, shorter);
    let old = LeaseRecord { version: Version(2), ..lease(1, window(10, 50), vec![slots(&[(1, 3)])]) };
    let longer = lease(1, window(10, 60), vec![slots(&[(1, 3)])]).lease;
    assert!(has_no_room(&refuse(store, &commit([replace(&old, longer)])).await));
    accept(store, [replace(&old, with_status(&shorter, LeaseStatus::Deleting))]).await;
}

/// A host that lacks a resource can still be booked by leases that don't use it.
pub async fn what_is_not_taken_need_not_fit(store: &Arc<dyn Store>) {
    let mut large = host(1);
    large.host.other_resources = elaborate_host(1).host.other_resources;
    accept(store, [add_host(large)]).await;
    let mut special = lease(1, window(0, 60), vec![slots(&[(1, 4)])]);
    special.lease.reservations[0].terms =
        elaborate_lease(1, window(0, 1)).lease.reservations[2].terms.clone();
    accept(store, [add(&special)]).await;
    let lacking = HostRecord { version: Version(2), ..host(1) };
    accept(store, [Write::Host { record: Box::new(lacking), expected: Some(Version::FIRST) }]).await;
    accept(store, [add(&lease(2, window(0, 60), vec![slots(&[(1, 3)])]))]).await;
    special.lease.id.0 = 3;
    assert!(has_no_room(&try_lease(store, &special).await));
}

/// Releases come first, in any order of writes.
pub async fn hosts_change_hands_within_one_commit(store: &Arc<dyn Store>) {
    accept(store, add_hosts([1, 2, 3])).await;
    let [first, second] = [(1, 1), (2, 2)].map(|(n, host)| lease(n, window(0, 60), vec![hosts(&[host])]));
    accept(store, [add(&first), add(&second)]).await;
    let given = |record: &LeaseRecord, ids: &[u64], end| {
        lease(record.lease.id.0, window(0, end), vec![hosts(ids)]).lease
    };
    // Two leases swap hosts.
    accept(store, [replace(&first, given(&first, &[2], 60)), replace(&second, given(&second, &[1], 60))])
        .await;
    // One lease is cut short and another takes the freed time, although its write comes first.
    let [first, second] = [first, second].map(|record| LeaseRecord { version: Version(2), ..record });
    let third = lease(3, window(30, 60), vec![hosts(&[2])]);
    accept(store, [add(&third), replace(&first, given(&first, &[2], 30))]).await;
    // Two reservations of a lease swap hosts.
    let two = lease(4, window(60, 90), vec![hosts(&[1]), slots(&[(2, 4)])]);
    accept(store, [add(&two)]).await;
    let exchanged = lease(4, window(60, 90), vec![hosts(&[2]), slots(&[(1, 4)])]).lease;
    accept(store, [replace(&two, exchanged.clone())]).await;
    let snapshot = loaded(store).await;
    assert_eq!(snapshot.leases[3].lease, exchanged);
    assert_eq!(snapshot.leases[1].lease, given(&second, &[1], 60));
}

/// Hosts are added before leases take them and removed after leases release them, in any order of writes.
pub async fn a_host_comes_and_goes_with_its_lease(store: &Arc<dyn Store>) {
    let record = lease(1, window(0, 60), vec![hosts(&[1]), addresses(&[1])]);
    let writes = [add(&record), add_host(host(1)), Write::AddFloatingIp(floating_ip(1))];
    accept(store, writes).await;
    let gone = [remove_host(1), Write::RemoveFloatingIp(FloatingIpId(1)), forget(&record)];
    accept(store, gone).await;
    let snapshot = loaded(store).await;
    assert!(snapshot.leases.is_empty() && snapshot.hosts.is_empty() && snapshot.floating_ips.is_empty());
}

/// A lease keeps its hosts and addresses whether its window is past, current or future, until it is over.
pub async fn what_is_reserved_cannot_be_removed(store: &Arc<dyn Store>) {
    let removals = || [remove_host(1), remove_host(2), Write::RemoveFloatingIp(FloatingIpId(1))];
    accept(store, add_hosts([1, 2])).await;
    accept(store, [Write::AddFloatingIp(floating_ip(1))]).await;
    let given: Vec<Allocation> = vec![hosts(&[1]), slots(&[(2, 1)]), addresses(&[1])];
    let record = lease(1, window(0, 60), given);
    accept(store, [add(&record)]).await;
    for removal in removals() {
        let refusal = refuse(store, &commit([removal])).await;
        assert!(matches!(refusal, CommitError::InUse { .. }), "{refusal}");
    }
    let over = with_status(&record.lease, LeaseStatus::Terminated);
    accept(store, [replace(&record, over.clone())]).await;
    accept(store, removals()).await;
    assert_eq!(loaded(store).await.leases[0].lease, over, "what a lease had is still known");
}

/// The host or address existed when the caller decided, so the error tells it to decide again.
pub async fn what_does_not_exist_cannot_be_booked(store: &Arc<dyn Store>) {
    for given in [hosts(&[1]), slots(&[(1, 1)]), addresses(&[1])] {
        let refusal = try_lease(store, &lease(1, window(0, 60), vec![given])).await;
        assert!(matches!(refusal, CommitError::Stale { .. }), "{refusal}");
    }
}

/// Offers and waiting requests take nothing. Hosts kept for a held offer are closed to other leases, and pass
/// to its lease in one commit.
pub async fn what_is_offered_is_kept_free_until_it_becomes_a_lease(store: &Arc<dyn Store>) {
    let (group, until) = (OffersId(u128::MAX), at(5));
    let within = Some(window(0, 90));
    let standings = [
        Standing::Offered { group, until, kind: OfferKind::ShorterDuration, of: Some(LeaseId(9)) },
        Standing::Offered { group, until, kind: OfferKind::FewerHosts, of: None },
        Standing::Kept { group, until },
        Standing::Waiting { until, within },
    ];
    let kept = |number: u128| {
        let mut record = lease(number, window(10, 20), vec![hosts(&[1])]);
        record.lease.standing = standings[usize::try_from(number).expect("small") - 1];
        record
    };
    accept(store, add_hosts([1])).await;
    accept(store, [1, 2, 3, 4].map(|number| add(&kept(number)))).await;
    let found = loaded(store).await.leases;
    assert_eq!(found.iter().map(|record| record.lease.standing).collect::<Vec<_>>(), standings);
    assert!(is_taken(&try_lease(store, &lease(5, window(15, 30), vec![hosts(&[1])])).await));
    let firm = Lease { standing: Standing::Firm, ..kept(1).lease };
    let becomes = replace(&kept(1), firm.clone());
    let early = refuse(store, &commit([becomes.clone()])).await;
    assert!(is_taken(&early), "the host is kept for all offers: {early}");
    let forget = |number: u128| Write::ForgetLease { id: LeaseId(number), expected: Version::FIRST };
    accept(store, [becomes, forget(2), forget(3), forget(4)]).await;
    assert_eq!(loaded(store).await.leases.iter().map(|record| &record.lease).collect::<Vec<_>>(), [&firm]);
}
