//! Memory that nodes reserve for each other, and the effect of changes.

use cluster::NodeIdx;

/// A node that could fail, and the memory that another node reserves for it, MiB.
type Reservation = (NodeIdx, i64);

/// Change of a node's reservations: less for one primary node and more for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub less: Reservation,
    pub more: Reservation,
}

impl Default for Change {
    fn default() -> Self {
        Self { less: (NodeIdx(0), 0), more: (NodeIdx(0), 0) }
    }
}

impl Change {
    pub fn less(primary: NodeIdx, memory: i64) -> Self {
        Self { less: (primary, memory), ..Self::default() }
    }

    pub fn more(primary: NodeIdx, memory: i64) -> Self {
        Self { more: (primary, memory), ..Self::default() }
    }
}

/// A node's largest reservation for another node, and its second largest, MiB.
#[derive(Clone, Copy, Debug)]
struct Top {
    peer: NodeIdx,
    most: i64,
    second: i64,
}

/// Largest reservations of each node. A node keeps as much memory free as its largest reservation, since only
/// one node is assumed to fail at a time.
#[derive(Clone, Debug)]
pub(super) struct Reserves {
    tops: Vec<Top>,
}

impl Reserves {
    pub fn new<'a>(peers: impl Iterator<Item = &'a [Reservation]>) -> Self {
        Self { tops: peers.map(Top::of).collect() }
    }

    /// Updates a node's largest reservations.
    pub fn note(&mut self, node: NodeIdx, peers: &[Reservation]) {
        self.tops[node.at()] = Top::of(peers);
    }

    /// Maximum decrease of the memory that a node keeps free if it reserves less for one primary node, MiB.
    #[inline]
    pub fn slack(&self, node: NodeIdx) -> i64 {
        let top = &self.tops[node.at()];
        top.most - top.second
    }

    /// Growth of the memory that a node with these reservations keeps free, MiB.
    #[inline]
    pub fn growth(&self, node: NodeIdx, peers: &[Reservation], change: Change) -> i64 {
        let Change { less: (left, less), more: (reached, more) } = change;
        let top = &self.tops[node.at()];
        if less == 0 && more == 0 {
            return 0;
        }
        // Largest reservation for nodes other than `left`. If it is the one for `reached`, `increased` is
        // larger still.
        let others = if less > 0 && left == top.peer { top.second } else { top.most };
        let lessened = if less > 0 { reserved_for(peers, left) - less } else { 0 };
        let increased = match more {
            0 => 0,
            _ if less > 0 && left == reached => lessened + more,
            _ => reserved_for(peers, reached) + more,
        };
        others.max(lessened).max(increased) - top.most
    }
}

impl Top {
    fn of(peers: &[Reservation]) -> Self {
        let mut top = Self { peer: NodeIdx(0), most: 0, second: 0 };
        for &(peer, memory) in peers {
            if memory > top.most {
                top = Self { peer, most: memory, second: top.most };
            } else {
                top.second = top.second.max(memory);
            }
        }
        top
    }
}

/// Memory reserved for a primary node, MiB.
#[inline]
fn reserved_for(peers: &[Reservation], primary: NodeIdx) -> i64 {
    peers.iter().find(|(peer, _)| *peer == primary).map_or(0, |(_, memory)| *memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    const PRIMARIES: usize = 5;

    /// Memory that a node keeps free with these reservations for the first primary nodes.
    fn most(reserved: [i64; PRIMARIES]) -> i64 {
        reserved.into_iter().max().unwrap_or(0)
    }

    #[test]
    fn growth_is_what_comes_of_reserving_again() {
        let mut dice = Dice(1);
        for _ in 0..20_000 {
            let reserved: [i64; PRIMARIES] = std::array::from_fn(|_| dice.below(6) as i64);
            let peers: Vec<Reservation> = (0..PRIMARIES)
                .map(|primary| (NodeIdx::from_usize(primary), reserved[primary]))
                .filter(|(_, memory)| *memory > 0)
                .collect();
            let reserves = Reserves::new(std::iter::once(peers.as_slice()));
            let (left, reached) = (dice.below(PRIMARIES), dice.below(PRIMARIES));
            let less = dice.below(reserved[left] as usize + 1) as i64;
            let more = dice.below(6) as i64;
            let mut changed = reserved;
            changed[left] -= less;
            changed[reached] += more;
            let change = Change {
                less: (NodeIdx::from_usize(left), less),
                more: (NodeIdx::from_usize(reached), more),
            };
            let growth = reserves.growth(NodeIdx(0), &peers, change);
            assert_eq!(growth, most(changed) - most(reserved), "{reserved:?} {change:?}");
            assert!(-growth <= reserves.slack(NodeIdx(0)), "{reserved:?} {change:?}");
        }
    }
}
