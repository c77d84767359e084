//! Clearing hosts of preemptible guests before a lease starts (PRE-08).

use super::*;
use crate::instance::{Cause, Departure, InstanceKind, InstanceStatus};
use crate::lease::EventKind;
use crate::preemption::{Class, EndState};

/// A lease that starts at minute 10, with its host cleared two minutes ahead.
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
    let event = |stage: &Stage| stage.leases[0].before_start.map(|event| (event.ahead, event.status));
    assert_eq!(event(&stage), None, "it was made before that was wanted");
    assert_eq!(stage.perform(7), []);
    assert_eq!(event(&stage), Some((minutes(2), EventStatus::Undone)));
    assert_eq!(stage.plan(7).wake_at, Some(at(8)));
    let stop = Action::StopGuest(ONE, GuestId(7));
    assert_eq!(stage.perform(8), [Action::Fence(ONE), stop]);
    assert_eq!(stage.status(0), LeaseStatus::Pending);
    assert_eq!(event(&stage), Some((minutes(2), EventStatus::InProgress)));
    let first = stage.leases[0].events()[0];
    assert_eq!((first.kind, first.at), (EventKind::BeforeStartLease, at(8)));
    assert_eq!(stage.plan(8).wake_at, Some(at(9)), "when its grace is over");
    assert_eq!(stage.perform(9), [Action::DeleteGuest(ONE, GuestId(7))]);
    assert_eq!(stage.plan(9).wake_at, Some(at(10)));
    assert_eq!(event(&stage), Some((minutes(2), EventStatus::Done)));
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
    // A service with a clock slightly behind leaves the fence in place.
    assert_eq!(stage.plan(7).steps, []);
    stage.leases.clear();
    let actions: Vec<Action> = stage.plan(9).steps.iter().map(|step| step.action).collect();
    assert_eq!(actions, [Action::Unfence(ONE)]);
}

#[test]
fn pre_08_the_event_is_armed_again_if_the_lease_is_put_off_and_done_without_result_if_it_never_starts() {
    let mut stage = stage();
    stage.perform(8);
    let status = |stage: &Stage| stage.leases[0].before_start.expect("begun").status;
    assert_eq!(status(&stage), EventStatus::InProgress);
    stage.leases[0].window = window(20, 60);
    stage.perform(9);
    assert_eq!(status(&stage), EventStatus::Undone);
    stage.host(1).health = Health::Failed;
    for minute in [18, 20, 60] {
        stage.perform(minute);
    }
    assert_eq!((stage.status(0), status(&stage)), (LeaseStatus::Error, EventStatus::Error));
}

#[test]
fn pre_05_nobody_else_is_asked_to_leave_before_the_start() {
    let mut stage = stage();
    stage.host(1).guests = vec![guest(8, GuestOwner::Other), guest(9, GuestOwner::Lease(LeaseId(99)))];
    assert_eq!(stage.perform(8), [Action::Fence(ONE)]);
    assert_eq!(stage.perform(9), []);
}

/// Host 1 with three preemptible instances. The first is preempted for a lease of four slots that starts at
/// minute 10.
fn shared() -> Stage {
    let asked = InstancesTerms {
        size: InstanceSize::new(1, 1024, 10).expect("a size"),
        amount: NonZeroU32::new(4).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    };
    let terms = Terms::new(window(10, 60), None, vec![ReservationTerms::Instances(asked)]).expect("terms");
    let lease = Lease::new(new_lease(1, 1), terms, vec![Allocation::Slots([(ONE, 4)].into())], None);
    let mut stage = Stage { leases: vec![lease], ..stage() };
    stage.host(1).guests = [7, 8, 9].map(|id| guest(id, GuestOwner::Preemptible)).into();
    for id in [7, 8, 9] {
        let departure = (id == 7).then(|| Departure::for_lease(at(8), at(10)));
        let preemptible = instances::instance(InstanceKind::Preemptible);
        let status = if id == 9 { InstanceStatus::Building } else { InstanceStatus::Active };
        stage.instances.push(Instance { id: GuestId(id), departure, status, ..preemptible });
    }
    stage
}

