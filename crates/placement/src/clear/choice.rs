//! Chooses nodes to take: one by one in several orders, then exchanges for cheaper ones.

use cluster::InstanceIdx;

use super::arrangement::Arrangement;
use super::bound::Entry;
use super::cover::Redundancy;
use super::ground::Ground;
use super::stand::Status;

/// Weights of a node's clearing difficulty relative to its cost, one for each order in which nodes are tried.
/// The last means difficulty alone.
const DIFFICULTIES: [f64; 5] = [0.0, 0.25, 1.0, 4.0, f64::INFINITY];

/// Read-only input of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task<'a> {
    pub ground: &'a Ground<'a>,
    /// Ways to obtain nodes, cheapest first.
    pub entries: &'a [Entry],
    pub wanted: usize,
    /// Difficulty of placing each guest.
    pub hardness: &'a [f64],
    pub redundancy: Option<&'a Redundancy>,
    /// Total free capacity of the nodes that receive guests, by dimension.
    pub room: &'a [i64],
}

impl Task<'_> {
    /// Sorts guests, the hardest to place first.
    pub fn sort(&self, guests: &mut [InstanceIdx]) {
        let hardness = |guest: &InstanceIdx| self.hardness[guest.at()];
        guests.sort_by(|a, b| hardness(b).total_cmp(&hardness(a)).then(a.cmp(b)));
    }

    pub fn cost(&self, taken: &[usize]) -> u64 {
        taken.iter().fold(0, |sum, entry| self.entries[*entry].cost.saturating_add(sum))
    }

    /// Indices of the entries in the order in which they are tried.
    fn order(&self, difficulty: f64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        if difficulty == 0.0 {
            return order;
        }
        let mean = |figure: &dyn Fn(&Entry) -> f64| {
            let sum: f64 = self.entries.iter().map(figure).sum();
            (sum / self.entries.len().max(1) as f64).max(f64::MIN_POSITIVE)
        };
        let cost = |entry: &Entry| entry.cost as f64;
        let hard = |entry: &Entry| self.difficulty(entry);
        let (mean_cost, mean_hard) = (mean(&cost), mean(&hard));
        let key = |position: &usize| {
            let entry = &self.entries[*position];
            let hard = hard(entry) / mean_hard;
            if difficulty.is_finite() { cost(entry) / mean_cost + difficulty * hard } else { hard }
        };
        order.sort_by(|a, b| key(a).total_cmp(&key(b)).then(a.cmp(b)));
        order
    }

    /// Share of the total free capacity that obtaining the node takes, in the worst dimension. Its guests
    /// count twice, since several small gaps are easier to find than one of their total size.
    fn difficulty(&self, entry: &Entry) -> f64 {
        let moved = |dimension: usize| -> i64 {
            let guests = self.ground.residents[entry.node.at()].iter();
            if entry.way == Status::Waited {
                0
            } else {
                guests.map(|g| self.ground.size(*g)[dimension]).sum()
            }
        };
        let shares = (0..self.ground.dimensions).map(|d| self.ground.worth(d, entry.room[d] + moved(d)));
        shares.fold(0.0, f64::max)
    }
}

/// Nodes taken, and where their guests would go.
#[derive(Clone, Debug)]
pub(super) struct Attempt<'a> {
    task: Task<'a>,
    pub arrangement: Arrangement<'a>,
    /// Indices of entries.
    pub taken: Vec<usize>,
}

impl<'a> Attempt<'a> {
    pub fn new(task: Task<'a>, pristine: Arrangement<'a>) -> Self {
        Self { task, arrangement: pristine, taken: Vec::new() }
    }

    pub fn cost(&self) -> u64 {
        self.task.cost(&self.taken)
    }

    fn is_complete(&self) -> bool {
        self.taken.len() == self.task.wanted
    }

    /// Takes an entry and finds places for all guests of its node. Returns whether it worked; if not, nothing
    /// has changed.
    fn add(&mut self, entry: usize) -> bool {
        let mark = self.arrangement.mark();
        let worked = self.take(entry);
        if !worked {
            self.arrangement.rollback(mark);
        }
        worked
    }

    /// Same as [`Self::add`], but leaves the rollback to the caller.
    fn take(&mut self, position: usize) -> bool {
        let entry = &self.task.entries[position];
        if !self.arrangement.take(entry.node, entry.way) {
            return false;
        }
        let mut displaced = self.arrangement.stand.arrivals(entry.node).to_vec();
        if entry.way == Status::Cleared {
            displaced.extend_from_slice(&self.task.ground.residents[entry.node.at()]);
        }
        self.task.sort(&mut displaced);
        let worked = displaced.into_iter().all(|guest| self.arrangement.settle(guest));
        if worked {
            self.taken.push(position);
        }
        worked
    }

    fn has_node_of(&self, entry: usize) -> bool {
        let node = self.task.entries[entry].node;
        self.taken.iter().any(|taken| self.task.entries[*taken].node == node)
    }

