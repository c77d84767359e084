//! The race that Blazar's specification leaves open (PRE-09): an instance is started while its host is
//! fenced, drained and handed over, with two services on one store. Also, a preemptible instance is started
//! on a host of a lease (PRE-11) while the lease begins to use it or withdraws its consent. All orders of
//! events are tried.

use jiff::{SignedDuration, Timestamp};
use service::Settings;
use simulation::interleavings::{Request, Scene, try_all};

/// Preemptible instances are allowed on hosts that no lease has, and get no time to shut down.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.preemption.allowed = true;
    settings.preemption.least_lifetime = SignedDuration::ZERO;
    settings.plan_rules.grace = SignedDuration::ZERO;
    settings
}

/// Requests just before a lease starts.
fn handing_over(ahead: SignedDuration) -> Scene {
    let mut settings = settings();
    settings.plan_rules.clear_ahead = (!ahead.is_zero()).then_some(ahead);
    let start = SignedDuration::from_mins(30);
    let begins = Timestamp::UNIX_EPOCH;
    Scene { settings, begins, start, asked: start - ahead, requests: &[Request::Preemptible] }
}

/// Requests in the middle of a lease that lets preemptible instances on its host.
fn backfilling(requests: &'static [Request]) -> Scene {
    let mut settings = settings();
    settings.plan_rules.backfill = true;
    let (start, asked) = (SignedDuration::ZERO, SignedDuration::from_mins(5));
    Scene { settings, begins: Timestamp::UNIX_EPOCH, start, asked, requests }
}

#[track_caller]
fn holds_in_all_orders(scene: &Scene) {
    let plays = try_all(scene).expect("holds");
    println!("{plays} orders");
    assert!(plays > 1000, "{plays} orders");
}

#[test]
fn pre_09_a_start_that_meets_the_fence_ahead_of_a_lease_in_any_order_leaves_nobody_behind() {
    holds_in_all_orders(&handing_over(SignedDuration::from_mins(2)));
}

#[test]
fn pre_09_a_start_that_meets_drain_and_hand_over_in_any_order_leaves_nobody_behind() {
    holds_in_all_orders(&handing_over(SignedDuration::ZERO));
}

#[test]
fn pre_11_a_start_that_meets_one_of_the_lease_in_any_order_leaves_the_lease_its_host() {
    holds_in_all_orders(&backfilling(&[Request::Preemptible, Request::Own]));
}

#[test]
fn pre_11_a_start_that_meets_withdrawn_consent_in_any_order_leaves_nobody_on_the_host() {
    holds_in_all_orders(&backfilling(&[Request::Preemptible, Request::Withdraw]));
}