#[test]
fn pre_06_those_who_are_preempted_for_room_on_a_host_leave_before_it_is_granted_and_the_others_stay() {
    let mut stage = shared();
    assert_eq!(stage.perform(7), []);
    assert_eq!(stage.perform(8), [Action::StopGuest(ONE, GuestId(7))]);
    let event = |stage: &Stage| stage.leases[0].before_start.map(|event| event.status);
    assert_eq!((stage.host(1).place, event(&stage)), (Place::FreePool, Some(EventStatus::InProgress)));
    assert_eq!(stage.perform(9), [Action::DeleteGuest(ONE, GuestId(7))]);
    stage.gone.insert(GuestId(7));
    assert_eq!(stage.perform(9), []);
    assert_eq!(event(&stage), Some(EventStatus::Done));
    assert_eq!(stage.perform(10), [Action::Grant(ONE, FIRST, 4)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    assert_eq!(stage.host(1).guests.len(), 2);
}

#[test]
fn pre_12_room_is_not_granted_while_somebody_is_in_the_way_and_the_lease_says_so() {
    let mut stage = shared();
    stage.rules.clear_ahead = None;
    stage.instances[0].departure = Some(Departure::for_lease(at(10), at(10)));
    stage.settle(10);
    let settled = stage.leases[0].clone();
    assert_eq!(stage.plan(10).changes, [], "what it says does not change with the time");
    assert_eq!(stage.leases[0], settled);
    assert_eq!(stage.perform(10), [Action::StopGuest(ONE, GuestId(7))]);
    assert_eq!(stage.status(0), LeaseStatus::Starting);
    let reason = stage.leases[0].reason.clone().expect("it waits");
    assert_eq!(for_operator(&reason), "preemptible instances on host 1 are leaving");
    assert_eq!(stage.perform(11), [Action::DeleteGuest(ONE, GuestId(7)), Action::Grant(ONE, FIRST, 4)]);
    assert_eq!((stage.status(0), &stage.leases[0].reason), (LeaseStatus::Active, &None));
}

/// Like `shared`, but guest 7 isn't an instance. It is preempted all the same.
fn shared_with_others() -> Stage {
    let mut stage = shared();
    stage.instances.retain(|instance| instance.id != GuestId(7));
    stage.others_leaving.insert(GuestId(7), at(10));
    stage
}

#[test]
fn pre_06_guests_that_others_have_started_leave_before_room_is_granted_and_the_others_stay() {
    let mut stage = shared_with_others();
    stage.host(1).guests.push(guest(6, GuestOwner::Preemptible));
    assert_eq!(stage.perform(7), []);
    assert_eq!(stage.plan(7).wake_at, Some(at(8)));
    assert_eq!(stage.perform(8), [Action::StopGuest(ONE, GuestId(7))]);
    let event = |stage: &Stage| stage.leases[0].before_start.map(|event| event.status);
    assert_eq!((stage.host(1).place, event(&stage)), (Place::FreePool, Some(EventStatus::InProgress)));
    assert_eq!(stage.plan(8).wake_at, Some(at(9)), "it has its grace");
    assert_eq!(stage.perform(9), [Action::DeleteGuest(ONE, GuestId(7))]);
    assert_eq!(stage.perform(9), []);
    assert_eq!(event(&stage), Some(EventStatus::Done));
    assert_eq!(stage.perform(10), [Action::Grant(ONE, FIRST, 4)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    assert_eq!(stage.host(1).guests.len(), 3);
}

#[test]
fn pre_12_room_is_not_granted_while_somebody_elses_guest_is_in_the_way_and_the_lease_says_so() {
    let mut stage = shared_with_others();
    stage.rules.clear_ahead = None;
    assert_eq!(stage.settle(9), []);
    assert_eq!(stage.perform(10), [Action::StopGuest(ONE, GuestId(7))]);
    let reason = stage.leases[0].reason.clone().expect("it waits");
    assert_eq!(for_operator(&reason), "preemptible instances on host 1 are leaving");
    assert_eq!(stage.perform(11), [Action::DeleteGuest(ONE, GuestId(7)), Action::Grant(ONE, FIRST, 4)]);
    assert_eq!((stage.status(0), &stage.leases[0].reason), (LeaseStatus::Active, &None));
}

#[test]
fn pre_12_room_is_not_granted_until_those_have_gone_that_go_anyway_and_it_needs_their_place() {
    let destroyed = |instance: &mut Instance| instance.status = InstanceStatus::Deleting;
    let displaced = |instance: &mut Instance| {
        instance.departure = Some(Departure::at_once(Cause::OwnProject, at(9), SignedDuration::from_mins(5)));
    };
    for (goes, seen) in
        [(&destroyed as &dyn Fn(&mut Instance), true), (&destroyed, false), (&displaced, true)]
    {
        let mut stage = shared();
        let going = stage.instances.iter_mut().find(|instance| instance.id == GuestId(7)).expect("there");
        goes(going);
        stage.others_leaving.insert(GuestId(7), at(10));
        if !seen {
            // The guest is being started and might appear at any moment.
            stage.host(1).guests.retain(|guest| guest.id != GuestId(7));
        }
        let granted = |steps: &[Action]| steps.contains(&Action::Grant(ONE, FIRST, 4));
        let steps = stage.settle(10);
        assert!(!granted(&steps), "{steps:?}");
        let reason = stage.leases[0].reason.clone().expect("it waits");
        assert_eq!(for_operator(&reason), "preemptible instances on host 1 are leaving");
        stage.host(1).guests.retain(|guest| guest.id != GuestId(7));
        stage.instances.retain(|instance| instance.id != GuestId(7));
        assert!(granted(&stage.perform(10)), "it has gone");
    }
    let mut stage = shared();
    destroyed(&mut stage.instances[0]);
    assert!(stage.settle(10).contains(&Action::Grant(ONE, FIRST, 4)), "nobody needs its place");
}

#[test]
fn pre_12_room_is_not_granted_before_its_time_either_while_somebody_is_in_the_way() {
    let destroyed = |stage: &mut Stage| stage.instances[0].status = InstanceStatus::Deleting;
    for goes in [&|_: &mut Stage| (), &destroyed as &dyn Fn(&mut Stage)] {
        let mut stage = shared();
        stage.others_leaving.insert(GuestId(7), at(10));
        goes(&mut stage);
        // Another service, with a clock ahead of ours, has reached minute 10.
        stage.leases[0].status = LeaseStatus::Starting;
        stage.leases[0].events.start = EventStatus::InProgress;
        let steps = stage.settle(9);
        assert!(!steps.contains(&Action::Grant(ONE, FIRST, 4)), "{steps:?}");
        stage.host(1).guests.retain(|guest| guest.id != GuestId(7));
        stage.instances.retain(|instance| instance.id != GuestId(7));
        assert_eq!(stage.settle(9), [Action::Grant(ONE, FIRST, 4)]);
    }
}

#[test]
fn pre_05_whoever_is_not_preemptible_stays_whatever_is_said_of_it() {
    let mut stage = shared_with_others();
    stage.host(1).guests[0].owner = GuestOwner::Other;
    assert_eq!(stage.perform(8), []);
    assert_eq!(stage.perform(10), [Action::Grant(ONE, FIRST, 4)]);
}

#[test]
fn pre_09_who_is_preempted_before_it_was_started_is_not_started() {
    let mut stage = shared();
    stage.instances.retain(|instance| instance.id == GuestId(7));
    stage.instances[0].status = InstanceStatus::Building;
    stage.host(1).guests.clear();
    assert_eq!(stage.perform(8), []);
    let reason = stage.instances[0].reason.as_deref();
    assert_eq!(reason, Some("a lease needs its place before it could be started"));
    assert_eq!(stage.instances[0].status, InstanceStatus::Error);
    assert_eq!(stage.perform(10), [Action::Grant(ONE, FIRST, 4)]);
}

#[test]
fn nothing_is_done_ahead_where_there_are_no_preemptible_instances() {
    let mut stage = stage();
    stage.rules.clear_ahead = None;
    let plan = stage.plan(9);
    assert_eq!((plan.steps, plan.wake_at), (vec![], Some(at(10))));
}

#[test]
fn pre_06_those_with_another_gap_are_moved_some_at_once_before_the_rest_is_asked_to_leave() {
    let mut stage = stage();
    (stage.rules.clear_ahead, stage.rules.moving_time) = (Some(minutes(5)), minutes(3));
    stage.rules.moves_at_once = 1;
    stage.observed.hosts.insert(HostId(2), ObservedHost::free());
    stage.host(1).guests = [6, 7, 8].map(|id| guest(id, GuestOwner::Preemptible)).into();
    for id in [6, 7, 8] {
        let departure =
            Departure { moves_to: (id != 8).then_some(HostId(2)), ..Departure::for_lease(at(8), at(10)) };
        let preemptible = instances::instance(InstanceKind::Preemptible);
        let status = InstanceStatus::Active;
        stage.instances.push(Instance { id: GuestId(id), departure: Some(departure), status, ..preemptible });
    }
    assert_eq!(stage.perform(4), []);
    let moves = |guest| Action::MoveGuest(ONE, GuestId(guest), HostId(2));
    assert_eq!(stage.plan(5).steps.iter().map(|step| step.action).collect::<Vec<_>>(), [Action::Fence(ONE)]);
    stage.host(1).place = Place::Fenced { verified_for: None };
    assert_eq!(stage.plan(5).steps.iter().map(|step| step.action).collect::<Vec<_>>(), [moves(6)]);
    stage.host(1).guests[0].moving_to = Some(HostId(2));
    assert_eq!(stage.plan(6).steps, [], "one at once");
    assert_eq!(stage.plan(6).wake_at, Some(at(8)));
    let moved = stage.host(1).guests.remove(0);
    stage.host(2).guests.push(Guest { moving_to: None, ..moved });
    let mut due = |now| stage.plan(now).steps.iter().map(|step| step.action).collect::<Vec<_>>();
    assert_eq!(due(7), [moves(7)]);
    assert_eq!(due(8), [7, 8].map(|id| Action::StopGuest(ONE, GuestId(id))), "who is still there");
}

#[test]
fn pre_07_each_has_the_notice_of_its_class_and_is_asked_so_much_before_the_start() {
    let mut stage = stage();
    (stage.rules.clear_ahead, stage.rules.longest_notice) = (Some(minutes(6)), minutes(5));
    stage.host(1).guests = [6, 7, 8].map(|id| guest(id, GuestOwner::Preemptible)).into();
    for (id, notice) in [(6, Some(5)), (7, None)] {
        let class = notice.and_then(|notice| Class::new("batch", minutes(notice), EndState::Delete).ok());
        let asked_at = stage.rules.asks_at(at(10), stage.rules.notice(class.as_ref()));
        let departure = Some(Departure::for_lease(asked_at, at(10)));
        let preemptible = instances::instance(InstanceKind::Preemptible);
        let status = InstanceStatus::Active;
        stage.instances.push(Instance { id: GuestId(id), departure, class, status, ..preemptible });
    }
    let actions = |stage: &mut Stage, now| {
        let plan = stage.plan(now);
        plan.steps.iter().map(|step| step.action).collect::<Vec<_>>()
    };
    stage.host(1).place = Place::Fenced { verified_for: None };
    let stops = |id| Action::StopGuest(ONE, GuestId(id));
    assert_eq!(actions(&mut stage, 4), [stops(6)], "a minute is to spare, as for everybody");
    stage.host(1).guests[0].stopping_since = Some(at(4));
    assert_eq!(actions(&mut stage, 7), []);
    assert_eq!(actions(&mut stage, 8), [stops(7), stops(8)], "the usual minute, also of who is no instance");
    for guest in &mut stage.host(1).guests[1..] {
        guest.stopping_since = Some(at(8));
    }
    let deletes = |id| Action::DeleteGuest(ONE, GuestId(id));
    assert_eq!(actions(&mut stage, 9), [6, 7, 8].map(deletes));
    stage.rules.slack = minutes(1);
    assert_eq!(actions(&mut stage, 9), [], "by somebody else's clock they were asked a minute later");
}