    /// Takes the first nodes of an order together, except those with guests that find no place. Taken
    /// together, the hardest of all their guests are placed first. Returns whether redundancy allows it.
    fn take_first(&mut self, order: &[usize]) -> bool {
        let (entries, ground) = (self.task.entries, self.task.ground);
        let mut displaced = Vec::new();
        for &position in order {
            let entry = &entries[position];
            if self.is_complete() {
                break;
            }
            let mark = self.arrangement.mark();
            if self.has_node_of(position) {
                continue;
            }
            if !self.arrangement.take(entry.node, entry.way) {
                self.arrangement.rollback(mark);
                continue;
            }
            self.taken.push(position);
            if entry.way == Status::Cleared {
                displaced.extend_from_slice(&ground.residents[entry.node.at()]);
            }
        }
        self.task.sort(&mut displaced);
        for guest in displaced {
            let home = ground.home[guest.at()];
            if self.arrangement.stand.is_open(home) || self.arrangement.settle(guest) {
                continue;
            }
            self.taken.retain(|position| entries[*position].node != home);
            if !self.arrangement.release(home) {
                return false;
            }
        }
        true
    }

    /// Takes nodes in this order as far as possible. Once the looks are used up, takes only nodes that are
    /// waited for.
    fn take_one_by_one(&mut self, order: &[usize], looks: u64) {
        loop {
            let before = self.taken.len();
            for &entry in order {
                if self.is_complete() {
                    return;
                }
                let affordable =
                    self.arrangement.looks < looks || self.task.entries[entry].way == Status::Waited;
                if affordable && !self.has_node_of(entry) {
                    self.add(entry);
                }
            }
            // A guest that gave way can free capacity for a node that was refused before.
            if self.taken.len() == before {
                return;
            }
        }
    }

    /// Exchanges nodes for cheaper ones until no exchange works or the looks are used up. Returns the number
    /// of looks used.
    pub fn improve(&mut self, looks: u64) -> u64 {
        let before = self.arrangement.looks;
        let limit = before.saturating_add(looks);
        while self.arrangement.looks < limit && self.exchange_one(limit) {}
        self.arrangement.looks - before
    }

    /// Makes the first exchange that works, starting with the most expensive node taken and the cheapest
    /// replacement.
    fn exchange_one(&mut self, limit: u64) -> bool {
        let entries = self.task.entries;
        // Entries are sorted by cost.
        self.taken.sort_unstable();
        for leaving in (0..self.taken.len()).rev() {
            let position = self.taken[leaving];
            let cheaper = (0..position).filter(|entry| entries[*entry].cost < entries[position].cost);
            for coming in cheaper {
                if self.arrangement.looks >= limit {
                    return false;
                }
                let same = entries[coming].node == entries[position].node;
                if (same || !self.has_node_of(coming)) && self.exchange(leaving, coming) {
                    return true;
                }
            }
        }
        false
    }

    fn exchange(&mut self, leaving: usize, coming: usize) -> bool {
        let mark = self.arrangement.mark();
        let before = self.taken.clone();
        let released = self.task.entries[self.taken.swap_remove(leaving)].node;
        let worked = self.arrangement.release(released) && self.take(coming);
        if !worked {
            self.arrangement.rollback(mark);
            self.taken = before;
        }
        // Every attempt counts, even one that is refused at once.
        self.arrangement.looks += 1;
        worked
    }
}

/// The cheapest attempt that takes all wanted nodes, if any, and the largest number of nodes that an attempt
/// took. Stops at the first attempt that costs no more than `bound`. Each order gets its share of the looks
/// and any looks left over by earlier orders. The looks used are added to `used`.
pub(super) fn construct<'a>(
    task: Task<'a>,
    pristine: &Arrangement<'a>,
    bound: u64,
    mut looks: u64,
    used: &mut u64,
) -> (Option<Attempt<'a>>, usize) {
    let mut best: Option<Attempt<'a>> = None;
    let mut most = 0;
    for (number, difficulty) in DIFFICULTIES.into_iter().enumerate() {
        let order = task.order(difficulty);
        let mut attempt = Attempt::new(task, pristine.clone());
        if !attempt.take_first(&order) {
            let looks = attempt.arrangement.looks;
            attempt = Attempt::new(task, pristine.clone());
            attempt.arrangement.looks = looks;
        }
        attempt.take_one_by_one(&order, looks / (DIFFICULTIES.len() - number) as u64);
        looks = looks.saturating_sub(attempt.arrangement.looks);
        *used = used.saturating_add(attempt.arrangement.looks);
        most = most.max(attempt.taken.len());
        let cheaper = best.as_ref().is_none_or(|best| attempt.cost() < best.cost());
        if attempt.is_complete() && cheaper {
            best = Some(attempt);
        }
        if best.as_ref().is_some_and(|best| best.cost() <= bound) {
            break;
        }
    }
    (best, most)
}
