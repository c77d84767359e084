//! Record of a hunt, stored with its lease.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use crate::ids::{GuestId, HostId};

/// Migration of one guest to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub guest: GuestId,
    pub from: HostId,
    pub to: HostId,
}

/// Total cost of a hunt's moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Memory copied, MiB.
    pub memory_mib: u64,
    /// Disk copied, GiB.
    pub disk_gib: u64,
    /// Sum of the downtime of all guests, milliseconds.
    pub downtime_ms: u64,
    /// Weighted sum of all costs, in points of [`CostWeights`](placement::clear::CostWeights).
    pub points: u64,
}

/// Migration plan of a lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunt {
    /// Moves in the order in which they begin. Some can be done already.
    pub moves: Vec<Move>,
    /// Cost at the time of planning.
    pub cost: Cost,
    /// Part of the lease's window allowed for the hunt. The lease gets the rest.
    pub allowance: SignedDuration,
}

impl Hunt {
    pub fn move_of(&self, guest: GuestId, on: HostId) -> Option<&Move> {
        self.moves.iter().find(|mov| mov.guest == guest && mov.from == on)
    }

    pub fn cleared(&self) -> BTreeSet<HostId> {
        self.moves.iter().map(|mov| mov.from).collect()
    }
}
