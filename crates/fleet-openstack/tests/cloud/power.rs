//! Hosts that hooks switch on and off.

use axum::http::Method;
use fleet::{FleetError, Outcome, Power as _};
use leases::host::Health;
use leases::plan::{Action, Place, Powered};

use crate::handing_over::{MINE, ONE, adopt, done, seen, step};
use crate::standin::Standin;

#[tokio::test]
async fn energy_h_compute_hosts_are_switched_by_hooks_and_nova_says_which_are_off() {
    let cloud = Standin::start(2).await;
    let fleet = cloud.fleet().with_power(cloud.power());
    assert!(fleet.switches_hosts());
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &[Action::Fence(ONE)]).await;
    cloud.fail(Method::POST, "/power/off", 500, 1);
    assert!(matches!(step(&fleet, Action::PowerOff(ONE)).await, Err(FleetError::Unavailable(_))));
    assert_eq!(seen(&fleet, ONE).await.powered, Powered::On);
    assert_eq!(step(&fleet, Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    // Nova still considers the service up for a moment.
    cloud.state().host("host1").up = true;
    assert_eq!(step(&fleet, Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    assert_eq!(seen(&fleet, ONE).await.powered, Powered::On);
    cloud.state().host("host1").up = false;
    done(&fleet, &[Action::PowerOff(ONE), Action::PowerOff(ONE)]).await;
    assert_eq!(cloud.state().switched, ["host1 off"], "once");
    assert_eq!(cloud.state().host("host1").reason.as_deref(), Some("allot: saving power"));
    // A service that starts now observes the same and doesn't use the host.
    let fleet = cloud.fleet().with_power(cloud.power());
    let there = seen(&fleet, ONE).await;
    assert_eq!((there.powered, there.health), (Powered::Off, Health::Failed));
    assert_eq!(there.place, Place::Fenced { verified_for: None });
    for action in [Action::Verify(ONE, MINE), Action::Unfence(ONE)] {
        assert!(matches!(step(&fleet, action).await, Err(FleetError::Unavailable(_))), "{action}");
    }
    done(&fleet, &[Action::PowerOn(ONE)]).await;
    assert_eq!(cloud.state().switched, ["host1 off", "host1 on"]);
    assert_eq!((seen(&fleet, ONE).await.powered, seen(&fleet, ONE).await.health), (Powered::On, Health::Up));
    done(&fleet, &[Action::Unfence(ONE)]).await;
    assert_eq!(seen(&fleet, ONE).await.place, Place::FreePool);
}

#[tokio::test]
async fn energy_h_whoever_goes_on_after_a_crash_switches_a_compute_host_off_again_unless_nova_says_that_it_is()
 {
    let cloud = Standin::start(1).await;
    let fleet = || cloud.fleet().with_power(cloud.power());
    assert_eq!(adopt(&fleet(), ONE).await, Ok(Outcome::Done));
    done(&fleet(), &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet(), Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    cloud.state().host("host1").up = true;
    assert_eq!(step(&fleet(), Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    done(&fleet(), &[Action::PowerOff(ONE)]).await;
    assert_eq!(cloud.state().switched, ["host1 off", "host1 off"]);
    // The host is on, but Nova couldn't be told.
    cloud.fail(Method::PUT, "/os-services/", 500, 1);
    assert!(step(&fleet(), Action::PowerOn(ONE)).await.is_err());
    done(&fleet(), &[Action::PowerOn(ONE)]).await;
    assert_eq!(seen(&fleet(), ONE).await.powered, Powered::On);
}

#[tokio::test]
async fn energy_h_a_compute_host_that_was_needed_before_it_was_off_is_switched_off_the_next_time() {
    let cloud = Standin::start(1).await;
    let fleet = cloud.fleet().with_power(cloud.power());
    assert_eq!(adopt(&fleet, ONE).await, Ok(Outcome::Done));
    done(&fleet, &[Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    cloud.state().host("host1").up = true;
    done(&fleet, &[Action::Unfence(ONE), Action::Fence(ONE)]).await;
    assert_eq!(step(&fleet, Action::PowerOff(ONE)).await, Ok(Outcome::Pending));
    assert_eq!(cloud.state().switched, ["host1 off", "host1 off"]);
}

#[tokio::test]
async fn energy_h_a_cloud_without_hooks_for_it_cannot_switch_hosts() {
    assert!(!Standin::start(1).await.fleet().switches_hosts());
}
