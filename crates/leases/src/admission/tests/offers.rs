//! Offers made for refused requests (CLS-10).

use proptest::prelude::*;

use super::*;
use crate::free_pool::POOL_PROPERTY;
use crate::lease::EndAction;
use crate::offer::OfferKind;

fn terms(window: Window, asked: Vec<ReservationTerms>) -> Terms {
    Terms::new(window, None, asked).expect("terms")
}

/// Kind, window and number of hosts.
type Shown = (OfferKind, Window, u64);

impl Cloud {
    fn offers(&self, terms: &Terms, now: i64) -> Vec<Offer> {
        let admission = self.admission(now);
        assert!(admission.grant(&owner().project, terms).is_err(), "it could be had");
        admission.offers(&owner().project, terms, at(10_000))
    }

    fn shown(&self, terms: &Terms) -> Vec<Shown> {
        let amount = |offer: &Offer| offer.grant.allocations.iter().map(Allocation::amount).sum();
        let offers = self.offers(terms, 0);
        offers.iter().map(|offer| (offer.kind, offer.grant.terms.window(), amount(offer))).collect()
    }

    fn offers_of_change(&self, lease: &Lease, changes: &Changes) -> Vec<Shown> {
        let offered = self.admission(0).offers_of_change(lease, changes, at(10_000));
        let amount = |lease: &Lease| lease.reservations.iter().map(|r| r.allocation.amount()).sum();
        offered.iter().map(|offer| (offer.kind, offer.lease.window, amount(&offer.lease))).collect()
    }
}

#[test]
fn cls_10_b_a_refusal_carries_a_later_start_less_time_and_fewer_hosts() {
    let mut cloud = Cloud::new(3);
    cloud.lease(1, window(60, 120), vec![hosts(2, 2)]);
    let offered = cloud.shown(&terms(window(30, 90), vec![hosts(2, 3)]));
    assert_eq!(
        offered,
        [
            (OfferKind::LaterStart, window(120, 180), 3),
            (OfferKind::ShorterDuration, window(30, 60), 3),
            (OfferKind::FewerHosts, window(30, 90), 1),
        ]
    );
}

#[test]
fn cls_10_b_room_for_instances_is_offered_as_hosts_are() {
    let mut cloud = Cloud::new(1);
    let size = InstanceSize::new(8, 1024, 1).expect("a size");
    let room = |amount: u32| {
        let amount = NonZeroU32::new(amount).expect("some");
        let requirement = Requirement::NONE;
        ReservationTerms::Instances(InstancesTerms {
            size,
            amount,
            affinity: Affinity::Any,
            requirement,
            survives: None,
            extras: None,
        })
    };
    cloud.lease(1, window(60, 120), vec![room(1)]);
    let offered = cloud.shown(&terms(window(30, 90), vec![room(2)]));
    assert_eq!(
        offered,
        [
            (OfferKind::LaterStart, window(120, 180), 2),
            (OfferKind::ShorterDuration, window(30, 60), 2),
            (OfferKind::FewerHosts, window(30, 90), 1),
        ]
    );
}

#[test]
fn cls_10_b_who_asks_for_a_pool_is_offered_hosts_of_another() {
    let mut cloud = Cloud::new(2);
    for (host, pool) in [(1, "fast"), (2, "slow")] {
        let capabilities = &mut cloud.inventory.host_mut(HostId(host)).expect("there").capabilities;
        capabilities.insert(POOL_PROPERTY.to_owned(), pool.to_owned());
    }
    let pool = |name: &str| Requirement::compare(Operator::Equal, POOL_PROPERTY, name).expect("well formed");
    cloud.lease(1, window(0, 60), vec![on_hosts(1, 1, pool("fast"))]);
    let both = Requirement::all(vec![
        pool("fast"),
        Requirement::compare(Operator::Greater, "vcpus", "1").expect("well formed"),
    ])
    .expect("two");
    for requirement in [pool("fast"), both] {
        let offers = cloud.offers(&terms(window(0, 60), vec![on_hosts(1, 1, requirement)]), 0);
        let other: Vec<_> = offers.iter().filter(|offer| offer.kind == OfferKind::OtherPool).collect();
        assert_eq!(other.len(), 1);
        assert_eq!(other[0].grant.allocations, [Allocation::Hosts([HostId(2)].into())]);
        assert!(matches!(&other[0].grant.terms.reservations[0], ReservationTerms::Hosts(terms)
            if terms.resource.names().contains(POOL_PROPERTY)));
    }
    let anywhere = cloud.offers(&terms(window(0, 60), vec![hosts(2, 2)]), 0);
    assert!(anywhere.iter().all(|offer| offer.kind != OfferKind::OtherPool));
}

#[test]
fn cls_10_b_who_asks_for_too_long_a_lease_is_offered_the_longest() {
    let mut cloud = Cloud::new(1);
    cloud.rules.enforcement.max_lease_duration = Some(minutes(45)).into();
    let offered = cloud.shown(&terms(window(0, 60), vec![hosts(1, 1)]));
    assert_eq!(offered, [(OfferKind::ShorterDuration, window(0, 45), 1)]);
}

