//! Leases that survive the failure of a host or a place.

use proptest::prelude::*;

use super::*;
use crate::extra_specs::ExtraSpecs;
use crate::failure_domain::FailureDomain;
use crate::properties::PropertyChange;

fn rack() -> FailureDomain {
    FailureDomain::Place("rack".to_owned())
}

/// Hosts 1, 2, ... in these racks. An empty name means that the rack is unknown.
fn racks(of: &[&str]) -> Cloud {
    let mut cloud = Cloud::new(of.len() as u64);
    for (id, rack) in (1..).zip(of) {
        let host = cloud.inventory.host_mut(HostId(id)).expect("there");
        if !rack.is_empty() {
            host.capabilities.insert("rack".to_owned(), (*rack).to_owned());
        }
    }
    cloud
}

fn surviving(min: u32, max: u32, domain: FailureDomain) -> ReservationTerms {
    let mut terms = HostsTerms::new(min, max).expect("a range");
    std::sync::Arc::make_mut(&mut terms.properties).survives = Some(domain);
    ReservationTerms::Hosts(terms)
}

fn fails(cloud: &mut Cloud, host: u64) {
    cloud.inventory.host_mut(HostId(host)).expect("there").health = Health::Failed;
}

#[test]
fn fb_a_a_lease_has_so_many_more_hosts_that_enough_are_left() {
    let mut cloud = racks(&["a", "a", "a", "b", "b", "c"]);
    let one_more = cloud.decide(window(0, 60), vec![surviving(2, 2, FailureDomain::Host)]).expect("three");
    assert_eq!(one_more, [ids([1, 2, 3])]);
    // With one host in each rack, two are left. With two in each, four would be needed.
    let spread = cloud.decide(window(0, 60), vec![surviving(2, 2, rack())]).expect("one in each");
    assert_eq!(spread, [ids([1, 4, 6])]);
    let three = cloud.decide(window(0, 60), vec![surviving(3, 3, rack())]).expect("two, two and one");
    assert_eq!(three, [ids([1, 2, 4, 5, 6])]);
    // Up to the maximum, as far as hosts are available.
    let many = cloud.decide(window(0, 60), vec![surviving(1, 9, rack())]).expect("some");
    assert_eq!(many, [ids([1, 2, 4, 5, 6])]);
    // If places are unknown, all hosts could be in the same one.
    for host in 1..=6 {
        cloud.inventory.host_mut(HostId(host)).expect("there").capabilities.clear();
    }
    let refused = cloud.decide(window(0, 60), vec![surviving(1, 1, rack())]).expect_err("in one place");
    let hint = "1 host needed: 0 of 6 hosts left, 6 without the property that says where they are";
    assert_eq!(refused.hint().as_deref(), Some(hint));
}

#[test]
fn fb_b_a_refusal_says_how_many_are_needed_in_reserve() {
    let cloud = racks(&["a", "a", "a", "b", "b", ""]);
    let refused = cloud.decide(window(0, 60), vec![surviving(4, 4, rack())]).expect_err("three count");
    let hint = "4 hosts needed: 3 of 6 hosts left, 3 needed in case others fail";
    assert_eq!(refused.hint().as_deref(), Some(hint));
    assert!(cloud.decide(window(0, 60), vec![surviving(3, 3, rack())]).is_ok());
    let terms = Terms::new(window(0, 60), None, vec![surviving(4, 4, rack())]).expect("terms");
    let offers = cloud.admission(0).offers(&owner().project, &terms, at(90));
    let fewer = offers.iter().find(|offer| offer.kind == crate::offer::OfferKind::FewerHosts).expect("three");
    assert_eq!(fewer.grant.terms.reservations[0].number(), 3);
    assert_eq!(fewer.grant.allocations[0].amount(), 5, "two of each rack, and that of which it is not known");
}

