//! Preemptible guests at the end of their lifetime.

use super::*;
use crate::instance::{Cause, Departure, InstanceKind, InstanceStatus};
use crate::preemption::{Class, EndState};

const SEVEN: GuestId = GuestId(7);

/// A preemptible instance that has run on host 1 since minute 0, with a lifetime limit of 60 minutes and two
/// minutes to shut down.
fn stage() -> Stage {
    let mut stage = Stage::new(1, vec![]);
    stage.rules = PlanRules { grace: minutes(2), max_lifetime: Some(minutes(60)), ..stage.rules };
    stage.instances.push(instances::instance(InstanceKind::Preemptible));
    assert_eq!(stage.perform(0), [Action::StartGuest(ONE, SEVEN)]);
    stage
}

#[test]
fn an_instance_whose_lifetime_is_over_leaves_with_notice_and_is_gone_by_then() {
    let mut stage = stage();
    assert_eq!(stage.plan(1).wake_at, Some(at(58)));
    assert_eq!(stage.perform(57), []);
    assert_eq!(stage.perform(58), [Action::StopGuest(ONE, SEVEN)]);
    let departure = stage.instances[0].departure;
    assert_eq!(departure, Some(Departure::at_once(Cause::Lifetime, at(58), minutes(2))));
    assert_eq!(stage.perform(59), [], "it is not resumed");
    assert_eq!(stage.plan(59).wake_at, Some(at(60)));
    assert_eq!(stage.perform(60), [Action::DeleteGuest(ONE, SEVEN)]);
    stage.gone.insert(SEVEN);
    assert_eq!((stage.settle(60), stage.instances.len()), (vec![], 0));
}

#[test]
fn each_class_has_its_notice_before_the_end_of_the_lifetime() {
    let mut stage = stage();
    stage.instances[0].class = Class::new("batch", minutes(10), EndState::Delete).ok();
    assert_eq!(stage.perform(49), []);
    assert_eq!(stage.perform(50), [Action::StopGuest(ONE, SEVEN)]);
    assert_eq!(stage.perform(60), [Action::DeleteGuest(ONE, SEVEN)]);
}

#[test]
fn what_comes_first_counts_the_lease_or_the_end_of_the_lifetime() {
    for (asked_at, cause) in [(57, Cause::Lease), (90, Cause::Lifetime)] {
        let mut stage = stage();
        stage.instances[0].departure = Some(Departure::for_lease(at(asked_at), at(asked_at + 2)));
        stage.plan(58);
        assert_eq!(stage.instances[0].departure.map(|departure| departure.cause), Some(cause));
    }
}

#[test]
fn lifetimes_count_from_the_start_and_only_those_of_running_preemptible_instances_are_limited() {
    let mut stage = stage();
    stage.rules.max_lifetime = None;
    assert_eq!((stage.perform(600), stage.plan(600).wake_at), (vec![], None));
    stage.rules.max_lifetime = Some(minutes(60));
    stage.instances[0].kind = InstanceKind::Regular;
    assert_eq!(stage.perform(600), []);
    stage.instances[0].kind = InstanceKind::Preemptible;
    stage.instances[0].launched_at = Some(at(590));
    assert_eq!(stage.perform(600), []);
    stage.instances[0].launched_at = Some(at(0));
    stage.instances[0].status = InstanceStatus::Queued;
    stage.host(1).guests.clear();
    assert_eq!(stage.perform(600), []);
    assert_eq!(stage.instances[0].departure, None);
}

#[test]
fn guests_that_others_have_started_leave_as_well_if_the_fleet_says_since_when_they_run() {
    let mut stage = stage();
    stage.instances.clear();
    let launched = |id, owner| Guest { launched_at: Some(at(0)), ..guest(id, owner) };
    let unknown = guest(8, GuestOwner::Preemptible);
    stage.host(1).guests =
        vec![launched(7, GuestOwner::Preemptible), unknown, launched(9, GuestOwner::Other)];
    assert_eq!(stage.plan(1).wake_at, Some(at(58)));
    assert_eq!(stage.perform(58), [Action::StopGuest(ONE, SEVEN)]);
    assert_eq!(stage.perform(59), [], "it is not resumed");
    assert_eq!(stage.perform(60), [Action::DeleteGuest(ONE, SEVEN)]);
    assert_eq!(stage.host(1).guests.len(), 2);
}

#[test]
fn an_instance_on_a_host_of_a_lease_leaves_too_when_its_lifetime_is_over() {
    let mut stage = Stage::new(1, vec![Lease { backfill: true, ..lease(1, window(0, 90), &[1]) }]);
    stage.rules =
        PlanRules { grace: minutes(2), backfill: true, max_lifetime: Some(minutes(60)), ..stage.rules };
    stage.perform(0);
    let backfills = Some(stage.leases[0].id);
    stage.instances.push(Instance { backfills, ..instances::instance(InstanceKind::Preemptible) });
    assert_eq!(stage.perform(1), [Action::StartGuest(ONE, SEVEN)]);
    assert_eq!(stage.perform(58), []);
    assert_eq!(stage.perform(59), [Action::StopGuest(ONE, SEVEN)]);
    assert_eq!(stage.perform(61), [Action::DeleteGuest(ONE, SEVEN)]);
}
