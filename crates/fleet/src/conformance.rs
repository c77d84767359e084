//! The conformance suite for drivers. Each check creates its own fleet and panics if the driver breaks a
//! promise.

use std::collections::BTreeSet;
use std::future::Future;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use leases::host::{FloatingIp, Health, NetworkId};
use leases::ids::{FloatingIpId, GuestId, HostId, LeaseId, ReservationId};
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::{Action, GuestOwner, ObservedHost, Overcommit, Place, Powered};
use leases::project::{ProjectId, UserId};
use leases::requirement::Requirement;
use leases::terms::{Affinity, InstanceSize, InstancesTerms, ReservationTerms};
use leases::window::Window;

use crate::{About, Fleet, FleetError, LeaseFacts, OperationKey, Outcome, perform};

/// A fleet under test, and control of its machines.
#[async_trait]
pub trait Subject: Send + Sync {
    /// A fleet with at least two healthy, empty machines, numbered from 1 and not adopted.
    fn fleet(&self) -> &dyn Fleet;

    /// Starts a guest on a host directly, bypassing any scheduler, as if it was left from earlier use of the
    /// host.
    async fn guest_appears(&self, host: HostId, owner: GuestOwner) -> GuestId;

    /// Begins to start a preemptible guest on a host in the free pool. It is observed after
    /// [`Subject::guests_land`].
    async fn guest_sets_out(&self, host: HostId) -> GuestId;

    /// Completes the starts of guests.
    async fn guests_land(&self);

    /// Ends a guest.
    async fn guest_ends(&self, guest: GuestId);

    /// Waits a while for pending operations.
    async fn wait(&self);

    async fn perform(&self, action: Action, key: &OperationKey) -> Result<Outcome, FleetError> {
        let address = self.address();
        perform(self.fleet(), action, About { address: Some(&address), ..About::default() }, key).await
    }

    /// Project of the suite's reservations.
    fn project(&self) -> ProjectId {
        ProjectId("project".to_owned())
    }

    /// An address that the fleet can assign.
    fn address(&self) -> FloatingIp {
        address()
    }
}

const ONE: HostId = HostId(1);
const TWO: HostId = HostId(2);
const NOWHERE: HostId = HostId(999_999);
const LEASE: LeaseId = LeaseId(0xa1);
const MINE: ReservationId = ReservationId(0xb1);
const THEIRS: ReservationId = ReservationId(0xb2);
/// Identifier of [`Subject::address`].
const ADDRESS: FloatingIpId = FloatingIpId(0xc1);

/// Maximum number of attempts of a pending call.
const PATIENCE: usize = 100;

/// Runs all checks, each on a new subject from `make`.
///
/// # Panics
///
/// If the driver breaks a promise.
pub async fn all<S: Subject, F: Future<Output = S>>(make: impl Fn() -> F) {
    only_hosts_that_were_taken_on_are_observed(&make().await).await;
    taking_a_host_on_and_giving_it_back_twice_is_doing_it_once(&make().await).await;
    a_host_with_a_guest_is_not_taken_on(&make().await).await;
    a_host_that_left_with_guests_of_the_free_pool_is_taken_on_again(&make().await).await;
    a_host_that_a_lease_has_is_not_given_back(&make().await).await;
    each_step_done_twice_is_done_once(&make().await).await;
    a_host_is_held_only_after_it_was_verified_for_that_reservation(&make().await).await;
    a_host_goes_back_to_the_free_pool_from_whom_it_is_taken(&make().await).await;
    steps_that_come_late_have_no_effect(&make().await).await;
    a_call_under_an_older_claim_has_no_effect(&make().await).await;
    verification_finds_what_landed_late(&make().await).await;
    slots_are_those_that_were_granted_last(&make().await).await;
    ratios_are_those_that_were_told_last_until_the_host_goes_back(&make().await).await;
    an_address_stays_with_whom_it_was_assigned_to(&make().await).await;
    steps_for_a_host_that_is_not_there_are_refused(&make().await).await;
    a_host_is_switched_off_only_if_it_is_fenced_and_nobody_is_there(&make().await).await;
    switching_a_host_twice_is_switching_it_once(&make().await).await;
}

/// Performs steps under consecutive claims.
struct Steps<'a, S> {
    subject: &'a S,
    fence: u64,
}

