//! Housekeeping (HK).

use std::collections::BTreeMap;
use std::sync::Arc;

use leases::admission::Changes;
use leases::housekeeping::HousekeepingRules;
use leases::ids::{HostId, LeaseId};
use leases::instance::LeaseHint;
use leases::maintenance::MaintenanceWish;
use leases::plan::GuestSize;
use leases::project::ProjectId;
use leases::requirement::{Operator, Requirement};
use service::{
    FreePoolChange, NewFreePool, NewInstance, NewLease, NewMaintenance, NotFound, Placing, ServiceError,
    Settings,
};
use simulation::{World, caller, operator};
use store::LeaseRecord;

use crate::terms::{
    asking, at, change, conflict, dates, hosts, hosts_of, make, minutes, settings, slots, status, window,
    world_with,
};

/// A world with these housekeeping rules.
async fn kept(hosts: u32, rules: HousekeepingRules) -> World {
    world_with(hosts, Settings { housekeeping: rules, ..settings() }, None, |fleet| fleet).await
}

fn unused() -> HousekeepingRules {
    HousekeepingRules {
        unused_warning: Some(minutes(60)),
        unused_reclaim: Some(minutes(90)),
        ..HousekeepingRules::default()
    }
}

/// Housekeeping notifications of a lease, with their times in minutes after noon.
async fn told(world: &World, id: LeaseId) -> Vec<(String, i64)> {
    let told = world.service.notifications().after(None, 0, 1000).await.expect("works");
    let ours = ["lease.unused", "lease.reclaimed", "lease.reminder.start_lease", "lease.reminder.end_lease"];
    let ours = told
        .into_iter()
        .filter(|told| told.content.lease == Some(id) && ours.contains(&told.content.event_type.as_str()));
    ours.map(|told| (told.content.event_type, told.at.duration_since(at(0)).as_mins())).collect()
}

fn events(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(event, minute)| ((*event).to_owned(), *minute)).collect()
}

/// Text of the warning that says how to keep the lease.
async fn how_to_keep(world: &World) -> Option<String> {
    let told = world.service.notifications().after(None, 0, 1000).await.expect("works");
    let warning = told.into_iter().find(|told| told.content.event_type == "lease.unused")?;
    let payload: serde_json::Value = serde_json::from_str(&warning.content.payload).expect("JSON");
    payload["keep"].as_str().map(str::to_owned)
}

async fn start(world: &mut World, lease: LeaseId) {
    let size = GuestSize { vcpus: 1, memory_mib: 64, disk_gib: 1 };
    let new = NewInstance {
        name: "web".to_owned(),
        placing: Placing { size: Some(size), hint: Some(LeaseHint::Lease(lease)), ..Placing::default() },
        requeue: false,
    };
    world.service.instances().create(&caller("p"), new).await.expect("active");
    world.touched();
}

