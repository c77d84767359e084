//! Long runs of the property tests that verify the plans of our own commands, and the reasons these give for
//! NO.

use std::time::Instant;

use chores::places;
use chores::run::must_run;
use chores::tally::{Tally, report_failure};

/// Names of the tests in `crates/placement/tests/properties`.
const TESTS: [&str; 3] = ["verified::", "refusing::", "rebooting::"];

/// Runs the tests with fresh seeds until that time, at least once.
pub fn run(until: Instant) -> Tally {
    let mut tally = Tally::default();
    for seed in places::fresh_seed().. {
        // As part of the whole workspace. Otherwise, cargo would build the crate again with other features.
        let mut tests = places::cargo();
        tests.args(["test", "--quiet", "--test", "properties", "--"]).args(TESTS).arg("--show-output");
        let held = must_run(tests.env("PROPTEST_RNG_SEED", seed.to_string())).is_ok();
        tally.count(held);
        if !held {
            report_failure(format!(
                "plans: PROPTEST_RNG_SEED={seed} cargo test --package placement --test properties -- {}",
                TESTS.join(" ")
            ));
        }
        if Instant::now() > until {
            break;
        }
    }
    tally
}
