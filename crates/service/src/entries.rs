//! Changes that are committed together if they can be, and each on its own if not.

use std::sync::Arc;

use jiff::Timestamp;
use leases::energy::Alarm;
use leases::host::{Health, Host};
use leases::ids::{GuestId, LeaseId};
use leases::lease::Lease;
use store::{Commit, HostRecord, LeaseRecord, RecordKey};

/// One change, which is committed whole or not at all.
#[derive(Debug)]
pub(crate) struct Entry {
    pub commit: Commit,
    /// What follows once it is committed, in order.
    pub effects: Vec<Effect>,
}

impl Entry {
    /// A change from which something follows once it is committed.
    pub fn new(commit: Commit, effect: Effect) -> Self {
        Self { commit, effects: vec![effect] }
    }

    /// The same change, from which this follows as well.
    pub fn and(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// A change from which nothing else follows.
    pub fn quiet(commit: Commit) -> Self {
        Self { commit, effects: Vec::new() }
    }
}

/// What follows from a change once it is committed: what the log says of it, what is counted, and who else is told.
#[derive(Debug)]
pub(crate) enum Effect {
    /// A lease becomes that; none if it is forgotten.
    Lease { before: Arc<LeaseRecord>, after: Option<Box<Lease>>, at: Timestamp },
    /// A lease has hosts that draw less.
    LeaseRepacked(LeaseId),
    /// Guests leave hosts of a lease in another order, or for other hosts.
    HuntReplanned(LeaseId),
    /// Guests are not moved any more to hosts that leases have been given.
    MovesWithdrawn(LeaseId),
    /// An instance changes hands or ends.
    Instance { record: RecordKey, preempted: bool },
    /// An instance is preempted at another time, or not any more.
    PreemptionTime(GuestId),
    /// An instance that was preempted starts again.
    InstanceRestarts(GuestId),
    /// The project of a guest is told that it may stay.
    GuestResumed(GuestId),
    /// A preemptible instance is moved to another gap, or not any more.
    InstanceRelocates(GuestId),
    /// A host was seen, and is not as it was; its health, if it is that.
    HostSeen { before: Arc<HostRecord>, health: Option<Health> },
    /// A host's power becomes another.
    HostPower { before: Arc<HostRecord>, after: Box<Host>, alarm: Option<Alarm> },
}

/// Changes, by the pass that has decided them.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub of_passes: Vec<Vec<Entry>>,
}

impl Entries {
    /// The changes of one pass.
    pub fn of(entries: Vec<Entry>) -> Self {
        Self { of_passes: vec![entries] }
    }
}

/// What became of changes.
pub(crate) struct Committed {
    /// Some were committed.
    pub any: bool,
    /// They were committed together.
    pub all: bool,
    /// There were more than a transaction may hold: the rest is to be decided again.
    pub rest: bool,
}
