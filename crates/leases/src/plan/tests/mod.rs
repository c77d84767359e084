//! Plans for single situations. Tests of whole histories are in `tests/properties`.

use std::num::NonZeroU32;

use super::*;
use crate::host::{Health, NetworkId};
use crate::hunt::Hunt;
use crate::ids::{FloatingIpId, GuestId};
use crate::lease::{Allocation, EndAction};
use crate::lease_pool::{Ratio, Ratios};
use crate::lease_type::LeaseType;
use crate::reason::{for_operator, for_owner};
use crate::requirement::Requirement;
use crate::status::{EventStatus, ReservationStatus};
use crate::terms::{
    Affinity, BeforeEndAction, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms, ReservationTerms,
    Terms,
};
use crate::testing::{at, lease, minutes, new_lease, window};
use crate::window::Window;

mod ahead;
mod backfill;
mod deadlines;
mod delays;
mod departures;
mod hunts;
mod instances;
mod lifetimes;
mod ratios;
mod reservations;

/// State of a test: leases, observations and history.
struct Stage {
    leases: Vec<Lease>,
    observed: Observed,
    history: History,
    rules: PlanRules,
    instances: Vec<Instance>,
    gone: BTreeSet<GuestId>,
    asleep: BTreeSet<HostId>,
    others_leaving: BTreeMap<GuestId, Timestamp>,
    prepares: bool,
    remedy: Option<&'static str>,
}

impl Stage {
    fn new(hosts: u64, leases: Vec<Lease>) -> Self {
        let hosts = (1..=hosts).map(|id| (HostId(id), ObservedHost::free())).collect();
        let observed = Observed { hosts, ..Observed::default() };
        Self {
            leases,
            observed,
            history: History::default(),
            rules: PlanRules::default(),
            instances: Vec::new(),
            gone: BTreeSet::new(),
            asleep: BTreeSet::new(),
            others_leaving: BTreeMap::new(),
            prepares: false,
            remedy: None,
        }
    }

    fn host(&mut self, id: u64) -> &mut ObservedHost {
        self.observed.hosts.get_mut(&HostId(id)).expect("there")
    }

    fn plan(&mut self, now: i64) -> Plan {
        let world = World::new(&self.observed, &self.history, &self.rules, at(now));
        let instances: Vec<&Instance> = self.instances.iter().collect();
        let (gone, asleep, others_leaving) = (&self.gone, &self.asleep, &self.others_leaving);
        let (prepares, remedy) = (self.prepares, self.remedy);
        let world = World { instances: &instances, gone, asleep, others_leaving, prepares, remedy, ..world };
        let mut plan = plan(&self.leases, world);
        let lease_of = |id| self.leases.iter().find(|lease| lease.reservation(id).is_some());
        let (steps, wake_at) = plan_reservations(self.leases.iter(), lease_of, world);
        plan.steps.extend(steps);
        plan.wake_at = plan.wake_at.into_iter().chain(wake_at).min();
        self.commit_instances(&plan.instances);
        for change in &plan.changes {
            match change {
                LeaseChange::Becomes(lease) => {
                    self.leases
                        .iter_mut()
                        .filter(|old| old.id == lease.id)
                        .for_each(|old| old.clone_from(lease));
                }
                LeaseChange::Forgotten(id) => self.leases.retain(|lease| lease.id != *id),
            }
        }
        plan
    }

    /// Plans until nothing changes anymore, and returns the actions due then.
    fn settle(&mut self, now: i64) -> Vec<Action> {
        for _ in 0..10 {
            let plan = self.plan(now);
            if plan.changes.is_empty() && plan.instances.is_empty() {
                return plan.due(at(now)).map(|step| step.action).collect();
            }
        }
        panic!("does not settle");
    }

