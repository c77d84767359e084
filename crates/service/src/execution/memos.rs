//! What passes of the loop were last decided from: as long as it is the same, nothing else would come of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::occupants::Watch;
use leases::plan::Guest;
use leases::usage::KnownGuests;
use store::{JournalSize, Revision, Sizes};

use super::pause::Pause;
use super::tour::Tour;

/// What passes of the loop remember. All of it can be lost: they are gone through once more then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memos {
    /// Leases that lack something.
    pub to_heal: Tour,
    /// Leases in the healing interval that lacked something or had a failed host in the last cycle.
    pub ill_soon: BTreeSet<LeaseId>,
    /// Leases that wait and might start sooner.
    pub to_hasten: Tour,
    /// How far the hunts have come that are planned again.
    pub to_replan: Tour,
    /// How far it has come where guests of leases go that are over.
    pub to_depart: Tour,
    /// Requests on the waitlist that might be served.
    pub to_serve: Tour,
    /// Until that is done again, if nothing came of it.
    pub passed_without_result: Option<Pause>,
    /// Hunts that do not hold could not be planned again; until that is tried again.
    pub hunts_not_replanned: Option<Pause>,
    /// Until hosts that boot or shut down are looked at again.
    pub power_watched: Option<Pause>,
    /// When it was last decided which hosts are to be switched.
    pub power_planned: Option<Planned>,
    /// Until leases are looked at again that could have hosts that draw less, and the last of them that was looked at.
    pub repacked: Option<(Pause, Option<LeaseId>)>,
    /// What was known when all owners of preemptible instances knew when these are preempted.
    pub announced: Option<Announced>,
    /// What was known when there was room for nobody who waits to be started again.
    pub queue_tried: Option<Revision>,
    /// If the work of a cycle did not suffice for all: what was known when the first one was tried, and the last one
    /// that was tried.
    pub queue_resumes: Option<(Revision, GuestId)>,
    /// Who waits to be started again was left out of so many cycles in a row, since something was due.
    pub queue_left_out: u32,
    /// Those of whom it is known that there is no other gap for them.
    pub relocations_tried: Option<Tried>,
    /// The last instance for which another gap was looked for, if there was no time for all of them.
    pub relocations_resume: Option<GuestId>,
    /// Until old records are cleared away again.
    pub tidied: Option<Pause>,
    /// Until refused requests are written to the store again.
    pub refusals_written: Option<Pause>,
}

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
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub known: KnownGuests,
    /// Hosts of leases, with what is recorded of them.
    pub watch: Watch,
    /// While it lasts nobody else counts.
    pub role: Pause,
}

/// State of tidying, and what it has found out about the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tidying {
    /// Whether there is more to remove, and this service is the one that removes it.
    pub more: bool,
    /// Size of the store when tidying last began.
    pub sizes: Sizes,
    /// Sizes of projects that exceed their limit in a journal. The last one is trimmed next. `None` until journals are
    /// counted.
    pub oversized: Option<Vec<JournalSize>>,
    /// Notifications, since the service started, that were removed because of their project's size before every
    /// listener had received them.
    pub notifications_lost: u64,
}
