//! Sorts candidates best first while computing as few exact scores as possible.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Yields candidates by ascending exact score, the latest first among equal scores. It starts from lower
/// bounds and asks for an exact score only when the order depends on it.
///
/// NaN scores are yielded in order of trial, which is how the reference sorts them.
#[derive(Debug)]
pub(crate) struct BestFirst {
    heap: BinaryHeap<Entry>,
}

/// Result of [`BestFirst::look`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Looked {
    /// The next candidate and its exact score.
    Next(usize, f64),
    /// An exact score replaced a bound, so the next candidate may have changed.
    Scored,
}

#[derive(Debug)]
struct Entry {
    key: f64,
    exact: bool,
    position: usize,
}

impl Ord for Entry {
    /// The greatest entry is next: smallest key first, then bounds before exact scores, then the latest
    /// position.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.key.is_nan(), other.key.is_nan()) {
            (true, true) => return other.position.cmp(&self.position),
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let by_key = other.key.partial_cmp(&self.key).unwrap_or(Ordering::Equal);
        by_key.then(other.exact.cmp(&self.exact)).then(self.position.cmp(&other.position))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl BestFirst {
    /// Candidates 0, 1, ... with their lower bounds.
    pub fn new(bounds: impl Iterator<Item = f64>) -> Self {
        let entry = |(position, key)| Entry { key, exact: false, position };
        Self { heap: bounds.enumerate().map(entry).collect() }
    }

    pub fn empty() -> Self {
        Self { heap: BinaryHeap::new() }
    }

    /// Adds a candidate with a lower bound of its score.
    pub fn add_bound(&mut self, position: usize, key: f64) {
        self.heap.push(Entry { key, exact: false, position });
    }

    /// Adds a candidate with its exact score.
    pub fn add_exact(&mut self, position: usize, key: f64) {
        self.heap.push(Entry { key, exact: true, position });
    }

    /// Smallest key, which can be a bound or an exact score.
    pub fn least(&self) -> Option<f64> {
        self.heap.peek().map(|entry| entry.key)
    }

    /// Processes the first entry: removes it if its score is exact, otherwise computes the exact score.
    pub fn look(&mut self, exact: impl FnOnce(usize) -> f64) -> Option<Looked> {
        let entry = self.heap.pop()?;
        if entry.exact {
            return Some(Looked::Next(entry.position, entry.key));
        }
        self.heap.push(Entry { key: exact(entry.position), exact: true, position: entry.position });
        Some(Looked::Scored)
    }

    /// Next candidate and its exact score.
    pub fn next(&mut self, mut exact: impl FnMut(usize) -> f64) -> Option<(usize, f64)> {
        loop {
            if let Looked::Next(position, score) = self.look(&mut exact)? {
                return Some((position, score));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(scores: &[f64], bound: impl Fn(f64) -> f64) -> (Vec<usize>, usize) {
        let mut asked = 0;
        let mut order = BestFirst::new(scores.iter().map(|s| bound(*s)));
        let mut positions = Vec::new();
        while let Some((position, _)) = order.next(|p| {
            asked += 1;
            scores[p]
        }) {
            positions.push(position);
        }
        (positions, asked)
    }

    #[test]
    fn equal_scores_come_latest_first() {
        assert_eq!(order(&[2.0, 1.0, 2.0, 1.0], |s| s - 0.5).0, [3, 1, 2, 0]);
        assert_eq!(order(&[2.0, 1.0, 2.0, 1.0], |s| s).0, [3, 1, 2, 0]);
        assert_eq!(order(&[2.0, 1.0, 2.0, 1.0], |_| f64::NEG_INFINITY).0, [3, 1, 2, 0]);
    }

    #[test]
    fn undefined_scores_come_in_order() {
        assert_eq!(order(&[f64::NAN; 3], |_| f64::NEG_INFINITY).0, [0, 1, 2]);
    }

    #[test]
    fn exact_scores_are_asked_for_only_where_needed() {
        let scores = [5.0, 1.0, 9.0];
        let mut order = BestFirst::new(scores.iter().map(|s| s - 0.1));
        let mut asked = Vec::new();
        let first = order.next(|p| {
            asked.push(p);
            scores[p]
        });
        assert_eq!(first, Some((1, 1.0)));
        assert_eq!(asked, [1]);
    }
}