    /// Performs due actions, as a fleet would, until no action is due.
    fn perform(&mut self, now: i64) -> Vec<Action> {
        let mut performed = Vec::new();
        for _ in 0..20 {
            let due = self.settle(now);
            if due.is_empty() {
                return performed;
            }
            for action in due {
                self.take_effect(action, now);
                self.history.succeeded(action, at(now));
                performed.push(action);
            }
        }
        panic!("does not end: {performed:?}");
    }

    fn take_effect(&mut self, action: Action, now: i64) {
        match action {
            Action::Fence(id) => self.host(id.0).place = Place::Fenced { verified_for: None },
            Action::Verify(id, reservation) => {
                self.host(id.0).place = Place::Fenced { verified_for: Some(reservation) };
            }
            Action::Hold(id, reservation) => self.host(id.0).place = Place::Held(reservation),
            Action::Release(id, _) | Action::Unfence(id) => {
                let host = self.host(id.0);
                host.place = Place::FreePool;
                host.overcommit = host.overcommit.map(|_| Overcommit::default());
            }
            Action::SetRatios(id, _, ratios) => {
                let told =
                    |ratio: Option<Ratio>| ratio.map(|ratio| Told { ratio: Some(ratio), before: Ratio::ONE });
                self.host(id.0).overcommit =
                    Some(Overcommit { cpu: told(ratios.cpu), ram: told(ratios.ram) });
            }
            Action::StopGuest(id, guest) => {
                let mut guests = self.host(id.0).guests.iter_mut();
                guests.find(|g| g.id == guest).expect("there").stopping_since = Some(at(now));
            }
            Action::ResumeGuest(id, guest) => {
                let mut guests = self.host(id.0).guests.iter_mut();
                let guest = guests.find(|g| g.id == guest).expect("there");
                (guest.stopping_since, guest.has_shut_down) = (None, false);
            }
            Action::StartGuest(id, guest) => {
                let instance = self.instances.iter().find(|instance| instance.id == guest).expect("there");
                let owner = instance.kind.guest_owner();
                self.host(id.0).guests.push(Guest::new(guest, owner));
            }
            Action::DeleteGuest(id, guest) | Action::DestroyGuest(id, guest) => {
                self.host(id.0).guests.retain(|g| g.id != guest);
            }
            Action::MoveGuest(id, guest, to) => {
                let guests = &mut self.host(id.0).guests;
                let position = guests.iter().position(|g| g.id == guest).expect("there");
                let moved = guests.remove(position);
                self.host(to.0).guests.push(moved);
            }
            Action::Grant(id, reservation, count) => {
                self.host(id.0).slots.insert(reservation, count);
            }
            Action::Withdraw(id, reservation) => {
                self.host(id.0).slots.remove(&reservation);
            }
            Action::Assign(ip, reservation) => {
                self.observed.floating_ips.insert(ip, reservation);
            }
            Action::Unassign(ip, _) => {
                self.observed.floating_ips.remove(&ip);
            }
            Action::Prepare(id) => {
                let mut reservations = self.leases.iter().flat_map(|lease| &lease.reservations);
                let terms = reservations.find(|reservation| reservation.id == id).map(|known| &known.terms);
                let complete = terms.and_then(Recipe::of);
                self.observed
                    .reservations
                    .insert(id, Prepared { marked: true, complete, ..Prepared::default() });
            }
            Action::Finish(id) => _ = self.observed.reservations.remove(&id),
            Action::Snapshot(..) | Action::PowerOn(_) | Action::PowerOff(_) => {}
        }
    }

    fn status(&self, lease: usize) -> LeaseStatus {
        self.leases[lease].status
    }
}

fn guest(id: u128, owner: GuestOwner) -> Guest {
    Guest::new(GuestId(id), owner)
}

fn slots(number: u128, window: Window, on: &[(u64, u32)]) -> Lease {
    let asked = InstancesTerms {
        size: InstanceSize::new(8, 1024, 1).expect("a size"),
        amount: NonZeroU32::new(on.iter().map(|(_, n)| n).sum()).expect("some"),
        affinity: Affinity::Any,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    };
    let terms = Terms::new(window, None, vec![ReservationTerms::Instances(asked)]).expect("terms");
    let on = on.iter().map(|(host, count)| (HostId(*host), *count)).collect();
    Lease::new(new_lease(number, 1), terms, vec![Allocation::Slots(on)], None)
}

