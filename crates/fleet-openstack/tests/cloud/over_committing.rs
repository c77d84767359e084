//! Allocation ratios of hosts that a lease holds.

use std::collections::BTreeSet;

use axum::http::Method;
use fleet::Isolation as _;
use leases::lease_pool::{Ratio, Ratios};
use leases::plan::{Action, Overcommit, Told};

use crate::handing_over::{MINE, ONE, adopt, done, handover, seen};
use crate::standin::Standin;

pub fn ratios(cpu: f64, ram: f64) -> Ratios {
    Ratios { cpu: Ratio::new(cpu), ram: Ratio::new(ram) }
}

/// A cloud with a host held by a lease.
async fn held() -> Standin {
    let cloud = Standin::start(2).await;
    adopt(&cloud.fleet(), ONE).await.expect("adopted");
    done(&cloud.fleet(), &handover(ONE)).await;
    cloud.exchanges();
    cloud
}

#[tokio::test]
async fn lp_8_9_placement_has_the_ratios_of_a_lease_while_it_runs_and_then_its_own() {
    let cloud = held().await;
    let fleet = cloud.fleet();
    assert_eq!(seen(&fleet, ONE).await.overcommit, Some(Overcommit::default()));
    done(&fleet, &[Action::SetRatios(ONE, MINE, ratios(2.0, 1.5))]).await;
    assert_eq!(cloud.state().ratios("host1"), [2.0, 1.5]);
    let told = |ratio, before| Ratio::new(before).map(|before| Told { ratio: Ratio::new(ratio), before });
    let both = Overcommit { cpu: told(2.0, 4.0), ram: told(1.5, 1.0) };
    assert_eq!(seen(&fleet, ONE).await.overcommit, Some(both));
    // One ratio changes and one is unset. The ratios before the lease aren't forgotten.
    done(&fleet, &[Action::SetRatios(ONE, MINE, Ratios { cpu: Ratio::new(8.0), ram: None })]).await;
    assert_eq!(cloud.state().ratios("host1"), [8.0, 1.0]);
    let one = Overcommit { cpu: told(8.0, 4.0), ram: None };
    assert_eq!(seen(&fleet, ONE).await.overcommit, Some(one));
    let totals = cloud.state().providers.values().map(|provider| provider.inventories.len()).sum::<usize>();
    assert_eq!(totals, 6, "all else of the inventories is as it was");
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.0]);
    assert_eq!(seen(&fleet, ONE).await.overcommit, Some(Overcommit::default()));
}

#[tokio::test]
async fn lp_8_9_ratios_that_come_late_have_no_effect_and_those_of_servers_that_stay_are_restored() {
    let cloud = held().await;
    let fleet = cloud.fleet();
    done(&fleet, &[Action::SetRatios(ONE, MINE, ratios(2.0, 1.5))]).await;
    cloud.state().boot("host1", "mine", false);
    done(&fleet, &[Action::Release(ONE, MINE), Action::Finish(MINE)]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.0]);
    done(&fleet, &[Action::SetRatios(ONE, MINE, ratios(2.0, 1.5))]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.0]);
}

#[tokio::test]
async fn lp_8_9_a_lease_without_ratios_asks_placement_nothing_of_them() {
    let cloud = held().await;
    done(&cloud.fleet(), &[Action::Release(ONE, MINE)]).await;
    let asked = cloud.exchanges();
    assert!(!asked.is_empty() && asked.iter().all(|asked| !asked.path.contains("inventories")), "{asked:?}");
}

#[tokio::test]
async fn lp_8_9_ratios_that_nova_overwrites_are_found_when_somebody_looks_and_can_be_set_again() {
    let cloud = held().await;
    let fleet = cloud.fleet();
    let hosts = BTreeSet::from([ONE]);
    let wanted = Action::SetRatios(ONE, MINE, ratios(2.0, 1.5));
    done(&fleet, &[wanted]).await;
    assert_eq!(fleet.overruled(&hosts).await.expect("an answer").len(), 0);
    cloud.state().provider_of("host1").ratios.insert("MEMORY_MB".to_owned(), 1.0);
    let found = fleet.overruled(&hosts).await.expect("an answer");
    let said = &found[&ONE];
    for part in ["1 for MEMORY_MB of host host1", "one of 1.5", "initial_ram_allocation_ratio"] {
        assert!(said.contains(part), "{said}");
    }
    done(&fleet, &[wanted]).await;
    assert_eq!(fleet.overruled(&hosts).await.expect("an answer").len(), 0);
    done(&fleet, &[Action::Release(ONE, MINE)]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.0]);
}

#[tokio::test]
async fn lp_8_9_somebody_else_may_change_the_provider_at_the_same_time() {
    let cloud = held().await;
    cloud.fail(Method::PUT, "inventories/VCPU", 409, 2);
    done(&cloud.fleet(), &[Action::SetRatios(ONE, MINE, ratios(2.0, 1.5))]).await;
    assert_eq!(cloud.state().ratios("host1"), [2.0, 1.5]);
}

#[tokio::test]
async fn lp_8_9_a_host_without_shared_cpus_has_no_ratio_of_them_and_that_is_all() {
    let cloud = held().await;
    cloud.state().provider_of("host1").inventories.remove("VCPU");
    let wanted = ratios(2.0, 1.5);
    done(&cloud.fleet(), &[Action::SetRatios(ONE, MINE, wanted)]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.5]);
    assert!(seen(&cloud.fleet(), ONE).await.overcommit.is_some_and(|told| told.is(wanted)));
    done(&cloud.fleet(), &[Action::Release(ONE, MINE)]).await;
    assert_eq!(cloud.state().ratios("host1"), [4.0, 1.0]);
}
