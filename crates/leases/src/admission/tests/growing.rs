//! Changes that add hosts to several reservations of a started lease.

use super::*;
use crate::failure_domain::FailureDomain;

fn on_either(amount: u32, names: [&str; 2]) -> ReservationTerms {
    let requirement = Requirement::any(names.map(named).to_vec()).expect("well formed");
    ReservationTerms::Instances(InstancesTerms {
        size: InstanceSize::new(16, 1024, 10).expect("a size"),
        amount: NonZeroU32::new(amount).expect("some"),
        affinity: Affinity::Any,
        requirement,
        survives: None,
        extras: None,
    })
}

fn running(cloud: &mut Cloud, asked: Vec<ReservationTerms>, on: Vec<Allocation>) -> Lease {
    let terms = Terms::new(window(0, 60), None, asked).expect("terms");
    let lease = started(&Lease::new(new_lease(1, on.len()), terms, on, None));
    cloud.calendar.put(&lease, at(0)).expect("free");
    lease
}

fn changes(lease: &Lease, wanted: Vec<TermsChange>) -> Changes {
    let ids = lease.reservations.iter().map(|reservation| reservation.id);
    Changes { reservations: ids.zip(wanted).collect(), ..Changes::default() }
}

fn allocations(lease: &Lease) -> Vec<Allocation> {
    lease.reservations.iter().map(|reservation| reservation.allocation.clone()).collect()
}

#[test]
fn no_reservation_takes_a_host_that_another_one_needs_to_grow() {
    let any =
        |names: &[&str]| Requirement::any(names.iter().copied().map(named).collect()).expect("well formed");
    let (wide, narrow) = (any(&["node1", "node2", "node4"]), any(&["node1", "node3", "node5"]));
    for narrow_first in [false, true] {
        let mut cloud = Cloud::new(5);
        let mut parts = vec![(wide.clone(), 4, range(2, 2)), (narrow.clone(), 5, range(3, 3))];
        let mut expected = vec![ids([2, 4]), ids([1, 3, 5])];
        if narrow_first {
            parts.reverse();
            expected.reverse();
        }
        let asked = parts.iter().map(|(requirement, ..)| on_hosts(1, 1, requirement.clone())).collect();
        let on = parts.iter().map(|(_, host, _)| ids([*host])).collect();
        let lease = running(&mut cloud, asked, on);
        let wanted = changes(&lease, parts.into_iter().map(|(.., change)| change).collect());
        let grown = cloud.update(&lease, &wanted, 30).expect("hosts for both");
        assert_eq!(allocations(&grown), expected);
    }
}

#[test]
fn reservations_that_survive_a_failure_leave_the_hosts_that_another_one_needs_to_grow() {
    let any =
        |names: &[&str]| Requirement::any(names.iter().copied().map(named).collect()).expect("well formed");
    let wide = any(&["node1", "node2", "node4", "node6", "node7"]);
    let mut wide = HostsTerms::new(1, 1).expect("a range").requiring(wide);
    std::sync::Arc::make_mut(&mut wide.properties).survives = Some(FailureDomain::Place("rack".to_owned()));
    let wide = (ReservationTerms::Hosts(wide), ids([4, 6]), range(2, 2));
    let narrow = (on_hosts(1, 1, any(&["node1", "node3", "node5"])), ids([5]), range(3, 3));
    // The usual ranking would choose a second host in rack a, or a host that the other reservation needs.
    let expected = [ids([4, 6, 7]), ids([1, 3, 5])];
    for order in [[0, 1], [1, 0]] {
        let mut cloud = Cloud::new(7);
        for (id, rack) in [(1, "c"), (2, "a"), (4, "a"), (6, "b"), (7, "c")] {
            let host = cloud.inventory.host_mut(HostId(id)).expect("there");
            host.capabilities.insert("rack".to_owned(), rack.to_owned());
        }
        let parts = order.map(|position| [&wide, &narrow][position]);
        let asked = parts.iter().map(|(terms, ..)| terms.clone()).collect();
        let lease = running(&mut cloud, asked, parts.iter().map(|(_, on, _)| on.clone()).collect());
        let wanted = changes(&lease, parts.iter().map(|(.., change)| change.clone()).collect());
        let grown = cloud.update(&lease, &wanted, 30).expect("hosts for both");
        assert_eq!(allocations(&grown), order.map(|position| expected[position].clone()));
    }
}

#[test]
fn more_hosts_leave_room_for_more_instances_of_the_same_lease() {
    let mut cloud = Cloud::new(4);
    let asked = vec![hosts(1, 1), on_either(1, ["node1", "node4"])];
    let lease = running(&mut cloud, asked, vec![ids([3]), slots([(4, 1)])]);
    let grown = cloud.update(&lease, &changes(&lease, vec![range(2, 2), amount(2)]), 30).expect("room");
    assert_eq!(allocations(&grown), [ids([2, 3]), slots([(1, 1), (4, 1)])]);
}

#[test]
fn a_refusal_to_grow_says_what_is_lacking_first() {
    let mut cloud = Cloud::new(4);
    let lease = running(&mut cloud, vec![hosts(1, 1), hosts(1, 1)], vec![ids([1]), ids([2])]);
    let wanted = changes(&lease, vec![range(2, 2), range(3, 3)]);
    assert_eq!(not_enough(cloud.update(&lease, &wanted, 30)), (3, 2));
}
