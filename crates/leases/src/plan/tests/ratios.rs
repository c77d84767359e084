//! Allocation ratios of leased hosts.

use super::*;

fn stage() -> Stage {
    let mut stage = Stage::new(1, vec![lease(1, window(10, 60), &[1])]);
    stage.host(1).overcommit = Some(Overcommit::default());
    stage
}

fn set(stage: &mut Stage, cpu: Option<f64>) -> Ratios {
    let ratios = Ratios { cpu: cpu.and_then(Ratio::new), ram: None };
    let ReservationTerms::Hosts(terms) = &mut stage.leases[0].reservations[0].terms else {
        panic!("it is of hosts")
    };
    terms.pool.ratios = ratios;
    ratios
}

#[test]
fn lp_8_9_a_cloud_is_told_of_ratios_while_the_lease_runs() {
    let mut stage = stage();
    stage.perform(10);
    assert_eq!(stage.status(0), LeaseStatus::Active);
    let twice = set(&mut stage, Some(2.0));
    assert_eq!(stage.perform(20), [Action::SetRatios(ONE, FIRST, twice)]);
    // The outcome of setting the ratio is uncertain.
    let told = Told { ratio: None, before: Ratio::ONE };
    stage.host(1).overcommit = Some(Overcommit { cpu: Some(told), ram: None });
    assert_eq!(stage.perform(20), [Action::SetRatios(ONE, FIRST, twice)]);
    let none = set(&mut stage, None);
    assert_eq!(stage.perform(30), [Action::SetRatios(ONE, FIRST, none)]);
    set(&mut stage, Some(3.0));
    stage.perform(40);
    assert_eq!(stage.perform(60), [Action::Release(ONE, FIRST)], "that restores what was before");
}

#[test]
fn lp_8_9_a_fleet_that_cannot_be_told_of_ratios_is_not() {
    let mut stage = stage();
    stage.host(1).overcommit = None;
    set(&mut stage, Some(2.0));
    assert_eq!(stage.perform(10).len(), 3, "it is handed over, and that is all");
}

#[test]
fn lp_8_9_a_lease_is_active_while_its_ratios_are_refused_and_says_so() {
    let mut stage = stage();
    stage.perform(10);
    let action = Action::SetRatios(ONE, FIRST, set(&mut stage, Some(2.0)));
    stage.history.failed(action, at(10), "placement: 503");
    assert!(stage.settle(10).is_empty(), "it waits");
    assert_eq!(stage.status(0), LeaseStatus::Active);
    let reason = for_operator(stage.leases[0].reason.as_deref().expect("a reason"));
    assert!(reason.contains("allocation ratios of host 1"), "{reason}");
    assert_eq!(stage.settle(11), [action]);
}
