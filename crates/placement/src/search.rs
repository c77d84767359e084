//! Finds the best move of a balancing step.
//!
//! Three rigorous sieves: a bound on the gain of a class of instances with its best target
//! ([`crate::minorant`], one number per instance and kind of move); a bound for a single candidate
//! ([`Board::lower_bound`](crate::board::Board::lower_bound)); and the canonical score. A candidate is
//! dropped only if its bound is *above* the best exact score, so ties are broken as in the reference: by the
//! order of trial.

use std::cmp::Ordering;

use cluster::{InstanceIdx, Move, Probe};
use rayon::prelude::*;

use crate::balance::{Balancer, Candidates};
use crate::classes::Class;
use crate::minorant::{Frame, Minorant, Podiums};
use crate::survey::{Prospect, Role, Surveyor, role_of};
use crate::terms::Terms;

/// The best move found, and the exact score after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Best {
    pub score: f64,
    pub instance: InstanceIdx,
    pub mov: Move,
    /// Position among the trials of the instance.
    trial: usize,
}

impl Best {
    /// Whether the reference would prefer this one: lower score first, then earlier trial.
    fn beats(&self, other: &Self) -> bool {
        match self.score.partial_cmp(&other.score) {
            Some(Ordering::Less) => true,
            Some(Ordering::Equal) => (self.instance, self.trial) < (other.instance, other.trial),
            _ => false,
        }
    }
}

/// The first move, in canonical order, among those with the lowest score below the current one.
pub(crate) fn best_move(run: &Balancer<'_>) -> Option<Best> {
    if run.board.bounded() { sieved(run) } else { exhaustive(run) }
}

/// Tries candidates and keeps the best.
struct Trials<'a> {
    run: &'a Balancer<'a>,
    best: Option<Best>,
    limit: f64,
}

impl<'a> Trials<'a> {
    fn new(run: &'a Balancer<'_>, limit: f64) -> Self {
        Self { run, best: None, limit }
    }

    fn consider(&mut self, probe: &Probe<'_>, mov: Move, trial: usize) {
        let Ok(outcome) = probe.judge(mov, self.run.options.ignore_soft_errors) else { return };
        let instance = probe.index();
        if self.run.lower_bound(instance, &outcome) > self.limit {
            return;
        }
        let score = self.run.exact(instance, &outcome);
        let found = Best { score, instance, mov, trial };
        if score < self.run.score() && self.best.as_ref().is_none_or(|best| found.beats(best)) {
            self.limit = self.limit.min(score);
            self.best = Some(found);
        }
    }
}

/// Tries all candidates, without the first sieve.
pub(crate) fn exhaustive(run: &Balancer<'_>) -> Option<Best> {
    let mut trials = Trials::new(run, run.score());
    for &index in run.instances.iter().filter(|i| run.eligible(**i)) {
        let candidates = Candidates::of(run.cluster, run.cluster.instance(index), &run.options);
        let probe = Probe::new(run.cluster, index);
        if candidates.failover {
            trials.consider(&probe, Move::Failover, 0);
        }
        for (position, &target) in run.online.iter().enumerate() {
            if target == probe.primary || Some(target) == probe.secondary {
                continue;
            }
            for (number, kind) in candidates.kinds.iter().enumerate() {
                trials.consider(&probe, kind.to(target), trial_number(position, number));
            }
        }
    }
    trials.best
}

fn trial_number(position: usize, kind: usize) -> usize {
    1 + 4 * position + kind
}

/// Above this count of numbers, the tables of all classes aren't kept but recomputed when needed.
const KEPT_NUMBERS: usize = 8 << 20;
/// Number of prospects explored first, to find a good move early.
const FAVOURITES: usize = 8;
/// Number of instances from which work is spread over threads.
pub(crate) const PARALLEL_FROM: usize = 2_000;

