//! Cost and results of a round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ambient::ManualClock;
use fleet::{Inventory as _, Isolation as _, Outcome};
use jiff::Timestamp;
use leases::host::Health;
use leases::ids::{GuestId, HostId};

use crate::handing_over::adopt;
use crate::promises::guest;
use crate::standin::{FAILED_AFTER, FREE_POOL, Standin};

/// Maximum number of requests of a round.
const MOST_CALLS: usize = 20;

#[tokio::test]
async fn a_round_over_a_thousand_hosts_with_ten_thousand_servers_is_a_few_lists() {
    let cloud = Standin::start(1000).await;
    let fleet = cloud.fleet();
    assert_eq!(adopt(&fleet, HostId(1)).await, Ok(fleet::Outcome::Done));
    {
        let mut state = cloud.state();
        let free = state.aggregates.values_mut().find(|pool| pool.name == FREE_POOL).expect("a pool");
        free.hosts = (1..=1000).map(|number| format!("host{number}")).collect();
        for number in 0..10_000 {
            state.boot(&format!("host{}", number % 1000 + 1), "another", number % 3 == 0);
        }
    }
    let hosts: BTreeSet<HostId> = (1..=1000).map(HostId).collect();
    // Hosts that are seen for the first time are looked up in Placement once.
    fleet.survey(&hosts, &[]).await.expect("an answer");
    cloud.exchanges();
    let (machines, observed) = fleet.survey(&hosts, &[]).await.expect("an answer");
    let asked = cloud.exchanges();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for exchange in &asked {
        *kinds.entry(exchange.path.split('?').next().expect("a path")).or_default() += 1;
    }
    assert!(asked.len() <= MOST_CALLS, "{kinds:?}");
    assert_eq!(kinds["/compute/servers/detail"], 11, "pages of a thousand, and one that is empty");
    assert_eq!((machines.len(), observed.hosts.len()), (1000, 1000));
    assert_eq!(observed.hosts.values().map(|host| host.guests.len()).sum::<usize>(), 10_000);
    assert!(machines.iter().all(|machine| machine.guests.len() == 10));
    // Looking at the hosts that a step has changed takes this few requests in a cloud of any size.
    let few: BTreeSet<HostId> = [HostId(1), HostId(500)].into();
    assert_eq!(fleet.observe(&few, &[]).await.expect("an answer").hosts.len(), 2);
    assert_eq!(cloud.exchanges().len(), 4);
}

#[tokio::test]
async fn what_placement_says_of_a_host_is_read_again_when_somebody_looks_closely() {
    let cloud = Standin::start(20).await;
    let fleet = cloud.fleet();
    let has = async |host: u64| {
        let machines = fleet.machines().await.expect("an answer");
        let of_host = machines.into_iter().find(|machine| machine.id == HostId(host)).expect("the host");
        of_host.traits.contains("CUSTOM_FAST")
    };
    let change = |host: &str| {
        let mut state = cloud.state();
        let provider = state.provider_of(host);
        provider.traits.insert("CUSTOM_FAST".to_owned());
        provider.generation += 1;
    };
    assert!(!has(7).await);
    change("host7");
    assert!(!has(7).await, "a round asks for nothing that seldom changes");
    cloud.exchanges();
    fleet.look_closely().await;
    assert!(has(7).await);
    let asked = cloud.exchanges().into_iter().filter(|asked| asked.path.starts_with("/placement/"));
    assert_eq!(asked.count(), 3, "a list, and both of the host that has changed");
    // Adopting a host reads its current data.
    change("host8");
    assert!(!has(8).await);
    assert_eq!(adopt(&fleet, HostId(8)).await, Ok(Outcome::Done));
    assert!(has(8).await);
}