#[test]
fn fb_c_after_a_failure_the_buffer_is_used_and_then_restored() {
    let mut cloud = racks(&["a", "b", "c", "a", "b"]);
    let lease = started(&cloud.lease(1, window(0, 60), vec![surviving(2, 2, rack())]));
    assert_eq!(lease.reservations[0].allocation, ids([1, 2, 3]));
    fails(&mut cloud, 1);
    let healed = cloud.admission(1).heal(&lease, HealingInterval(None)).expect("one has failed");
    assert_eq!(healed.reservations[0].allocation, ids([2, 3, 4]));
    assert!(!healed.degraded());
    // Without a host in another rack, the lease has the hosts it asks for, but would not survive the next
    // failure, and shows that.
    fails(&mut cloud, 4);
    let short = cloud.admission(2).heal(&healed, HealingInterval(None)).expect("another has failed");
    assert_eq!((short.reservations[0].allocation.amount(), short.degraded()), (2, true));
    cloud.inventory.host_mut(HostId(4)).expect("there").health = Health::Up;
    let whole = cloud.admission(3).heal(&short, HealingInterval(None)).expect("it works again");
    assert_eq!(whole.reservations[0].allocation, ids([2, 3, 4]));
    assert!(!whole.degraded());
    assert_eq!(cloud.admission(3).heal(&whole, HealingInterval(None)), None);
    // Moving a host to another rack also triggers healing.
    let host = cloud.inventory.host_mut(HostId(4)).expect("there");
    host.capabilities.insert("rack".to_owned(), "b".to_owned());
    cloud.inventory.host_mut(HostId(1)).expect("there").health = Health::Up;
    let moved = cloud.admission(4).heal(&whole, HealingInterval(None)).expect("two in one rack");
    assert_eq!(moved.reservations[0].allocation, ids([1, 2, 3, 4]), "a started lease loses no host");
}

#[test]
fn fb_c_enough_hosts_come_before_hosts_in_reserve() {
    let mut cloud = racks(&["a", "b", "c", "a", "a"]);
    let lease = started(&cloud.lease(1, window(0, 60), vec![surviving(2, 2, rack())]));
    fails(&mut cloud, 2);
    fails(&mut cloud, 3);
    let healed = cloud.admission(1).heal(&lease, HealingInterval(None)).expect("two have failed");
    assert_eq!(healed.reservations[0].allocation, ids([1, 4]));
    assert!(healed.degraded(), "it would not survive the loss of rack a");
}

#[test]
fn fb_d_changes_keep_the_buffer() {
    let mut cloud = racks(&["a", "b", "c", "a", "b", "c"]);
    let pending = cloud.lease(1, window(10, 60), vec![surviving(2, 2, rack())]);
    let lease = started(&pending);
    let range = |min, max| {
        TermsChange::Hosts(HostsChange { min: Some(min), max: Some(max), ..HostsChange::default() })
    };
    let change = |lease: &Lease, what: TermsChange| Changes {
        reservations: vec![(lease.reservations[0].id, what)],
        ..Changes::default()
    };
    let more = cloud.update(&lease, &change(&lease, range(3, 3)), 11).expect("two of each but one");
    assert_eq!(more.reservations[0].allocation.amount(), 5);
    assert!(more.reservations[0].allocation.hosts().is_superset(&lease.reservations[0].allocation.hosts()));
    let grown = cloud.admission(11).grow(&lease, lease.reservations[0].id, 2, ExtraSpecs::default());
    assert_eq!(grown.expect("all six").reservations[0].allocation.amount(), 6);
    let beyond = cloud.admission(11).grow(&lease, lease.reservations[0].id, 3, ExtraSpecs::default());
    assert!(matches!(beyond, Err(Refusal::NotEnough { needed: 3, found: 2, .. })), "{beyond:?}");
    // A bad host is replaced without breaking the promise.
    let swapped = cloud.admission(11).swap(&lease, lease.reservations[0].id, HostId(2)).expect("host 5");
    assert_eq!(swapped.reservations[0].allocation, ids([1, 3, 5]));
    // The failure domain itself can change.
    let domain = |survives| {
        let properties = vec![PropertyChange::Survives(survives)];
        TermsChange::Hosts(HostsChange { properties, ..HostsChange::default() })
    };
    let plain = cloud.update(&pending, &change(&pending, domain(None)), 0).expect("two");
    assert_eq!(plain.reservations[0].allocation.amount(), 2);
    let again = cloud.update(&plain, &change(&plain, domain(Some(FailureDomain::Host))), 0).expect("three");
    assert_eq!(again.reservations[0].allocation.amount(), 3);
}

