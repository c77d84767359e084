//! Saving power (EN).

use std::collections::BTreeMap;

use fleet::simulated::{Between, Fault, PlannedFault, SimulatedFleet, Timing, Verb};
use jiff::SignedDuration;
use leases::energy::{BUSY_WATTS, IDLE_WATTS, NEVER, OFF_WATTS, PowerRules, SAVING, Switch};
use leases::free_pool::FreePool;
use leases::host::Health;
use leases::ids::HostId;
use leases::lease_type::LeaseType;
use leases::plan::{GuestOwner, GuestSize, Powered};
use service::{EnergyMode, EnergySettings, NewInstance, NewLease, Placing, Settings};
use simulation::{World, caller, operator};

use crate::terms::{
    asking, at, conflict, hosts, hosts_of, make, minutes, settings, status, window, world_with,
};

/// Boot time of machines in minutes.
const BOOT: i64 = 4;

fn saving(mode: EnergyMode, rules: PowerRules) -> Settings {
    Settings { energy: EnergySettings { mode, rules, ..EnergySettings::default() }, ..settings() }
}

fn slow(fleet: SimulatedFleet) -> SimulatedFleet {
    fleet.with_timing(Timing { power_on: Between::secs(BOOT * 60, BOOT * 60), ..Timing::IMMEDIATE })
}

/// `hosts` hosts, one of which is a spare.
async fn world(hosts: u32) -> World {
    world_with(hosts, saving(EnergyMode::On, PowerRules::default()), None, slow).await
}

/// Hosts whose machines are off.
fn dark(world: &World) -> Vec<u64> {
    let off = |host: &HostId| world.fleet.look(*host).is_some_and(|seen| seen.powered == Powered::Off);
    let hosts = world.service.hosts().all();
    hosts.iter().map(|record| record.host.id).filter(off).map(|host| host.0).collect()
}

/// Recorded power state of a host.
fn power(world: &World, host: u64) -> &'static str {
    world.service.hosts().get(HostId(host)).expect("there").host.power.state.name()
}

async fn note(world: &mut World, host: u64, capabilities: &[(&str, &str)]) {
    let noted = capabilities.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
    world.service.hosts().update(&operator(), HostId(host), noted.collect::<Vec<_>>()).await.expect("fine");
    world.touched();
}

#[tokio::test]
async fn energy_b_a_host_sleeps_until_its_lease_and_is_awake_in_time() {
    let mut world = world(2).await;
    world.run_until(at(1)).await;
    assert_eq!((dark(&world), power(&world, 2)), (vec![2], "off"));
    let lease = make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
    world.run_until(at(112)).await;
    assert_eq!(dark(&world), [2]);
    world.run_until(at(114)).await;
    assert_eq!((dark(&world), power(&world, 2)), (vec![], "booting"));
    world.run_until(at(118)).await;
    assert_eq!(power(&world, 2), "on");
    world.run_until(at(120)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE", "at once");
    assert_eq!(world.service.statistics().last_start_delay_ms, 0);
    let measured = &world.service.hosts().get(HostId(2)).expect("there").host.power.boots.clone();
    assert_eq!(measured.as_slice(), [minutes(BOOT)]);
    world.run_until(at(182)).await;
    assert_eq!((dark(&world), status(&world, lease.lease.id)), (vec![2], "TERMINATED"));
    assert_eq!(world.service.hosts().get(HostId(2)).expect("there").host.health, Health::Up, "it is not ill");
}

#[tokio::test]
async fn energy_b_no_lease_is_promised_a_start_that_its_host_cannot_keep() {
    let mut world = world(3).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world), [2, 3]);
    let soon = make(&mut world, asking(6, 60, vec![hosts(2)])).await;
    let refused = format!("{:?}", soon.expect_err("five minutes to boot, two of margin"));
    assert!(refused.contains("Power: 2"), "{refused}");
    let mut terms = asking(1, 61, vec![hosts(2)]);
    terms.terms = terms.terms.of_type(LeaseType::BestEffort { deadline: at(100) });
    let lease = make(&mut world, terms).await.expect("as soon as it can");
    assert_eq!(lease.lease.window, window(8, 68));
    world.run_until(at(8)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn energy_b_many_are_woken_a_few_at_a_time_and_none_is_late() {
    let rules = PowerRules { boots_at_once: 2, ..PowerRules::default() };
    let mut world = world_with(8, saving(EnergyMode::On, rules), None, slow).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world).len(), 7);
    let lease = make(&mut world, asking(90, 200, vec![hosts(8)])).await.expect("free");
    let mut most = 0;
    for second in (60 * 60..90 * 60).step_by(15) {
        world.run_until(at(0) + SignedDuration::from_secs(second)).await;
        let booting = (1..=8).filter(|host| power(&world, *host) == "booting").count();
        most = most.max(booting);
    }
    assert_eq!(most, 2);
    world.run_until(at(90)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn energy_c_a_host_with_a_guest_stays_on_and_one_that_gets_one_meanwhile() {
    let mut world = world_with(4, saving(EnergyMode::Off, PowerRules::default()), None, slow).await;
    world.fleet.start_guest(HostId(4), GuestOwner::Preemptible, None).expect("in the free pool");
    world.fleet.start_guest(HostId(3), GuestOwner::Other, None).expect("in the free pool");
    world.run_until(at(5)).await;
    assert_eq!(dark(&world), [0; 0], "nothing is switched unless the operator wants it");
    let mut world = self::world(4).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world), [2, 3, 4]);
    world.fleet.start_guest(HostId(1), GuestOwner::Other, None).expect("in the free pool");
    world.run_until(at(10)).await;
    assert_eq!(dark(&world).len(), 2, "the spare host is used, so another one is woken");
    assert_eq!(world.fleet.violations(), []);
}

