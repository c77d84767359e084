//! Guests with an overdue deletion.

use super::*;

#[test]
fn a_guest_that_is_not_deleted_is_named_after_a_minute_with_a_remedy_and_owners_read_no_identifiers() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.remedy = Some("delete {guest} by hand");
    stage.rules.grace = minutes(2);
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible)];
    stage.host(1).place = Place::Fenced { verified_for: None };
    stage.host(1).guests[0].stopping_since = Some(at(10));
    let delete = Action::DeleteGuest(ONE, GuestId(7));
    for (now, steps) in [(11, vec![]), (12, vec![delete])] {
        assert_eq!(stage.settle(now), steps);
        let reason = stage.leases[0].reason.as_deref().expect("a reason");
        assert!(reason.contains("are leaving"), "{reason}");
    }
    assert_eq!(stage.plan(12).wake_at, Some(at(13)));
    assert_eq!(stage.settle(13), [delete]);
    let reason = stage.leases[0].reason.clone().expect("a reason");
    let id = GuestId(7);
    assert_eq!(
        for_operator(&reason),
        format!("guest {id} on host 1 has not been deleted since 1970-01-01 00:12 UTC: delete {id} by hand")
    );
    assert_eq!(
        for_owner(&reason),
        "an instance on one of its hosts was to be deleted at 1970-01-01 00:12 UTC and is still there, and no other \
         host is free"
    );
    // A guest that has shut down has no grace time left.
    stage.host(1).guests[0].has_shut_down = true;
    stage.settle(20);
    let reason = stage.leases[0].reason.as_deref().expect("a reason");
    assert!(reason.contains("since 1970-01-01 00:10 UTC"), "{reason}");
}

#[test]
fn a_guest_of_an_ended_lease_that_is_not_deleted_is_named_to_both_leases() {
    let mut ending = lease(1, window(0, 10), &[1]);
    ending.status = LeaseStatus::Active;
    ending.events.start = EventStatus::Done;
    ending.reservations[0].status = ReservationStatus::Active;
    let mut stage = Stage::new(1, vec![ending, lease(2, window(10, 60), &[1])]);
    stage.host(1).place = Place::Held(FIRST);
    stage.host(1).guests = vec![guest(7, GuestOwner::Lease(LeaseId(1)))];
    stage.settle(10);
    assert!(stage.leases[1].reason.as_deref().is_some_and(|reason| reason.contains("being taken back")));
    stage.settle(11);
    for lease in &stage.leases {
        let reason = for_operator(lease.reason.as_deref().expect("a reason"));
        let expected =
            format!("guest {} on host 1 has not been deleted since 1970-01-01 00:10 UTC", GuestId(7));
        assert_eq!(reason, expected);
    }
}