const FIRST: ReservationId = ReservationId(10);
const SECOND: ReservationId = ReservationId(20);
const ONE: HostId = HostId(1);
const TWO: HostId = HostId(2);

#[test]
fn a_host_is_fenced_verified_and_held_and_then_the_lease_is_active() {
    let mut stage = Stage::new(2, vec![lease(1, window(10, 60), &[1])]);
    assert_eq!(stage.plan(9), Plan { wake_at: Some(at(10)), ..stage.plan(9) });
    assert!(stage.settle(9).is_empty());
    let performed = stage.perform(10);
    assert_eq!(performed, [Action::Fence(ONE), Action::Verify(ONE, FIRST), Action::Hold(ONE, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    assert_eq!(stage.perform(60), [Action::Release(ONE, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
    assert!(stage.leases[0].over() && stage.leases[0].consistent());
    assert_eq!(stage.plan(61), Plan::default());
}

#[test]
fn a_preemptible_guest_has_its_grace_time_and_is_then_deleted() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.rules.grace = minutes(5);
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible)];
    let stop = Action::StopGuest(ONE, GuestId(7));
    assert_eq!(stage.perform(10), [Action::Fence(ONE), stop]);
    assert_eq!(stage.plan(14).wake_at, Some(at(15)));
    assert!(stage.settle(14).is_empty());
    let delete = Action::DeleteGuest(ONE, GuestId(7));
    assert_eq!(stage.perform(15), [delete, Action::Verify(ONE, FIRST), Action::Hold(ONE, FIRST)]);
}

#[test]
fn nobody_is_asked_to_leave_a_host_that_somebody_else_blocks() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible), guest(8, GuestOwner::Other)];
    assert_eq!(stage.perform(10), [Action::Fence(ONE)]);
    stage.host(1).guests.retain(|guest| guest.id != GuestId(8));
    assert_eq!(stage.settle(20), [Action::StopGuest(ONE, GuestId(7))]);
}

#[test]
fn a_guest_that_was_asked_to_leave_in_vain_may_stay() {
    let mut stage = Stage::new(2, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible), guest(8, GuestOwner::Preemptible)];
    stage.settle(10);
    stage.host(1).place = Place::Fenced { verified_for: None };
    let stop = |id| Action::StopGuest(ONE, GuestId(id));
    assert_eq!(stage.settle(10), [stop(7), stop(8)]);
    stage.take_effect(stop(7), 10);
    stage.leases[0].reservations[0].allocation = Allocation::Hosts([TWO].into());
    let performed = stage.perform(10);
    let resume = Action::ResumeGuest(ONE, GuestId(7));
    let resumed = performed.iter().filter(|action| matches!(action, Action::ResumeGuest(..)));
    assert_eq!(resumed.collect::<Vec<_>>(), [&resume]);
    let unfenced = performed.iter().position(|action| *action == Action::Unfence(ONE));
    assert!(unfenced < performed.iter().position(|action| *action == resume), "{performed:?}");
    // A slot lease needs the guest's place.
    stage.host(1).guests[0].stopping_since = Some(at(10));
    stage.leases.push(slots(2, window(10, 60), &[(1, 1)]));
    stage.others_leaving.insert(GuestId(7), at(10));
    assert!(!stage.settle(10).contains(&resume));
}

#[test]
fn a_host_is_not_held_while_a_guest_is_there_even_if_it_was_verified() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).place = Place::Fenced { verified_for: Some(FIRST) };
    stage.host(1).guests = vec![guest(7, GuestOwner::Preemptible)];
    assert_eq!(stage.settle(10), [Action::StopGuest(ONE, GuestId(7))]);
}

