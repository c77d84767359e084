//! Fills a cluster with ever smaller instances.
//!
//! The reference does this by recursion: fill with a shape, shrink it in what refused most, recurse; if that
//! placed nothing, shrink it in each reason in turn until it fits, and recurse. A call that placed something is the
//! last word of all calls around it, so a loop with a list of the calls that placed nothing does the same.

use cluster::FailMode;

use super::fill::Filler;
use super::shape::Shape;
use crate::allocate::Failures;

/// A fill that ended, and from which smaller shapes are tried.
struct Level {
    shape: Shape,
    /// What is left of the limit.
    rest: Option<usize>,
    /// What refused one more instance.
    failures: Failures,
}

impl Level {
    /// All reasons, the least frequent first; equal ones in their usual order.
    fn by_frequency(&self) -> [FailMode; FailMode::ALL.len()] {
        let mut order = FailMode::ALL;
        order.sort_by_key(|mode| self.failures.count(*mode));
        order
    }
}

/// Places instances of `first` and of smaller shapes until none fits; returns what refused the one after the last.
pub(super) fn tiered(filler: &mut Filler<'_>, first: &Shape, limit: Option<usize>) -> Failures {
    // All on the state as it is; the first is the one that placed something last.
    let mut levels: Vec<Level> = Vec::new();
    let (mut shape, mut rest) = (*first, limit);
    loop {
        let before = filler.placed.len();
        let failures = filler.fill(&shape, rest);
        let placed = filler.placed.len();
        if placed > before {
            levels.clear();
        }
        if rest.is_none_or(|rest| placed < rest) {
            // The limit shrinks by all that was placed so far each time: so does the reference's.
            let level = Level { shape, rest: rest.map(|rest| rest - placed), failures };
            let smaller = shape.shrunk(level.by_frequency()[FailMode::ALL.len() - 1]);
            rest = level.rest;
            levels.push(level);
            if let Some(smaller) = smaller {
                shape = smaller;
                continue;
            }
        } else if levels.is_empty() {
            return failures;
        }
        let Some(next) = levels.iter().rev().find_map(|level| Some((fitting(filler, level)?, level.rest)))
        else {
            return levels.swap_remove(0).failures;
        };
        (shape, rest) = next;
        levels.clear();
    }
}

/// The largest shape that fits among those that a shape shrinks to in one respect, the most frequent reason
/// first; only as long as that reason still refuses, and never the smallest. Redundancy is looked at here even for
/// DRBD instances.
fn fitting(filler: &mut Filler<'_>, level: &Level) -> Option<Shape> {
    for mode in level.by_frequency().into_iter().rev() {
        let mut shape = level.shape;
        while let Some(smaller) = shape.shrunk(mode) {
            match filler.refusal(&shape) {
                None => return Some(shape),
                Some(failures) if failures.count(mode) == 0 => break,
                Some(_) => shape = smaller,
            }
        }
    }
    None
}
