//! Offers, and leases that make room for other leases (CLS-10).

use std::sync::Arc;

use leases::lease_type::LeaseType;
use leases::offer::OfferKind;
use leases::standing::Standing;
use service::{AllocationFilter, Hold, LeaseChanges, LeaseFilter, NewLease, NotFound, Offers, ServiceError};
use simulation::{World, caller};
use store::LeaseRecord;

use crate::terms::{
    asking, at, change, dates, hosts, hosts_of, make, minutes, settings, slots, status, window, world,
    world_with,
};

async fn offers_to(world: &mut World, project: &str, new: NewLease) -> Offers {
    held_for(world, project, new, Hold::Default).await
}

async fn held_for(world: &mut World, project: &str, new: NewLease, hold: Hold) -> Offers {
    let new = NewLease { asked_at: world.now(), ..new };
    let offers =
        world.service.offers().for_lease(&caller(project), &new, hold).await.expect("the store works");
    world.touched();
    offers
}

async fn make_for(world: &mut World, project: &str, new: NewLease) -> Result<Arc<LeaseRecord>, ServiceError> {
    let new = NewLease { asked_at: world.now(), ..new };
    let made = world.service.leases().create(&caller(project), new, None).await;
    world.touched();
    made.map(|created| created.lease)
}

async fn accept(
    world: &mut World,
    project: &str,
    offer: &LeaseRecord,
) -> Result<Arc<LeaseRecord>, ServiceError> {
    let accepted = world.service.offers().accept(&caller(project), offer.lease.id).await;
    world.touched();
    accepted
}

fn kind(offer: &LeaseRecord) -> OfferKind {
    match offer.lease.standing {
        Standing::Offered { kind, .. } => kind,
        other => panic!("{other:?}"),
    }
}

fn of_kind(offers: &Offers, wanted: OfferKind) -> &Arc<LeaseRecord> {
    offers.offers.iter().find(|offer| kind(offer) == wanted).expect("there is one")
}

#[tokio::test]
async fn cls_10_e_what_is_offered_is_reserved_and_accepted_by_one_call() {
    let mut world = world(3).await;
    make(&mut world, asking(60, 120, vec![hosts(2)])).await.expect("free");
    let refused = make_for(&mut world, "q", asking(30, 90, vec![hosts(2)])).await;
    assert!(matches!(refused, Err(ServiceError::Refused(refusal)) if refusal.negotiable()));
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(2)])).await;
    let kinds: Vec<_> = offers.offers.iter().map(|offer| kind(offer)).collect();
    assert_eq!(kinds, [OfferKind::LaterStart, OfferKind::ShorterDuration, OfferKind::FewerHosts]);
    // Offers aren't leases.
    assert_eq!(world.service.leases().all(&LeaseFilter::default()).len(), 1);
    assert!(world.service.leases().get(offers.offers[0].lease.id).is_none());
    let allocations =
        world.service.leases().allocations(&AllocationFilter::default()).await.expect("nobody has gone");
    assert_eq!(allocations.iter().map(|all| all.reservations.len()).sum::<usize>(), 2);
    let later = of_kind(&offers, OfferKind::LaterStart).clone();
    let lease = accept(&mut world, "q", &later).await.expect("it holds");
    assert_eq!((lease.lease.window, hosts_of(&lease)), (window(120, 180), hosts_of(&later)));
    assert_eq!((lease.lease.owner.project.0.as_str(), lease.lease.id), ("q", later.lease.id));
    // Accepting an offer withdraws the remaining offers and frees their hosts.
    let again = accept(&mut world, "q", of_kind(&offers, OfferKind::FewerHosts)).await;
    assert!(matches!(again, Err(ServiceError::NotFound(NotFound::Offer(_)))), "{again:?}");
    assert!(world.service.offers().all(None).is_empty());
    assert!(make(&mut world, asking(30, 60, vec![hosts(3)])).await.is_ok());
    world.run_until(at(121)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn cls_10_e_an_offer_holds_for_a_while_and_not_longer() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    let offer = offers.offers[0].clone();
    world.run_until(at(1)).await;
    assert!(accept(&mut world, "q", &offer).await.is_err());
    assert!(make(&mut world, asking(60, 120, vec![hosts(1)])).await.is_ok());
    assert!(world.service.offers().all(None).is_empty());
}

