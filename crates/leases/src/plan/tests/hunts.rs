//! Leases that have guests of other projects moved away (CLS-03).

use super::*;
use crate::hunt::{Cost, Hunt, Move};
use crate::lease_type::{LeaseState, LeaseType};

const THREE: HostId = HostId(3);

/// A lease of hosts 1 and 2 from minute 10, with an allowance of ten minutes for its hunt, which moves guests
/// 7, 8 and 9 to host 3.
fn hunting() -> Lease {
    let mov = |guest, from| Move { guest: GuestId(guest), from: HostId(from), to: THREE };
    let hunt = Hunt {
        moves: vec![mov(7, 1), mov(8, 2), mov(9, 2)],
        cost: Cost::default(),
        allowance: SignedDuration::from_mins(10),
    };
    let lease_type = LeaseType::BestEffort { deadline: at(40) };
    Lease { lease_type, before_end: Some(at(65)), ..lease(1, window(10, 70), &[1, 2]) }.hunting(Some(hunt))
}

fn stage() -> Stage {
    let mut stage = Stage::new(3, vec![hunting()]);
    stage.host(1).guests.push(guest(7, GuestOwner::Other));
    stage.host(2).guests.extend([guest(8, GuestOwner::Other), guest(9, GuestOwner::Other)]);
    stage
}

fn moving(guest: u128, from: HostId) -> Action {
    Action::MoveGuest(from, GuestId(guest), THREE)
}

#[test]
fn cls_03_c_hosts_that_are_cleared_are_fenced_from_the_first_moment() {
    assert_eq!(stage().settle(10), [Action::Fence(ONE), Action::Fence(TWO)]);
}

#[test]
fn cls_03_e_all_hosts_are_handed_over_and_then_the_lease_is_active() {
    let mut stage = stage();
    let performed = stage.perform(14);
    assert_eq!(performed.iter().filter(|action| matches!(action, Action::MoveGuest(..))).count(), 3);
    assert_eq!(stage.host(3).guests.len(), 3);
    let lease = &stage.leases[0];
    assert_eq!((lease.status, lease.state()), (LeaseStatus::Active, LeaseState::Active));
    assert_eq!(lease.window, window(14, 64), "as long as it was asked for, from when it has its hosts");
    assert_eq!(lease.before_end, Some(at(59)));
}

#[test]
fn a_hunt_that_takes_too_long_is_at_the_expense_of_the_lease() {
    let mut stage = stage();
    stage.perform(35);
    assert_eq!(stage.leases[0].window, window(35, 70));
}

#[test]
fn a_lease_that_is_shortened_to_nothing_while_it_hunts_stays_where_it_was() {
    let mut stage = stage();
    stage.plan(10);
    stage.leases[0].window = window(10, 10);
    stage.leases[0].before_end = Some(at(10));
    stage.plan(12);
    assert_eq!((stage.leases[0].status, stage.leases[0].window), (LeaseStatus::Active, window(10, 10)));
}

#[test]
fn no_more_guests_move_at_once_than_the_operator_lets() {
    let mut stage = stage();
    for id in [1, 2] {
        stage.host(id).place = Place::Fenced { verified_for: None };
    }
    assert_eq!(stage.settle(10), [moving(7, ONE), moving(8, TWO)]);
    stage.host(1).guests.clear();
    let due = stage.settle(10);
    assert_eq!(due, [moving(8, TWO), moving(9, TWO), Action::Verify(ONE, FIRST)]);
    stage.rules.moves_at_once = 1;
    assert_eq!(stage.settle(10), [moving(8, TWO), Action::Verify(ONE, FIRST)]);
}

#[test]
fn cls_03_d_a_move_that_fails_is_tried_again_and_the_lease_says_so() {
    let mut stage = stage();
    stage.perform_but(10, moving(7, ONE));
    stage.history.failed(moving(7, ONE), at(10), "no route");
    let plan = stage.plan(10);
    let retried = plan.steps.iter().find(|step| step.action == moving(7, ONE)).expect("planned");
    assert!(retried.not_before > at(10));
    stage.plan(10);
    let reason = stage.leases[0].reason.clone().expect("a reason");
    assert_eq!(for_owner(&reason), "an instance could not be moved out of the way yet (1 try)");
    let all = for_operator(&reason);
    assert!(all.starts_with("could not move guest") && all.ends_with("no route"), "{reason}");
}

