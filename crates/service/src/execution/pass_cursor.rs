//! Resumable passes over many entries: each call tries as many entries as the budget allows, and the next
//! call continues.
//!
//! Clients determine the number of entries. No entry may delay work that is due, or keep other entries from
//! being tried. So a pass doesn't begin another entry once it has used its share of the budget, and continues
//! after the last one next time.

use std::collections::BTreeSet;

use leases::ids::{HostId, LeaseId};
use leases::work::Budget;
use store::Revision;

/// A pass begins no further entry after it has used 1/`SHARE` of the budget. The rest is for the entry that
/// was begun.
const SHARE: u64 = 8;

/// State that entries are tried on: the revision, and hosts with guests that can't be removed.
pub(crate) type Known = (Revision, BTreeSet<HostId>);

/// For passes that don't depend on a known state, because they return to every entry by themselves.
pub(super) const ANYTHING: Known = (Revision { number: 0, mark: 0 }, BTreeSet::new());

/// Cursor of a pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassCursor {
    /// State in which no entry had a result. While it is unchanged, none will.
    without_result: Option<Known>,
    /// State in which the unfinished pass began, and the last entry that was tried.
    under_way: Option<(Known, LeaseId)>,
}

/// Result of a pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<T> {
    /// Result of the first entry that has one.
    One(T),
    /// No entry has a result.
    Nothing,
    /// No result yet, and there are more entries.
    Unfinished,
}

impl<T> Found<T> {
    /// The result, if there is one so far.
    pub fn any(self) -> Option<T> {
        match self {
            Self::One(found) => Some(found),
            Self::Nothing | Self::Unfinished => None,
        }
    }
}

impl PassCursor {
    /// Whether no entry has a result in this state.
    pub fn is_without_result(&self, known: &Known) -> bool {
        self.without_result.as_ref() == Some(known)
    }

    /// Lets all entries be tried again in the same state.
    pub fn retry(&mut self) {
        self.without_result = None;
        if let Some((began, _)) = &mut self.under_way {
            *began = ANYTHING;
        }
    }