#[tokio::test]
async fn cls_10_e_an_offer_accepted_after_its_start_begins_now_unless_the_request_named_that_start() {
    // The hosts of a world and the end of its only lease, the request, and the window after five minutes.
    for (hosts_there, taken_until, kind, start, accepted) in [
        (1, 3, OfferKind::LaterStart, 0, Some(window(5, 63))),
        (2, 60, OfferKind::FewerHosts, 0, Some(window(5, 60))),
        (2, 60, OfferKind::FewerHosts, 2, None),
    ] {
        let mut world = world(hosts_there).await;
        make(&mut world, asking(0, taken_until, vec![hosts(1)])).await.expect("free");
        let new = asking(start, 60, vec![hosts(hosts_there)]);
        let offers = held_for(&mut world, "q", new, Hold::For(minutes(10))).await;
        let offer = of_kind(&offers, kind).clone();
        world.run_until(at(5)).await;
        let lease = accept(&mut world, "q", &offer).await;
        if let Some(accepted) = accepted {
            assert_eq!(lease.expect("it holds").lease.window, accepted);
        } else {
            let refused = lease.expect_err("it named that start").to_string();
            assert!(refused.ends_with("has passed: send the request again"), "{refused}");
        }
    }
}

#[tokio::test]
async fn cls_10_e_an_offer_that_holds_survives_a_restart() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    world.restart().await.expect("opens");
    assert!(accept(&mut world, "q", &offers.offers[0]).await.is_ok());
}

#[tokio::test]
async fn cls_10_e_offers_hold_as_long_as_the_client_asks() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let offers = held_for(&mut world, "q", asking(30, 90, vec![hosts(1)]), Hold::For(minutes(10))).await;
    assert_eq!(offers.offers[0].lease.standing.until(), Some(at(10)));
    world.run_until(at(9)).await;
    accept(&mut world, "q", &offers.offers[0]).await.expect("it holds");
}

#[tokio::test]
async fn cls_10_e_offers_yield_to_others_of_their_user_that_need_the_same_hosts() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let first = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    let second = offers_to(&mut world, "q", asking(0, 30, vec![hosts(1)])).await;
    assert!(accept(&mut world, "q", &first.offers[0]).await.is_err());
    assert!(make_for(&mut world, "q", asking(60, 120, vec![hosts(1)])).await.is_ok(), "their own offer");
    assert!(accept(&mut world, "q", &second.offers[0]).await.is_err());
}

#[tokio::test]
async fn cls_10_e_offers_of_five_refusals_are_held_for_a_user_and_listed_by_age() {
    let mut world = world(1).await;
    for number in 1..=6 {
        make(&mut world, asking(20 * number, 20 * number + 10, vec![hosts(1)])).await.expect("free");
    }
    let mut made = Vec::new();
    for number in 1..=6 {
        world.run_until(at(number)).await;
        let new = asking(20 * number, 20 * number + 10, vec![hosts(1)]);
        let offers = held_for(&mut world, "q", new, Hold::For(minutes(15))).await;
        assert!(offers.held);
        made.push(offers.offers[0].clone());
    }
    let listed = |world: &World| -> Vec<_> {
        world.service.offers().all(None).iter().map(|offer| offer.lease.window).collect()
    };
    let windows = |numbers: &[i64]| -> Vec<_> {
        numbers.iter().map(|number| window(20 * number + 10, 20 * number + 20)).collect()
    };
    assert_eq!(listed(&world), windows(&[6, 5, 4, 3, 2]), "the oldest one is withdrawn");
    accept(&mut world, "q", &made[3]).await.expect("it holds");
    assert_eq!(listed(&world), windows(&[6, 5, 3, 2]));
    make_for(&mut world, "q", asking(200, 210, vec![hosts(1)])).await.expect("free");
    assert_eq!(listed(&world).len(), 4, "another lease of the user leaves them alone");
    make(&mut world, asking(50, 60, vec![hosts(1)])).await.expect("nobody has it");
    assert_eq!(listed(&world), windows(&[6, 5, 3]));
}