#[tokio::test]
async fn machines_are_as_nova_and_placement_say() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    {
        let mut state = cloud.state();
        state.host("host2").up = false;
        state.boot("host1", "another", false);
    }
    let machines = fleet.machines().await.expect("an answer");
    let first = &machines[0];
    assert_eq!((first.id, first.name.as_str(), first.service_name.as_str()), (HostId(1), "host1", "host1"));
    assert_eq!((first.vcpus, first.memory_mib, first.disk_gib), (10, 8192, 1028));
    assert_eq!(first.other_resources, BTreeMap::from([("CUSTOM_FPGA".to_owned(), 2)]));
    assert_eq!(first.traits, BTreeSet::from(["COMPUTE_NODE".to_owned()]));
    assert_eq!((first.availability_zone.as_str(), first.guests.len()), ("nova", 1));
    assert_eq!(
        machines.iter().map(|machine| machine.health).collect::<Vec<_>>(),
        [Health::Up, Health::Unknown],
        "host2 does not report, which is no failure at once"
    );
    let versions: BTreeSet<(String, bool)> = cloud
        .exchanges()
        .into_iter()
        .map(|exchange| (exchange.version, exchange.path.starts_with("/compute")))
        .collect();
    let expected = [("compute 2.52", true), ("compute 2.79", true), ("placement 1.36", false)];
    assert_eq!(versions, expected.map(|(version, nova)| (version.to_owned(), nova)).into());
}

#[tokio::test]
async fn a_host_fails_that_alone_does_not_report_for_a_while_and_none_when_the_cloud_is_deaf() {
    let cloud = Standin::start(3).await;
    let clock = Arc::new(ManualClock::new(Timestamp::UNIX_EPOCH));
    let fleet = cloud.fleet_by(clock.clone());
    let all = [1, 2, 3].map(HostId);
    for host in all {
        assert_eq!(fleet.adopt(host).await, Ok(Outcome::Done));
    }
    let up = |states: [bool; 3]| {
        for (number, up) in (1..).zip(states) {
            cloud.state().host(&format!("host{number}")).up = up;
        }
    };
    let health = async || {
        let (machines, observed) = fleet.survey(&all.into(), &[]).await.expect("an answer");
        let seen: Vec<Health> = observed.hosts.values().map(|host| host.health).collect();
        let of_machines: Vec<Health> = machines.iter().map(|machine| machine.health).collect();
        assert_eq!(seen, of_machines);
        seen
    };
    let (works, failed, unclear) = (Health::Up, Health::Failed, Health::Unknown);
    up([false, true, true]);
    assert_eq!(health().await, [unclear, works, works]);
    clock.advance(FAILED_AFTER);
    assert_eq!(health().await, [failed, works, works]);
    up([false; 3]);
    clock.advance(FAILED_AFTER * 60);
    assert_eq!(health().await, [failed, unclear, unclear], "what was dead before is so still");
    up([true, true, false]);
    assert_eq!(health().await, [works, works, unclear], "they come back one after the other");
    up([true; 3]);
    assert_eq!(health().await, [works; 3]);
    // Changes by an operator count at once.
    up([true, true, false]);
    cloud.state().host("host3").forced_down = true;
    cloud.state().host("host2").enabled = false;
    assert_eq!(health().await, [works, failed, failed]);
}

#[tokio::test]
async fn hosts_that_cannot_be_told_apart_are_left_out() {
    let cloud = Standin::start(3).await;
    cloud.state().host("host3").number = 2;
    let machines = cloud.fleet().machines().await.expect("an answer");
    assert_eq!(machines.into_iter().map(|machine| machine.name).collect::<Vec<_>>(), ["host1"]);
}

#[tokio::test]
async fn a_server_that_nobody_has_seen_yet_is_found() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet();
    let server = cloud.state().boot("host2", "mine", false);
    assert_eq!(fleet.locate(guest(&server)).await, Ok(Some(HostId(2))));
    assert_eq!(fleet.locate(GuestId(5)).await, Ok(None));
    cloud.state().servers.get_mut(&server).expect("a server").listed = false;
    assert_eq!(fleet.locate(guest(&server)).await, Ok(None), "Nova does not say where it is yet");
}