#[tokio::test]
async fn energy_c_a_host_that_may_never_be_off_is_woken() {
    let mut world = world(3).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world), [2, 3]);
    let refused = world.service.hosts().remove(&operator(), HostId(3)).await;
    assert!(conflict(refused).contains("switched off"));
    note(&mut world, 3, &[(SAVING, NEVER)]).await;
    world.run_until(at(10)).await;
    assert_eq!((power(&world, 3), power(&world, 2)), ("on", "off"));
    world.service.hosts().remove(&operator(), HostId(3)).await.expect("it is on");
}

#[tokio::test]
async fn energy_d_a_lease_that_waits_moves_to_a_host_that_draws_less() {
    let mut settings = saving(EnergyMode::On, PowerRules::default());
    settings.energy.repack_watt_hours = Some(50);
    let mut world = world_with(3, settings, None, slow).await;
    let lease = make(&mut world, asking(300, 360, vec![hosts(1)])).await.expect("free");
    let first = hosts_of(&lease)[0];
    world.run_until(at(2)).await;
    // The power that hosts draw wasn't known before.
    for host in 1..=3 {
        let watts = if HostId(host) == first { "200" } else { "160" };
        note(&mut world, host, &[(IDLE_WATTS, watts)]).await;
    }
    world.run_until(at(10)).await;
    assert_eq!(
        hosts_of(&world.service.leases().get(lease.lease.id).expect("there")),
        [first],
        "40 watt-hours"
    );
    let other = (1..=3).find(|host| HostId(*host) != first).expect("there");
    note(&mut world, other, &[(IDLE_WATTS, "140")]).await;
    world.run_until(at(12)).await;
    assert_eq!(hosts_of(&world.service.leases().get(lease.lease.id).expect("there")), [HostId(other)]);
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    let updates = told.iter().filter(|told| told.content.event_type == "lease.update").count();
    assert_eq!(updates, 1, "listeners are told");
    note(&mut world, first.0, &[(IDLE_WATTS, "10")]).await;
    world.run_until(at(301)).await;
    let started = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!(
        (hosts_of(&started), status(&world, lease.lease.id)),
        (vec![HostId(other)], "ACTIVE"),
        "once a day"
    );
}

#[tokio::test]
async fn energy_d_leases_keep_their_hosts_unless_the_operator_wants_it_otherwise() {
    let mut world = world(2).await;
    let lease = make(&mut world, asking(300, 360, vec![hosts(1)])).await.expect("free");
    let first = hosts_of(&lease)[0];
    for host in 1..=2 {
        let watts = if HostId(host) == first { "400" } else { "100" };
        note(&mut world, host, &[(IDLE_WATTS, watts)]).await;
    }
    world.run_until(at(60)).await;
    assert_eq!(hosts_of(&world.service.leases().get(lease.lease.id).expect("there")), [first]);
}

#[tokio::test]
async fn energy_f_a_dry_run_plans_and_switches_nothing() {
    let mut world = world_with(3, saving(EnergyMode::DryRun, PowerRules::default()), None, slow).await;
    for host in 1..=3 {
        note(&mut world, host, &[(IDLE_WATTS, "100")]).await;
    }
    world.run_until(at(60)).await;
    assert_eq!(dark(&world), [0; 0]);
    let plan = world.service.power_saving().plan(Some(SignedDuration::from_hours(10))).await.expect("a plan");
    let pool = &plan.pools[&FreePool::DEFAULT];
    assert_eq!((pool.hosts, pool.most_needed(), pool.rests.len()), (3, 1, 2));
    assert_eq!(pool.saved_milliwatt_seconds, 2 * 100_000 * 36_000, "2 kWh");
    assert_eq!(plan.switches, [(HostId(2), Switch::Off), (HostId(3), Switch::Off)]);
}

