//! Leases with end migration (CLS-09).

use super::*;
use crate::hunt::{Hunt, Move};
use crate::lease_type::LeaseType;

/// An ended lease of host 1 with end migration: guest 7 has been waiting for a target since the end at minute
/// 60.
fn departing() -> Stage {
    let lease = Lease { end_action: EndAction::MoveGuests, ..lease(1, window(0, 60), &[1]) };
    let mut stage = Stage::new(2, vec![lease]);
    stage.perform(0);
    stage.host(1).guests.push(guest(7, GuestOwner::Lease(LeaseId(1))));
    assert_eq!(stage.settle(60), [], "somebody has to say where to");
    assert_eq!(stage.status(0), LeaseStatus::Terminating);
    stage
}

/// A migration plan that moves guest 7 from host 1 to host 2.
fn to_the_second() -> Hunt {
    Hunt { moves: vec![Move { guest: GuestId(7), from: ONE, to: TWO }], ..Hunt::default() }
}

#[test]
fn cls_09_guests_are_moved_away_before_the_host_is_given_back() {
    let mut stage = departing();
    stage.leases[0].hunt = Some(to_the_second());
    let moved = Action::MoveGuest(ONE, GuestId(7), TWO);
    assert_eq!(stage.perform(61), [moved, Action::Release(ONE, FIRST)]);
    assert_eq!((stage.status(0), stage.host(2).guests.len()), (LeaseStatus::Terminated, 1));
}

#[test]
fn cls_09_a_guest_that_can_be_moved_nowhere_stays() {
    let mut stage = departing();
    stage.leases[0].hunt = Some(Hunt::default());
    assert_eq!(stage.perform(61), [Action::Release(ONE, FIRST)]);
    assert_eq!((stage.status(0), stage.host(1).guests.len()), (LeaseStatus::Terminated, 1));
}

#[test]
fn cls_09_who_is_on_the_way_is_waited_for_but_not_for_ever() {
    let mut stage = departing();
    stage.leases[0].hunt = Some(Hunt::default());
    stage.host(1).guests[0].moving_to = Some(TWO);
    assert_eq!(stage.settle(119), []);
    assert_eq!(stage.plan(119).wake_at, Some(at(120)));
    assert_eq!(stage.perform(120), [Action::Release(ONE, FIRST)]);
}

#[test]
fn cls_09_where_a_lease_had_others_moved_is_not_where_its_own_guests_go() {
    let hunted = Lease {
        end_action: EndAction::MoveGuests,
        lease_type: LeaseType::BestEffort { deadline: at(10) },
        ..lease(1, window(0, 60), &[1])
    };
    let mut stage = Stage::new(2, vec![hunted.hunting(Some(to_the_second()))]);
    stage.perform(0);
    assert!(stage.leases[0].hunt.is_some());
    stage.plan(60);
    assert_eq!((stage.status(0), &stage.leases[0].hunt), (LeaseStatus::Terminating, &None));
    assert_eq!(stage.leases[0].deleted(at(60)).hunt, None);
}
