//! Hosts that hooks switch on and off.

use std::fs;
use std::path::Path;

use axum::http::Method;
use fleet::hooks::{PowerConfig, PowerHooks};
use fleet::{FleetError, Outcome, Power as _};
use fleet_openstack::OpenStackFleet;
use leases::host::Health;
use leases::plan::{Action, Place, Powered};
use serde_json::json;

use crate::handing_over::{MINE, ONE, adopt, done, seen, step};
use crate::standin::Standin;

/// A driver whose hooks write down what they are called for, and fail while there is a file `fail`.
fn driver(cloud: &Standin, directory: &Path) -> OpenStackFleet {
    let script = "test ! -e fail && echo $ALLOT_MOMENT $ALLOT_HOST >> called";
    let hook = json!({"exec": ["sh", "-c", format!("cd '{}' && {script}", directory.display())]});
    let hooks = json!({"hooks": {"on_power_on": hook, "on_power_off": hook}});
    let hooks: PowerConfig = serde_json::from_value(hooks).expect("two hooks");
    cloud.fleet().with_power(PowerHooks::new(&hooks).expect("hooks"))
}

#[tokio::test]
async fn energy_h_compute_hosts_are_switched_by_hooks_and_nova_says_which_are_off() {
    let (cloud, directory) = (Standin::start(2).await, tempfile::tempdir().expect("a directory"));
    let fleet = driver(&cloud, directory.path());
    let called = || fs::read_to_string(directory.path().join("called")).unwrap_or_default();
    assert!(fleet.switches_hosts());
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &[Action::Fence(ONE)]).await;
    fs::write(directory.path().join("fail"), "").expect("a file");
    assert!(matches!(step(&fleet, Action::PowerOff(ONE)).await, Err(FleetError::Unavailable(_))));
    assert_eq!(seen(&fleet, ONE).await.powered, Powered::On);
    fs::remove_file(directory.path().join("fail")).expect("it is there");
    done(&fleet, &[Action::PowerOff(ONE), Action::PowerOff(ONE)]).await;
    assert_eq!(called(), "on_power_off host1\n", "once");
    assert_eq!(cloud.state().host("host1").reason.as_deref(), Some("allot: switched off"));
    // A service that starts now sees the same, and does not use the host.
    let fleet = driver(&cloud, directory.path());
    let there = seen(&fleet, ONE).await;
    assert_eq!((there.powered, there.health), (Powered::Off, Health::Failed));
    assert_eq!(there.place, Place::Fenced { verified_for: None });
    for action in [Action::Verify(ONE, MINE), Action::Unfence(ONE)] {
        assert!(matches!(step(&fleet, action).await, Err(FleetError::Unavailable(_))), "{action}");
    }
    done(&fleet, &[Action::PowerOn(ONE)]).await;
    assert_eq!(called(), "on_power_off host1\non_power_on host1\n");
    assert_eq!((seen(&fleet, ONE).await.powered, seen(&fleet, ONE).await.health), (Powered::On, Health::Up));
    done(&fleet, &[Action::Unfence(ONE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::FreePool);
}

#[tokio::test]
async fn energy_h_a_compute_host_whose_switching_nova_was_not_told_of_is_switched_on_all_the_same() {
    let (cloud, directory) = (Standin::start(1).await, tempfile::tempdir().expect("a directory"));
    let fleet = driver(&cloud, directory.path());
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &[Action::Fence(ONE)]).await;
    cloud.fail(Method::PUT, "/os-services/", 500, 1);
    assert!(step(&fleet, Action::PowerOff(ONE)).await.is_err(), "it is off, and nobody knows");
    done(&fleet, &[Action::PowerOn(ONE)]).await;
    let called = fs::read_to_string(directory.path().join("called")).expect("they were called");
    assert_eq!(called, "on_power_off host1\non_power_on host1\n");
}

#[tokio::test]
async fn energy_h_a_cloud_without_hooks_for_it_cannot_switch_hosts() {
    assert!(!Standin::start(1).await.fleet().switches_hosts());
}
