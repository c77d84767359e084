//! Judges refused requests for whole hosts: would moves of waiting leases have freed enough hosts (CLS-10)?
//!
//! A refusal is *needless* if enough hosts are free, and *avoidable* if at most [`MOVES_PER_HOST`] moves per
//! requested host are enough. Granted requests that needed moves are checked as well: the leases keep their
//! numbers of hosts, the hosts suit them and belong to no other lease, and there are no more moves than that
//! limit.

mod fleet;
mod model;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use leases::admission::MOVES_PER_HOST;
use leases::lease::{Lease, Reservation};
use leases::terms::{ReservationTerms, Terms};

use self::fleet::{Answer, Fleet};
use self::model::Exact;

/// Sizes of fleets, in hosts.
const SIZES: [u64; 3] = [10, 14, 24];
/// Maximum number of judged refusals per fleet, and of requests.
const REFUSALS_OF_FLEET: u64 = 10;
const REQUESTS_OF_FLEET: u64 = 80;
/// Time limit of the solver for a case.
const SECONDS: f64 = 20.0;
/// Limit for the share of avoidable refusals, in percent. The share must stay below it.
const LIMIT: f64 = 1.0;
/// Share of refusals, in percent, that some number of moves would have avoided before leases could move in
/// chains.
const BEFORE: f64 = 14.0;

/// Results for fleets of the same size.
#[derive(Debug, Default)]
struct Outcome {
    refused: u64,
    needless: u64,
    /// Refusals that up to [`MOVES_PER_HOST`] moves per host would have avoided.
    avoidable: u64,
    /// Refusals that any number of moves would have avoided, including `avoidable`.
    avoidable_by_any: u64,
    unknown: u64,
    ours: Vec<Duration>,
    solver: Vec<Duration>,
    work: Vec<u64>,
    /// Requests granted by moves.
    moved: u64,
    /// Number of moves for these requests, and the smallest possible number.
    moves: usize,
    fewest: usize,
}

/// Judges `count` refusals on fleets with seeds from `first_seed`. Fails if a refusal is needless, or if too
/// many are avoidable.
pub fn judge_all(count: u64, first_seed: u64) -> Result<(), String> {
    println!("seeds from {first_seed} on");
    let mut outcomes: BTreeMap<u64, Outcome> = BTreeMap::new();
    let mut refused = 0;
    for number in 0.. {
        if refused == count {
            break;
        }
        let (seed, hosts) = (first_seed + number, SIZES[(number % SIZES.len() as u64) as usize]);
        let outcome = outcomes.entry(hosts).or_default();
        let before = outcome.refused;
        judge_fleet(seed, hosts, (count - refused).min(REFUSALS_OF_FLEET), outcome)
            .map_err(|why| format!("{hosts} hosts, seed {seed}: {why}"))?;
        refused += outcome.refused - before;
    }
    let mut all = Outcome::default();
    println!("hosts  refused  needless  avoidable  by any number  unknown    ours / solver: mean, 95 %");
    for (hosts, outcome) in outcomes {
        println!("{hosts:5} {}", outcome.line());
        all.add(outcome);
    }
    println!("  all {}", all.line());
    println!(
        "avoidable by any number of moves: {:.2} %; it was {BEFORE} %",
        all.percent(all.avoidable_by_any)
    );
    println!("moves made room for {} requests: {} moves, {} at least", all.moved, all.moves, all.fewest);
    if all.needless > 0 {
        return Err(format!("{} refusals were needless", all.needless));
    }
    // A refusal that the solver couldn't decide counts as avoidable.
    let share = all.percent(all.avoidable + all.unknown);
    if share >= LIMIT {
        return Err(format!("{share:.2} % of refusals are avoidable or unknown, at {LIMIT} % or more"));
    }
    Ok(())
}

/// Judges at most `most` refusals of a fleet.
fn judge_fleet(seed: u64, hosts: u64, most: u64, outcome: &mut Outcome) -> Result<(), String> {
    let mut fleet = Fleet::draw(seed, hosts);
    let last = outcome.refused + most;
    for request in 0..REQUESTS_OF_FLEET {
        if outcome.refused == last {
            break;
        }
        let terms = fleet.next_request();
        let begun = Instant::now();
        let (answer, work) = fleet.answer(&terms);
        let ours = begun.elapsed();
        let judged = is_judged(&terms);
        match &answer {
            Answer::Given { lease, moved } if judged && !moved.is_empty() => {
                given_by_moves(&fleet, &terms, (lease, moved), outcome)
                    .map_err(|why| format!("request {request}, which got hosts by moves: {why}"))?;
            }
            Answer::Refused if judged => {
                outcome.ours.push(ours);
                outcome.work.push(work);
                refused(&fleet, &terms, outcome, &|moves| {
                    format!(
                        "{hosts} hosts, seed {seed}, request {request}: {moves} moves make room, work {work}"
                    )
                })
                .map_err(|why| format!("request {request}: {why}"))?;
            }
            Answer::Refused | Answer::Given { .. } => {}
        }
        fleet.enter(answer);
    }
    Ok(())
}

