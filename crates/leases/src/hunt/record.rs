//! A hunt as it is kept with its lease.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::ids::{GuestId, HostId};

/// A guest goes to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Who.
    pub guest: GuestId,
    /// From where.
    pub from: HostId,
    /// Where to.
    pub to: HostId,
}

/// What the moves of a hunt come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Memory copied, MiB.
    pub memory_mib: u64,
    /// Disk copied, GiB.
    pub disk_gib: u64,
    /// Downtime of all guests together, milliseconds.
    pub downtime_ms: u64,
    /// All of it weighed, in points of [`CostWeights`](placement::clear::CostWeights).
    pub points: u64,
}

/// Whose guests are moved out of a lease's way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunt {
    /// The moves, in the order in which they are begun. Some may be done.
    pub moves: Vec<Move>,
    /// What they cost when they were planned.
    pub cost: Cost,
    /// How much of the lease's window is for the hunt: the lease has the rest.
    pub allowance: SignedDuration,
}

impl Hunt {
    /// The move of a guest on that host.
    pub fn move_of(&self, guest: GuestId, on: HostId) -> Option<&Move> {
        self.moves.iter().find(|mov| mov.guest == guest && mov.from == on)
    }

    /// The hosts that it clears.
    pub fn cleared(&self) -> BTreeSet<HostId> {
        self.moves.iter().map(|mov| mov.from).collect()
    }
}