#[test]
fn the_guest_of_somebody_else_is_not_touched_and_the_lease_says_so() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Other)];
    assert_eq!(stage.perform(10), [Action::Fence(ONE)]);
    assert_eq!(stage.status(0), LeaseStatus::Starting);
    let reason = for_operator(stage.leases[0].reason.as_deref().expect("a reason"));
    assert!(reason.starts_with("guest ") && reason.contains("on host 1 and cannot be removed"), "{reason}");
    stage.host(1).guests.clear();
    stage.perform(20);
    assert_eq!((stage.status(0), &stage.leases[0].reason), (LeaseStatus::Active, &None));
}

#[test]
fn owners_are_told_to_ask_for_one_host_fewer_only_where_the_lease_can_give_the_host_back() {
    let told = |lease: Lease| {
        let mut stage = Stage::new(2, vec![lease]);
        stage.host(1).guests = vec![guest(7, GuestOwner::Other)];
        stage.perform(10);
        for_owner(stage.leases[0].reason.as_deref().expect("a reason")).to_owned()
    };
    let ask = |advice: &str| {
        format!(
            "an instance of others that cannot be removed is on host 1, and no other host is free: {advice}"
        )
    };
    let operator = ask("ask the operator to move the instance");
    let fewer = ask("ask for one host fewer, or ask the operator to move the instance");
    let two = lease(1, window(10, 60), &[1, 2]);
    let best_effort = Lease { lease_type: LeaseType::BestEffort { deadline: at(60) }, ..two.clone() };
    let hunting = best_effort.clone().hunting(Some(Hunt::default()));
    let mut grown = two.clone();
    grown.status = LeaseStatus::Active;
    grown.events.start = EventStatus::Done;
    grown.reservations[0].status = ReservationStatus::Active;
    assert_eq!([two, best_effort].map(told), [fewer.clone(), fewer]);
    let single = lease(1, window(10, 60), &[1]);
    assert_eq!([single, hunting, grown].map(told), [operator.clone(), operator.clone(), operator]);
}

#[test]
fn w3_a_lease_that_cannot_get_on_holds_up_no_other() {
    let mut stage = Stage::new(2, vec![lease(1, window(10, 60), &[1]), lease(2, window(10, 60), &[2])]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Other)];
    stage.perform(10);
    assert_eq!((stage.status(0), stage.status(1)), (LeaseStatus::Starting, LeaseStatus::Active));
}

#[test]
fn w4_a_plan_goes_on_from_what_is_observed() {
    let starting = |mut lease: Lease| {
        lease.status = LeaseStatus::Starting;
        lease.events.start = EventStatus::InProgress;
        lease
    };
    let mut stage = Stage::new(2, vec![starting(lease(1, window(10, 60), &[1, 2]))]);
    stage.host(1).place = Place::Held(FIRST);
    stage.host(2).place = Place::Fenced { verified_for: None };
    assert_eq!(stage.perform(12), [Action::Verify(TWO, FIRST), Action::Hold(TWO, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    stage.leases[0].status = LeaseStatus::Terminating;
    stage.leases[0].events.end = EventStatus::InProgress;
    stage.host(1).place = Place::FreePool;
    assert_eq!(stage.perform(60), [Action::Release(TWO, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
}

#[test]
fn w5_after_an_outage_ends_come_before_starts_on_the_same_host() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1]), lease(2, window(60, 120), &[1])]);
    stage.perform(0);
    stage.host(1).guests = vec![guest(7, GuestOwner::Lease(LeaseId(1)))];
    let performed = stage.perform(90);
    let delete = Action::DeleteGuest(ONE, GuestId(7));
    let hold = Action::Hold(ONE, SECOND);
    assert_eq!(
        performed,
        [delete, Action::Release(ONE, FIRST), Action::Fence(ONE), Action::Verify(ONE, SECOND), hold]
    );
    assert_eq!((stage.status(0), stage.status(1)), (LeaseStatus::Terminated, LeaseStatus::Active));
}

#[test]
fn w22_a_failed_step_is_tried_again_and_the_lease_says_why_it_waits() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    assert_eq!(stage.settle(10), [Action::Fence(ONE)]);
    stage.history.failed(Action::Fence(ONE), at(10), "no route to host");
    assert!(stage.settle(10).is_empty());
    let reason = stage.leases[0].reason.as_deref().expect("a reason");
    assert_eq!(for_owner(reason), "a host could not be handed over yet (1 try)");
    assert_eq!(for_operator(reason), "could not fence host 1 (1 try): no route to host");
    let wake_at = stage.plan(10).wake_at.expect("an instant");
    assert_eq!(wake_at.duration_since(at(10)).as_secs(), 5);
    stage.perform(11);
    assert_eq!((stage.status(0), &stage.leases[0].reason), (LeaseStatus::Active, &None));
}

