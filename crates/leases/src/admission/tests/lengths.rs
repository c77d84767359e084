//! Limits on the length of leases by flavor and free pool.

use super::*;
use crate::free_pool::POOL_PROPERTY;
use crate::offer::OfferKind;
use crate::scoped::Scope;

/// Hosts 1 and 2 are in the pool `gpu`, where leases last at most an hour. Host 3 is in another pool.
fn cloud() -> Cloud {
    let mut cloud = Cloud::new(3);
    for (host, pool) in [(1, "gpu"), (2, "gpu"), (3, "cpu")] {
        let capabilities = &mut cloud.inventory.host_mut(HostId(host)).expect("there").capabilities;
        capabilities.insert(POOL_PROPERTY.to_owned(), pool.to_owned());
    }
    cloud.rules.enforcement.max_lease_duration.insert(Scope::pool("gpu"), Some(minutes(60)));
    cloud
}

fn on_gpu() -> ReservationTerms {
    on_hosts(1, 1, Requirement::compare(Operator::Equal, POOL_PROPERTY, "gpu").expect("well formed"))
}

fn too_long(minutes: i64, allowed: i64, scope: Scope) -> Refusal {
    let (asked_seconds, allowed_seconds) = (minutes * 60, allowed * 60);
    EnforcementError::TooLong { asked_seconds, allowed_seconds, scope: Some(scope) }.into()
}

#[test]
fn long_leases_get_hosts_of_pools_that_allow_them() {
    let cloud = cloud();
    assert_eq!(cloud.decide(window(0, 61), vec![hosts(1, 1)]), Ok(vec![ids([3])]));
    assert_eq!(cloud.decide(window(0, 60), vec![hosts(3, 3)]), Ok(vec![ids([1, 2, 3])]));
    let room = |amount| cloud.decide(window(0, 61), vec![instances(1, amount, Affinity::Any)]);
    assert_eq!((room(16), not_enough(room(17))), (Ok(vec![slots([(3, 16)])]), (17, 16)));
}

#[test]
fn a_lease_that_is_too_long_for_its_pool_is_refused_with_the_limit() {
    let cloud = cloud();
    let refused = Err(too_long(61, 60, Scope::pool("gpu")));
    assert_eq!(cloud.decide(window(0, 61), vec![on_gpu()]), refused);
    assert_eq!(cloud.decide(window(0, 61), vec![hosts(2, 2)]), refused, "one host is not enough");
    let terms = Terms::new(window(0, 61), None, vec![on_gpu()]).expect("terms");
    let later = terms.clone().of_type(LeaseType::BestEffort { deadline: at(500) });
    let anywhere = terms.clone().anywhere_in(window(0, 500)).expect("it fits");
    for terms in [&later, &anywhere] {
        let granted = cloud.admission(0).grant(&owner().project, terms).map(|grant| grant.allocations);
        assert_eq!(granted, refused, "{terms:?}");
    }
    let offers = cloud.admission(0).offers(&owner().project, &terms, at(500));
    let shorter = offers.iter().find(|offer| offer.kind == OfferKind::ShorterDuration);
    assert_eq!(shorter.map(|offer| offer.grant.terms.window()), Some(window(0, 60)));
}

#[test]
fn where_others_have_the_hosts_the_limit_is_mentioned_only() {
    let mut cloud = cloud();
    cloud.lease(1, window(0, 200), vec![on_hosts(1, 1, named("node3"))]);
    let refusal = cloud.decide(window(0, 61), vec![hosts(1, 1)]).expect_err("it is leased");
    assert!(refusal.is_lack(), "{refusal:?}");
    let hint = refusal.hint().expect("a report");
    let limit =
        "2 where leases must be shorter: at most 3600 seconds for its free pool (leases.max_duration)";
    assert!(hint.contains(limit) && hint.contains("1 leased at that time"), "{hint}");
}

#[test]
fn a_started_lease_is_extended_up_to_the_limit_of_the_pool_that_it_has_hosts_of() {
    let mut cloud = cloud();
    let gpu = started(&cloud.lease(1, window(0, 30), vec![on_gpu()]));
    let cpu = started(&cloud.lease(2, window(0, 30), vec![on_hosts(1, 1, named("node3"))]));
    assert!(cloud.update(&gpu, &ends(60), 10).is_ok() && cloud.update(&cpu, &ends(600), 10).is_ok());
    assert_eq!(cloud.update(&gpu, &ends(61), 10), Err(too_long(61, 60, Scope::pool("gpu"))));
    cloud.rules.enforcement.extension_window = Some(minutes(10));
    assert!(cloud.update(&gpu, &ends(90), 25).is_ok(), "the extension is limited");
    assert_eq!(cloud.update(&gpu, &ends(91), 25), Err(too_long(61, 60, Scope::pool("gpu"))));
}

#[test]
fn a_lease_that_has_not_started_moves_to_a_pool_that_allows_its_new_length_or_stays_as_it_is() {
    let mut cloud = cloud();
    let anywhere = cloud.lease(1, window(10, 40), vec![hosts(1, 1)]);
    let only = cloud.lease(2, window(10, 40), vec![on_gpu()]);
    let moved = cloud.update(&anywhere, &ends(200), 0).expect("another pool");
    assert_eq!(moved.reservations[0].allocation, ids([3]));
    assert_eq!(cloud.update(&only, &ends(200), 0), Err(too_long(190, 60, Scope::pool("gpu"))));
}

#[test]
fn the_limit_for_a_flavor_precedes_that_of_the_pool_and_some_projects_are_exempt() {
    let mut cloud = cloud();
    let limits = &mut cloud.rules.enforcement.max_lease_duration;
    limits.insert(Scope::flavor("m1.medium"), Some(minutes(90)));
    limits.insert(Scope::pool("cpu"), Some(minutes(60)));
    assert!(cloud.decide(window(0, 90), vec![flavor(&[], 10)]).is_ok());
    let refused = too_long(91, 90, Scope::flavor("m1.medium"));
    assert_eq!(cloud.decide(window(0, 91), vec![flavor(&[], 1)]), Err(refused.clone()));
    let lease = cloud.lease(1, window(0, 60), vec![flavor(&[], 1)]);
    assert_eq!(cloud.update(&lease, &ends(91), 0), Err(refused.clone()));
    assert_eq!(cloud.update(&started(&lease), &ends(91), 10), Err(refused));
    cloud.rules.enforcement.exempt_projects.insert(owner().project);
    assert!(cloud.update(&lease, &ends(91), 0).is_ok());
    assert!(cloud.decide(window(100, 300), vec![on_gpu()]).is_ok());
}

#[test]
fn a_failed_host_is_not_replaced_from_a_pool_whose_limit_is_too_low() {
    let mut cloud = cloud();
    let lease = started(&cloud.lease(1, window(0, 200), vec![hosts(1, 1)]));
    assert_eq!(lease.reservations[0].allocation, ids([3]));
    cloud.inventory.host_mut(HostId(3)).expect("there").health = Health::Failed;
    let healed =
        |cloud: &Cloud, now| cloud.admission(now).heal(&lease, HealingInterval(None)).expect("changed");
    assert_eq!(healed(&cloud, 10).reservations[0].allocation, ids([]));
    assert_eq!(healed(&cloud, 140).reservations[0].allocation, ids([1]), "an hour is left");
}