#[test]
fn cls_10_b_what_is_wrong_has_no_alternative() {
    assert!(!Refusal::StartInPast.negotiable());
    assert!(!Refusal::Started.negotiable());
}

#[test]
fn cls_10_c_a_refused_change_carries_the_latest_end_a_later_start_and_fewer_hosts() {
    let mut cloud = Cloud::new(2);
    let lease = cloud.lease(1, window(30, 60), vec![hosts(1, 1)]);
    cloud.lease(2, window(90, 120), vec![hosts(2, 2)]);
    let longer = Changes { end: Some(at(100)), ..Changes::default() };
    assert_eq!(
        cloud.offers_of_change(&lease, &longer),
        [(OfferKind::LaterStart, window(120, 190), 1), (OfferKind::ShorterDuration, window(30, 90), 1),]
    );
    let more = HostsChange { min: Some(3), max: Some(3), ..HostsChange::default() };
    let more = Changes {
        reservations: vec![(lease.reservations[0].id, TermsChange::Hosts(more))],
        ..Changes::default()
    };
    assert_eq!(cloud.offers_of_change(&lease, &more), [(OfferKind::FewerHosts, window(30, 60), 2)]);
}

#[test]
fn cls_10_c_a_running_lease_is_offered_no_other_start_and_nothing_that_it_has() {
    let mut cloud = Cloud::new(1);
    let mut lease = cloud.lease(1, window(0, 60), vec![hosts(1, 1)]);
    cloud.lease(2, window(60, 120), vec![hosts(1, 1)]);
    lease.status = LeaseStatus::Active;
    lease.reservations[0].status = ReservationStatus::Active;
    let longer = Changes { end: Some(at(100)), ..Changes::default() };
    assert_eq!(cloud.offers_of_change(&lease, &longer), []);
    // Other changes in the request don't need an offer.
    let and_more = Changes {
        name: Some("other".to_owned()),
        backfill: Some(!lease.backfill),
        end_action: Some(EndAction::KeepGuests),
        ..longer
    };
    assert_ne!(lease.end_action, EndAction::KeepGuests);
    assert_eq!(cloud.offers_of_change(&lease, &and_more), []);
}

#[test]
fn a_flexible_lease_lies_where_there_is_room_first() {
    let mut cloud = Cloud::new(1);
    cloud.lease(1, window(30, 60), vec![hosts(1, 1)]);
    let flexible = |within| terms(window(0, 40), vec![hosts(1, 1)]).anywhere_in(within);
    let grant = |within| cloud.admission(0).grant(&owner().project, &flexible(within).expect("long enough"));
    let granted = grant(window(10, 100)).expect("room");
    assert_eq!((granted.terms.window(), granted.terms.within()), (window(60, 100), None));
    assert!(matches!(grant(window(10, 99)), Err(Refusal::NotEnough { .. })));
    assert_eq!(flexible(window(10, 49)), Err(TermsError::LongerThanWindow));
}

proptest! {
    /// With any bookings, each offer can be accepted and matches its kind.
    #[test]
    fn cls_10_b_every_offer_can_be_had(
        taken in prop::collection::vec((0_i64..200, 1_i64..80, 1_u32..4), 0..12),
        start in 0_i64..150, length in 2_i64..120, least in 1_u32..5,
    ) {
        let mut cloud = Cloud::new(4);
        for (number, (start, length, count)) in (1..).zip(&taken) {
            let window = window(*start, start + length);
            if cloud.decide(window, vec![hosts(*count, *count)]).is_ok() {
                cloud.lease(number, window, vec![hosts(*count, *count)]);
            }
        }
        let asked = terms(window(start, start + length), vec![hosts(least, 4)]);
        let admission = cloud.admission(0);
        if admission.grant(&owner().project, &asked).is_ok() {
            return Ok(());
        }
        for offer in admission.offers(&owner().project, &asked, at(10_000)) {
            let lease = Lease::new(
                new_lease(100, 1), offer.grant.terms.clone(), offer.grant.allocations.clone(), None,
            );
            let mut calendar = cloud.calendar.clone();
            prop_assert!(calendar.put(&lease, at(0)).is_ok(), "{offer:?} is taken");
            let (then, given) = (offer.grant.terms.window(), offer.grant.allocations[0].amount());
            match offer.kind {
                OfferKind::LaterStart => {
                    prop_assert!(then.start() > at(start) && then.length() == minutes(length));
                }
                OfferKind::ShorterDuration => {
                    prop_assert!(then.start() == at(start) && then.length() < minutes(length));
                    let longer = window(start, start + then.length().as_mins() + 1);
                    prop_assert!(cloud.decide(longer, vec![hosts(least, 4)]).is_err(), "not the longest");
                }
                OfferKind::FewerHosts => {
                    prop_assert!(then == asked.window() && given < u64::from(least));
                    let more = u32::try_from(given).expect("few") + 1;
                    prop_assert!(cloud.decide(then, vec![hosts(more, 4)]).is_err(), "not the most");
                }
                OfferKind::OtherPool => prop_assert!(false, "no pool was asked for"),
                OfferKind::LongerTimeout => prop_assert!(false, "it does not wait"),
            }
        }
    }
}