#[tokio::test]
async fn hk_a_a_lease_that_nobody_uses_is_told_of_once_and_ends_though_the_service_restarts() {
    let mut world = kept(2, unused()).await;
    let id = make(&mut world, asking(0, 500, vec![hosts(1)])).await.expect("free").lease.id;
    for minute in [30, 59, 61, 70, 89] {
        world.run_until(at(minute)).await;
        world.restart().await.expect("the store works");
    }
    assert_eq!((status(&world, id), told(&world, id).await), ("ACTIVE", events(&[("lease.unused", 60)])));
    world.run_until(at(95)).await;
    assert_eq!(told(&world, id).await, events(&[("lease.unused", 60), ("lease.reclaimed", 90)]));
    let record = world.service.leases().get(id).expect("there");
    assert_eq!((status(&world, id), record.lease.window), ("TERMINATED", window(0, 90)));
    let why = "it was ended because no instance ran in it within 90m of its start";
    let why_1h = "it was ended because no instance ran in it within 1h 30m of its start";
    let reason = record.lease.reason.as_deref().expect("a reason");
    assert!(reason == why || reason == why_1h, "{reason}");
    assert_eq!(world.held(hosts_of(&record)), 0, "its hosts are free");
    world.run_until(at(300)).await;
    assert_eq!(world.service.leases().get(id).expect("there").lease.reason.as_deref(), Some(reason));
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn hk_a_a_lease_that_had_an_instance_is_used_even_when_it_is_gone() {
    let mut world = kept(2, unused()).await;
    let used = make(&mut world, asking(0, 500, vec![hosts(1)])).await.expect("free").lease.id;
    let room = make(&mut world, asking(0, 500, vec![slots(1, 1)])).await.expect("free").lease.id;
    world.run_until(at(50)).await;
    start(&mut world, used).await;
    world.run_until(at(55)).await;
    let instance = world.service.instances().all(None, Some(used))[0].instance.id;
    world.service.instances().delete(&caller("p"), instance).await.expect("there");
    world.touched();
    world.run_until(at(58)).await;
    assert!(world.service.instances().all(None, Some(used)).is_empty());
    world.restart().await.expect("the store works");
    world.run_until(at(400)).await;
    assert_eq!((status(&world, used), told(&world, used).await), ("ACTIVE", Vec::new()));
    assert_eq!(status(&world, room), "TERMINATED", "room for instances is looked at as well");
}

#[tokio::test]
async fn hk_a_an_owner_who_is_warned_keeps_the_lease_by_any_change() {
    let mut world = kept(1, unused()).await;
    let id = make(&mut world, asking(0, 500, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(70)).await;
    let wanted = format!("Any change keeps the lease, for example: allot lease update {id} --keep");
    assert_eq!(how_to_keep(&world).await, Some(wanted));
    let changes = Changes { name: Some("kept".to_owned()), ..Changes::default() };
    change(&mut world, id, changes).await.expect("allowed");
    world.restart().await.expect("the store works");
    world.run_until(at(400)).await;
    assert_eq!((status(&world, id), told(&world, id).await), ("ACTIVE", events(&[("lease.unused", 60)])));
}

#[tokio::test]
async fn hk_a_nothing_is_done_unless_it_is_wanted() {
    let mut world = kept(1, HousekeepingRules::default()).await;
    let id = make(&mut world, asking(0, 500, vec![hosts(1)])).await.expect("free").lease.id;
    world.run_until(at(499)).await;
    assert_eq!((status(&world, id), told(&world, id).await), ("ACTIVE", Vec::new()));
}

#[tokio::test]
async fn hk_b_leases_of_a_project_on_hosts_of_one_pool_are_limited_together() {
    let mut settings = settings();
    settings.rules.enforcement.max_stack = Some(minutes(100));
    let mut world = world_with(3, settings, None, |fleet| fleet).await;
    let first = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("alone").lease.id;
    let stacked = |result: Result<Arc<LeaseRecord>, ServiceError>| match result {
        Err(ServiceError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    };
    let refused = stacked(make(&mut world, asking(60, 120, vec![hosts(1)])).await);
    assert!(
        refused.starts_with("Together with other leases of the project it would last 7200 s"),
        "{refused}"
    );
    let second = make(&mut world, asking(60, 100, vec![hosts(1)])).await.expect("within the limit").lease.id;
    let extended = stacked(change(&mut world, second, dates(None, Some(101))).await);
    assert!(extended.contains("at most 6000 seconds"), "{extended}");
    change(&mut world, second, dates(None, Some(90))).await.expect("shorter");
    make(&mut world, asking(100, 200, vec![hosts(1)])).await.expect("a break between");
    let others = NewLease { asked_at: world.now(), ..asking(60, 120, vec![hosts(1)]) };
    world.service.leases().create(&caller("q"), others, None).await.expect("another project");
    // Hosts of another pool don't count.
    let pool = NewFreePool { name: "fast".to_owned(), extra_specs: BTreeMap::new(), end_action: None };
    let pool = world.service.free_pools().create(&operator(), pool).await.expect("new").pool.id;
    world.service.hosts().remove_from_pool(&operator(), HostId(3)).await.expect("free");
    let selector = service::HostSelector::Id(HostId(3));
    world.service.hosts().add(&operator(), selector, Vec::new(), pool).await.expect("taken on");
    let fast = Requirement::compare(Operator::Equal, "free_pool", "fast").expect("well formed");
    let terms = leases::terms::HostsTerms::new(1, 1).expect("a range").requiring(fast);
    let there = asking(0, 100, vec![leases::terms::ReservationTerms::Hosts(terms)]);
    make(&mut world, there).await.expect("of another pool");
    assert_eq!(status(&world, first), "PENDING");
}

/// Maintenance of two hosts for 30 minutes each, with margins of 10 minutes.
fn wish(not_before: i64, before: i64) -> NewMaintenance {
    let hosts = vec!["1".to_owned(), "2".to_owned()];
    let (length, margin) = (minutes(30), minutes(10));
    let wish = MaintenanceWish { length, margin, not_before: at(not_before), before: at(before) };
    NewMaintenance { hosts, free_pool: None, wish }
}

#[tokio::test]
async fn hk_c_maintenance_is_booked_in_the_first_gap_of_each_host_as_a_lease_of_its_project() {
    let operators = ProjectId("operators".into());
    let rules =
        HousekeepingRules { maintenance_project: Some(operators.clone()), ..HousekeepingRules::default() };
    let mut world = kept(2, rules).await;
    // No project can lease the second host, but the operator still gets it for maintenance.
    let kept_for = vec![("filter_tenant_id".to_owned(), Some("nobody".to_owned()))];
    world.service.hosts().update(&operator(), HostId(2), kept_for).await.expect("changed");
    let busy = make(&mut world, asking(0, 60, vec![hosts(1)])).await.expect("free");
    assert_eq!(hosts_of(&busy), [HostId(1)]);
    let planned = world.service.maintenance().plan(&wish(0, 500)).await.expect("there is time");
    let windows: Vec<_> = planned.iter().map(|one| one.window).collect();
    assert_eq!(windows, [Some(window(70, 100)), Some(window(0, 30))]);
    assert_eq!(world.service.leases().all(&service::LeaseFilter::default()).len(), 1, "a plan books nothing");
    let refused = conflict(world.service.maintenance().book(&operator(), &wish(0, 99)).await);
    assert!(refused.contains("r1-h01") && !refused.contains("r1-h02"), "{refused}");
    assert_eq!(world.service.leases().all(&service::LeaseFilter::default()).len(), 1, "all or nothing");
    let booked = world.service.maintenance().book(&operator(), &wish(0, 500)).await.expect("there is time");
    world.touched();
    let lease = |world: &World, at: usize| {
        let id = booked[at].lease.expect("booked");
        world.service.leases().get(id).expect("there").lease.clone()
    };
    let (first, second) = (lease(&world, 0), lease(&world, 1));
    assert_eq!((first.window, first.owner.project), (window(70, 100), operators));
    assert_eq!(second.name, "maintenance of r1-h02");
    assert_eq!(second.hints.hosts, ["r1-h02".to_owned()].into(), "no other host is given to it");
    let again = world.service.maintenance().plan(&wish(0, 500)).await.expect("there is time");
    assert_eq!(again[0].window, Some(window(110, 140)), "what is booked is taken");
    world.run_until(at(80)).await;
    assert_eq!((status(&world, first.id), status(&world, second.id)), ("ACTIVE", "TERMINATED"));
    let unknown = NewMaintenance { hosts: vec!["r9".to_owned()], ..wish(90, 500) };
    let unknown = world.service.maintenance().plan(&unknown).await;
    assert!(matches!(unknown, Err(ServiceError::NotFound(NotFound::Machine(_)))), "{unknown:?}");
    let pool = NewMaintenance { hosts: Vec::new(), free_pool: Some("freepool".to_owned()), ..wish(90, 500) };
    assert_eq!(world.service.maintenance().plan(&pool).await.expect("there is time").len(), 2);
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn hk_c_maintenance_is_off_unless_it_has_a_project() {
    let world = kept(2, HousekeepingRules::default()).await;
    let refused = conflict(world.service.maintenance().book(&operator(), &wish(0, 500)).await);
    assert!(refused.contains("housekeeping.maintenance_project"), "{refused}");
}

#[tokio::test]
async fn hk_d_owners_are_reminded_once_though_the_service_restarts() {
    let rules = HousekeepingRules { reminder: Some(minutes(30)), ..HousekeepingRules::default() };
    let mut world = kept(2, rules).await;
    let id = make(&mut world, asking(60, 200, vec![hosts(1)])).await.expect("free").lease.id;
    for minute in [25, 31, 40, 100, 169, 171, 180] {
        world.run_until(at(minute)).await;
        world.restart().await.expect("the store works");
    }
    let twice = events(&[("lease.reminder.start_lease", 30), ("lease.reminder.end_lease", 170)]);
    assert_eq!(told(&world, id).await, twice);
    change(&mut world, id, dates(None, Some(300))).await.expect("free");
    world.run_until(at(310)).await;
    assert_eq!(told(&world, id).await.last(), Some(&("lease.reminder.end_lease".to_owned(), 270)));
    assert_eq!(told(&world, id).await.len(), 3);
}

#[tokio::test]
async fn hk_e_hosts_and_pools_are_kept_for_projects() {
    let mut world = kept(2, HousekeepingRules::default()).await;
    let pool = world.service.free_pools().get("freepool").expect("there").pool.id;
    let specs = BTreeMap::from([("filter_tenant_id".to_owned(), "p, x".to_owned())]);
    let change = FreePoolChange { extra_specs: Some(specs), ..FreePoolChange::default() };
    world.service.free_pools().update(&operator(), pool, change).await.expect("changed");
    let own = vec![("filter_tenant_id".to_owned(), Some("q".to_owned()))];
    world.service.hosts().update(&operator(), HostId(2), own).await.expect("changed");
    let mine = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("of the pool");
    assert_eq!(hosts_of(&mine), [HostId(1)]);
    let asked = || NewLease { asked_at: at(0), ..asking(10, 60, vec![hosts(1)]) };
    let theirs = world.service.leases().create(&caller("q"), asked(), None).await.expect("its own");
    assert_eq!(hosts_of(&theirs.lease), [HostId(2)]);
    let nobody = world.service.leases().create(&caller("r"), asked(), None).await;
    assert!(matches!(&nobody, Err(ServiceError::Refused(_))), "{nobody:?}");
}

#[tokio::test]
async fn hk_f_who_asks_for_nothing_in_particular_has_usual_hosts_first() {
    let plain = Requirement::compare(Operator::Equal, "gpu", "no").expect("well formed");
    let rules = HousekeepingRules { default_properties: plain, ..HousekeepingRules::default() };
    let mut world = kept(3, rules).await;
    for (id, gpu) in [(1, "yes"), (2, "no"), (3, "no")] {
        let gpu = vec![("gpu".to_owned(), Some(gpu.to_owned()))];
        world.service.hosts().update(&operator(), HostId(id), gpu).await.expect("changed");
    }
    let first = make(&mut world, asking(10, 60, vec![hosts(2)])).await.expect("free");
    assert_eq!(hosts_of(&first), [HostId(2), HostId(3)]);
    let special = Requirement::compare(Operator::Equal, "gpu", "yes").expect("well formed");
    let terms = leases::terms::HostsTerms::new(1, 1).expect("a range").requiring(special);
    let asked = asking(60, 90, vec![leases::terms::ReservationTerms::Hosts(terms)]);
    let second = make(&mut world, asked).await.expect("free");
    assert_eq!(hosts_of(&second), [HostId(1)], "who asks for it has it");
    let third = make(&mut world, asking(10, 60, vec![hosts(1)])).await.expect("tried without");
    assert_eq!(hosts_of(&third), [HostId(1)], "rather a special host than none");
    assert_eq!(third.lease.reservations[0].terms, hosts(1), "its terms are what was asked for");
}

#[tokio::test]
async fn hk_g_an_owner_has_a_bad_host_exchanged_so_often() {
    let mut world = kept(4, HousekeepingRules { swaps: 1, ..HousekeepingRules::default() }).await;
    let lease = make(&mut world, asking(0, 120, vec![hosts(2)])).await.expect("free");
    let (id, pool) = (lease.lease.id, lease.lease.reservations[0].id);
    world.run_until(at(1)).await;
    start(&mut world, id).await;
    world.run_until(at(2)).await;
    let occupied = world.service.instances().all(None, Some(id))[0].instance.host;
    let empty = *hosts_of(&lease).iter().find(|host| **host != occupied).expect("two hosts");
    let used = conflict(world.service.maintenance().swap_host(&caller("p"), pool, occupied, true).await);
    assert_eq!(used, "1 instance(s) of the lease are on the host: delete them first");
    let foreign = world.service.maintenance().swap_host(&caller("p"), pool, HostId(4), true).await;
    assert!(matches!(foreign, Err(ServiceError::NotFound(NotFound::Host(_)))), "{foreign:?}");
    let swapped = world
        .service
        .maintenance()
        .swap_host(&caller("p"), pool, empty, true)
        .await
        .expect("others are free");
    world.touched();
    let now = hosts_of(&swapped);
    assert!(now.len() == 2 && now.contains(&occupied) && !now.contains(&empty), "{now:?}");
    assert!(swapped.lease.reservations[0].resources_changed);
    world.run_until(at(5)).await;
    assert_eq!((world.held(now.clone()), world.held([empty])), (2, 0), "it is handed over");
    assert_eq!(status(&world, id), "ACTIVE");
    let other = *now.iter().find(|host| **host != occupied).expect("two hosts");
    let often = conflict(world.service.maintenance().swap_host(&caller("p"), pool, other, true).await);
    assert_eq!(often, "1 host(s) of the lease were exchanged; the operator allows 1");
    world.restart().await.expect("the store works");
    let often = world.service.maintenance().swap_host(&caller("p"), pool, other, true).await;
    assert!(often.is_err(), "that is not forgotten");
    world.service.maintenance().swap_host(&operator(), pool, other, false).await.expect("an operator may");
    assert_eq!(world.fleet.violations(), []);
}
