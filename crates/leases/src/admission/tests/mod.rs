//! Creating and changing leases: defects of Blazar that must not return (W), and the table of changes allowed
//! in each state (API-update).

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::*;
use crate::enforcement::EnforcementError;
use crate::host::{FloatingIp, Health, Host, NetworkId};
use crate::host_facts::{HostFacts, Losses};
use crate::ids::ReservationId;
use crate::lease::{EventStatuses, Lease};
use crate::requirement::{Operator, Requirement};
use crate::resources::ResourceClass;
use crate::status::{EventStatus, LeaseStatus, ReservationStatus};
use crate::terms::{
    Affinity, Flavor, FlavorSize, FlavorTerms, FloatingIpsTerms, HostsTerms, InstanceSize, InstancesTerms,
    TermsError,
};
use crate::testing::{at, inventory, minutes, new_lease, owner, window};

mod costs;
mod down;
mod earliest;
mod extending;
mod growing;
mod hinting;
mod hunting;
mod lengths;
mod losses;
mod moving;
mod occupied;
mod offers;
mod preempting;
mod replanning;
mod saving;
mod scarce;
mod still;
mod suiting;
mod surviving;

struct Cloud {
    inventory: Inventory,
    calendar: Calendar,
    rules: Rules,
    facts: HostFacts<'static>,
}

impl Cloud {
    /// A cloud without hunts.
    fn new(hosts: u64) -> Self {
        let mut rules = Rules::default();
        rules.hunting.enabled = false;
        Self {
            inventory: inventory(hosts),
            calendar: Calendar::default(),
            rules,
            facts: HostFacts::nothing(),
        }
    }

    fn admission(&self, now: i64) -> Admission<'_> {
        self.knowing(&self.facts, now)
    }

    fn knowing<'a>(&'a self, facts: &'a HostFacts<'a>, now: i64) -> Admission<'a> {
        Admission::new(&self.calendar, &self.inventory, &self.rules, facts, at(now))
    }

    fn decide(&self, window: Window, asked: Vec<ReservationTerms>) -> Result<Vec<Allocation>, Refusal> {
        let terms = Terms::new(window, None, asked).expect("terms");
        self.admission(0).decide(&owner().project, &terms)
    }

    /// Enters a lease that must be possible.
    fn lease(&mut self, number: u128, window: Window, asked: Vec<ReservationTerms>) -> Lease {
        let given = self.decide(window, asked.clone()).expect("enough");
        let terms = Terms::new(window, None, asked).expect("terms");
        let lease = Lease::new(new_lease(number, given.len()), terms, given, self.rules.before_end_lead);
        self.calendar.put(&lease, at(0)).expect("free");
        lease
    }

    fn update(&self, lease: &Lease, changes: &Changes, now: i64) -> Result<Lease, Refusal> {
        let before = lease.clone();
        let result = self.admission(now).update(lease, changes).map(|updated| updated.lease);
        assert_eq!(*lease, before);
        result
    }
}

fn hosts(min: u32, max: u32) -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range"))
}

fn on_hosts(min: u32, max: u32, requirement: Requirement) -> ReservationTerms {
    ReservationTerms::Hosts(HostsTerms::new(min, max).expect("a range").requiring(requirement))
}

fn named(name: &str) -> Requirement {
    Requirement::compare(Operator::Equal, "hypervisor_hostname", name).expect("well formed")
}

fn instances(vcpus: u32, amount: u32, affinity: Affinity) -> ReservationTerms {
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(vcpus, 1024, 10).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity,
        requirement: Requirement::NONE,
        survives: None,
        extras: None,
    })
}

fn ids(hosts: impl IntoIterator<Item = u64>) -> Allocation {
    Allocation::Hosts(hosts.into_iter().map(HostId).collect())
}

fn slots(on: impl IntoIterator<Item = (u64, u32)>) -> Allocation {
    Allocation::Slots(on.into_iter().map(|(host, count)| (HostId(host), count)).collect())
}

fn started(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    lease.status = LeaseStatus::Active;
    lease.events.start = EventStatus::Done;
    for reservation in &mut lease.reservations {
        reservation.status = ReservationStatus::Active;
    }
    lease
}

fn ends(end: i64) -> Changes {
    Changes { end: Some(at(end)), ..Changes::default() }
}