#[tokio::test]
async fn cls_10_e_an_offer_older_than_a_minute_yields_to_a_refusal_without_alternatives() {
    let near = service::Settings { offers_ahead: minutes(100), ..settings() };
    let mut world = world_with(1, near, None, |fleet| fleet).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let new = || asking(30, 90, vec![hosts(1)]);
    let offer = held_for(&mut world, "q", new(), Hold::For(minutes(10))).await.offers[0].clone();
    assert_eq!(offer.lease.window, window(60, 120));
    assert!(offers_to(&mut world, "r", new()).await.offers.is_empty(), "it is too young");
    world.run_until(at(1)).await;
    let said = held_for(&mut world, "r", new(), Hold::No).await;
    assert_eq!((said.offers.len(), said.held), (1, false));
    assert!(
        world.service.offers().get(offer.lease.id).is_some(),
        "nothing is withdrawn for what is only said"
    );
    let held = offers_to(&mut world, "r", new()).await;
    assert_eq!((held.offers[0].lease.window, held.held), (window(60, 120), true));
    assert!(world.service.offers().get(offer.lease.id).is_none());
    accept(&mut world, "r", &held.offers[0]).await.expect("it holds");
}

/// A lease of the only host, with a held offer of a later end.
async fn extension_offered() -> (World, Arc<LeaseRecord>, Arc<LeaseRecord>) {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    make_for(&mut world, "q", asking(90, 120, vec![hosts(1)])).await.expect("free");
    let longer = LeaseChanges { asked_at: world.now(), changes: dates(None, Some(100)), wording: [].into() };
    let offers =
        world.service.offers().for_change(&caller("p"), lease.lease.id, &longer, Hold::Default).await;
    let offer = offers.expect("the store works").offers[0].clone();
    world.touched();
    (world, lease, offer)
}

#[tokio::test]
async fn cls_10_e_a_changed_lease_is_not_offered_what_it_was_before() {
    let (mut world, lease, offer) = extension_offered().await;
    change(&mut world, lease.lease.id, dates(None, Some(70))).await.expect("free");
    is_withdrawn(&mut world, &offer).await;
}

#[tokio::test]
async fn cls_10_e_changes_of_a_deleted_lease_are_not_offered() {
    let (mut world, lease, offer) = extension_offered().await;
    world.service.leases().delete(&caller("p"), lease.lease.id).await.expect("there");
    world.touched();
    world.settle().await;
    is_withdrawn(&mut world, &offer).await;
}

#[tokio::test]
async fn cls_10_e_no_offer_is_held_beyond_its_end() {
    let mut world = world(1).await;
    make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("free");
    let offers = held_for(&mut world, "q", asking(0, 60, vec![hosts(1)]), Hold::For(minutes(15))).await;
    let shorter = of_kind(&offers, OfferKind::ShorterDuration);
    assert_eq!((shorter.lease.window.end(), shorter.lease.standing.until()), (at(10), Some(at(10))));
}

#[tokio::test]
async fn cls_10_e_offers_are_withdrawn_by_one_call() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    world.service.offers().withdraw(offers.offers[0].lease.id).await.expect("they hold");
    assert!(make(&mut world, asking(60, 120, vec![hosts(1)])).await.is_ok());
    assert!(world.service.offers().all(None).is_empty());
}

#[tokio::test]
async fn cls_10_e_offers_that_are_not_to_be_held_are_only_said() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let new = asking(30, 90, vec![hosts(1)]);
    let said = world.service.offers().for_lease(&caller("q"), &new, Hold::No).await.expect("the store works");
    assert!(!said.held && !said.offers.is_empty());
    assert!(make(&mut world, asking(60, 120, vec![hosts(1)])).await.is_ok());
    let off = service::Settings { offer_hold: minutes(0), ..settings() };
    let mut world = world_with(1, off, None, |fleet| fleet).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    assert!(!offers_to(&mut world, "q", new).await.held);
    let off =
        service::Settings { offer_limits: service::OfferLimits { at_once: 0, hourly: 3 }, ..settings() };
    let mut world = world_with(1, off, None, |fleet| fleet).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let new = asking(30, 90, vec![hosts(1)]);
    assert!(!held_for(&mut world, "q", new, Hold::For(minutes(10))).await.held);
}