#[test]
fn a_lease_that_never_started_ends_in_error_and_frees_its_hosts() {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Other)];
    stage.perform(10);
    stage.history.failed(Action::Unfence(ONE), at(59), "timed out");
    assert_eq!(stage.perform(60), [Action::Unfence(ONE)]);
    let lease = &stage.leases[0];
    assert_eq!((lease.status, lease.over(), lease.consistent()), (LeaseStatus::Error, true, true));
    assert_eq!(lease.reservations[0].status, ReservationStatus::Deleted);
    let reason = for_operator(lease.reason.as_deref().expect("a reason"));
    assert!(reason.starts_with("the lease could not start before its end: guest "), "{reason}");
}

#[test]
fn a_lease_cut_to_nothing_ends_quietly() {
    let mut stage = Stage::new(1, vec![Lease { window: window(10, 10), ..lease(1, window(10, 60), &[1]) }]);
    assert!(stage.perform(10).is_empty());
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
}

#[test]
fn guests_stay_at_the_end_of_a_lease_that_says_so() {
    let keep = Lease { end_action: EndAction::KeepGuests, ..lease(1, window(0, 60), &[1]) };
    let mut stage = Stage::new(1, vec![keep]);
    stage.perform(0);
    stage.host(1).guests = vec![guest(7, GuestOwner::Lease(LeaseId(1)))];
    assert_eq!(stage.perform(60), [Action::Release(ONE, FIRST)]);
    assert_eq!(stage.host(1).guests.len(), 1);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
    let stayed =
        "its instances have stayed on host 1, which is closed for new leases as long as they are there";
    assert_eq!(stage.leases[0].reason.as_deref().map(for_operator), Some(stayed));
    stage.host(1).guests.clear();
    stage.perform(61);
    assert_eq!(stage.leases[0].reason, None);
}

#[test]
fn a_deleted_lease_gives_everything_back_and_is_forgotten() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    stage.leases[0] = stage.leases[0].deleted(at(10));
    stage.host(1).health = Health::Failed;
    assert!(stage.settle(10).is_empty());
    assert_eq!(stage.leases[0].reason.as_deref().map(for_operator), Some("host 1 is down"));
    stage.host(1).health = Health::Up;
    assert_eq!(stage.perform(20), [Action::Release(ONE, FIRST)]);
    assert!(stage.leases.is_empty());
}

#[test]
fn a_guest_that_was_started_just_before_the_release_goes_before_the_lease_is_over() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    // The host returns to the free pool before the guest was observed.
    stage.host(1).place = Place::FreePool;
    stage.host(1).guests.push(guest(7, GuestOwner::Lease(LeaseId(1))));
    assert_eq!(stage.settle(60), [Action::DeleteGuest(HostId(1), GuestId(7))]);
    assert_eq!(stage.status(0), LeaseStatus::Terminating);
    stage.perform(60);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
    assert!(stage.host(1).guests.is_empty());
}

