//! Reservations that need resources as a whole.

use super::*;

const PREPARE: Action = Action::Prepare(FIRST);
const FINISH: Action = Action::Finish(FIRST);

fn stage(leases: Vec<Lease>) -> Stage {
    Stage { prepares: true, ..Stage::new(2, leases) }
}

#[test]
fn a_reservation_is_prepared_at_once_and_finished_when_its_last_host_was_taken_back() {
    let mut stage = stage(vec![slots(1, window(10, 60), &[(1, 2), (2, 1)])]);
    assert_eq!(stage.perform(0), [PREPARE]);
    assert_eq!(stage.status(0), LeaseStatus::Pending);
    assert_eq!(stage.perform(10), [Action::Grant(ONE, FIRST, 2), Action::Grant(TWO, FIRST, 1)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    assert_eq!(stage.perform(60), [Action::Withdraw(ONE, FIRST), Action::Withdraw(TWO, FIRST), FINISH]);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
    assert_eq!(stage.perform(61), []);
}

#[test]
fn nothing_is_handed_over_before_the_reservation_is_prepared_and_the_lease_says_so() {
    for lease in [slots(1, window(10, 60), &[(1, 2)]), lease(1, window(10, 60), &[1])] {
        let mut stage = stage(vec![lease]);
        stage.history.failed(PREPARE, at(9), "no quota");
        stage.host(1).place = Place::FreePool;
        let mut performed = Vec::new();
        for _ in 0..5 {
            let due = stage.settle(10).into_iter().filter(|action| *action != PREPARE);
            for action in due.collect::<Vec<_>>() {
                stage.take_effect(action, 10);
                performed.push(action);
            }
        }
        let handed = |action: &Action| matches!(action, Action::Hold(..) | Action::Grant(..));
        assert!(!performed.iter().any(handed), "{performed:?}");
        assert_eq!(stage.status(0), LeaseStatus::Starting);
        let reason = stage.leases[0].reason.clone().expect("a reason");
        assert!(for_operator(&reason).contains("no quota"), "{reason}");
        assert_eq!(for_owner(&reason), "a reservation could not be prepared yet (1 try)");
        stage.perform(20);
        assert_eq!((stage.status(0), &stage.leases[0].reason), (LeaseStatus::Active, &None));
    }
}

#[test]
fn what_was_made_for_a_lease_that_is_deleted_goes_before_the_lease_is_forgotten() {
    let mut stage = stage(vec![lease(1, window(10, 60), &[1])]);
    assert_eq!(stage.perform(0), [PREPARE]);
    stage.leases[0] = stage.leases[0].deleted(at(1));
    assert_eq!(stage.settle(1), [FINISH]);
    assert_eq!(stage.leases.len(), 1);
    assert_eq!(stage.perform(1), [FINISH]);
    assert!(stage.leases.is_empty());
}

#[test]
fn what_is_left_of_leases_that_nobody_knows_goes_only_if_it_is_marked() {
    let mut stage = stage(Vec::new());
    let marked = Prepared { marked: true, ..Prepared::default() };
    stage.observed.reservations = [(FIRST, marked.clone()), (SECOND, Prepared::default())].into();
    stage.host(2).slots.insert(FIRST, 1);
    assert_eq!(stage.settle(0), [Action::Withdraw(TWO, FIRST)], "first what it has of hosts");
    stage.host(2).slots.clear();
    assert_eq!(stage.perform(0), [FINISH]);
    assert_eq!(stage.observed.reservations.len(), 1, "it may be somebody else's");
}

#[test]
fn a_reservation_that_becomes_another_is_prepared_again() {
    let mut stage = stage(vec![slots(1, window(10, 60), &[(1, 2)])]);
    stage.perform(0);
    let ReservationTerms::Instances(terms) = &mut stage.leases[0].reservations[0].terms else {
        panic!("room for instances");
    };
    terms.size = InstanceSize::new(4, 1024, 1).expect("a size");
    assert_eq!(stage.perform(1), [PREPARE]);
    assert_eq!(stage.perform(2), []);
}

#[test]
fn where_nothing_is_made_for_reservations_nothing_is_prepared() {
    let mut stage = Stage::new(1, vec![slots(1, window(0, 60), &[(1, 2)])]);
    assert_eq!(stage.perform(0), [Action::Grant(ONE, FIRST, 2)]);
}