#[test]
fn cls_03_f_a_hunt_that_times_out_moves_nobody_any_more_and_leaves_no_fence() {
    let mut stage = stage();
    stage.perform_but(10, moving(7, ONE));
    assert_eq!(stage.settle(39), [moving(7, ONE)], "not a minute too early");
    let undone = stage.perform(40);
    assert_eq!(stage.leases[0].state(), LeaseState::TimedOut);
    assert!(!undone.iter().any(|action| matches!(action, Action::MoveGuest(..))), "{undone:?}");
    assert!(stage.observed.hosts.values().all(|host| host.place == Place::FreePool));
    assert_eq!(stage.host(3).guests.len(), 2, "who has moved stays");
}

#[test]
fn cls_03_g_a_hunt_that_is_deleted_moves_nobody_any_more_and_leaves_no_fence() {
    let mut stage = stage();
    stage.perform_but(10, moving(7, ONE));
    stage.leases[0] = stage.leases[0].deleted(at(11));
    let undone = stage.perform(11);
    assert_eq!(stage.leases, []);
    assert!(!undone.iter().any(|action| matches!(action, Action::MoveGuest(..))), "{undone:?}");
    assert!(stage.observed.hosts.values().all(|host| host.place == Place::FreePool));
}

#[test]
fn a_guest_that_no_move_concerns_is_in_the_way_unless_it_is_moving() {
    let mut stage = stage();
    stage.host(1).guests[0].id = GuestId(70);
    stage.perform(10);
    assert!(stage.leases[0].reason.as_deref().is_some_and(|why| why.contains("cannot be removed")));
    stage.host(1).guests[0].moving_to = Some(THREE);
    stage.perform(10);
    assert_eq!(stage.leases[0].reason, None);
}

impl Stage {
    /// Performs all due actions except `left`, which is never carried out.
    fn perform_but(&mut self, now: i64, left: Action) {
        for _ in 0..20 {
            for action in self.settle(now).into_iter().filter(|action| *action != left) {
                self.take_effect(action, now);
                self.history.succeeded(action, at(now));
            }
        }
        assert_eq!(self.settle(now), [left]);
    }
}

#[test]
fn cls_03_e_a_lease_that_has_started_has_nobody_moved_any_more() {
    let mut stage = stage();
    stage.perform(14);
    // The lease gets host 1 back after a failure, and a guest with a planned move is there again.
    stage.host(1).place = Place::FreePool;
    stage.host(3).guests.retain(|guest| guest.id != GuestId(7));
    stage.host(1).guests.push(guest(7, GuestOwner::Other));
    let performed = stage.perform(20);
    assert!(!performed.iter().any(|action| matches!(action, Action::MoveGuest(..))), "{performed:?}");
    let reason = stage.leases[0].reason.clone().unwrap_or_default();
    assert!(reason.contains("guest"), "{reason}");
    stage.host(1).guests.clear();
    stage.perform(30);
    assert_eq!(stage.host(1).place, Place::Held(FIRST));
}

#[test]
fn nobody_is_asked_to_leave_before_it_is_certain_which_hosts_the_lease_takes() {
    let mut stage = stage();
    let stop = Action::StopGuest(ONE, GuestId(5));
    stage.host(1).guests.push(guest(5, GuestOwner::Preemptible));
    stage.perform_but(10, Action::Fence(TWO));
    assert!(!stage.settle(10).contains(&stop), "somebody may start on host 2 still");
    // A guest that isn't in the migration plan has started, so the lease will be replanned.
    stage.host(2).place = Place::Fenced { verified_for: None };
    stage.host(2).guests.push(guest(6, GuestOwner::Other));
    assert!(!stage.settle(10).contains(&stop));
    stage.host(2).guests.retain(|guest| guest.id != GuestId(6));
    assert!(stage.settle(10).contains(&stop));
}
