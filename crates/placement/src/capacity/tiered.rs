//! Fills a cluster with ever smaller instances.
//!
//! The reference does this by recursion: fill with a shape, shrink it in the resource that refused most
//! often, and recurse. If that placed nothing, shrink it for each reason in turn until it fits, and recurse.
//! A call that placed something determines the result of all calls around it, so a loop with a list of the
//! calls that placed nothing gives the same result.

use cluster::FailMode;

use super::fill::Filler;
use super::shape::Shape;
use crate::allocate::Failures;

/// A finished fill from which smaller shapes are tried.
struct Level {
    shape: Shape,
    /// Remaining limit; `None` means no limit.
    rest: Option<usize>,
    /// Reasons that refused one more instance.
    failures: Failures,
}

impl Level {
    /// All reasons, least frequent first. Ties keep the order of [`FailMode::ALL`].
    fn by_frequency(&self) -> [FailMode; FailMode::ALL.len()] {
        let mut order = FailMode::ALL;
        order.sort_by_key(|mode| self.failures.count(*mode));
        order
    }
}

/// Places instances of `first` and of smaller shapes until none fits. Returns the reasons that refused the
/// next instance.
pub(super) fn tiered(filler: &mut Filler<'_>, first: &Shape, limit: Option<usize>) -> Failures {
    // All levels describe the current state. The first is the last fill that placed something.
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
            // The limit shrinks by all instances placed so far each time, as the reference's does.
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

/// Largest fitting shape, found by shrinking the level's shape in one resource at a time. The most frequent
/// reason is tried first, and only while it still refuses. The smallest shape is never tried. Redundancy is
/// checked here even for DRBD instances.
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
