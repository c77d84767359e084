//! Preemptible instances on leased hosts that their lease doesn't use (PRE-11).

use super::*;
use crate::instance::{Cause, Departure, InstanceKind, InstanceStatus};

const OTHERS: GuestId = GuestId(7);
const OWN: GuestId = GuestId(8);

/// A lease of host 1 until minute 60 that allows backfill, with a preemptible instance on the host.
fn stage() -> Stage {
    let mut stage = Stage::new(1, vec![Lease { backfill: true, ..lease(1, window(0, 60), &[1]) }]);
    stage.rules = PlanRules { grace: minutes(2), backfill: true, ..stage.rules };
    stage.perform(0);
    let backfills = Some(stage.leases[0].id);
    stage.instances.push(Instance { backfills, ..instances::instance(InstanceKind::Preemptible) });
    assert_eq!(stage.perform(1), [Action::StartGuest(ONE, OTHERS)]);
    stage
}

fn departure(stage: &Stage) -> Option<Departure> {
    stage.instances.iter().find(|instance| instance.id == OTHERS).and_then(|instance| instance.departure)
}

/// Asserts that the backfill instance is asked to leave at minute 5 and is deleted at minute 7.
#[track_caller]
fn leaves(stage: &mut Stage) {
    assert_eq!(stage.perform(5), [Action::StopGuest(ONE, OTHERS)]);
    assert_eq!(departure(stage), Some(Departure::at_once(Cause::Holder, at(5), minutes(2))));
    assert_eq!(stage.plan(6).wake_at, Some(at(7)));
    assert!(stage.perform(7).contains(&Action::DeleteGuest(ONE, OTHERS)));
}

#[test]
fn pre_11_they_stay_as_long_as_the_lease_lets_them_and_does_not_use_its_host() {
    let mut stage = stage();
    assert_eq!(stage.perform(30), []);
    assert_eq!(stage.perform(60), [Action::Release(ONE, FIRST)]);
    let instance = &stage.instances[0];
    assert_eq!((instance.status, instance.backfills), (InstanceStatus::Active, None));
    assert_eq!(stage.host(1).guests.len(), 1);
}

#[test]
fn pre_11_they_leave_when_the_lease_or_the_operator_does_not_let_them_any_more() {
    let mut withdrawn = stage();
    withdrawn.leases[0].backfill = false;
    leaves(&mut withdrawn);
    let mut not_allowed = stage();
    not_allowed.rules.backfill = false;
    leaves(&mut not_allowed);
}

#[test]
fn pre_11_they_leave_when_a_guest_of_the_lease_is_there_and_it_waits_for_them_if_it_is_an_instance() {
    let mut seen = stage();
    let lease = seen.leases[0].id;
    seen.host(1).guests.push(guest(9, GuestOwner::Lease(lease)));
    leaves(&mut seen);
    let mut stage = stage();
    let kind = InstanceKind::Reserved { lease, reservation: FIRST };
    stage.instances.push(Instance { id: OWN, ..instances::instance(kind) });
    leaves(&mut stage);
    assert!(
        stage.host(1).guests.iter().any(|guest| guest.id == OWN),
        "it was started as soon as they had gone"
    );
}

#[test]
fn pre_11_who_was_not_started_yet_is_not_started_on_a_host_that_its_lease_uses() {
    let mut stage = stage();
    stage.instances[0].status = InstanceStatus::Building;
    stage.host(1).guests.clear();
    stage.history = History::default();
    let kind = InstanceKind::Reserved { lease: stage.leases[0].id, reservation: FIRST };
    stage.instances.push(Instance { id: OWN, ..instances::instance(kind) });
    assert_eq!(stage.perform(5), [Action::StartGuest(ONE, OWN)]);
    assert_eq!(stage.instances[0].status, InstanceStatus::Error);
    let reason = stage.instances[0].reason.as_deref();
    assert_eq!(reason, Some("whoever has leased its host needs its place before it could be started"));
}

#[test]
fn pre_11_they_leave_before_the_next_lease_of_the_host_and_go_on_leaving_when_theirs_is_over() {
    let mut stage = stage();
    stage.rules.clear_ahead = Some(minutes(3));
    stage.leases.push(lease(2, window(60, 90), &[1]));
    stage.instances[0].departure = Some(Departure::for_lease(at(57), at(60)));
    assert_eq!(stage.perform(56), []);
    assert_eq!(stage.perform(57), [Action::StopGuest(ONE, OTHERS)]);
    assert_eq!(stage.perform(59), [Action::DeleteGuest(ONE, OTHERS)]);
    // An instance asked to leave because the lease wants its host back still has to leave after the host
    // returns to the free pool.
    let mut stage = stage_that_is_over_while_it_leaves();
    assert_eq!(stage.perform(60), [Action::Release(ONE, FIRST)]);
    assert_eq!(stage.perform(61), [Action::DeleteGuest(ONE, OTHERS)]);
}

fn stage_that_is_over_while_it_leaves() -> Stage {
    let mut stage = stage();
    stage.leases[0].backfill = false;
    assert_eq!(stage.perform(59), [Action::StopGuest(ONE, OTHERS)]);
    stage
}

#[test]
fn pre_11_a_preemptible_guest_that_nobody_has_started_here_leaves_as_well() {
    let mut stage = stage();
    stage.host(1).guests.push(guest(9, GuestOwner::Preemptible));
    assert_eq!(stage.perform(4), []);
    stage.leases[0].backfill = false;
    let performed = stage.perform(5);
    assert!(performed.contains(&Action::StopGuest(ONE, GuestId(9))), "{performed:?}");
}

#[test]
fn pre_11_they_are_told_when_the_host_goes_to_another_reservation_of_its_lease() {
    let mut stage = stage();
    let lost = &mut stage.leases[0].reservations[0];
    let heir = Reservation { id: SECOND, ..lost.clone() };
    lost.allocation = Allocation::Hosts(BTreeSet::new());
    stage.leases[0].reservations.push(heir);
    let performed = stage.perform(5);
    assert_eq!(
        departure(&stage),
        Some(Departure::at_once(Cause::Holder, at(5), minutes(2))),
        "{performed:?}"
    );
    assert!(performed.contains(&Action::StopGuest(ONE, OTHERS)), "{performed:?}");
    let performed = stage.perform(7);
    assert!(performed.contains(&Action::DeleteGuest(ONE, OTHERS)), "{performed:?}");
    assert_eq!(stage.host(1).place, Place::Held(SECOND));
}
