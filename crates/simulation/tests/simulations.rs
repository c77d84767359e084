//! Many simulations: of the first seeds, and of some that the commit chooses, so that each commit looks where none has looked
//! before. `SEEDS=a..b` chooses others, and `COMMIT=hash` those of that commit.

use std::ops::Range;
use std::process::Command;

/// With glibc's allocator a tenth of what simulations cost is to take and give back memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// These are run always.
const FIRST: Range<u64> = 0..100;
/// So many beside them, from a number on that is the commit's.
const OF_COMMIT: u64 = 50;

#[test]
fn what_must_hold_holds_through_faults_and_crashes() {
    hold(false);
}

#[test]
fn what_must_hold_holds_with_several_services_on_one_store() {
    hold(true);
}

/// With several services about one of a hundred seeds comes to this: too few for it to be wanted of these. One service has more.
const RARE: [&str; 1] = ["instances asked to leave for the lease"];

fn hold(several: bool) {
    let mut total = simulation::Total::default();
    for seeds in chosen() {
        println!("seeds {seeds:?}");
        total.add(simulation::simulate_all(seeds, several));
    }
    for failure in &total.failures {
        eprintln!("{failure}");
    }
    println!("{total}");
    assert!(total.failures.is_empty(), "{} simulations failed", total.failures.len());
    let wanted = |name: &str| !several || !RARE.contains(&name);
    let counters = total.report.counters().into_iter().filter(|(name, _)| wanted(name));
    let never: Vec<_> = counters.filter(|(_, count)| *count == 0).collect();
    assert!(never.is_empty(), "so much less is simulated than there should be: {never:?}");
}

/// The seeds.
fn chosen() -> Vec<Range<u64>> {
    if let Ok(text) = std::env::var("SEEDS") {
        return vec![simulation::seeds(&text).expect("SEEDS is like 0..500")];
    }
    let of_commit = commit().map(|hash| seeds_of(&hash).expect("a commit is a hexadecimal number"));
    if of_commit.is_none() {
        println!("no commit is known, so there are no seeds of it");
    }
    [FIRST].into_iter().chain(of_commit).collect()
}

/// The commit that is tested: the one that is given, or that of the working copy, if it is one.
fn commit() -> Option<String> {
    let given = std::env::var("COMMIT").ok().filter(|hash| !hash.is_empty());
    given.or_else(|| {
        let said = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
        let hash = String::from_utf8(said.stdout).ok().filter(|_| said.status.success())?;
        Some(hash.trim().to_owned())
    })
}

/// The seeds that a commit chooses, beyond all that are run always.
fn seeds_of(hash: &str) -> Option<Range<u64>> {
    let number = u64::from_str_radix(hash.get(..8)?, 16).ok()?;
    let from = 1_000_000 + number * OF_COMMIT;
    Some(from..from + OF_COMMIT)
}

#[test]
fn each_commit_has_seeds_of_its_own() {
    let seeds = |hash| seeds_of(hash).expect("a hash");
    let (one, next) = (seeds("00000001c0ffee"), seeds("00000002c0ffee"));
    assert_eq!((one.end - one.start, one.end), (OF_COMMIT, next.start));
    assert!(seeds("ffffffff").start > next.start && FIRST.end <= seeds("00000000").start);
    assert_eq!((seeds_of(""), seeds_of("main-branch")), (None, None));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for (seed, several) in [(0, false), (1, false), (2, true), (3, true)] {
        let once = simulation::simulate(seed, several).expect("holds");
        assert_eq!(simulation::simulate(seed, several).expect("holds"), once);
    }
}
