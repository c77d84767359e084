//! Instances started through the service (CLS-08).

use super::*;
use crate::instance::{InstanceKind, InstanceStatus};
use crate::plan::GuestSize;
use crate::project::{Owner, ProjectId, UserId};

const SEVEN: GuestId = GuestId(7);

pub(super) fn instance(kind: InstanceKind) -> Instance {
    let owner = Owner { project: ProjectId("red".to_owned()), user: UserId("ruth".to_owned()) };
    let size = GuestSize { vcpus: 1, memory_mib: 1024, disk_gib: 10 };
    Instance::new(SEVEN, "web".to_owned(), owner, kind, size, ONE)
}

/// An active lease of host 1 until minute 60, with an instance yet to be started.
fn stage() -> Stage {
    let mut stage = Stage::new(2, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    let lease = &stage.leases[0];
    let kind = InstanceKind::Reserved { lease: lease.id, reservation: lease.reservations[0].id };
    stage.instances.push(instance(kind));
    stage
}

impl Stage {
    pub(super) fn commit_instances(&mut self, changes: &[InstanceChange]) {
        for change in changes {
            match change {
                InstanceChange::Becomes(after) => {
                    let mut known = self.instances.iter_mut();
                    known.find(|instance| instance.id == after.id).expect("there").clone_from(after);
                }
                InstanceChange::Gone(id) => self.instances.retain(|instance| instance.id != *id),
            }
        }
    }

    fn instance(&self) -> &Instance {
        &self.instances[0]
    }
}

#[test]
fn cls_08_d_an_instance_is_started_once_and_is_active_when_it_is_there() {
    let mut stage = stage();
    assert_eq!(stage.perform(1), [Action::StartGuest(ONE, SEVEN)]);
    assert_eq!(stage.instance().status, InstanceStatus::Active);
    assert_eq!(stage.settle(2), []);
}

#[test]
fn one_that_was_started_and_is_not_seen_is_not_started_again() {
    let mut stage = stage();
    stage.history.succeeded(Action::StartGuest(ONE, SEVEN), at(1));
    assert_eq!(stage.settle(2), []);
    assert_eq!(stage.instance().status, InstanceStatus::Active);
    stage.gone.insert(SEVEN);
    assert_eq!(stage.settle(3), []);
    assert_eq!(stage.instances, [], "it has ended by itself");
}

#[test]
fn cls_08_d_an_instance_that_its_owner_deletes_is_destroyed_and_forgotten() {
    let mut stage = stage();
    stage.perform(1);
    stage.instances[0].status = InstanceStatus::Deleting;
    assert_eq!(stage.perform(2), [Action::DestroyGuest(ONE, SEVEN)]);
    assert_eq!((stage.instances.len(), stage.host(1).guests.len()), (0, 0));
    assert_eq!(stage.status(0), LeaseStatus::Active);
}

#[test]
fn one_that_may_be_under_way_is_destroyed_before_it_is_forgotten() {
    let mut stage = stage();
    stage.instances[0].status = InstanceStatus::Deleting;
    assert_eq!(stage.settle(1), [Action::DestroyGuest(ONE, SEVEN)]);
    assert_eq!(stage.instances.len(), 1);
    stage.perform(1);
    assert_eq!(stage.instances, []);
}

#[test]
fn cls_08_a_what_could_not_start_before_the_end_of_its_lease_is_not_started_any_more() {
    let mut stage = stage();
    let performed = stage.perform(60);
    assert!(performed.contains(&Action::DestroyGuest(ONE, SEVEN)), "{performed:?}");
    assert!(!performed.contains(&Action::StartGuest(ONE, SEVEN)), "{performed:?}");
    assert_eq!((stage.instances.len(), stage.status(0)), (0, LeaseStatus::Terminated));
}

#[test]
fn cls_09_instances_go_with_their_lease_or_stay_behind() {
    for (end_action, left) in [(EndAction::DeleteGuests, 0), (EndAction::KeepGuests, 1)] {
        let mut stage = stage();
        stage.leases[0].end_action = end_action;
        stage.perform(1);
        stage.perform(60);
        assert_eq!(stage.host(1).guests.len(), left);
        if left == 0 {
            stage.gone.insert(SEVEN);
        }
        stage.settle(61);
        let kinds: Vec<InstanceKind> = stage.instances.iter().map(|instance| instance.kind).collect();
        assert_eq!(kinds, vec![InstanceKind::Regular; left], "it is no part of the lease any more");
    }
}

#[test]
fn what_cannot_be_started_is_given_up_and_says_why() {
    let mut stage = stage();
    for minute in 1..=3 {
        assert_eq!(stage.instance().status, InstanceStatus::Building);
        stage.history.failed(Action::StartGuest(ONE, SEVEN), at(minute), "no such image");
        stage.settle(minute);
    }
    assert_eq!(stage.instance().status, InstanceStatus::Error);
    assert_eq!(
        stage.instance().reason.as_deref(),
        Some("it could not be started (3 tries)\nit could not be started: no such image")
    );
    assert_eq!(stage.settle(30), []);
    stage.host(1).guests.push(Guest::new(SEVEN, GuestOwner::Other));
    stage.settle(31);
    assert_eq!(stage.instance().status, InstanceStatus::Active, "it was, only nobody heard of it");
}

#[test]
fn an_instance_that_was_moved_is_where_it_was_moved_to() {
    let mut stage = Stage::new(2, Vec::new());
    stage.instances.push(instance(InstanceKind::Regular));
    stage.perform(1);
    let guest = stage.host(1).guests.remove(0);
    stage.host(2).guests.push(guest);
    stage.settle(2);
    assert_eq!((stage.instance().host, stage.instance().status), (TWO, InstanceStatus::Active));
    stage.instances[0].status = InstanceStatus::Deleting;
    assert_eq!(stage.perform(3), [Action::DestroyGuest(TWO, SEVEN)]);
}

#[test]
fn what_is_destroyed_does_not_keep_what_was_kept_for_it_from_its_turn() {
    let kept = GuestId(8);
    let mut stage = Stage::new(1, Vec::new());
    let (status, resumes) = (InstanceStatus::Deleting, Some(kept));
    stage.instances.push(Instance { status, resumes, ..instance(InstanceKind::Preemptible) });
    // Only the first due step is carried out each time.
    let mut turns = Vec::new();
    while let Some(first) = stage.settle(1).first().copied() {
        assert!(turns.len() < 10, "one takes all turns: {turns:?}");
        stage.history.succeeded(first, at(1));
        turns.push(first);
    }
    assert_eq!(turns, [Action::DestroyGuest(ONE, SEVEN), Action::DestroyGuest(ONE, kept)]);
    assert_eq!(stage.instances, []);
    // A guest that is observed is destroyed, even if history says that it already was.
    stage.instances.push(Instance { status, ..instance(InstanceKind::Preemptible) });
    stage.host(1).guests.push(Guest::new(SEVEN, GuestOwner::Preemptible));
    assert_eq!(stage.settle(2), [Action::DestroyGuest(ONE, SEVEN)]);
}

#[test]
fn one_that_is_deleted_is_destroyed_also_where_its_host_was_switched_off_and_not_where_it_has_failed() {
    let mut stage = stage();
    stage.perform(1);
    let deleting = stage.instances[0].becoming(InstanceStatus::Deleting);
    stage.instances[0] = deleting;
    stage.host(1).guests.clear();
    stage.host(1).health = Health::Failed;
    assert_eq!(stage.settle(2), [], "what has failed does not answer, and may still have it");
    stage.asleep.insert(ONE);
    assert_eq!(stage.settle(2), [Action::DestroyGuest(ONE, SEVEN)]);
    stage.history.succeeded(Action::DestroyGuest(ONE, SEVEN), at(2));
    stage.settle(2);
    assert!(stage.instances.is_empty());
}