fn room(amount: u32, affinity: Affinity, domain: FailureDomain) -> ReservationTerms {
    let ReservationTerms::Instances(terms) = instances(4, amount, affinity) else { unreachable!() };
    ReservationTerms::Instances(InstancesTerms { survives: Some(domain), ..terms })
}

#[test]
fn fb_a_room_for_instances_is_left_whichever_domain_fails() {
    // Each host has room for four instances.
    let cloud = racks(&["a", "a", "b", "c"]);
    let given = |asked| cloud.decide(window(0, 60), vec![asked]).map(|given| given[0].clone());
    let by_host = given(room(4, Affinity::Any, FailureDomain::Host)).expect("two on each of three");
    assert_eq!((by_host.hosts().len(), by_host.amount()), (3, 6));
    let by_rack = given(room(8, Affinity::Any, rack())).expect("four in each rack");
    assert_eq!(by_rack.amount(), 12);
    let apart = given(room(2, Affinity::DistinctHosts, rack())).expect("one in each");
    assert_eq!((apart.hosts().len(), apart.amount()), (3, 3));
    let refused = given(room(9, Affinity::Any, rack()));
    assert!(matches!(refused, Err(Refusal::NotEnough { needed: 9, found: 8, .. })), "{refused:?}");
    assert!(given(room(1, Affinity::OneHost, FailureDomain::Host)).is_err(), "nothing is left of one host");
}

#[test]
fn fb_c_room_for_instances_is_restored_after_a_failure() {
    let mut cloud = racks(&["a", "b", "c", "a"]);
    let lease = started(&cloud.lease(1, window(0, 60), vec![room(4, Affinity::Any, rack())]));
    assert_eq!(lease.reservations[0].allocation.amount(), 6, "two in each rack");
    fails(&mut cloud, 2);
    let two = cloud.admission(1).heal(&lease, HealingInterval(None)).expect("one has failed");
    assert_eq!(two.reservations[0].allocation.amount(), 8, "four in either rack");
    assert!(!two.degraded());
    fails(&mut cloud, 3);
    let one = cloud.admission(2).heal(&two, HealingInterval(None)).expect("another has failed");
    assert_eq!((one.reservations[0].allocation.amount(), one.degraded()), (4, true));
    cloud.inventory.host_mut(HostId(2)).expect("there").health = Health::Up;
    let whole = cloud.admission(3).heal(&one, HealingInterval(None)).expect("it works again");
    assert_eq!((whole.reservations[0].allocation.amount(), whole.degraded()), (8, false));
}

#[test]
fn fb_d_room_for_fewer_instances_is_no_more_than_they_need() {
    // Each host has room for four instances.
    let mut cloud = racks(&["a", "a", "b", "b"]);
    let pending = cloud.lease(1, window(10, 60), vec![room(5, Affinity::Any, rack())]);
    let Allocation::Slots(before) = pending.reservations[0].allocation.clone() else { unreachable!() };
    for amount in (1..=5).rev() {
        let number = NonZeroU32::new(amount);
        let fewer = TermsChange::Instances(InstancesChange { amount: number, ..InstancesChange::default() });
        let changes =
            Changes { reservations: vec![(pending.reservations[0].id, fewer)], ..Changes::default() };
        let changed = cloud.update(&pending, &changes, 0).expect("it is less than it has");
        let Allocation::Slots(slots) = &changed.reservations[0].allocation else { unreachable!() };
        let stays = |(host, count): (&HostId, &u32)| before.get(host).is_some_and(|had| had >= count);
        assert!(slots.iter().all(stays), "{slots:?} of {before:?}");
        let in_rack = |hosts: [u64; 2]| hosts.iter().filter_map(|id| slots.get(&HostId(*id))).sum::<u32>();
        assert_eq!((in_rack([1, 2]), in_rack([3, 4])), (amount, amount), "for {amount}");
    }
}