fn starts(start: i64) -> Changes {
    Changes { start: Some(at(start)), ..Changes::default() }
}

fn change(lease: &Lease, change: TermsChange) -> Changes {
    Changes { reservations: vec![(lease.reservations[0].id, change)], ..Changes::default() }
}

fn range(min: u32, max: u32) -> TermsChange {
    TermsChange::Hosts(HostsChange { min: Some(min), max: Some(max), ..HostsChange::default() })
}

fn amount(amount: u32) -> TermsChange {
    let amount = NonZeroU32::new(amount);
    TermsChange::Instances(InstancesChange { amount, ..InstancesChange::default() })
}

fn given(lease: &Lease) -> &Allocation {
    &lease.reservations[0].allocation
}

fn not_enough<T: std::fmt::Debug>(result: Result<T, Refusal>) -> (u64, u64) {
    match result {
        Err(Refusal::NotEnough { needed, found, .. }) => (needed, found),
        other => panic!("not a lack: {other:?}"),
    }
}

#[test]
fn w1_hosts_of_one_lease_are_not_given_to_another_that_overlaps() {
    let mut cloud = Cloud::new(3);
    cloud.lease(1, window(10, 20), vec![hosts(2, 2)]);
    assert_eq!(not_enough(cloud.decide(window(19, 30), vec![hosts(2, 2)])), (2, 1));
    assert!(cloud.decide(window(20, 30), vec![hosts(3, 3)]).is_ok());
}

#[test]
fn w2_every_slot_counts() {
    let mut cloud = Cloud::new(1);
    cloud.lease(1, window(0, 60), vec![instances(8, 2, Affinity::Any)]);
    assert_eq!(not_enough(cloud.decide(window(30, 90), vec![instances(8, 1, Affinity::Any)])), (1, 0));
    assert!(cloud.decide(window(60, 90), vec![instances(8, 2, Affinity::Any)]).is_ok());
}

#[test]
fn w14_a_lease_is_filled_up_to_its_maximum() {
    let mut cloud = Cloud::new(8);
    cloud.lease(1, window(100, 110), vec![hosts(7, 7)]);
    let given = cloud.decide(window(0, 60), vec![hosts(1, 4)]).expect("enough");
    assert_eq!(given[0].amount(), 4);
    let all_there_is = cloud.decide(window(0, 60), vec![hosts(1, 99)]).expect("enough");
    assert_eq!(all_there_is[0].amount(), 8);
}

#[test]
fn w15_an_instance_lease_can_be_shrunk_on_a_full_cloud() {
    let mut cloud = Cloud::new(2);
    let lease = cloud.lease(1, window(10, 60), vec![instances(4, 8, Affinity::Any)]);
    assert_eq!(given(&lease).amount(), 8);
    let shrunk = cloud.update(&lease, &change(&lease, amount(5)), 0).expect("less than before");
    assert_eq!(*given(&shrunk), slots([(1, 4), (2, 1)]));
    let earlier = cloud.update(&lease, &ends(30), 0).expect("shorter than before");
    assert_eq!(given(&earlier), given(&lease));
    assert_eq!(not_enough(cloud.update(&lease, &change(&lease, amount(9)), 0)), (9, 8));
}

#[test]
fn w16_leases_of_instances_and_of_hosts_follow_each_other_without_a_gap() {
    let mut cloud = Cloud::new(2);
    cloud.lease(1, window(0, 60), vec![instances(16, 2, Affinity::Any)]);
    cloud.lease(2, window(60, 120), vec![instances(16, 2, Affinity::Any)]);
    cloud.lease(3, window(120, 180), vec![hosts(2, 2)]);
    cloud.lease(4, window(180, 240), vec![instances(16, 2, Affinity::Any)]);
    assert!(cloud.decide(window(119, 121), vec![instances(1, 1, Affinity::Any)]).is_err());
}

#[test]
fn w9_a_refused_update_says_why_and_leaves_the_lease_usable() {
    let mut cloud = Cloud::new(2);
    let lease = cloud.lease(1, window(10, 60), vec![instances(4, 1, Affinity::Any)]);
    let late = Changes { before_end: Some(at(61)), ..Changes::default() };
    let refused = Err(Refusal::Terms(TermsError::BeforeEndOutOfLimits));
    assert_eq!(cloud.update(&lease, &late, 0), refused);
    let active = started(&lease);
    let size = InstanceSize::new(8, 1024, 10).ok();
    let larger = TermsChange::Instances(InstancesChange { size, ..InstancesChange::default() });
    let refused = Refusal::OnlyAmount(active.reservations[0].id);
    assert_eq!(cloud.update(&active, &change(&active, larger), 20), Err(refused));
    assert!(cloud.update(&active, &ends(90), 20).is_ok());
}