/// Whether a request is for whole hosts on dates.
fn is_judged(terms: &Terms) -> bool {
    terms.has_dates() && terms.reservations.iter().all(|terms| matches!(terms, ReservationTerms::Hosts(_)))
}

fn requested(terms: &Terms) -> usize {
    let hosts = terms.reservations.iter().map(|terms| match terms {
        ReservationTerms::Hosts(terms) => terms.min() as usize,
        _ => 0,
    });
    hosts.sum()
}

fn refused(
    fleet: &Fleet,
    terms: &Terms,
    outcome: &mut Outcome,
    case: &dyn Fn(usize) -> String,
) -> Result<(), String> {
    outcome.refused += 1;
    let begun = Instant::now();
    let exact = model::solve(fleet, terms, SECONDS);
    outcome.solver.push(begun.elapsed());
    match exact {
        Exact::Unknown => outcome.unknown += 1,
        Exact::Impossible => {}
        Exact::Fewest { moves, moved } => {
            fleet.could_have(terms, &moved).map_err(|why| format!("the solver's moves: {why}"))?;
            outcome.avoidable_by_any += 1;
            if moves == 0 {
                outcome.needless += 1;
            }
            if moves <= MOVES_PER_HOST * requested(terms) {
                outcome.avoidable += 1;
                println!("{}, {} hosts requested", case(moves), requested(terms));
            }
        }
    }
    Ok(())
}

fn given_by_moves(
    fleet: &Fleet,
    terms: &Terms,
    (lease, moved): (&Lease, &[Lease]),
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut moves = 0;
    for after in moved {
        let before = fleet.lease(after.id).filter(|lease| fleet.may_move(lease));
        let before = before.ok_or_else(|| format!("lease {} can't move", after.id))?;
        let reservations = before.reservations.iter().zip(&after.reservations);
        let same_number = |(before, after): (&Reservation, &Reservation)| {
            before.allocation.amount() == after.allocation.amount()
        };
        if before.window != after.window || !reservations.clone().all(same_number) {
            return Err(format!("lease {} has another window, or fewer hosts", after.id));
        }
        for (before, after) in reservations {
            moves += before.allocation.hosts().difference(&after.allocation.hosts()).count();
        }
    }
    if moves > MOVES_PER_HOST * requested(terms) {
        return Err(format!("{moves} moves"));
    }
    fleet.check(lease, moved)?;
    match model::solve(fleet, terms, SECONDS) {
        Exact::Impossible => return Err("the solver finds no moves".to_owned()),
        Exact::Unknown => {}
        Exact::Fewest { moves: fewest, .. } if fewest > moves => {
            return Err(format!("{moves} moves, but the solver needs {fewest}"));
        }
        Exact::Fewest { moves: fewest, .. } => {
            outcome.moved += 1;
            outcome.moves += moves;
            outcome.fewest += fewest;
        }
    }
    Ok(())
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.refused += other.refused;
        self.needless += other.needless;
        self.avoidable += other.avoidable;
        self.avoidable_by_any += other.avoidable_by_any;
        self.unknown += other.unknown;
        self.ours.extend(other.ours);
        self.solver.extend(other.solver);
        self.work.extend(other.work);
        self.moved += other.moved;
        self.moves += other.moves;
        self.fewest += other.fewest;
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.refused.max(1) as f64
    }

    fn line(&self) -> String {
        format!(
            "{:8} {:9} {:6} ({:.2} %) {:6} ({:.2} %) {:8}    {} / {}",
            self.refused,
            self.needless,
            self.avoidable,
            self.percent(self.avoidable),
            self.avoidable_by_any,
            self.percent(self.avoidable_by_any),
            self.unknown,
            times(&self.ours),
            times(&self.solver),
        )
    }
}

/// Mean and 95th percentile.
fn times(times: &[Duration]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let mean = sorted.iter().sum::<Duration>() / (sorted.len().max(1) as u32);
    let high = sorted.get(sorted.len() * 95 / 100).copied().unwrap_or_default();
    format!("{:.2} ms, {:.2} ms", 1e3 * mean.as_secs_f64(), 1e3 * high.as_secs_f64())
}