#[tokio::test]
async fn energy_f_what_was_saved_is_what_the_machines_have_saved() {
    let mut world = world(2).await;
    note(&mut world, 2, &[(IDLE_WATTS, "110"), (OFF_WATTS, "10")]).await;
    make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
    world.run_until(at(240)).await;
    let report = world.service.power_saving().report(window(0, 300)).await.expect("works");
    let pool = &report[&FreePool::DEFAULT];
    assert_eq!((pool.switched_off, pool.switched_on, pool.failed), (2, 1, 0));
    let off = world.fleet.off_for(HostId(2));
    let seconds = u64::try_from(off.as_secs()).expect("some");
    assert!(seconds > 160 * 60 && pool.off_seconds.abs_diff(seconds) <= 2, "{pool:?} {off:?}");
    let saved = u128::from(pool.off_seconds) * 100_000;
    assert!(pool.saved_milliwatt_seconds.abs_diff(saved) <= 100_000, "{pool:?}");
    assert_eq!(pool.longest_boot, Some(minutes(BOOT)));
}

#[tokio::test]
async fn energy_f_what_hosts_used_is_what_they_did() {
    let mut world = world_with(2, saving(EnergyMode::Off, PowerRules::default()), None, slow).await;
    note(&mut world, 1, &[(IDLE_WATTS, "100"), (BUSY_WATTS, "300")]).await;
    let lease = make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
    world.run_until(at(150)).await;
    let report = world.service.power_saving().report(window(0, 300)).await.expect("works");
    let pool = &report[&FreePool::DEFAULT];
    assert_eq!((pool.busy_seconds, pool.idle_seconds), (2 * 30 * 60, 2 * 120 * 60), "until now: {pool:?}");
    assert_eq!(pool.busy_milliwatt_seconds, 300_000 * 30 * 60);
    assert_eq!(pool.idle_milliwatt_seconds, 100_000 * 120 * 60);
    assert_eq!((pool.hosts_not_metered, pool.off_seconds), (1, 0), "nobody has said what host 2 draws");
    world.service.leases().delete(&operator(), lease.lease.id).await.expect("deleted");
    world.touched();
    world.run_until(at(240)).await;
    let report = world.service.power_saving().report(window(120, 240)).await.expect("works");
    let pool = &report[&FreePool::DEFAULT];
    assert_eq!((pool.busy_seconds, pool.idle_seconds), (2 * 30 * 60, 2 * 90 * 60), "{pool:?}");
}

#[tokio::test]
async fn energy_g_a_host_that_does_not_come_up_is_replaced_before_its_lease_starts() {
    let mut world = world(3).await;
    world.run_until(at(1)).await;
    let lease = make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
    let sleeper = hosts_of(&lease).into_iter().find(|host| host.0 != 1).expect("one sleeps");
    world.fleet.break_boots(sleeper);
    world.run_until(at(120)).await;
    let replaced = world.service.leases().get(lease.lease.id).expect("there");
    assert!(!hosts_of(&replaced).contains(&sleeper), "{replaced:?}");
    assert_eq!(power(&world, sleeper.0), "failed");
    assert_eq!(world.service.statistics().boots_failed, 1);
    world.run_until(at(127)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE", "as soon as the other one has booted");
    world.fleet.recover(sleeper);
    world.run_until(at(130)).await;
    assert_eq!(power(&world, sleeper.0), "on");
    assert_eq!(world.service.hosts().get(sleeper).expect("there").host.health, Health::Up);
}

#[tokio::test]
async fn energy_g_a_host_that_does_not_come_up_is_told_of_once() {
    let mut world = world(2).await;
    world.run_until(at(1)).await;
    make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
    world.fleet.break_boots(HostId(2));
    world.run_until(at(130)).await;
    assert_eq!(power(&world, 2), "failed");
    let told = world.service.notifications().after(None, 0, 100).await.expect("the store works");
    let told: Vec<_> = told.iter().filter(|told| told.content.event_type == "host.boot_failed").collect();
    let [told] = told[..] else { panic!("once: {told:?}") };
    let failed_at = at(113) + PowerRules::default().shortest_boot + PowerRules::default().margin / 2;
    assert_eq!((told.at, told.content.lease, told.content.project.0.as_str()), (failed_at, None, ""));
    let payload: serde_json::Value = serde_json::from_str(&told.content.payload).expect("JSON");
    let host = world.service.hosts().get(HostId(2)).expect("there").host.name.clone();
    let expected = serde_json::json!({
        "host_id": "2", "hypervisor_hostname": host, "power": "failed",
        "switched_on_at": at(113).to_string(),
    });
    assert_eq!(payload, expected);
}

#[tokio::test]
async fn energy_g_a_spare_host_takes_the_place_of_one_that_does_not_come_up() {
    let mut world = world(2).await;
    world.run_until(at(1)).await;
    note(&mut world, 1, &[("here", "no")]).await;
    note(&mut world, 2, &[("here", "yes")]).await;
    world.fleet.break_boots(HostId(2));
    // The lease gets the sleeping host, because it draws less power.
    note(&mut world, 1, &[(IDLE_WATTS, "300")]).await;
    note(&mut world, 2, &[(IDLE_WATTS, "100")]).await;
    let lease = make(&mut world, asking(120, 180, vec![hosts(1)])).await.expect("free");
    assert_eq!(hosts_of(&lease), [HostId(2)]);
    world.run_until(at(120)).await;
    let replaced = world.service.leases().get(lease.lease.id).expect("there");
    assert_eq!((hosts_of(&replaced), status(&world, lease.lease.id)), (vec![HostId(1)], "ACTIVE"));
    assert_eq!(world.service.statistics().last_start_delay_ms, 0);
}

#[tokio::test]
async fn energy_h_instances_are_started_on_hosts_that_are_on() {
    let mut world = world(3).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world), [2, 3]);
    let size = GuestSize { vcpus: 12, memory_mib: 1024, disk_gib: 1 };
    let instance = || NewInstance {
        name: "web".to_owned(),
        placing: Placing { size: Some(size), hint: None, ..Placing::default() },
        requeue: false,
    };
    let first = world.service.instances().create(&caller("p"), instance()).await.expect("host 1 has room");
    assert_eq!(first.instance.host, HostId(1));
    world.touched();
    let refused = world.service.instances().create(&caller("p"), instance()).await;
    assert!(refused.is_err(), "the others are off");
    world.run_until(at(10)).await;
    assert_eq!(dark(&world).len(), 1, "a spare host is woken for the next one");
    world.service.instances().create(&caller("p"), instance()).await.expect("there is room again");
}

