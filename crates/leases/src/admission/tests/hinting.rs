//! Scheduler hints (CLS-11).

use super::*;
use crate::hints::GroupPolicy::{self, Affinity, AntiAffinity, SoftAffinity, SoftAntiAffinity};
use crate::hints::{Hint, HintError, InstanceHints, Location, OtherLeases};
use crate::ids::{GuestId, LeaseId};
use crate::lease_type::LeaseType;
use crate::plan::{Guest, GuestOwner, GuestSize, Observed, ObservedHost, Place};

/// Six hosts in three racks of two. The rack of the seventh is unknown.
fn racks() -> Cloud {
    let mut cloud = Cloud::new(7);
    for id in 1..=6 {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        host.capabilities.insert("rack".into(), format!("r{}", id.div_ceil(2)));
    }
    cloud
}

fn given(cloud: &Cloud, hints: &Hints, asked: Vec<ReservationTerms>) -> Result<Vec<Allocation>, Refusal> {
    let terms = Terms::new(window(0, 60), None, asked).expect("terms").hinting(hints.clone());
    cloud.admission(0).decide(&owner().project, &terms)
}

fn others(hosts: &[u64]) -> OtherLeases {
    let hosts = hosts.iter().map(|id| HostId(*id)).collect();
    OtherLeases { leases: [LeaseId(9)].into(), hosts }
}

fn query(name: &str, value: &str) -> Requirement {
    Requirement::compare(Operator::Equal, name, value).expect("well formed")
}

/// Enters a lease of `count` hosts with these hints.
fn hinted(cloud: &mut Cloud, hints: &Hints, count: u32) -> Lease {
    let given = given(cloud, hints, vec![hosts(count, count)]).expect("enough");
    let terms = Terms::new(window(0, 60), None, vec![hosts(count, count)]).expect("terms");
    let lease = Lease::new(new_lease(1, 1), terms.hinting(hints.clone()), given, None);
    cloud.calendar.put(&lease, at(0)).expect("free");
    lease
}

#[test]
fn cls_11_a_hints_choose_hosts_and_a_refusal_names_the_hint() {
    let cloud = racks();
    let none = Hints::default;
    let cases = [
        (Hints { query: query("rack", "r2"), ..none() }, vec![3, 4], "query"),
        (Hints { hosts: ["node2".to_owned(), "node5".to_owned()].into(), ..none() }, vec![2, 5], "host"),
        (Hints { same_host: Some(others(&[6, 7])), ..none() }, vec![6, 7], "same_host"),
        (Hints { different_host: Some(others(&[1, 2, 3])), ..none() }, vec![4, 5, 6, 7], "different_host"),
        (Hints { location: Some(Location::Same), ..none() }, vec![1, 2], "location"),
        (Hints { location: Some(Location::Different), ..none() }, vec![1, 3, 5], "location"),
    ];
    for (hints, wanted, name) in cases {
        assert_eq!(given(&cloud, &hints, vec![hosts(1, 7)]), Ok(vec![ids(wanted.clone())]), "{name}");
        let refused = given(&cloud, &hints, vec![hosts(7, 7)]).expect_err("not all match");
        let said = refused.hint().expect("more to say");
        assert!(said.starts_with(&format!("7 hosts needed: {} of 7", wanted.len())), "{said}");
        assert!(said.ends_with(&format!("{} against the hint ({name})", 7 - wanted.len())), "{said}");
    }
    let both = Hints { query: query("rack", "r2"), different_host: Some(others(&[3])), ..none() };
    assert_eq!(given(&cloud, &both, vec![hosts(1, 7)]), Ok(vec![ids([4])]));
    let room = given(&cloud, &both, vec![instances(8, 2, crate::terms::Affinity::Any)]);
    assert_eq!(room, Ok(vec![slots([(4, 2)])]), "room is found where hints allow it");
}

#[test]
fn cls_11_b_hints_that_too_few_hosts_match_are_too_strict() {
    let mut cloud = racks();
    cloud.rules.hints.least_hosts = 3;
    let strict = Hints { query: query("rack", "r2"), ..Hints::default() };
    let refused = given(&cloud, &strict, vec![hosts(1, 1)]).expect_err("two match");
    assert_eq!(refused, Refusal::Hints(HintError::TooStrict { matching: 2, least: 3 }));
    let wide = Hints { different_host: Some(others(&[1])), ..Hints::default() };
    // Booked hosts match as well, so they don't make the hints any stricter.
    cloud.lease(7, window(0, 60), vec![hosts(5, 5)]);
    assert!(given(&cloud, &wide, vec![hosts(1, 1)]).is_ok());
    assert!(
        given(&cloud, &Hints::default(), vec![hosts(1, 1)]).is_ok(),
        "who gives none is never too strict"
    );
    let best_effort = Terms::new(window(0, 60), None, vec![hosts(1, 1)]).expect("terms");
    let best_effort = best_effort.of_type(LeaseType::BestEffort { deadline: at(60) }).hinting(strict);
    let refused = cloud.admission(0).grant(&owner().project, &best_effort).expect_err("two match");
    assert!(matches!(refused, Refusal::Hints(HintError::TooStrict { .. })));
}

