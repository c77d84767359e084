//! Leases with a start deadline (CLS-02 to CLS-04).

use super::*;
use crate::lease::EventKind;
use crate::lease_type::{LeaseState, LeaseType};

/// A lease of these hosts from minute `start` to minute `end`, with the deadline of its type.
fn urgent(lease_type: LeaseType, start: i64, end: i64, hosts: &[u64]) -> Lease {
    Lease { lease_type, ..lease(1, window(start, end), hosts) }
}

fn best_effort(deadline: i64) -> LeaseType {
    LeaseType::BestEffort { deadline: at(deadline) }
}

fn somebodys_guest() -> Guest {
    Guest::new(GuestId(7), GuestOwner::Other)
}

#[test]
fn cls_03_e_a_best_effort_lease_whose_hosts_are_free_is_active_once_it_holds_them_all() {
    let mut stage = Stage::new(2, vec![urgent(best_effort(30), 10, 60, &[1, 2])]);
    assert_eq!(stage.leases[0].state(), LeaseState::InProgress);
    stage.perform(10);
    assert_eq!(stage.leases[0].state(), LeaseState::Active);
    let timeout = stage.leases[0].events().into_iter().find(|event| event.kind == EventKind::Timeout);
    assert_eq!(timeout.map(|event| (event.at, event.status)), Some((at(30), EventStatus::Undone)));
    assert_eq!(stage.perform(40), [], "what has started does not time out");
}

#[test]
fn cls_03_f_a_lease_that_times_out_leaves_no_host_fenced() {
    let mut stage = Stage::new(2, vec![urgent(best_effort(30), 10, 60, &[1, 2])]);
    stage.host(2).guests.push(somebodys_guest());
    stage.perform(10);
    assert_eq!(stage.leases[0].status, LeaseStatus::Starting);
    assert_eq!(stage.perform(29), [], "not a minute too early");
    let undone = stage.perform(30);
    let lease = &stage.leases[0];
    assert_eq!((lease.status, lease.state()), (LeaseStatus::Error, LeaseState::TimedOut));
    assert!(
        lease.reason.as_deref().is_some_and(|why| why.contains("before its timeout: guest")),
        "{lease:?}"
    );
    assert!(!lease.keeps_resources() && lease.consistent());
    assert!(undone.contains(&Action::Unfence(HostId(2))), "{undone:?}");
    assert!(stage.observed.hosts.values().all(|host| host.place == Place::FreePool));
    let timeout = lease.events().into_iter().find(|event| event.kind == EventKind::Timeout);
    assert_eq!(timeout.map(|event| (event.at, event.status)), Some((at(30), EventStatus::Done)));
    stage.perform(60);
    assert_eq!(stage.leases[0].state(), LeaseState::TimedOut, "also when its time is over");
    assert!(stage.leases[0].over());
}

#[test]
fn cls_04_b_a_plan_wakes_at_the_timeout() {
    let deadline = at(30) + SignedDuration::from_secs(7);
    let mut stage = Stage::new(1, vec![urgent(LeaseType::BestEffort { deadline }, 10, 60, &[1])]);
    stage.host(1).guests.push(somebodys_guest());
    stage.perform(10);
    assert_eq!(stage.plan(11).wake_at, Some(deadline));
}

#[test]
fn cls_04_d_what_timed_out_while_nobody_looked_is_not_started() {
    let mut stage = Stage::new(1, vec![urgent(best_effort(30), 10, 60, &[1])]);
    assert_eq!(stage.perform(40), []);
    assert_eq!(stage.leases[0].state(), LeaseState::TimedOut);
}

#[test]
fn cls_02_a_an_immediate_lease_that_cannot_start_is_gone_without_a_trace() {
    let immediate = LeaseType::Immediate { deadline: at(11) };
    let mut stage = Stage::new(2, vec![urgent(immediate, 10, 60, &[1, 2])]);
    stage.host(2).guests.push(somebodys_guest());
    stage.perform(10);
    assert_eq!(stage.leases[0].status, LeaseStatus::Starting);
    stage.perform(11);
    assert_eq!(stage.leases, []);
    assert!(stage.observed.hosts.values().all(|host| host.place == Place::FreePool));
    assert_eq!(stage.host(2).guests, [somebodys_guest()], "whose guest it is does not notice");
}

#[test]
fn cls_02_d_an_immediate_lease_holds_its_hosts_once_it_is_active() {
    let immediate = LeaseType::Immediate { deadline: at(11) };
    let mut stage = Stage::new(2, vec![urgent(immediate, 10, 60, &[1, 2])]);
    stage.perform(10);
    assert_eq!(stage.leases[0].state(), LeaseState::Active);
    assert!(stage.observed.hosts.values().all(|host| matches!(host.place, Place::Held(_))));
    assert_eq!(stage.perform(20), [], "its deadline is past, and it stays");
}
