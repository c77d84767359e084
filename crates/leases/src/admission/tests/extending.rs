//! Refused extensions name the latest possible end.

use super::*;

/// The latest possible end of a refused extension, and the text of the refusal.
fn latest(cloud: &Cloud, lease: &Lease, until: i64) -> (Timestamp, String) {
    let refused = cloud.update(lease, &ends(until), 30).expect_err("others have it");
    let Refusal::EndsTooLate { latest, .. } = &refused else { panic!("{refused:?}") };
    (*latest, refused.hint().expect("it says until when"))
}

fn slots_of(vcpus: u32) -> ReservationTerms {
    instances(vcpus, 1, Affinity::Any)
}

#[test]
fn a_refused_extension_of_hosts_or_room_says_the_latest_possible_end() {
    for (own, other) in [(hosts(1, 1), hosts(1, 1)), (slots_of(9), slots_of(9)), (hosts(1, 1), slots_of(1))] {
        let mut cloud = Cloud::new(1);
        let running = started(&cloud.lease(1, window(0, 60), vec![own.clone()]));
        cloud.lease(2, window(74, 90), vec![other]);
        let (end, said) = latest(&cloud, &running, 120);
        assert_eq!(end, at(74), "{own:?}");
        assert!(said.contains(" from ") && said.contains("the latest possible end is "), "{said}");
        assert!(!said.contains("node1"), "no host is named: {said}");
        assert!(cloud.update(&running, &ends(74), 30).is_ok(), "what is said can be had");
    }
}

#[test]
fn an_extension_by_nothing_is_the_latest_if_others_come_at_once() {
    let mut cloud = Cloud::new(1);
    let running = started(&cloud.lease(1, window(0, 60), vec![hosts(1, 1)]));
    cloud.lease(2, window(60, 90), vec![hosts(1, 1)]);
    let (end, said) = latest(&cloud, &running, 120);
    assert_eq!((end, said.starts_with("its host is taken from ")), (at(60), true), "{said}");
}

#[test]
fn a_refused_extension_of_addresses_says_the_latest_possible_end() {
    let mut cloud = with_addresses(Cloud::new(0));
    let one = addresses(3, &[]);
    let running = started(&cloud.lease(1, window(0, 60), vec![one.clone()]));
    cloud.lease(2, window(70, 90), vec![one]);
    let (end, said) = latest(&cloud, &running, 120);
    assert_eq!((end, said.starts_with("its addresses are taken from ")), (at(70), true), "{said}");
}

#[test]
fn a_lease_that_has_not_started_says_so_as_well() {
    let mut cloud = Cloud::new(1);
    let waiting = cloud.lease(1, window(40, 60), vec![hosts(1, 1)]);
    cloud.lease(2, window(70, 90), vec![hosts(1, 1)]);
    assert_eq!(latest(&cloud, &waiting, 120).0, at(70));
}