#[test]
fn w11_an_active_lease_cannot_be_moved_not_even_in_its_first_minute() {
    let mut cloud = Cloud::new(1);
    let lease = started(&cloud.lease(1, window(10, 60), vec![hosts(1, 1)]));
    assert_eq!(cloud.update(&lease, &starts(30), 10), Err(Refusal::Started));
    let starting = Lease { status: LeaseStatus::Starting, ..lease };
    assert_eq!(cloud.update(&starting, &starts(30), 10), Err(Refusal::Started));
}

#[test]
fn w12_a_lease_that_is_over_can_only_be_renamed() {
    let mut cloud = Cloud::new(1);
    let mut lease = started(&cloud.lease(1, window(10, 60), vec![hosts(1, 1)]));
    lease.status = LeaseStatus::Terminated;
    lease.events.end = EventStatus::Done;
    assert_eq!(cloud.update(&lease, &ends(90), 60), Err(Refusal::Over));
    let renamed = Changes { name: Some("new".into()), ..Changes::default() };
    assert_eq!(cloud.update(&lease, &renamed, 60).map(|l| l.name), Ok("new".into()));
    lease.status = LeaseStatus::Terminating;
    lease.events.end = EventStatus::InProgress;
    assert_eq!(cloud.update(&lease, &ends(90), 60), Err(Refusal::Busy));
}

#[test]
fn w18_the_action_before_the_end_moves_with_the_end_and_stays_inside() {
    let mut cloud = Cloud::new(1);
    cloud.rules.before_end_lead = Some(minutes(20));
    let mut lease = cloud.lease(1, window(10, 60), vec![hosts(1, 1)]);
    assert_eq!(lease.before_end, Some(at(40)));
    let before_end = |lease: Result<Lease, Refusal>| lease.expect("allowed").before_end;
    assert_eq!(before_end(cloud.update(&lease, &ends(50), 0)), Some(at(30)));
    assert_eq!(before_end(cloud.update(&lease, &ends(15), 0)), Some(at(10)));
    lease = started(&lease);
    lease.events = EventStatuses { before_end: EventStatus::Done, ..lease.events };
    let updated = cloud.admission(45).update(&lease, &ends(90)).expect("free");
    assert!(updated.before_end_rearmed);
    assert_eq!(updated.lease.events.before_end, EventStatus::Undone);
    let shorter = cloud.admission(45).update(&lease, &ends(55)).expect("shorter");
    assert!(!shorter.before_end_rearmed, "what is due in the past is not done a second time");
}