proptest! {
    #[test]
    fn fb_a_no_slot_is_too_many(
        of in prop::collection::vec((0_usize..4, 1_u32..24), 1..9),
        amount in 1_u32..14,
        apart in any::<bool>(),
        by_host in any::<bool>(),
    ) {
        let names: Vec<&str> = of.iter().map(|(rack, _)| ["a", "b", "c", ""][*rack]).collect();
        let mut cloud = racks(&names);
        for (id, (_, vcpus)) in (1..).zip(&of) {
            cloud.inventory.host_mut(HostId(id)).expect("there").vcpus = *vcpus;
        }
        let domain = if by_host { FailureDomain::Host } else { rack() };
        let affinity = if apart { Affinity::DistinctHosts } else { Affinity::Any };
        let in_each = |slots: &BTreeMap<HostId, u32>| {
            let mut in_each: BTreeMap<String, u32> = BTreeMap::new();
            for (host, count) in slots {
                let place = if by_host { host.to_string() } else { names[host.0 as usize - 1].to_owned() };
                *in_each.entry(place).or_insert(0) += count;
            }
            in_each
        };
        let left = |slots: &BTreeMap<HostId, u32>| {
            let in_each = in_each(slots);
            in_each.values().sum::<u32>() - in_each.values().max().copied().unwrap_or(0)
        };
        let most = |vcpus: u32| if apart { (vcpus / 4).min(1) } else { vcpus / 4 };
        let all = (1..).zip(&of).map(|(id, (_, vcpus))| (HostId(id), most(*vcpus))).collect();
        match cloud.decide(window(0, 60), vec![room(amount, affinity, domain)]) {
            Ok(given) => {
                let Allocation::Slots(slots) = &given[0] else { unreachable!() };
                prop_assert!(slots.iter().all(|(host, count)| *count <= most(of[host.0 as usize - 1].1)));
                prop_assert_eq!(left(slots), amount);
                let largest = in_each(slots).values().max().copied().unwrap_or(0);
                // One less in each domain would not be enough.
                let smaller: u32 = in_each(&all).values().map(|count| (*count).min(largest - 1)).sum();
                prop_assert!(smaller < amount + largest - 1, "{slots:?} has more than it needs");
            }
            Err(_) => prop_assert!(left(&all) < amount),
        }
    }

    /// Enough hosts are left after any failure, and no host is superfluous.
    #[test]
    fn fb_a_enough_are_left_whichever_domain_fails_and_no_host_is_too_many(
        of in prop::collection::vec(0_usize..5, 1..12),
        taken in prop::collection::vec(any::<bool>(), 12),
        min in 1_u32..5,
        beside in 0_u32..3,
        by_host in any::<bool>(),
    ) {
        let names: Vec<&str> = of.iter().map(|rack| ["a", "b", "c", "d", ""][*rack]).collect();
        let mut cloud = racks(&names);
        for (id, _) in (1..).zip(&names).filter(|(id, _): &(u64, _)| taken[*id as usize - 1]) {
            fails(&mut cloud, id);
        }
        let domain = if by_host { FailureDomain::Host } else { rack() };
        let place = |host: &HostId| {
            if by_host { host.0.to_string() } else { names[host.0 as usize - 1].to_owned() }
        };
        let left = |hosts: &BTreeSet<HostId>| {
            let after = |failed: String| hosts.iter().filter(|host| place(host) != failed).count();
            hosts.iter().map(|host| after(place(host))).min().unwrap_or(0)
        };
        let free: BTreeSet<HostId> =
            (1..=names.len() as u64).map(HostId).filter(|host| !taken[host.0 as usize - 1]).collect();
        match cloud.decide(window(0, 60), vec![surviving(min, min + beside, domain)]) {
            Ok(given) => {
                let hosts = given[0].hosts();
                let most = (min + beside) as usize;
                prop_assert_eq!(left(&hosts), left(&free).min(most));
                for host in &hosts {
                    let mut fewer = hosts.clone();
                    fewer.remove(host);
                    prop_assert!(left(&fewer) < left(&hosts), "{host:?} of {hosts:?} is too many");
                }
            }
            Err(_) => prop_assert!(left(&free) < min as usize),
        }
    }
}
