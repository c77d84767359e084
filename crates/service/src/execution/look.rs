//! A look at the fleet.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::ids::HostId;

/// A look at the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Looks are numbered as they begin: of two, the one with the higher number saw what is newer.
    pub(super) number: u64,
    /// All machines are asked for, and what is on all hosts.
    pub(super) all: bool,
    /// Decisions wait for it: what is on all hosts is asked for, and nothing else.
    pub(super) for_decisions: bool,
    /// Hosts that are looked at.
    pub(super) hosts: BTreeSet<HostId>,
    /// When it began: what it sees isn't older.
    pub(super) began: Timestamp,
    /// The end of our patience.
    pub(super) until: Timestamp,
}