#[test]
fn an_active_lease_keeps_its_hosts_and_can_only_gain() {
    let mut cloud = Cloud::new(4);
    let lease = started(&cloud.lease(1, window(0, 60), vec![hosts(2, 2)]));
    cloud.lease(2, window(70, 90), vec![on_hosts(1, 1, named("node2"))]);
    let refused = cloud.update(&lease, &ends(75), 30).expect_err("its host is taken");
    assert_eq!(refused.cause(), &Refusal::WouldLoseHosts(vec![HostId(2)]));
    let Refusal::EndsTooLate { taken_from, latest, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!((*taken_from, *latest), (at(70), at(70)));
    let hint = refused.hint().expect("until when");
    assert!(
        hint.starts_with("its host is taken from ") && hint.contains("the latest possible end is "),
        "{hint}"
    );
    assert_eq!(cloud.update(&lease, &ends(70), 30).map(|l| given(&l).clone()), Ok(ids([1, 2])));
    let fewer = change(&lease, range(1, 1));
    let refused = cloud.update(&lease, &fewer, 30).expect_err("it keeps both");
    assert_eq!(
        refused.hint().as_deref(),
        Some(
            "a lease that has started can't give hosts back, except those that block its start: it has 2 hosts, and the \
             change allows 1; an earlier end is possible"
        )
    );
    assert!(!refused.negotiable(), "there is no alternative to offer");
    let more = cloud.update(&lease, &change(&lease, range(2, 3)), 30);
    assert_eq!(more.map(|l| given(&l).amount()), Ok(3));
    let resource = Some(named("node1"));
    let choosy = TermsChange::Hosts(HostsChange { resource, ..HostsChange::default() });
    let refused = cloud.update(&lease, &change(&lease, choosy), 30);
    assert_eq!(refused, Err(Refusal::WouldLoseHosts(vec![HostId(2)])));
}

#[test]
fn an_active_lease_can_be_extended_although_one_of_its_hosts_is_down() {
    let mut cloud = Cloud::new(2);
    let lease = started(&cloud.lease(1, window(0, 60), vec![hosts(2, 2)]));
    cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Failed;
    assert!(cloud.update(&lease, &ends(90), 30).is_ok());
}

#[test]
fn a_pending_lease_swaps_hosts_when_its_own_are_taken_at_the_new_time() {
    let mut cloud = Cloud::new(2);
    let lease = cloud.lease(1, window(0, 60), vec![hosts(1, 1)]);
    assert_eq!(*given(&lease), ids([1]));
    cloud.lease(2, window(60, 90), vec![on_hosts(1, 1, named("node1"))]);
    let longer = cloud.update(&lease, &ends(80), 0).expect("node2 is free");
    assert_eq!(*given(&longer), ids([2]));
}

#[test]
fn a_pending_lease_keeps_its_hosts_if_they_still_will_do() {
    let mut cloud = Cloud::new(3);
    let lease = cloud.lease(1, window(10, 60), vec![on_hosts(1, 1, named("node3"))]);
    let resource = Some(Requirement::NONE);
    let any = TermsChange::Hosts(HostsChange { resource, ..HostsChange::default() });
    assert_eq!(cloud.update(&lease, &change(&lease, any), 0).map(|l| given(&l).clone()), Ok(ids([3])));
}

#[test]
fn a_started_instance_lease_grows_where_it_is_and_never_shrinks() {
    let mut cloud = Cloud::new(2);
    let lease = started(&cloud.lease(1, window(0, 60), vec![instances(4, 3, Affinity::Any)]));
    assert_eq!(*given(&lease), slots([(2, 3)]), "the placement core takes the last of equals");
    let refused = Refusal::WouldLoseSlots(lease.reservations[0].id);
    assert_eq!(cloud.update(&lease, &change(&lease, amount(2)), 30), Err(refused));
    let grown = cloud.update(&lease, &change(&lease, amount(6)), 30).expect("room");
    assert_eq!(*given(&grown), slots([(1, 2), (2, 4)]));
}

#[test]
fn hk_a_any_change_keeps_a_lease_whose_owner_was_warned_that_nobody_uses_it() {
    let mut cloud = Cloud::new(1);
    let mut lease = started(&cloud.lease(1, window(0, 60), vec![hosts(1, 1)]));
    let name = Changes { name: Some(lease.name.clone()), ..Changes::default() };
    assert!(!cloud.update(&lease, &name, 20).expect("allowed").marks.used, "it may be warned of later");
    lease.marks.unused_warned_at = Some(at(10));
    for changes in [name, ends(50)] {
        assert!(cloud.update(&lease, &changes, 20).expect("allowed").marks.used);
    }
}

#[test]
fn affinity_decides_how_slots_are_spread() {
    let mut cloud = Cloud::new(3);
    let spread = cloud.decide(window(0, 60), vec![instances(4, 3, Affinity::DistinctHosts)]);
    assert_eq!(spread, Ok(vec![slots([(1, 1), (2, 1), (3, 1)])]));
    cloud.lease(1, window(0, 60), vec![instances(4, 1, Affinity::Any)]);
    let together = cloud.decide(window(0, 60), vec![instances(4, 4, Affinity::OneHost)]).expect("room");
    assert_eq!(together[0].hosts().len(), 1);
    let five = cloud.decide(window(0, 60), vec![instances(4, 5, Affinity::OneHost)]);
    assert_eq!(not_enough(five), (5, 4));
    let four = cloud.decide(window(0, 60), vec![instances(4, 4, Affinity::DistinctHosts)]);
    assert_eq!(not_enough(four), (4, 3));
}

#[test]
fn slots_go_where_others_are_so_that_hosts_stay_whole() {
    let mut cloud = Cloud::new(4);
    cloud.lease(1, window(0, 60), vec![instances(4, 1, Affinity::Any)]);
    cloud.lease(2, window(0, 60), vec![instances(4, 3, Affinity::Any)]);
    assert_eq!(cloud.decide(window(0, 60), vec![hosts(3, 3)]).map(|g| g[0].amount()), Ok(3));
}

#[test]
fn reservations_of_one_lease_do_not_take_from_each_other() {
    let cloud = Cloud::new(3);
    let asked = vec![hosts(1, 1), instances(16, 1, Affinity::Any), on_hosts(1, 1, named("node1"))];
    let given = cloud.decide(window(0, 60), asked).expect("enough for all");
    assert_eq!(given[2], ids([1]), "the choosy one goes first");
    let all: BTreeSet<HostId> = given.iter().flat_map(Allocation::hosts).collect();
    assert_eq!(all.len(), 3);
}

#[test]
fn cleaning_time_is_kept_on_both_sides_of_a_host_lease() {
    let mut cloud = Cloud::new(1);
    cloud.calendar = Calendar::new(minutes(5));
    let lease = cloud.lease(1, window(20, 40), vec![hosts(1, 1)]);
    for (start, end, free) in [(45, 50, true), (44, 50, false), (0, 15, true), (0, 16, false)] {
        assert_eq!(cloud.decide(window(start, end), vec![hosts(1, 1)]).is_ok(), free, "{start}..{end}");
    }
    cloud.lease(2, window(50, 60), vec![hosts(1, 1)]);
    assert!(cloud.update(&started(&lease), &ends(45), 30).is_ok());
    assert!(cloud.update(&started(&lease), &ends(46), 30).is_err(), "the neighbour's cleaning time");
}

#[test]
fn a_refusal_says_which_filter_removed_how_many_hosts() {
    let mut cloud = Cloud::new(4);
    cloud.inventory.host_mut(HostId(4)).expect("there").reservable = false;
    cloud.lease(1, window(0, 60), vec![hosts(1, 1)]);
    let big = Requirement::compare(Operator::NotEqual, "hypervisor_hostname", "node2").expect("well formed");
    let refused = cloud.decide(window(30, 90), vec![on_hosts(2, 2, big)]).expect_err("one is left");
    assert_eq!(refused.to_string(), "Not enough hosts available");
    let hint = "2 hosts needed: 1 of 4 hosts left, 1 closed for new leases, \
                1 not matching resource_properties, 1 leased at that time";
    assert_eq!(refused.hint().as_deref(), Some(hint));
}

#[test]
fn dates_are_refused_with_blazars_words() {
    let mut cloud = Cloud::new(1);
    let terms = Terms::new(window(5, 10), None, vec![]).expect("terms");
    let project = owner().project;
    assert_eq!(cloud.admission(6).decide(&project, &terms), Err(Refusal::StartInPast));
    assert_eq!(cloud.admission(5).decide(&project, &terms), Ok(vec![]), "now is not the past");
    let lease = cloud.lease(1, window(10, 60), vec![hosts(1, 1)]);
    assert_eq!(cloud.update(&lease, &starts(4), 5), Err(Refusal::StartInPast));
    assert_eq!(cloud.update(&lease, &ends(9), 5), Err(Refusal::EndInPast));
    let active = started(&lease);
    assert_eq!(cloud.update(&active, &ends(29), 30), Err(Refusal::EndInPast));
    assert!(cloud.update(&active, &ends(30), 30).is_ok(), "a lease can be ended now");
    assert_eq!(cloud.update(&active, &ends(90), 61), Err(Refusal::Over));
    let other_terms = change(&active, range(1, 2));
    assert_eq!(cloud.update(&active, &other_terms, 60), Err(Refusal::Over), "nothing is left to promise");
}

#[test]
fn unknown_reservations_and_other_types_are_refused() {
    let mut cloud = Cloud::new(1);
    let lease = cloud.lease(1, window(10, 60), vec![hosts(1, 1)]);
    let nobody = ReservationId(99);
    let unknown = Changes { reservations: vec![(nobody, range(1, 1))], ..Changes::default() };
    assert_eq!(cloud.update(&lease, &unknown, 0), Err(Refusal::UnknownReservations(vec![nobody])));
    let refused = Refusal::ResourceType(lease.reservations[0].id);
    assert_eq!(cloud.update(&lease, &change(&lease, amount(1)), 0), Err(refused));
}

#[test]
fn limits_of_the_operator_hold_for_new_and_for_changed_leases() {
    let mut cloud = Cloud::new(1);
    cloud.rules.enforcement.max_lease_duration = Some(minutes(50)).into();
    let lease = cloud.lease(1, window(10, 60), vec![hosts(1, 1)]);
    let too_long = EnforcementError::TooLong { asked_seconds: 3060, allowed_seconds: 3000, scope: None };
    assert_eq!(cloud.update(&lease, &ends(61), 0), Err(Refusal::Enforcement(too_long.clone())));
    assert_eq!(cloud.decide(window(60, 111), vec![]), Err(Refusal::Enforcement(too_long)));
}

fn address(last: u8) -> std::net::IpAddr {
    std::net::Ipv4Addr::new(10, 0, 0, last).into()
}

fn addresses(amount: u32, required: &[u8]) -> ReservationTerms {
    let required = required.iter().map(|last| address(*last));
    ReservationTerms::FloatingIps(
        FloatingIpsTerms::new(NetworkId("public".into()), amount, required).expect("terms"),
    )
}

fn with_addresses(mut cloud: Cloud) -> Cloud {
    for last in 1..=3 {
        cloud.inventory.put_floating_ip(FloatingIp {
            id: FloatingIpId(last.into()),
            network: NetworkId("public".into()),
            address: address(last),
            reservable: true,
        });
    }
    cloud
}

#[test]
fn w15_a_lease_with_required_addresses_can_be_changed() {
    let mut cloud = with_addresses(Cloud::new(0));
    let lease = cloud.lease(1, window(10, 60), vec![addresses(2, &[3])]);
    let ips = |numbers: &[u128]| Allocation::FloatingIps(numbers.iter().map(|n| FloatingIpId(*n)).collect());
    assert_eq!(*given(&lease), ips(&[1, 3]));
    assert_eq!(cloud.update(&lease, &ends(90), 0).map(|l| given(&l).clone()), Ok(ips(&[1, 3])));
    let taken = cloud.decide(window(20, 30), vec![addresses(1, &[3])]);
    assert_eq!(taken, Err(Refusal::FloatingIpTaken(address(3))));
    assert_eq!(not_enough(cloud.decide(window(20, 30), vec![addresses(2, &[])])), (2, 1));
    let active = started(&lease);
    let grow = |amount| {
        TermsChange::FloatingIps(FloatingIpsChange { amount: Some(amount), ..FloatingIpsChange::default() })
    };
    let grown = cloud.update(&active, &change(&active, grow(3)), 20);
    assert_eq!(grown.map(|l| given(&l).clone()), Ok(ips(&[1, 2, 3])));
    assert!(cloud.update(&active, &change(&active, grow(1)), 20).is_err());
}

#[test]
fn w15_no_reservation_takes_an_address_that_another_one_of_the_lease_requires() {
    let cloud = with_addresses(Cloud::new(0));
    let ips = |numbers: &[u128]| Allocation::FloatingIps(numbers.iter().map(|n| FloatingIpId(*n)).collect());
    for (asked, expected) in [
        ([addresses(1, &[]), addresses(1, &[2]), addresses(1, &[1])], [ips(&[3]), ips(&[2]), ips(&[1])]),
        ([addresses(1, &[3]), addresses(1, &[]), addresses(1, &[1])], [ips(&[3]), ips(&[2]), ips(&[1])]),
        ([addresses(2, &[3]), addresses(1, &[1]), addresses(0, &[])], [ips(&[2, 3]), ips(&[1]), ips(&[])]),
    ] {
        assert_eq!(cloud.decide(window(10, 60), asked.to_vec()), Ok(expected.to_vec()));
    }
    let beside = vec![hosts(1, 1), addresses(1, &[]), addresses(1, &[1])];
    let cloud = with_addresses(Cloud::new(1));
    let given = cloud.decide(window(10, 60), beside).expect("free");
    assert_eq!(given[1..], [ips(&[2]), ips(&[1])]);
}

#[test]
fn instances_follow_capacity_over_time_not_the_sum_of_all_that_touch_the_window() {
    let mut cloud = Cloud::new(1);
    cloud.lease(1, window(0, 60), vec![instances(8, 1, Affinity::Any)]);
    cloud.lease(2, window(60, 120), vec![instances(8, 1, Affinity::Any)]);
    assert!(cloud.decide(window(0, 120), vec![instances(8, 1, Affinity::Any)]).is_ok());
    assert!(cloud.decide(window(0, 120), vec![instances(9, 1, Affinity::Any)]).is_err());
}

#[test]
fn a_host_can_be_used_up_to_the_last_mebibyte() {
    let mut cloud = Cloud::new(0);
    cloud.inventory.put_host(Host::new(HostId(1), "small", 3, 3000, 3));
    let whole = |vcpus, memory_mib, disk_gib, amount| {
        ReservationTerms::Instances(InstancesTerms {
            size: InstanceSize::new(vcpus, memory_mib, disk_gib).expect("a size"),
            amount: NonZeroU32::new(amount).expect("some"),
            affinity: Affinity::Any,
            requirement: Requirement::NONE,
            survives: None,
            extras: None,
        })
    };
    assert!(cloud.decide(window(0, 60), vec![whole(1, 1000, 1, 3)]).is_ok());
    assert!(cloud.decide(window(0, 60), vec![whole(3, 3000, 3, 1)]).is_ok());
    assert!(cloud.decide(window(0, 60), vec![whole(1, 3001, 0, 1)]).is_err());
    let two = vec![whole(1, 1000, 1, 1), whole(2, 2000, 2, 1)];
    assert_eq!(cloud.decide(window(0, 60), two), Ok(vec![slots([(1, 1)]), slots([(1, 1)])]));
}

#[test]
fn a_lease_without_reservations_is_possible() {
    assert_eq!(Cloud::new(0).decide(window(0, 60), vec![]), Ok(vec![]));
}

fn flavor(specs: &[(&str, &str)], amount: u32) -> ReservationTerms {
    let specs = specs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let size = FlavorSize { instance: InstanceSize::new(4, 1024, 10).expect("a size"), ephemeral_gib: 0 };
    let flavor = Flavor::new("m1.medium", size, &specs).expect("understood");
    ReservationTerms::Flavor(FlavorTerms {
        flavor,
        amount: NonZeroU32::new(amount).expect("some"),
        survives: None,
    })
}

#[test]
fn a_flavor_goes_where_its_traits_and_resources_are() {
    let mut cloud = Cloud::new(3);
    let asked = || vec![flavor(&[("trait:HW_CPU_AVX", "required"), ("hw:cpu_policy", "dedicated")], 2)];
    for id in [1, 2] {
        cloud.inventory.host_mut(HostId(id)).expect("there").traits.insert("HW_CPU_AVX".into());
    }
    let refused = cloud.decide(window(0, 60), asked()).expect_err("no dedicated CPUs");
    let hint = "2 instances needed, 0 fit: 0 of 3 hosts left, 1 without the flavor's traits, \
                2 without room at that time";
    assert_eq!(refused.hint().as_deref(), Some(hint));
    let dedicated = ResourceClass("PCPU".into());
    cloud.inventory.host_mut(HostId(2)).expect("there").other_resources.insert(dedicated, 8);
    assert_eq!(cloud.decide(window(0, 60), asked()), Ok(vec![slots([(2, 2)])]));
    cloud.lease(1, window(0, 60), asked());
    assert_eq!(not_enough(cloud.decide(window(0, 60), asked())), (2, 0));
}

#[test]
fn of_a_flavor_reservation_only_the_dates_can_be_changed() {
    let mut cloud = Cloud::new(1);
    let lease = cloud.lease(1, window(10, 60), vec![flavor(&[], 4)]);
    assert!(cloud.update(&lease, &ends(90), 0).is_ok());
    assert!(cloud.update(&started(&lease), &ends(90), 20).is_ok());
    let refused = Refusal::FlavorIsFixed(lease.reservations[0].id);
    assert_eq!(cloud.update(&lease, &change(&lease, TermsChange::Flavor), 0), Err(refused));
}

#[test]
fn instances_and_flavors_share_a_host() {
    let mut cloud = Cloud::new(1);
    cloud.lease(1, window(0, 60), vec![flavor(&[], 2)]);
    assert!(cloud.decide(window(0, 60), vec![instances(8, 1, Affinity::Any)]).is_ok());
    assert!(cloud.decide(window(0, 60), vec![instances(9, 1, Affinity::Any)]).is_err());
}