#[test]
fn a_lease_ends_although_one_of_its_hosts_is_down_and_the_host_is_freed_later() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    stage.host(1).health = Health::Failed;
    assert!(stage.perform(60).is_empty());
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
    stage.host(1).health = Health::Up;
    assert_eq!(stage.perform(70), [Action::Release(ONE, FIRST)]);
}

#[test]
fn a_host_whose_release_was_begun_is_released_and_handed_over_again_if_its_lease_wants_it_after_all() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    stage.host(1).place = Place::Releasing(FIRST);
    stage.host(1).guests = vec![guest(7, GuestOwner::Lease(LeaseId(1)))];
    assert_eq!(
        stage.perform(10),
        [
            Action::Release(ONE, FIRST),
            Action::Fence(ONE),
            Action::Verify(ONE, FIRST),
            Action::Hold(ONE, FIRST)
        ]
    );
    assert_eq!(stage.host(1).guests.len(), 1);
}

#[test]
fn a_deleted_lease_is_not_forgotten_before_a_release_that_was_begun_succeeds() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    stage.host(1).place = Place::Releasing(FIRST);
    stage.leases[0] = stage.leases[0].deleted(at(10));
    stage.settle(10);
    assert_eq!(stage.status(0), LeaseStatus::Deleting);
    assert_eq!(stage.perform(10), [Action::Release(ONE, FIRST)]);
    assert!(stage.leases.is_empty());
}

