//! Compares plans of hunts with the cheapest possible plan.
//!
//! For each size and fill level, the given number of pools is drawn. A plan is an error if it breaks a rule,
//! if it's cheaper than the cheapest plan, or if its lower bound is above the cheapest plan's cost.
//! Redundancy is left out because it isn't a linear condition.

mod model;
mod pool;

use std::time::Instant;

use placement::clear::{Effort, Refusal, Request, check, plan};

use self::model::Exact;
use self::pool::Size;

/// Numbers of nodes in a pool, and of wanted nodes.
const SIZES: [(u64, usize); 4] = [(8, 2), (16, 4), (30, 6), (60, 10)];
/// Fill levels: used memory, percent.
const LEVELS: [u64; 4] = [60, 75, 85, 92];
/// Time limit of the solver for a case.
const SECONDS: f64 = 20.0;

/// Results for pools of the same size and fill level.
#[derive(Debug, Default)]
struct Outcome {
    /// Extra cost of our plans over the cheapest ones, in percent.
    gaps: Vec<f64>,
    /// Cases without a plan, as both found.
    impossible: usize,
    /// Cases in which our search found no plan, although one exists.
    missed: usize,
    /// Cases that the solver couldn't decide in time.
    unknown: usize,
    ours_seconds: f64,
    solver_seconds: f64,
}

/// Compares `cases` pools for each size and fill level, and prints a line for each.
pub fn compare_all(cases: u64) -> Result<(), String> {
    println!(
        "nodes wanted level   plans  cheapest  gap median / 95 % / most   none  missed  unknown   ours / solver"
    );
    for (nodes, wanted) in SIZES {
        for percent in LEVELS {
            let outcome = compare(Size { nodes, wanted, percent }, cases)?;
            println!("{nodes:5} {wanted:6} {percent:3} % {}", outcome.line());
        }
    }
    Ok(())
}

fn compare(size: Size, cases: u64) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for seed in 0..cases {
        let request = pool::draw(seed, size);
        one(&request, &mut outcome).map_err(|why| format!("{size:?}, seed {seed}: {why}"))?;
    }
    Ok(outcome)
}

fn one(request: &Request, outcome: &mut Outcome) -> Result<(), String> {
    let begun = Instant::now();
    let ours = plan(request, Effort::default());
    outcome.ours_seconds += begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let exact = model::solve(request, SECONDS);
    outcome.solver_seconds += begun.elapsed().as_secs_f64();
    if let Ok(ours) = &ours {
        check(request, ours).map_err(|why| format!("our plan: {why}"))?;
    }
    match (ours, exact) {
        (_, Exact::Unknown) => outcome.unknown += 1,
        (Ok(ours), Exact::Cheapest(cheapest)) => {
            check(request, &cheapest).map_err(|why| format!("the solver's plan: {why}"))?;
            let (cost, least) = (ours.cost.weighted, cheapest.cost.weighted);
            if cost < least || ours.lower_bound > least {
                return Err(format!(
                    "the cheapest plan costs {least}, ours {cost}, at least {}",
                    ours.lower_bound
                ));
            }
            let gap = if least == 0 { 0.0 } else { (cost - least) as f64 / least as f64 };
            outcome.gaps.push(100.0 * gap);
        }
        (Ok(_), Exact::Impossible) => return Err("there is no plan, but we have one".to_owned()),
        (Err(Refusal::SearchExhausted { .. }), Exact::Cheapest(_)) => outcome.missed += 1,
        (Err(why), Exact::Cheapest(cheapest)) => {
            check(request, &cheapest).map_err(|why| format!("the solver's plan: {why}"))?;
            return Err(format!("there is a plan, but we say: {why}"));
        }
        (Err(_), Exact::Impossible) => outcome.impossible += 1,
    }
    Ok(())
}

impl Outcome {
    fn line(&self) -> String {
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable_by(f64::total_cmp);
        let at =
            |share: f64| gaps.get(((gaps.len().max(1) - 1) as f64 * share) as usize).copied().unwrap_or(0.0);
        let cheapest = gaps.iter().filter(|gap| **gap == 0.0).count();
        format!(
            "{:7} {cheapest:9}   {:7.2} / {:6.2} / {:6.2} % {:6} {:7} {:8}   {:.2} s / {:.1} s",
            gaps.len(),
            at(0.5),
            at(0.95),
            at(1.0),
            self.impossible,
            self.missed,
            self.unknown,
            self.ours_seconds,
            self.solver_seconds,
        )
    }
}
