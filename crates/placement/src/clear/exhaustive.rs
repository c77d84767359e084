//! Tries all plans, within a limit on looks, so that small requests are decided for certain.

use cluster::{InstanceIdx, NodeIdx};

use super::choice::Task;
use super::cover::Cover;
use super::stand::{Stand, Status};

/// Maximum number of guests to move. With more, the search has no hope of finishing, and it recurses once per
/// guest.
const MOST_GUESTS: usize = 256;

/// A choice of entries, and the destination of each guest of their nodes.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub taken: Vec<usize>,
    pub places: Vec<(InstanceIdx, NodeIdx)>,
    /// Covers of the nodes for which first fit decreasing finds none.
    pub covers: Vec<(NodeIdx, Cover)>,
}

/// Result of the search.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    /// The cheapest plan below the ceiling, if there is one.
    pub best: Option<Found>,
    /// Whether every plan that could be cheaper was tried.
    pub complete: bool,
    pub looks: u64,
}

struct Walk<'a> {
    task: Task<'a>,
    stand: Stand<'a>,
    /// `sums[n]` is the total cost of the first `n` entries.
    sums: Vec<u128>,
    /// Free capacity by dimension, assuming that guests fill it without gaps.
    room: Vec<i64>,
    taken: Vec<usize>,
    /// Only cheaper plans are of interest; `None` means no limit.
    ceiling: Option<u64>,
    best: Option<Found>,
    looks: u64,
    limit: u64,
    complete: bool,
}

/// Tries all plans that cost less than `ceiling`, if given, with up to `limit` looks.
pub(super) fn search<'a>(task: Task<'a>, pristine: Stand<'a>, ceiling: Option<u64>, limit: u64) -> Outcome {
    let mut sums = vec![0];
    for (position, entry) in task.entries.iter().enumerate() {
        sums.push(sums[position] + u128::from(entry.cost));
    }
    let room = task.room.to_vec();
    let (taken, best, looks) = (Vec::new(), None, 0);
    let mut walk =
        Walk { task, stand: pristine, sums, room, taken, ceiling, best, looks, limit, complete: true };
    walk.choose(0);
    Outcome { best: walk.best, complete: walk.complete, looks: walk.looks }
}

impl Walk<'_> {
    /// Counts a look. Returns whether the limit still allows it.
    fn look(&mut self) -> bool {
        self.looks += 1;
        self.complete &= self.looks <= self.limit;
        self.complete
    }

    /// Takes the missing entries from position `from` on, in all ways that can be cheap enough.
    fn choose(&mut self, from: usize) {
        let missing = self.task.wanted - self.taken.len();
        if missing == 0 {
            let mut guests = self.displaced();
            if guests.len() > MOST_GUESTS {
                self.complete = false;
                return;
            }
            self.task.sort(&mut guests);
            self.pack(&guests);
            return;
        }
        let spent = u128::from(self.task.cost(&self.taken));
        for position in from..=self.task.entries.len().saturating_sub(missing) {
            let end = position + missing;
            if end > self.task.entries.len() || !self.look() {
                return;
            }
            // Entries are sorted by cost, so no later choice is cheaper.
            let least = spent + (self.sums[end] - self.sums[position]);
            if self.ceiling.is_some_and(|ceiling| least >= u128::from(ceiling)) {
                return;
            }
            let entry = &self.task.entries[position];
            if !self.stand.is_open(entry.node) {
                continue;
            }
            self.charge(position, -1);
            if self.room.iter().all(|room| *room >= 0) {
                self.stand.status[entry.node.at()] = entry.way;
                self.taken.push(position);
                self.choose(position + 1);
                self.taken.pop();
                self.stand.status[entry.node.at()] = Status::Open;
            }
            self.charge(position, 1);
        }
    }

    fn charge(&mut self, position: usize, sign: i64) {
        let needed = &self.task.entries[position].room;
        self.room.iter_mut().zip(needed).for_each(|(room, needed)| *room += sign * needed);
    }

    /// Guests that have to move.
    fn displaced(&self) -> Vec<InstanceIdx> {
        let taken = self.taken.iter().map(|position| &self.task.entries[*position]);
        let cleared = taken.filter(|entry| entry.way == Status::Cleared);
        cleared.flat_map(|entry| self.task.ground.residents[entry.node.at()].iter().copied()).collect()
    }

    /// Places these guests in all ways until one keeps all rules. Returns whether one does.
    fn pack(&mut self, guests: &[InstanceIdx]) -> bool {
        let Some((&guest, rest)) = guests.split_first() else { return self.record() };
        for node in self.task.ground.node_indices() {
            if !self.look() {
                return false;
            }
            if self.stand.takes(guest, node) {
                let home = self.stand.place(guest);
                self.stand.shift(guest, node);
                let found = self.pack(rest);
                self.stand.shift(guest, home);
                if found {
                    return true;
                }
            }
        }
        false
    }

    fn record(&mut self) -> bool {
        let mut covers = Vec::new();
        if let Some(rule) = self.task.redundancy {
            let (looks, limit, complete) = (&mut self.looks, self.limit, &mut self.complete);
            let look = |number| {
                *looks += number;
                *complete &= *looks <= limit;
                *complete
            };
            let Some(found) = rule.hard_covers(&self.stand, look) else { return false };
            covers = found;
        }
        let mut guests = self.displaced();
        guests.sort_unstable();
        let places = guests.into_iter().map(|guest| (guest, self.stand.place(guest))).collect();
        self.ceiling = Some(self.task.cost(&self.taken));
        self.best = Some(Found { taken: self.taken.clone(), places, covers });
        true
    }
}
