//! Hosts with rare properties are left for leases that need them.

use super::*;

/// Three hosts, the first with a GPU.
fn one_gpu() -> Cloud {
    let mut cloud = Cloud::new(3);
    let host = cloud.inventory.host_mut(HostId(1)).expect("there");
    host.capabilities.insert("gpu".to_owned(), "a100".to_owned());
    cloud
}

fn with_gpu() -> Requirement {
    Requirement::compare(Operator::Equal, "gpu", "a100").expect("well formed")
}

#[test]
fn a_lease_that_can_be_on_any_host_leaves_the_only_gpu_while_others_are_free() {
    let mut cloud = one_gpu();
    let day = window(10, 60);
    for (number, expected) in [(1, 2), (2, 3)] {
        let lease = cloud.lease(number, day, vec![hosts(1, 1)]);
        assert_eq!(lease.reservations[0].allocation, ids([expected]));
    }
    let asks_for_it = cloud.decide(day, vec![on_hosts(1, 1, with_gpu())]);
    assert_eq!(asks_for_it, Ok(vec![ids([1])]));
    assert_eq!(cloud.decide(day, vec![hosts(1, 1)]), Ok(vec![ids([1])]), "rather that host than none");
}

#[test]
fn instances_that_can_be_anywhere_leave_the_only_gpu_while_others_are_free() {
    let cloud = one_gpu();
    let day = window(10, 60);
    for affinity in [Affinity::Any, Affinity::OneHost, Affinity::DistinctHosts] {
        let given = cloud.decide(day, vec![instances(8, 2, affinity)]).expect("room");
        assert!(!given[0].hosts().contains(&HostId(1)), "{affinity:?}: {given:?}");
    }
    let both = cloud.decide(day, vec![instances(8, 4, Affinity::Any)]);
    assert_eq!(both, Ok(vec![slots([(2, 2), (3, 2)])]));
}

#[test]
fn a_better_fit_and_a_host_that_it_has_come_before_common_properties() {
    let mut cloud = one_gpu();
    // The first host has the shortest gap.
    cloud.lease(1, window(0, 10), vec![on_hosts(1, 1, named("node1"))]);
    cloud.lease(2, window(60, 90), vec![on_hosts(1, 1, named("node1"))]);
    assert_eq!(cloud.decide(window(10, 60), vec![hosts(1, 1)]), Ok(vec![ids([1])]));
    let lease = cloud.lease(3, window(20, 30), vec![on_hosts(1, 1, with_gpu())]);
    let anywhere = HostsChange { resource: Some(Requirement::NONE), ..HostsChange::default() };
    let changed = cloud.update(&lease, &change(&lease, TermsChange::Hosts(anywhere)), 0).expect("it stays");
    assert_eq!(changed.reservations[0].allocation, ids([1]));
}
