//! Many simulations. `SEEDS=a..b` chooses others.

/// As many as continuous integration has time for.
const SEEDS: std::ops::Range<u64> = 0..300;

#[test]
fn what_must_hold_holds_through_faults_and_crashes() {
    hold(false);
}

#[test]
fn what_must_hold_holds_with_several_services_on_one_store() {
    hold(true);
}

fn hold(several: bool) {
    let chosen = std::env::var("SEEDS").ok();
    let seeds = chosen.map_or(SEEDS, |text| simulation::seeds(&text).expect("SEEDS is like 0..500"));
    let total = simulation::simulate_all(seeds, several);
    for failure in &total.failures {
        eprintln!("{failure}");
    }
    println!("{total}");
    assert!(total.failures.is_empty(), "{} simulations failed", total.failures.len());
    let report = &total.report;
    assert!(report.accepted > 0 && report.served > 0, "nobody was offered anything, or waited");
    assert!(report.started > 0 && report.moved > 0 && report.woken > 0, "nothing happened");
    assert!(report.pool_changes > 0, "nobody did anything about pools");
    assert!(
        report.backfilled > 0 && report.cleared > 0,
        "nobody was on hosts of leases, or had to leave them"
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (seed, several) in [(0, false), (1, false), (2, true), (3, true)] {
        let once = simulation::simulate(seed, several).expect("holds");
        assert_eq!(simulation::simulate(seed, several).expect("holds"), once);
    }
}
