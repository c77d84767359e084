//! Looks: requests to observe the fleet.

use std::collections::BTreeSet;

use jiff::Timestamp;
use leases::ids::HostId;

/// A request to observe all of the fleet, or some hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Looks are numbered as they begin. The higher number saw the newer state.
    pub(super) number: u64,
    /// Lists all machines and observes all hosts.
    pub(super) all: bool,
    /// Decisions wait for it. Observes all hosts and nothing else.
    pub(super) for_decisions: bool,
    /// Hosts to observe.
    pub(super) hosts: BTreeSet<HostId>,
    /// Start time. The observation isn't older.
    pub(super) began: Timestamp,
    /// Time limit.
    pub(super) until: Timestamp,
}