impl<'a, S: Subject> Steps<'a, S> {
    fn new(subject: &'a S) -> Self {
        Self { subject, fence: 0 }
    }

    async fn adopted(subject: &'a S) -> Self {
        for host in [ONE, TWO] {
            assert_eq!(subject.fleet().adopt(host).await, Ok(Outcome::Done), "adopting host {host}");
        }
        Self::new(subject)
    }

    /// Performs a step under a new claim until it is done.
    async fn done(&mut self, action: Action) {
        self.fence += 1;
        let key = key(self.subject, action, self.fence);
        for _ in 0..PATIENCE {
            match self.subject.perform(action, &key).await {
                Ok(Outcome::Done) => return,
                Ok(Outcome::Pending) => self.subject.wait().await,
                Err(error) => panic!("{action}: {error}"),
            }
        }
        panic!("{action} is never done");
    }

    async fn hand_over(&mut self, host: HostId, reservation: ReservationId) {
        self.done(Action::Fence(host)).await;
        self.done(Action::Verify(host, reservation)).await;
        self.done(Action::Hold(host, reservation)).await;
        assert_eq!(self.place(host).await, Place::Held(reservation));
    }

    async fn host(&self, host: HostId) -> ObservedHost {
        let observed = self.subject.fleet().observe(&BTreeSet::from([host]), &[]).await;
        let seen = observed.expect("an answer").hosts.remove(&host);
        seen.unwrap_or_else(|| panic!("host {host} was taken on and must be observed"))
    }

    async fn place(&self, host: HostId) -> Place {
        self.host(host).await.place
    }

    async fn holder(&self) -> Option<ReservationId> {
        let address = self.subject.address();
        let observed = self.subject.fleet().observe(&BTreeSet::new(), &[address]).await.expect("an answer");
        observed.floating_ips.get(&ADDRESS).copied()
    }
}

/// Facts of a lease with one reservation of two instances of this size, the action's reservation.
///
/// # Panics
/// Never: 2 isn't zero.
pub fn facts(action: Action, project: ProjectId, size: InstanceSize, affinity: Affinity) -> LeaseFacts {
    let amount = 2.try_into().expect("some");
    let asked = InstancesTerms {
        size,
        amount,
        affinity,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    };
    let reservation = action.reservation().map(|id| (id, ReservationTerms::Instances(asked)));
    let name = "of a test".to_owned();
    let user = UserId("mary".to_owned());
    let window = Window::starting(Timestamp::UNIX_EPOCH, SignedDuration::from_hours(1));
    let images_for = Timestamp::UNIX_EPOCH;
    LeaseFacts { name, project, user, window, reservation, properties: None, images_for }
}

/// An address in the simulated fleet's network, with the suite's identifier.
pub fn address() -> FloatingIp {
    let network = NetworkId("public".to_owned());
    FloatingIp { id: ADDRESS, network, address: [203, 0, 113, 200].into(), reservable: true }
}

fn key(subject: &impl Subject, action: Action, fence: u64) -> OperationKey {
    let size = InstanceSize::new(1, 512, 1).expect("a size");
    let facts = facts(action, subject.project(), size, Affinity::Any);
    OperationKey::of(action, fence, Some(LEASE)).with_facts(Some(facts))
}

/// Asserts that the host is free, healthy and empty, without ratios if its fleet supports them.
fn assert_free(host: &ObservedHost, why: &str) {
    let overcommit = host.overcommit.map(|_| Overcommit::default());
    assert_eq!(*host, ObservedHost { overcommit, ..ObservedHost::free() }, "{why}");
}

fn fenced(verified_for: Option<ReservationId>) -> Place {
    Place::Fenced { verified_for }
}

async fn only_hosts_that_were_taken_on_are_observed(subject: &impl Subject) {
    let fleet = subject.fleet();
    let machines = fleet.machines().await.expect("an answer");
    let ids: Vec<HostId> = machines.iter().map(|machine| machine.id).collect();
    assert!(ids.contains(&ONE) && ids.contains(&TWO), "{ids:?}");
    assert_eq!(fleet.adopt(ONE).await, Ok(Outcome::Done));
    let observed = fleet.observe(&BTreeSet::from([ONE, TWO, NOWHERE]), &[]).await.expect("an answer");
    assert_eq!(observed.hosts.keys().collect::<Vec<_>>(), [&ONE]);
    assert_free(&observed.hosts[&ONE], "it was taken on");
}