#[test]
fn cls_11_c_hints_hold_for_replacements_changes_and_for_what_waits() {
    let mut cloud = racks();
    let apart = Hints { location: Some(Location::Different), ..Hints::default() };
    let lease = hinted(&mut cloud, &apart, 2);
    assert_eq!(lease.reservations[0].allocation, ids([1, 3]));
    cloud.inventory.host_mut(HostId(3)).expect("there").health = Health::Failed;
    let healed = cloud.admission(0).heal(&lease, HealingInterval(None)).expect("another rack");
    assert_eq!(
        healed.reservations[0].allocation,
        ids([1, 4]),
        "not in the rack of the other, and not nowhere"
    );
    let more = Changes {
        reservations: vec![(
            lease.reservations[0].id,
            TermsChange::Hosts(HostsChange { min: Some(3), max: Some(3), ..HostsChange::default() }),
        )],
        ..Changes::default()
    };
    let changed = cloud.update(&healed, &more, 0).expect("three racks");
    assert_eq!(changed.reservations[0].allocation, ids([1, 4, 5]));
    assert_eq!(changed.hints, lease.hints);
    let grown = cloud.update(&started(&healed), &more, 0).expect("three racks");
    assert_eq!(grown.reservations[0].allocation, ids([1, 4, 5]));
    // All hosts that match are booked until minute 90.
    let mut cloud = racks();
    cloud.lease(7, window(0, 90), vec![on_hosts(2, 2, query("rack", "r2"))]);
    let second = Hints { query: query("rack", "r2"), ..Hints::default() };
    let terms = Terms::new(window(0, 60), None, vec![hosts(1, 1)]).expect("terms").hinting(second);
    let terms = terms.of_type(LeaseType::BestEffort { deadline: at(100) });
    let grant = cloud.admission(0).grant(&owner().project, &terms).expect("in time");
    assert_eq!((grant.terms.window().start(), grant.allocations), (at(90), vec![ids([3])]));
}

/// A lease that holds three hosts, with this number of its guests on each.
fn held(group: Option<GroupPolicy>, guests: [u128; 3]) -> (Cloud, Lease, Observed) {
    let mut cloud = Cloud::new(3);
    let lease = started(&hinted(&mut cloud, &Hints { group, ..Hints::default() }, 3));
    let mut observed = Observed::default();
    for (host, count) in (1..=3).zip(guests) {
        let mut seen = ObservedHost { place: Place::Held(lease.reservations[0].id), ..ObservedHost::free() };
        let size = GuestSize { vcpus: 4, memory_mib: 1024, disk_gib: 1 };
        let guest = |number| Guest {
            size,
            ..Guest::new(GuestId(u128::from(host) * 10 + number), GuestOwner::Lease(lease.id))
        };
        seen.guests = (0..count).map(guest).collect();
        observed.hosts.insert(HostId(host), seen);
    }
    (cloud, lease, observed)
}

#[test]
fn cls_11_d_instances_inherit_the_hints_of_their_lease() {
    let place = |group, guests, vcpus, hints: &InstanceHints| {
        let (cloud, lease, observed) = held(group, guests);
        let size = GuestSize { vcpus, memory_mib: 1024, disk_gib: 1 };
        let within = Within::Reservation(&lease, &lease.reservations[0]);
        cloud.admission(1).host_for(within, size, hints, &observed).map(|host| host.0)
    };
    let (none, refused) = (InstanceHints::default(), Err(NoHost::AgainstHint { hint: Hint::Group }));
    let full = |considered| {
        let size = GuestSize { vcpus: 8, memory_mib: 1024, disk_gib: 1 };
        Err(NoHost::NoRoom { size, considered })
    };
    for (group, guests, vcpus, wanted) in [
        (Some(Affinity), [0, 1, 0], 4, Ok(2)),
        (Some(Affinity), [0, 3, 0], 8, full(3)),
        (Some(SoftAffinity), [0, 1, 0], 4, Ok(2)),
        (Some(SoftAffinity), [0, 3, 1], 8, Ok(3)),
        (Some(AntiAffinity), [1, 1, 0], 4, Ok(3)),
        (Some(AntiAffinity), [1, 1, 1], 4, refused.clone()),
        (Some(SoftAntiAffinity), [3, 0, 3], 8, Ok(2)),
        (Some(SoftAntiAffinity), [1, 2, 3], 4, Ok(1)),
        (None, [0, 3, 3], 4, Ok(1)),
    ] {
        assert_eq!(place(group, guests, vcpus, &none), wanted, "{group:?} {guests:?}");
    }
    let first = place(Some(Affinity), [0, 0, 0], 4, &none);
    assert!(first.is_ok(), "the first one goes anywhere");
    let on = InstanceHints { on: Some([HostId(3)].into()), ..InstanceHints::default() };
    let not_on = InstanceHints { not_on: [HostId(1), HostId(3)].into(), ..InstanceHints::default() };
    assert_eq!((place(None, [0; 3], 4, &on), place(None, [0; 3], 4, &not_on)), (Ok(3), Ok(2)));
    let clash = place(Some(AntiAffinity), [0, 0, 1], 4, &on);
    assert_eq!(clash, refused, "its own hints and those of its lease hold together");
}
