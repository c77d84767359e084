//! Simulations of the first seeds, and of seeds derived from the commit, so that each commit covers new
//! ground. `SEEDS=a..b` runs other seeds; `COMMIT=hash` derives them from that commit.

use std::ops::Range;
use std::process::Command;

/// With glibc's allocator, simulations spend a tenth of their time on allocation.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seeds that always run.
const FIRST: Range<u64> = 0..100;
/// Number of seeds per commit.
const OF_COMMIT: u64 = 50;

#[test]
fn what_must_hold_holds_through_faults_and_crashes() {
    hold(false);
}

#[test]
fn what_must_hold_holds_with_several_services_on_one_store() {
    hold(true);
}

/// Counters that can stay zero with several services: about one seed in a hundred reaches this, too few to
/// require it. With one service more seeds do.
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

/// Hash of the commit under test: `COMMIT`, or the working copy's if it is a git checkout.
fn commit() -> Option<String> {
    let given = std::env::var("COMMIT").ok().filter(|hash| !hash.is_empty());
    given.or_else(|| {
        let said = Command::new("git").args(["rev-parse", "HEAD"]).output().ok()?;
        let hash = String::from_utf8(said.stdout).ok().filter(|_| said.status.success())?;
        Some(hash.trim().to_owned())
    })
}

/// The commit's seeds, which lie beyond [`FIRST`].
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
