//! Changes that are committed together if possible, and one by one if not.

use std::sync::Arc;

use jiff::Timestamp;
use leases::energy::Alarm;
use leases::host::{Health, Host};
use leases::ids::{GuestId, LeaseId};
use leases::lease::Lease;
use store::{Commit, HostRecord, LeaseRecord, RecordKey};

/// A change that is committed as a whole or not at all.
#[derive(Debug)]
pub(crate) struct Entry {
    pub commit: Commit,
    /// Effects of the commit, in order.
    pub effects: Vec<Effect>,
}

impl Entry {
    pub fn new(commit: Commit, effect: Effect) -> Self {
        Self { commit, effects: vec![effect] }
    }

    /// Adds another effect.
    pub fn and(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// A change without effects.
    pub fn quiet(commit: Commit) -> Self {
        Self { commit, effects: Vec::new() }
    }
}

/// Effect of a committed change: a log line, a counter, a call to the external service.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A lease changes; `after` is `None` if it is removed from the store.
    Lease { before: Arc<LeaseRecord>, after: Option<Box<Lease>>, at: Timestamp },
    /// A lease gets hosts with a lower power draw.
    LeaseRepacked(LeaseId),
    /// The order or the destinations of a lease's migration plan change.
    HuntReplanned(LeaseId),
    /// Moves to hosts that leases have got are canceled.
    MovesWithdrawn(LeaseId),
    /// An instance changes its status or is removed.
    Instance { record: RecordKey, preempted: bool },
    /// The preemption time of an instance changes or is withdrawn.
    PreemptionTime(GuestId),
    /// A preempted instance starts again.
    InstanceRestarts(GuestId),
    /// A guest's project is notified that the guest can stay.
    GuestResumed(GuestId),
    /// The relocation of a preemptible instance changes or is canceled.
    InstanceRelocates(GuestId),
    /// An observation changes a host's record. `health` is its new health if that changed.
    HostSeen { before: Arc<HostRecord>, health: Option<Health> },
    /// The power state of a host changes.
    HostPower { before: Arc<HostRecord>, after: Box<Host>, alarm: Option<Alarm> },
}

/// Changes, grouped by the pass that decided them.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub of_passes: Vec<Vec<Entry>>,
}

impl Entries {
    pub fn of(entries: Vec<Entry>) -> Self {
        Self { of_passes: vec![entries] }
    }
}

/// Result of committing changes.
pub(crate) struct Committed {
    /// At least one change was committed.
    pub any: bool,
    /// All changes were committed together.
    pub all: bool,
    /// There were more changes than a transaction may hold. The rest must be decided again.
    pub rest: bool,
}
