//! Hosts that are closed or don't work, and leases that start when these hosts may work again.

use super::*;

/// Three hosts, where the first two don't work. Broken hosts are replaced in leases that start within an
/// hour.
fn broken() -> Cloud {
    let mut cloud = Cloud::new(3);
    for host in [1, 2] {
        cloud.inventory.host_mut(HostId(host)).expect("there").health = Health::Failed;
    }
    cloud
}

fn admission(cloud: &Cloud, now: i64) -> Admission<'_> {
    cloud.admission(now).with_healing(HealingInterval(Some(minutes(60))))
}

fn decide(cloud: &Cloud, window: Window, asked: ReservationTerms) -> Result<Vec<Allocation>, Refusal> {
    let terms = Terms::new(window, None, vec![asked]).expect("terms");
    admission(cloud, 0).decide(&owner().project, &terms)
}

#[test]
fn a_host_that_is_down_is_given_last_to_leases_that_start_late_enough() {
    let cloud = broken();
    assert!(decide(&cloud, window(59, 90), hosts(2, 2)).is_err());
    assert_eq!(decide(&cloud, window(60, 90), hosts(1, 1)), Ok(vec![ids([3])]));
    assert_eq!(decide(&cloud, window(60, 90), hosts(1, 3)), Ok(vec![ids([3])]), "more is not worth the risk");
    assert_eq!(decide(&cloud, window(60, 90), hosts(2, 3)), Ok(vec![ids([1, 3])]));
    assert_eq!(
        decide(&cloud, window(60, 90), instances(8, 2, Affinity::DistinctHosts)).map(|given| given.len()),
        Ok(1)
    );
    assert!(decide(&cloud, window(10, 90), instances(8, 2, Affinity::DistinctHosts)).is_err());
    assert!(cloud.decide(window(60, 90), vec![hosts(2, 2)]).is_err(), "without an interval they never are");
}

#[test]
fn times_from_which_a_host_may_work_again_are_available() {
    let cloud = broken();
    let admission = admission(&cloud, 0);
    let project = owner().project;
    let found = admission.availability(&project, &hosts(1, 1), window(0, 200)).expect("few");
    assert_eq!(found.steps, [(window(0, 60), 1), (window(60, 200), 3)]);
    let earliest = admission.earliest_windows(&project, &hosts(3, 3), window(0, 200), (minutes(30), 1));
    assert_eq!(earliest, Ok(vec![window(60, 90)]));
    let room =
        admission.availability(&project, &instances(16, 1, Affinity::Any), window(0, 200)).expect("few");
    assert_eq!(
        room.steps.iter().map(|(window, _)| *window).collect::<Vec<_>>(),
        [window(0, 60), window(60, 200)]
    );
}

#[test]
fn a_lease_that_starts_as_soon_as_it_can_waits_for_no_host_that_is_down() {
    let cloud = broken();
    let deadline = LeaseType::BestEffort { deadline: at(300) };
    let terms = Terms::new(window(0, 30), None, vec![hosts(2, 2)]).expect("terms").of_type(deadline);
    assert!(admission(&cloud, 0).grant(&owner().project, &terms).is_err());
}

#[test]
fn a_lease_keeps_its_own_hosts_whatever_has_become_of_them() {
    for closes in [true, false] {
        let mut cloud = Cloud::new(2);
        let lease = cloud.lease(1, window(30, 60), vec![hosts(2, 2)]);
        let host = cloud.inventory.host_mut(HostId(1)).expect("there");
        if closes {
            host.reservable = false;
        } else {
            host.health = Health::Failed;
        }
        for changes in [ends(90), Changes { start: Some(at(40)), end: Some(at(100)), ..Changes::default() }] {
            let updated = admission(&cloud, 0).update(&lease, &changes).expect("nobody else has them").lease;
            assert_eq!(updated.reservations[0].allocation, ids([1, 2]));
        }
        cloud.lease(2, window(70, 80), vec![on_hosts(1, 1, named("node2"))]);
        let refused = admission(&cloud, 0).update(&lease, &ends(90)).expect_err("node2 is taken");
        assert!(matches!(refused, Refusal::EndsTooLate { latest, .. } if latest == at(70)), "{refused:?}");
    }
}

#[test]
fn a_lease_is_not_moved_to_an_earlier_time_at_which_its_hosts_may_still_be_down() {
    let mut cloud = Cloud::new(2);
    let lease = cloud.lease(1, window(200, 230), vec![hosts(2, 2)]);
    cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Failed;
    let moved = |start| {
        let changes = Changes { start: Some(at(start)), end: Some(at(start + 30)), ..Changes::default() };
        admission(&cloud, 0).update(&lease, &changes)
    };
    assert!(moved(30).is_err());
    let mut closed = Cloud::new(2);
    let waits = closed.lease(1, window(200, 230), vec![hosts(2, 2)]);
    closed.inventory.host_mut(HostId(1)).expect("there").reservable = false;
    let earlier = Changes { start: Some(at(30)), end: Some(at(60)), ..Changes::default() };
    assert!(admission(&closed, 0).update(&waits, &earlier).is_ok(), "its host works");
    for start in [60, 210] {
        let updated = moved(start).expect("they may work by then").lease;
        assert_eq!(updated.reservations[0].allocation, ids([1, 2]));
    }
}

#[test]
fn a_lack_that_does_not_depend_on_the_end_is_not_told_as_one() {
    let mut cloud = Cloud::new(2);
    let mut lease = cloud.lease(1, window(30, 60), vec![hosts(2, 2)]);
    // The lease has lost its second host, and there is no other.
    cloud.inventory.host_mut(HostId(2)).expect("there").health = Health::Failed;
    lease.reservations[0].allocation = ids([1]);
    cloud.calendar.put(&lease, at(0)).expect("free");
    let refused = admission(&cloud, 0).update(&lease, &ends(90)).expect_err("a host is missing");
    assert!(matches!(refused, Refusal::NotEnough { .. }), "{refused:?}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("1 not working")), "{refused:?}");
}

#[test]
fn what_another_part_of_the_lease_has_is_told_apart_from_other_leases() {
    let cloud = Cloud::new(2);
    for asked in [hosts(2, 2), instances(8, 2, Affinity::DistinctHosts)] {
        let refused = cloud.decide(window(0, 10), vec![hosts(1, 1), asked]).expect_err("there are two");
        let hint = refused.hint().expect("counts");
        assert!(hint.contains("taken by another part of this lease") && !hint.contains("leased"), "{hint}");
    }
}