    /// Tries entries in order until one has a result. Starts after the last entry of an unfinished pass.
    pub fn go_on<E, T>(
        &mut self,
        entries: &[E],
        id: impl Fn(&E) -> LeaseId,
        known: Known,
        budget: &Budget,
        attempt: impl Fn(&E) -> Option<T>,
    ) -> Found<T> {
        let (began, last) = self.under_way.take().unzip();
        let resumes = last.and_then(|last| entries.iter().position(|entry| id(entry) == last));
        // If the last entry is gone, start at the beginning.
        let began = began.filter(|_| resumes.is_some()).unwrap_or_else(|| known.clone());
        let first = resumes.map_or(0, |position| position + 1);
        let mut last = resumes.map(|position| id(&entries[position]));
        let mut tried_any = false;
        for entry in &entries[first..] {
            if budget.used_part_of(SHARE) {
                self.under_way = last.map(|last| (began, last));
                return Found::Unfinished;
            }
            let found = attempt(entry);
            if budget.exhausted() && tried_any {
                // Too little of the budget was left for this entry.
                self.under_way = last.map(|last| (began, last));
                return Found::Unfinished;
            }
            tried_any = true;
            last = Some(id(entry));
            if let Some(found) = found {
                // Continue after it if earlier calls have tried the entries before it.
                self.under_way = resumes.and(last).map(|last| (began, last));
                return Found::One(found);
            }
        }
        if began == known {
            self.without_result = Some(known);
            return Found::Nothing;
        }
        // The state has changed since the pass began, so the first entries must be tried again.
        Found::Unfinished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(revision: u64) -> Known {
        (Revision { number: revision, mark: 0 }, BTreeSet::new())
    }

    /// Continues a pass over ten entries that cost 10 each. Entries in `good` have a result. Returns the entries
    /// tried, and the result.
    fn go_on(cursor: &mut PassCursor, revision: u64, limit: u64, good: &[u128]) -> (Vec<u128>, Found<u128>) {
        let budget = Budget::new(limit);
        let tried = std::cell::RefCell::new(Vec::new());
        let entries: Vec<u128> = (1..=10).collect();
        let attempt = |entry: &u128| {
            tried.borrow_mut().push(*entry);
            let affordable = budget.spend(10);
            good.contains(entry).then_some(*entry).filter(|_| affordable)
        };
        let found = cursor.go_on(&entries, |entry| LeaseId(*entry), known(revision), &budget, attempt);
        (tried.into_inner(), found)
    }

    #[test]
    fn a_pass_that_fits_into_a_cycle_tries_all_and_not_again_until_something_changes() {
        let mut cursor = PassCursor::default();
        assert_eq!(go_on(&mut cursor, 1, 10_000, &[]), ((1..=10).collect(), Found::Nothing));
        assert!(cursor.is_without_result(&known(1)) && !cursor.is_without_result(&known(2)));
        assert_eq!(go_on(&mut cursor, 2, 10_000, &[2, 3]), (vec![1, 2], Found::One(2)));
        assert_eq!(go_on(&mut cursor, 3, 10_000, &[1]), (vec![1], Found::One(1)), "the first goes first");
    }

    #[test]
    fn a_pass_that_is_too_long_goes_on_where_it_stopped_and_comes_to_every_entry() {
        let mut cursor = PassCursor::default();
        let share = 320;
        assert_eq!(go_on(&mut cursor, 1, share, &[]), (vec![1, 2, 3, 4], Found::Unfinished));
        assert_eq!(go_on(&mut cursor, 1, share, &[]), (vec![5, 6, 7, 8], Found::Unfinished));
        assert_eq!(go_on(&mut cursor, 1, share, &[]), (vec![9, 10], Found::Nothing));
        assert!(cursor.is_without_result(&known(1)));
    }

    #[test]
    fn what_changes_meanwhile_does_not_send_a_pass_back_to_its_first_entries() {
        let mut cursor = PassCursor::default();
        assert_eq!(go_on(&mut cursor, 1, 320, &[]), (vec![1, 2, 3, 4], Found::Unfinished));
        assert_eq!(go_on(&mut cursor, 2, 320, &[6]), (vec![5, 6], Found::One(6)));
        assert_eq!(go_on(&mut cursor, 3, 320, &[6]), (vec![7, 8, 9, 10], Found::Unfinished));
        assert_eq!(go_on(&mut cursor, 3, 10_000, &[]), ((1..=10).collect(), Found::Nothing));
    }

    #[test]
    fn a_retry_tries_every_entry_once_more() {
        let mut cursor = PassCursor::default();
        go_on(&mut cursor, 1, 10_000, &[]);
        cursor.retry();
        assert!(!cursor.is_without_result(&known(1)));
        assert_eq!(go_on(&mut cursor, 1, 10_000, &[]), ((1..=10).collect(), Found::Nothing));
        assert!(cursor.is_without_result(&known(1)));
        // An unfinished pass continues, and then starts again.
        assert_eq!(go_on(&mut cursor, 2, 320, &[]), (vec![1, 2, 3, 4], Found::Unfinished));
        cursor.retry();
        assert_eq!(go_on(&mut cursor, 2, 10_000, &[]), ((5..=10).collect(), Found::Unfinished));
        assert_eq!(go_on(&mut cursor, 2, 10_000, &[]), ((1..=10).collect(), Found::Nothing));
    }

    #[test]
    fn an_entry_that_costs_too_much_by_itself_holds_up_nobody() {
        let mut cursor = PassCursor::default();
        for first in 1..=9 {
            assert_eq!(go_on(&mut cursor, 1, 5, &[]), (vec![first], Found::Unfinished));
        }
        assert_eq!(go_on(&mut cursor, 1, 5, &[]), (vec![10], Found::Nothing));
    }

    #[test]
    fn an_entry_for_which_too_little_was_left_is_tried_first_next_time() {
        let mut cursor = PassCursor::default();
        let (budget, tried) = (Budget::new(100), std::cell::RefCell::new(Vec::new()));
        let attempt = |entry: &(u128, u64)| {
            tried.borrow_mut().push(entry.0);
            budget.charge(entry.1);
            None::<()>
        };
        let entries = [(1, 10), (2, 95), (3, 1)];
        let found = cursor.go_on(&entries, |entry| LeaseId(entry.0), known(1), &budget, attempt);
        assert_eq!((tried.take(), found), (vec![1, 2], Found::Unfinished));
        let budget = Budget::new(100);
        let attempt = |entry: &(u128, u64)| {
            tried.borrow_mut().push(entry.0);
            budget.charge(entry.1);
            None::<()>
        };
        let found = cursor.go_on(&entries, |entry| LeaseId(entry.0), known(1), &budget, attempt);
        assert_eq!((tried.take(), found), (vec![2], Found::Unfinished));
    }
}