#[tokio::test]
async fn lost_replies_and_repetitions_do_not_switch_hosts_the_wrong_way() {
    for verb in [Verb::PowerOff, Verb::PowerOn] {
        for fault in [Fault::Refuse, Fault::TimeOutBefore, Fault::TimeOutAfter, Fault::Late, Fault::Duplicate]
        {
            let mut world = world(2).await;
            world.fleet.plan_fault(PlannedFault::next(verb, HostId(2), fault));
            let lease = make(&mut world, asking(120, 180, vec![hosts(2)])).await.expect("free");
            world.run_until(at(60)).await;
            assert_eq!(dark(&world), [2], "{verb:?} {fault:?}");
            world.run_until(at(121)).await;
            assert_eq!(status(&world, lease.lease.id), "ACTIVE", "{verb:?} {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_service_that_saves_no_power_wakes_what_another_left_off() {
    let mut world = world(3).await;
    world.run_until(at(1)).await;
    assert_eq!(dark(&world), [2, 3]);
    let settings = saving(EnergyMode::Off, PowerRules::default());
    world.restart_with(settings).await.expect("it starts");
    world.run_until(at(10)).await;
    assert_eq!(dark(&world), [0; 0]);
    let states: BTreeMap<_, _> = (1..=3).map(|host| (host, power(&world, host))).collect();
    assert!(states.values().all(|state| *state == "on"), "{states:?}");
}

#[tokio::test]
async fn a_crash_at_any_point_of_a_switch_leaves_no_host_behind() {
    let mut world = world(2).await;
    let lease: NewLease = asking(120, 180, vec![hosts(2)]);
    let lease = make(&mut world, lease).await.expect("free");
    for _ in 0..4 {
        world.next(at(1)).await;
        world.restart().await.expect("it starts");
    }
    world.run_until(at(60)).await;
    assert_eq!(dark(&world), [2]);
    world.run_until(at(113)).await;
    for _ in 0..4 {
        world.next(at(114)).await;
        world.restart().await.expect("it starts");
    }
    world.run_until(at(120)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
}

#[tokio::test]
async fn energy_b_a_host_that_boots_is_looked_at_often_however_seldom_the_fleet_is() {
    let settings = saving(EnergyMode::On, PowerRules::default());
    let settings = Settings { observe_interval: minutes(30), unknown_after: minutes(90), ..settings };
    let mut world = world_with(2, settings, None, slow).await;
    let lease = make(&mut world, asking(125, 180, vec![hosts(2)])).await.expect("free");
    world.run_until(at(125)).await;
    assert_eq!(status(&world, lease.lease.id), "ACTIVE");
    let measured = world.service.hosts().get(HostId(2)).expect("there").host.power.boots.clone();
    assert!(measured[0] < minutes(BOOT + 1), "{measured:?}");
}
