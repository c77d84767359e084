//! What passes of the loop were last decided from: as long as it is the same, nothing else would come of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::plan::Guest;
use leases::usage::KnownGuests;
use store::Revision;

/// What it was decided from who is preempted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// What is committed.
    pub revision: Revision,
    /// What is seen of guests that others have started.
    pub elsewhere: BTreeMap<HostId, StartedElsewhere>,
}

/// Preemptible guests on a host that others have started: there are no instances on record for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartedElsewhere {
    pub guests: Vec<Guest>,
    /// Leases that have room on the host now or soon.
    pub leases: BTreeSet<LeaseId>,
}

/// When the power of hosts was last planned, and on what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub at: Timestamp,
    pub revision: Revision,
    pub next_at: Option<Timestamp>,
}

/// Instances for which there was no other gap when the store was at that revision.
pub(crate) type Tried = (Revision, BTreeSet<GuestId>);

/// What is known of guests of leases that others have started, to the service that counts them.
#[derive(Debug)]
pub(crate) struct Counting {
    pub known: KnownGuests,
    /// Until when nobody else counts.
    pub until: Timestamp,
}
