//! Limit on the work of a search for moves.

use crate::work::Budget;

/// A separate limit within the budget of a decision. A search that uses it up only gives up on moves; the
/// request isn't refused for its cost.
#[derive(Debug)]
pub(super) struct Effort<'a> {
    budget: &'a Budget,
    most: u64,
    left: u64,
}

impl<'a> Effort<'a> {
    pub fn new(budget: &'a Budget, most: u64) -> Self {
        let most = most.min(budget.left() / 2);
        Self { budget, most, left: most }
    }

    #[must_use]
    pub fn spend(&mut self, units: u64) -> bool {
        match self.left.checked_sub(units) {
            Some(left) if self.budget.spend(units) => {
                self.left = left;
                true
            }
            _ => {
                self.left = 0;
                false
            }
        }
    }

    pub fn spent(&self) -> u64 {
        self.most - self.left
    }

    pub fn ended(&self) -> bool {
        self.left == 0
    }
}