#[test]
fn w20_a_host_that_was_exchanged_is_given_back_and_its_successor_handed_over() {
    let mut stage = Stage::new(2, vec![lease(1, window(0, 60), &[1])]);
    stage.perform(0);
    stage.host(1).health = Health::Failed;
    stage.leases[0].reservations[0].allocation = Allocation::Hosts([TWO].into());
    assert_eq!(stage.perform(10), [Action::Fence(TWO), Action::Verify(TWO, FIRST), Action::Hold(TWO, FIRST)]);
    stage.host(1).health = Health::Up;
    assert_eq!(stage.perform(20), [Action::Release(ONE, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
}

#[test]
fn slots_are_withdrawn_before_others_are_granted() {
    let mut stage =
        Stage::new(1, vec![slots(1, window(0, 60), &[(1, 2)]), slots(2, window(60, 90), &[(1, 2)])]);
    assert_eq!(stage.perform(0), [Action::Grant(ONE, FIRST, 2)]);
    stage.host(1).guests = vec![guest(7, GuestOwner::Lease(LeaseId(1)))];
    let delete = Action::DeleteGuest(ONE, GuestId(7));
    let withdraw = Action::Withdraw(ONE, FIRST);
    assert_eq!(stage.perform(60), [delete, withdraw, Action::Grant(ONE, SECOND, 2)]);
    assert_eq!((stage.status(0), stage.status(1)), (LeaseStatus::Terminated, LeaseStatus::Active));
}

#[test]
fn slots_are_not_granted_beside_those_of_a_lease_that_is_late_to_end() {
    let late = Lease { before_end: Some(at(50)), ..slots(1, window(0, 60), &[(1, 2)]) };
    let mut stage = Stage::new(1, vec![late, slots(2, window(60, 90), &[(1, 2)])]);
    stage.perform(0);
    let first = stage.plan(60);
    assert_eq!((stage.status(0), stage.status(1)), (LeaseStatus::Active, LeaseStatus::Starting));
    assert_eq!(first.steps, []);
    assert_eq!(stage.perform(60), [Action::Withdraw(ONE, FIRST), Action::Grant(ONE, SECOND, 2)]);
}

#[test]
fn a_host_goes_from_slots_to_a_whole_lease_and_back() {
    let leases = vec![
        slots(1, window(0, 60), &[(1, 2)]),
        lease(2, window(60, 90), &[1]),
        slots(3, window(90, 99), &[(1, 1)]),
    ];
    let mut stage = Stage::new(1, leases);
    for now in [0, 60, 90, 99] {
        stage.perform(now);
    }
    let all: Vec<_> = stage.leases.iter().map(|lease| lease.status).collect();
    assert_eq!(all, [LeaseStatus::Terminated; 3]);
    assert_eq!(*stage.host(1), ObservedHost::free());
}

/// A lease of a host from minute 0 to 60 with snapshots due from minute 50.
fn with_snapshot(number: u128, host: u64) -> Lease {
    let mut asked = HostsTerms::new(1, 1).expect("a range");
    asked.before_end = BeforeEndAction::Snapshot;
    let terms = Terms::new(window(0, 60), Some(at(50)), vec![ReservationTerms::Hosts(asked)]);
    let given = vec![Allocation::Hosts([HostId(host)].into())];
    Lease::new(new_lease(number, 1), terms.expect("terms"), given, None)
}

#[test]
fn snapshots_that_another_clock_has_begun_wait_until_it_is_time_for_them() {
    let mut stage = Stage::new(1, vec![with_snapshot(1, 1)]);
    stage.perform(0);
    stage.leases[0].events.before_end = EventStatus::InProgress;
    assert_eq!(stage.perform(49), []);
    assert_eq!(stage.plan(49).wake_at, Some(at(50)));
    assert_eq!(stage.perform(50), [Action::Snapshot(ONE, FIRST)]);
}

#[test]
fn snapshots_are_made_before_the_end_even_after_an_outage_and_given_up_if_they_fail() {
    let mut stage = Stage::new(2, vec![with_snapshot(1, 1), with_snapshot(2, 2)]);
    stage.perform(0);
    let fails = Action::Snapshot(TWO, SECOND);
    for _ in 0..3 {
        stage.history.failed(fails, at(65), "no space");
    }
    let performed = stage.perform(70);
    let snapshot = Action::Snapshot(ONE, FIRST);
    assert_eq!(
        performed.iter().filter(|a| matches!(a, Action::Snapshot(..))).collect::<Vec<_>>(),
        [&snapshot]
    );
    let order = |wanted| performed.iter().position(|action| *action == wanted).expect("performed");
    assert!(order(snapshot) < order(Action::Release(ONE, FIRST)));
    let events: Vec<_> = stage.leases.iter().map(|lease| (lease.status, lease.events.before_end)).collect();
    let terminated = LeaseStatus::Terminated;
    assert_eq!(events, [(terminated, EventStatus::Done), (terminated, EventStatus::Error)]);
}

/// A lease of host 1, with one guest, that images its guests when it ends.
fn imaged() -> Stage {
    let end_action = EndAction::SnapshotGuests;
    let mut stage = Stage::new(1, vec![Lease { end_action, ..lease(1, window(0, 60), &[1]) }]);
    stage.perform(0);
    stage.host(1).guests.push(guest(7, GuestOwner::Lease(LeaseId(1))));
    assert_eq!(stage.perform(59), []);
    stage
}

#[test]
fn cls_09_images_are_made_at_the_end_before_guests_are_deleted() {
    let mut stage = imaged();
    // A snapshot from before the end doesn't count.
    stage.history.succeeded(Action::Snapshot(ONE, FIRST), at(50));
    assert_eq!(stage.settle(60), [Action::Snapshot(ONE, FIRST)]);
    stage.history.succeeded(Action::Snapshot(ONE, FIRST), at(60));
    assert_eq!(stage.perform(60), [Action::DeleteGuest(ONE, GuestId(7)), Action::Release(ONE, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
}

#[test]
fn cls_09_images_wait_for_the_end_if_another_clock_has_begun_with_it() {
    let mut stage = imaged();
    stage.leases[0].status = LeaseStatus::Terminating;
    stage.leases[0].events.end = EventStatus::InProgress;
    assert_eq!(stage.settle(59), []);
    assert_eq!(stage.plan(59).wake_at, Some(at(60)));
    assert_eq!(stage.settle(60), [Action::Snapshot(ONE, FIRST)]);
}

#[test]
fn cls_09_images_that_cannot_be_made_are_given_up_after_the_end() {
    let mut stage = imaged();
    let snapshot = Action::Snapshot(ONE, FIRST);
    for _ in 0..3 {
        stage.history.failed(snapshot, at(50), "no space");
    }
    let plan = stage.plan(60);
    let plan = if plan.changes.is_empty() { plan } else { stage.plan(60) };
    assert!(plan.steps.iter().any(|step| step.action == snapshot), "once more, after the end: {plan:?}");
    stage.history.failed(snapshot, at(60), "no space");
    assert_eq!(stage.perform(60), [Action::DeleteGuest(ONE, GuestId(7)), Action::Release(ONE, FIRST)]);
}

#[test]
fn cls_09_a_lease_that_is_deleted_images_its_guests_as_well() {
    let mut stage = imaged();
    stage.leases[0] = stage.leases[0].deleted(at(30));
    assert_eq!(stage.settle(30), [Action::Snapshot(ONE, FIRST)]);
    stage.perform(30);
    assert_eq!(stage.leases, []);
}

const ADDRESS: FloatingIpId = FloatingIpId(5);

/// A lease of floating IP `ADDRESS` from minute `start` to 60.
fn with_address(start: i64) -> Lease {
    let asked = FloatingIpsTerms::new(NetworkId("n".into()), 1, []).expect("terms");
    let terms = Terms::new(window(start, 60), None, vec![ReservationTerms::FloatingIps(asked)]);
    let given = vec![Allocation::FloatingIps([ADDRESS].into())];
    Lease::new(new_lease(1, 1), terms.expect("terms"), given, None)
}

#[test]
fn what_another_clock_has_begun_to_hand_over_is_not_taken_back_before_the_start() {
    let mut stage = Stage::new(0, vec![with_address(10)]);
    assert_eq!(stage.perform(9), []);
    stage.leases[0].status = LeaseStatus::Starting;
    stage.leases[0].events.start = EventStatus::InProgress;
    assert_eq!(stage.perform(9), [Action::Assign(ADDRESS, FIRST)]);
    assert_eq!(stage.perform(9), []);
}

#[test]
fn addresses_are_assigned_and_taken_back() {
    let mut stage = Stage::new(0, vec![with_address(0)]);
    assert_eq!(stage.perform(0), [Action::Assign(ADDRESS, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    assert_eq!(stage.perform(60), [Action::Unassign(ADDRESS, FIRST)]);
    assert_eq!(stage.status(0), LeaseStatus::Terminated);
}

#[test]
fn an_address_is_taken_back_before_another_lease_gets_it() {
    let ip = ADDRESS;
    let asked = FloatingIpsTerms::new(NetworkId("n".into()), 1, []).expect("terms");
    let lease = |number, window| {
        let asked = vec![ReservationTerms::FloatingIps(asked.clone())];
        let terms = Terms::new(window, None, asked).expect("terms");
        Lease::new(new_lease(number, 1), terms, vec![Allocation::FloatingIps([ip].into())], None)
    };
    let mut stage = Stage::new(0, vec![lease(1, window(0, 60)), lease(2, window(60, 90))]);
    stage.perform(0);
    let taken_back = Action::Unassign(ip, FIRST);
    assert_eq!(stage.settle(60), [taken_back]);
    let reason = stage.leases[1].reason.as_deref();
    assert!(reason.is_some_and(|reason| reason.ends_with("is being taken back from who had it")));
    assert_eq!(stage.perform(60), [taken_back, Action::Assign(ip, SECOND)]);
}

#[test]
fn a_lease_without_any_host_left_waits_and_says_so() {
    let mut stage = Stage::new(1, vec![lease(1, window(0, 60), &[])]);
    assert!(stage.perform(0).is_empty());
    assert_eq!(stage.status(0), LeaseStatus::Starting);
    assert!(
        stage.leases[0].reason.as_deref().is_some_and(|reason| reason.starts_with("nothing is available"))
    );
}