async fn taking_a_host_on_and_giving_it_back_twice_is_doing_it_once(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    steps.done(Action::Fence(ONE)).await;
    assert_eq!(subject.fleet().adopt(ONE).await, Ok(Outcome::Done));
    assert_eq!(steps.place(ONE).await, fenced(None), "taken on again, a host stays where it is");
    for _ in 0..2 {
        assert_eq!(subject.fleet().abandon(TWO).await, Ok(Outcome::Done));
    }
    let observed = subject.fleet().observe(&BTreeSet::from([TWO]), &[]).await.expect("an answer");
    assert!(observed.hosts.is_empty());
    for call in [subject.fleet().adopt(NOWHERE).await, subject.fleet().abandon(NOWHERE).await] {
        assert!(matches!(call, Err(FleetError::Refused(_))), "{call:?}");
    }
}

async fn a_host_with_a_guest_is_not_taken_on(subject: &impl Subject) {
    let guest = subject.guest_appears(ONE, GuestOwner::Other).await;
    let refused = subject.fleet().adopt(ONE).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    subject.guest_ends(guest).await;
    assert_eq!(subject.fleet().adopt(ONE).await, Ok(Outcome::Done));
}

async fn a_host_that_left_with_guests_of_the_free_pool_is_taken_on_again(subject: &impl Subject) {
    let steps = Steps::adopted(subject).await;
    let guest = subject.guest_appears(ONE, GuestOwner::Preemptible).await;
    for call in [subject.fleet().abandon(ONE).await, subject.fleet().adopt(ONE).await] {
        assert_eq!(call, Ok(Outcome::Done));
    }
    let host = steps.host(ONE).await;
    assert_eq!((host.place, host.guests.len(), host.guests[0].id), (Place::FreePool, 1, guest));
}

async fn a_host_that_a_lease_has_is_not_given_back(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    steps.hand_over(ONE, MINE).await;
    let refused = subject.fleet().abandon(ONE).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    assert_eq!(steps.place(ONE).await, Place::Held(MINE));
}

async fn each_step_done_twice_is_done_once(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    let turns = [
        (Action::Fence(ONE), fenced(None)),
        (Action::Unfence(ONE), Place::FreePool),
        (Action::Fence(ONE), fenced(None)),
        (Action::Verify(ONE, MINE), fenced(Some(MINE))),
        (Action::Hold(ONE, MINE), Place::Held(MINE)),
        (Action::Release(ONE, MINE), Place::FreePool),
    ];
    for (action, place) in turns {
        for _ in 0..2 {
            steps.done(action).await;
            assert_eq!(steps.place(ONE).await, place, "after: {action}");
        }
        // With the same claim, as after a lost response.
        let repeated = subject.perform(action, &key(subject, action, steps.fence)).await;
        assert_eq!((repeated, steps.place(ONE).await), (Ok(Outcome::Done), place), "repeated: {action}");
    }
    assert_eq!(steps.place(TWO).await, Place::FreePool, "nobody asked for that");
}

