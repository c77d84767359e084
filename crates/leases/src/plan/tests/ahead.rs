//! Hosts that are cleared of preemptible guests before a lease starts (seed 004).

use super::*;

/// A lease from minute 10 on, and two minutes to clear its host before.
fn stage() -> Stage {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.rules.grace = minutes(1);
    stage.rules.clear_ahead = Some(minutes(2));
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible)];
    stage
}

#[test]
fn pre_08_preemptible_guests_have_left_when_the_lease_starts() {
    let mut stage = stage();
    assert_eq!(stage.plan(7).wake_at, Some(at(8)));
    let stop = Action::StopGuest(ONE, GuestId(7));
    assert_eq!(stage.perform(8), [Action::Fence(ONE), stop]);
    assert_eq!(stage.status(0), LeaseStatus::Pending);
    assert_eq!(stage.plan(8).wake_at, Some(at(9)), "when its grace is over");
    assert_eq!(stage.perform(9), [Action::DeleteGuest(ONE, GuestId(7))]);
    assert_eq!(stage.plan(9).wake_at, Some(at(10)));
    assert_eq!(stage.perform(10), [Action::Verify(ONE, FIRST), Action::Hold(ONE, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
}

#[test]
fn pre_09_the_fence_comes_before_anybody_leaves_and_goes_if_the_lease_does() {
    let mut stage = stage();
    let first = stage.plan(8);
    assert_eq!(first.steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Fence(ONE)]);
    stage.perform(8);
    assert_eq!(stage.host(1).place, Place::Fenced { verified_for: None });
    // Somebody whose clock is behind leaves it as it is.
    assert_eq!(stage.plan(7).steps, []);
    stage.leases.clear();
    let actions: Vec<Action> = stage.plan(9).steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Unfence(ONE)]);
}

#[test]
fn pre_05_nobody_else_is_asked_to_leave_before_the_start() {
    let mut stage = stage();
    stage.host(1).guests = vec![guest(8, GuestOwner::Other), guest(9, GuestOwner::Lease(LeaseId(99)))];
    assert_eq!(stage.perform(8), [Action::Fence(ONE)]);
    assert_eq!(stage.perform(9), []);
}

#[test]
fn nothing_is_done_ahead_where_there_are_no_preemptible_instances() {
    let mut stage = stage();
    stage.rules.clear_ahead = None;
    let plan = stage.plan(9);
    assert_eq!((plan.steps, plan.wake_at), (vec![], Some(at(10))));
}