fn sieved(run: &Balancer<'_>) -> Option<Best> {
    let classes = &run.classes;
    let any_offline = run.online.len() < run.nodes.len();
    let frame = Frame::new(run.cluster, &run.board, classes, &run.online, any_offline);
    let keep = classes.all.len() * run.online.len() * 6 < KEPT_NUMBERS;
    let survey = |(number, class): (usize, &Class)| {
        let minorant = frame.minorant(class);
        let podiums = Podiums::new(&frame, class, &minorant);
        let surveyor = Surveyor {
            run,
            cells: &frame.cells,
            loads: frame.load_table(class),
            number: number as u32,
            minorant: &minorant,
        };
        let mut prospects = Vec::new();
        for &index in class.instances.iter().filter(|i| run.eligible(**i)) {
            surveyor.prospects(index, &podiums, &mut prospects);
        }
        (keep.then_some(minorant), prospects)
    };
    let parallel = run.instances.len() >= run.parallel_from;
    let surveyed: Vec<(Option<Minorant>, Vec<Prospect>)> = if parallel {
        classes.all.par_iter().enumerate().map(survey).collect()
    } else {
        classes.all.iter().enumerate().map(survey).collect()
    };
    let mut prospects: Vec<Prospect> = surveyed.iter().flat_map(|(_, p)| p.iter().copied()).collect();
    let favourites = FAVOURITES.min(prospects.len());
    if favourites < prospects.len() && favourites > 0 {
        prospects.select_nth_unstable_by(favourites - 1, |a, b| a.bound.total_cmp(&b.bound));
    }
    let mut trials = Trials::new(run, run.score());
    let explore = |trials: &mut Trials<'_>, prospects: &[Prospect]| {
        for prospect in prospects {
            if prospect.bound > trials.limit {
                continue;
            }
            let number = prospect.class as usize;
            let class = &classes.all[number];
            if let Some(minorant) = &surveyed[number].0 {
                explore_prospect(&frame, class, minorant, prospect, trials);
            } else {
                explore_prospect(&frame, class, &frame.minorant(class), prospect, trials);
            }
        }
    };
    let (first, rest) = prospects.split_at_mut(favourites);
    first.sort_unstable_by(|a, b| a.bound.total_cmp(&b.bound));
    explore(&mut trials, first);
    let limit = trials.limit;
    let rest: Vec<Prospect> = rest.iter().filter(|p| p.bound <= limit).copied().collect();
    let others: Vec<Option<Best>> = if parallel && rest.len() > 64 {
        let chunk = rest.len().div_ceil(4 * rayon::current_num_threads());
        rest.par_chunks(chunk)
            .map(|chunk| {
                let mut trials = Trials::new(run, limit);
                explore(&mut trials, chunk);
                trials.best
            })
            .collect()
    } else {
        explore(&mut trials, &rest);
        Vec::new()
    };
    others.into_iter().flatten().chain(trials.best).reduce(|a, b| if a.beats(&b) { a } else { b })
}

/// Tries the targets that pass the bound.
fn explore_prospect(
    frame: &Frame<'_>,
    class: &Class,
    minorant: &Minorant,
    prospect: &Prospect,
    trials: &mut Trials<'_>,
) {
    let run = trials.run;
    let probe = Probe::new(run.cluster, prospect.instance);
    let Some((kind, number)) = prospect.kind else {
        trials.consider(&probe, Move::Failover, 0);
        return;
    };
    let (role, force) = role_of(run, run.cluster.instance(prospect.instance), kind);
    let worths = match role {
        Role::Primary => &minorant.as_primary,
        Role::Secondary => &minorant.as_secondary,
    };
    let instance = run.cluster.instance(prospect.instance);
    let terms = Terms { run, cells: &frame.cells, loads: frame.load_table(class), instance };
    let terms: Vec<f64> = (0..frame.cells.nodes.len()).map(|cell| terms.of(kind, cell)).collect();
    let fits = &run.classes.shapes[class.shape].fits;
    for (position, worth) in worths.iter().enumerate() {
        let bound = prospect.fixed + worth + terms[frame.cells.of[position] as usize];
        if bound > trials.limit {
            continue;
        }
        let fit = match role {
            Role::Primary => fits[position].primary[usize::from(force)],
            Role::Secondary => fits[position].secondary[usize::from(force)],
        };
        let target = run.online[position];
        if fit && target != probe.primary && Some(target) != probe.secondary {
            trials.consider(&probe, kind.to(target), trial_number(position, usize::from(number)));
        }
    }
}

#[cfg(test)]
mod tests;