#[tokio::test]
async fn cls_10_e_an_accepted_offer_has_another_host_if_its_own_has_failed() {
    let mut world = world(3).await;
    make(&mut world, asking(0, 60, vec![hosts(3)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    let offer = of_kind(&offers, OfferKind::LaterStart).clone();
    world.fleet.fail(hosts_of(&offer)[0]);
    world.run_until(at(0) + jiff::SignedDuration::from_secs(40)).await;
    let lease = accept(&mut world, "q", &offer).await.expect("there are others");
    assert_ne!(hosts_of(&lease), hosts_of(&offer));
}

#[tokio::test]
async fn cls_10_e_room_for_instances_is_reserved_as_well() {
    let mut world = world(1).await;
    make(&mut world, asking(0, 60, vec![slots(3, 4)])).await.expect("room");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![slots(2, 4)])).await;
    // Capacity next to the reserved slots is available without withdrawing offers.
    make(&mut world, asking(70, 80, vec![slots(1, 4)])).await.expect("room");
    let fewer = of_kind(&offers, OfferKind::FewerHosts).clone();
    let lease = accept(&mut world, "q", &fewer).await.expect("it holds");
    assert_eq!(lease.lease.reservations[0].allocation.amount(), 1);
}

/// One host, leased until minute 60, and reserved after that for an offer to `q`.
async fn one_host_offered() -> (World, Arc<LeaseRecord>, Arc<LeaseRecord>) {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    assert!(offers.held);
    let offer = of_kind(&offers, OfferKind::LaterStart).clone();
    assert_eq!(offer.lease.window, window(60, 120));
    (world, lease, offer)
}

async fn is_withdrawn(world: &mut World, offer: &LeaseRecord) {
    assert!(world.service.offers().all(None).is_empty(), "all offers of the refusal are withdrawn");
    let refused = accept(world, "q", offer).await;
    assert!(matches!(refused, Err(ServiceError::NotFound(NotFound::Offer(_)))), "{refused:?}");
}

#[tokio::test]
async fn a_lease_of_another_project_comes_before_an_offer() {
    let (mut world, _, offer) = one_host_offered().await;
    let new = asking(90, 150, vec![hosts(1)]);
    assert!(world.service.leases().preview(&caller("p"), &new).await.is_ok(), "a dry run says so");
    make(&mut world, new).await.expect("nobody has it");
    is_withdrawn(&mut world, &offer).await;
    world.run_until(at(91)).await;
}

#[tokio::test]
async fn an_extension_comes_before_an_offer() {
    let (mut world, lease, offer) = one_host_offered().await;
    let longer = change(&mut world, lease.lease.id, dates(None, Some(75))).await.expect("nobody has it");
    assert_eq!(longer.lease.window, window(0, 75));
    is_withdrawn(&mut world, &offer).await;
}

#[tokio::test]
async fn room_for_instances_of_another_project_comes_before_an_offer() {
    let (mut world, _, offer) = one_host_offered().await;
    make(&mut world, asking(100, 150, vec![slots(1, 1)])).await.expect("nobody has it");
    is_withdrawn(&mut world, &offer).await;
}

#[tokio::test]
async fn what_is_not_in_the_way_leaves_offers_alone() {
    let (mut world, _, offer) = one_host_offered().await;
    make(&mut world, asking(120, 150, vec![hosts(1)])).await.expect("free");
    accept(&mut world, "q", &offer).await.expect("it holds");
}

#[tokio::test]
async fn a_lease_gets_hosts_that_are_not_offered_if_there_are_any() {
    let mut world = world(3).await;
    make(&mut world, asking(0, 60, vec![hosts(3)])).await.expect("free");
    let offers = offers_to(&mut world, "q", asking(30, 90, vec![hosts(1)])).await;
    let offer = of_kind(&offers, OfferKind::LaterStart).clone();
    for _ in 0..2 {
        let lease = make(&mut world, asking(60, 120, vec![hosts(1)])).await.expect("free");
        assert_ne!(hosts_of(&lease), hosts_of(&offer));
    }
    accept(&mut world, "q", &offer).await.expect("it holds still");
}

#[tokio::test]
async fn two_users_are_not_offered_the_same() {
    let (mut world, _, offer) = one_host_offered().await;
    let others = offers_to(&mut world, "r", asking(30, 90, vec![hosts(1)])).await;
    let later = of_kind(&others, OfferKind::LaterStart).clone();
    assert_eq!(later.lease.window, window(120, 180), "after the first offer");
    accept(&mut world, "q", &offer).await.expect("it holds");
    accept(&mut world, "r", &later).await.expect("it holds");
}

#[tokio::test]
async fn offers_are_said_and_not_held_beyond_what_a_user_may_hold() {
    let limits = service::OfferLimits { at_once: 1, hourly: 2 };
    let limited = service::Settings { offer_limits: limits, ..settings() };
    let mut world = world_with(1, limited, None, |fleet| fleet).await;
    make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let held = async |user: &str, world: &mut World| {
        let who = service::Caller { user: leases::project::UserId(user.into()), ..caller("q") };
        let new = NewLease { asked_at: world.now(), ..asking(30, 90, vec![hosts(1)]) };
        let offers =
            world.service.offers().for_lease(&who, &new, Hold::Default).await.expect("the store works");
        assert!(!offers.offers.is_empty());
        offers.held
    };
    assert!(held("anna", &mut world).await && held("anna", &mut world).await);
    world.run_until(at(2)).await;
    assert!(!held("anna", &mut world).await, "two in this hour");
    assert!(held("bert", &mut world).await, "each user has a limit of their own");
    world.run_until(at(61)).await;
    let new = NewLease { asked_at: world.now(), ..asking(70, 90, vec![hosts(1)]) };
    make(&mut world, asking(62, 180, vec![hosts(1)])).await.expect("free");
    let anna = service::Caller { user: leases::project::UserId("anna".into()), ..caller("q") };
    let offers = world.service.offers().for_lease(&anna, &new, Hold::Default).await.expect("the store works");
    assert!(offers.held, "another hour");
}

#[tokio::test]
async fn cls_10_c_a_refused_change_leaves_the_lease_usable_and_carries_its_latest_end() {
    let mut world = world(1).await;
    let lease = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let next = make_for(&mut world, "q", asking(90, 120, vec![hosts(1)])).await.expect("free");
    world.run_until(at(5)).await;
    let longer = dates(None, Some(100));
    assert!(change(&mut world, lease.lease.id, longer.clone()).await.is_err());
    let unchanged = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((unchanged.lease.window, status(&world, lease.lease.id)), (window(0, 60), "ACTIVE"));
    let changes = LeaseChanges { asked_at: world.now(), changes: longer, wording: [].into() };
    let offers =
        world.service.offers().for_change(&caller("p"), lease.lease.id, &changes, Hold::Default).await;
    let offers = offers.expect("the store works");
    world.touched();
    assert_eq!(offers.offers.len(), 1);
    let longer = accept(&mut world, "p", &offers.offers[0]).await.expect("it holds");
    assert_eq!((longer.lease.id, longer.lease.window), (lease.lease.id, window(0, 90)));
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    world.run_until(at(91)).await;
    assert_eq!((status(&world, lease.lease.id), status(&world, next.lease.id)), ("TERMINATED", "ACTIVE"));
}

#[tokio::test]
async fn cls_10_d_an_extension_moves_a_lease_that_waits_and_never_one_that_runs() {
    let mut world = world(2).await;
    let running = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    let waiting = make_for(&mut world, "q", asking(60, 120, vec![hosts(1)])).await.expect("free");
    assert_eq!(hosts_of(&running), hosts_of(&waiting), "the tightest gap");
    world.run_until(at(5)).await;
    let longer = change(&mut world, running.lease.id, dates(None, Some(90))).await.expect("room is made");
    assert_eq!((hosts_of(&longer), longer.lease.window), (hosts_of(&running), window(0, 90)));
    let moved = world.service.leases().get(waiting.lease.id).expect("there");
    assert_eq!(moved.lease.window, window(60, 120));
    assert_ne!(hosts_of(&moved), hosts_of(&waiting));
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    let of_moved = told.iter().filter(|notice| notice.content.lease == Some(waiting.lease.id));
    let types: Vec<_> = of_moved.map(|notice| notice.content.event_type.as_str()).collect();
    assert_eq!(types, ["lease.create", "lease.update"]);
    world.run_until(at(61)).await;
    assert_eq!(status(&world, waiting.lease.id), "ACTIVE");
    assert!(change(&mut world, running.lease.id, dates(None, Some(500))).await.is_ok());
    assert!(change(&mut world, waiting.lease.id, dates(None, Some(500))).await.is_ok());
    assert!(make(&mut world, asking(100, 110, vec![hosts(1)])).await.is_err(), "both hosts are in use");
}

#[tokio::test]
async fn cls_10_f_a_flexible_lease_is_made_where_there_is_room_first() {
    let mut world = world(1).await;
    make(&mut world, asking(30, 60, vec![hosts(1)])).await.expect("free");
    let new = asking(0, 40, vec![hosts(1)]);
    let flexible = |end| NewLease {
        terms: new.terms.clone().anywhere_in(window(10, end)).expect("long enough"),
        ..new.clone()
    };
    let lease = make(&mut world, flexible(200)).await.expect("room");
    assert_eq!((lease.lease.window, lease.lease.lease_type), (window(60, 100), LeaseType::Schedule));
    assert!(make(&mut world, flexible(139)).await.is_err());
    assert!(make(&mut world, flexible(140)).await.is_ok());
}