async fn a_host_is_held_only_after_it_was_verified_for_that_reservation(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    steps.done(Action::Hold(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, Place::FreePool);
    steps.done(Action::Verify(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, Place::FreePool, "verification is of fenced hosts");
    steps.done(Action::Fence(ONE)).await;
    steps.done(Action::Hold(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, fenced(None));
    steps.done(Action::Verify(ONE, THEIRS)).await;
    steps.done(Action::Hold(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, fenced(Some(THEIRS)));
    steps.done(Action::Unfence(ONE)).await;
    steps.done(Action::Fence(ONE)).await;
    assert_eq!(steps.place(ONE).await, fenced(None), "fenced again, a host is not verified");
}

async fn a_host_goes_back_to_the_free_pool_from_whom_it_is_taken(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    steps.hand_over(ONE, MINE).await;
    steps.done(Action::Release(ONE, THEIRS)).await;
    assert_eq!(steps.place(ONE).await, Place::Held(MINE));
    steps.done(Action::Release(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, Place::FreePool);
    steps.hand_over(ONE, THEIRS).await;
}

async fn steps_that_come_late_have_no_effect(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    steps.hand_over(ONE, MINE).await;
    let late = [
        Action::Fence(ONE),
        Action::Unfence(ONE),
        Action::Verify(ONE, THEIRS),
        Action::Hold(ONE, THEIRS),
        Action::Release(ONE, THEIRS),
        Action::StopGuest(ONE, GuestId(1)),
        Action::ResumeGuest(ONE, GuestId(1)),
        Action::DeleteGuest(ONE, GuestId(1)),
        Action::Snapshot(ONE, THEIRS),
        Action::Withdraw(ONE, THEIRS),
    ];
    for action in late {
        steps.done(action).await;
        let seen = steps.host(ONE).await;
        assert_eq!((seen.place, seen.slots.len()), (Place::Held(MINE), 0), "after: {action}");
    }
}

async fn a_call_under_an_older_claim_has_no_effect(subject: &impl Subject) {
    let steps = Steps::adopted(subject).await;
    let perform = async |action, fence| subject.perform(action, &key(subject, action, fence)).await;
    assert_eq!(perform(Action::Fence(ONE), 7).await, Ok(Outcome::Done));
    assert_eq!(perform(Action::Unfence(ONE), 1).await, Ok(Outcome::Done));
    assert_eq!(steps.place(ONE).await, Place::FreePool);
    assert_eq!(perform(Action::Fence(ONE), 6).await, Ok(Outcome::Done));
    assert_eq!(steps.place(ONE).await, Place::FreePool, "it was claimed by somebody else since");
    assert_eq!(perform(Action::Fence(ONE), 8).await, Ok(Outcome::Done));
    assert_eq!(steps.place(ONE).await, fenced(None));
}

async fn verification_finds_what_landed_late(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    let guest = subject.guest_sets_out(ONE).await;
    steps.done(Action::Fence(ONE)).await;
    subject.guests_land().await;
    steps.done(Action::Verify(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, fenced(None), "a guest landed that is not the lease's");
    let seen: Vec<GuestId> = steps.host(ONE).await.guests.iter().map(|guest| guest.id).collect();
    assert_eq!(seen, [guest]);
    subject.guest_ends(guest).await;
    steps.done(Action::Verify(ONE, MINE)).await;
    assert_eq!(steps.place(ONE).await, fenced(Some(MINE)));
}

async fn slots_are_those_that_were_granted_last(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    for count in [2, 2, 5, 1] {
        steps.done(Action::Grant(ONE, MINE, count)).await;
        assert_eq!(steps.host(ONE).await.slots.into_iter().collect::<Vec<_>>(), [(MINE, count)]);
    }
    steps.done(Action::Grant(ONE, THEIRS, 3)).await;
    for _ in 0..2 {
        steps.done(Action::Withdraw(ONE, MINE)).await;
        assert_eq!(steps.host(ONE).await.slots.into_iter().collect::<Vec<_>>(), [(THEIRS, 3)]);
    }
    assert_eq!(steps.place(ONE).await, Place::FreePool, "a host with slots stays in the free pool");
}

async fn ratios_are_those_that_were_told_last_until_the_host_goes_back(subject: &impl Subject) {
    let mut steps = Steps::adopted(subject).await;
    if steps.host(ONE).await.overcommit.is_none() {
        return;
    }
    let ratios = |cpu, ram| Ratios { cpu: Ratio::from_thousandths(cpu), ram: Ratio::from_thousandths(ram) };
    let none = Ratios::default();
    let is = async |steps: &Steps<'_, _>, wanted| {
        let seen = steps.host(ONE).await.overcommit;
        assert!(seen.is_some_and(|told| told.is(wanted)), "{seen:?}, not {wanted:?}");
    };
    steps.done(Action::SetRatios(ONE, MINE, ratios(2000, 0))).await;
    is(&steps, none).await;
    steps.hand_over(ONE, MINE).await;
    is(&steps, none).await;
    for wanted in [ratios(2000, 1500), ratios(2000, 1500), ratios(0, 1100), none, ratios(900, 0)] {
        steps.done(Action::SetRatios(ONE, MINE, wanted)).await;
        is(&steps, wanted).await;
    }
    steps.done(Action::SetRatios(ONE, THEIRS, ratios(3000, 0))).await;
    is(&steps, ratios(900, 0)).await;
    steps.done(Action::Release(ONE, MINE)).await;
    is(&steps, none).await;
    steps.hand_over(ONE, THEIRS).await;
    is(&steps, none).await;
}

async fn an_address_stays_with_whom_it_was_assigned_to(subject: &impl Subject) {
    let mut steps = Steps::new(subject);
    for action in [Action::Assign(ADDRESS, MINE), Action::Assign(ADDRESS, MINE)] {
        steps.done(action).await;
        assert_eq!(steps.holder().await, Some(MINE));
    }
    steps.done(Action::Assign(ADDRESS, THEIRS)).await;
    assert_eq!(steps.holder().await, Some(MINE));
    steps.done(Action::Unassign(ADDRESS, THEIRS)).await;
    assert_eq!(steps.holder().await, Some(MINE));
    for _ in 0..2 {
        steps.done(Action::Unassign(ADDRESS, MINE)).await;
        assert_eq!(steps.holder().await, None);
    }
    steps.done(Action::Assign(ADDRESS, THEIRS)).await;
    assert_eq!(steps.holder().await, Some(THEIRS));
}

async fn steps_for_a_host_that_is_not_there_are_refused(subject: &impl Subject) {
    for action in [Action::Fence(NOWHERE), Action::Hold(NOWHERE, MINE), Action::Grant(NOWHERE, MINE, 1)] {
        let result = subject.perform(action, &key(subject, action, 1)).await;
        assert!(matches!(result, Err(FleetError::Refused(_))), "{action}: {result:?}");
    }
}

async fn a_host_is_switched_off_only_if_it_is_fenced_and_nobody_is_there(subject: &impl Subject) {
    if !subject.fleet().switches_hosts() {
        return;
    }
    let mut steps = Steps::adopted(subject).await;
    steps.done(Action::PowerOff(ONE)).await;
    assert_free(&steps.host(ONE).await, "it is not fenced");
    let guest = subject.guest_sets_out(ONE).await;
    steps.done(Action::Fence(ONE)).await;
    subject.guests_land().await;
    let refused = subject.perform(Action::PowerOff(ONE), &key(subject, Action::PowerOff(ONE), 90)).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    assert_eq!(steps.host(ONE).await.powered, Powered::On);
    subject.guest_ends(guest).await;
    steps.fence = 90;
    // A late grant takes effect anyway.
    steps.done(Action::Grant(ONE, MINE, 1)).await;
    let refused = subject.perform(Action::PowerOff(ONE), &key(subject, Action::PowerOff(ONE), 92)).await;
    assert!(matches!(refused, Err(FleetError::Refused(_))), "{refused:?}");
    steps.done(Action::Withdraw(ONE, MINE)).await;
    steps.fence = 93;
    steps.done(Action::PowerOff(ONE)).await;
    assert_eq!(steps.host(ONE).await.powered, Powered::Off);
    assert_eq!(steps.host(TWO).await.powered, Powered::On, "nobody asked for that");
}

async fn switching_a_host_twice_is_switching_it_once(subject: &impl Subject) {
    if !subject.fleet().switches_hosts() {
        return;
    }
    let mut steps = Steps::adopted(subject).await;
    steps.done(Action::Fence(ONE)).await;
    for (action, powered) in [(Action::PowerOff(ONE), Powered::Off), (Action::PowerOn(ONE), Powered::On)] {
        for _ in 0..2 {
            steps.done(action).await;
            let seen = steps.host(ONE).await;
            assert_eq!((seen.powered, seen.place), (powered, fenced(None)), "after: {action}");
        }
    }
    let late = subject.perform(Action::PowerOff(ONE), &key(subject, Action::PowerOff(ONE), 1)).await;
    assert_eq!((late, steps.host(ONE).await.powered), (Ok(Outcome::Done), Powered::On), "it comes late");
    for _ in 0..1000 {
        if steps.host(ONE).await.health == Health::Up {
            break;
        }
        subject.wait().await;
    }
    steps.done(Action::Unfence(ONE)).await;
    assert_free(&steps.host(ONE).await, "it is back");
}
