//! Inputs of the loop's last passes. While they are unchanged, the passes would find the same result and are
//! skipped.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::occupants::Watch;
use leases::plan::Guest;
use leases::usage::KnownGuests;
use store::{JournalSize, Revision, Sizes};

use super::pass_cursor::PassCursor;
use super::pause::Pause;

/// Memory of the loop's passes. Losing it is harmless: the passes are made once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memos {
    /// Pass over leases that lack hosts.
    pub to_heal: PassCursor,
    /// Leases in the healing interval that lacked something or had a failed host in the last cycle.
    pub ill_soon: BTreeSet<LeaseId>,
    /// Pass over waiting leases that might start earlier.
    pub to_hasten: PassCursor,
    /// Pass over hunts to replan.
    pub to_replan: PassCursor,
    /// Pass over ended leases that need an end migration.
    pub to_depart: PassCursor,
    /// Pass over waitlist requests that might be promoted.
    pub to_serve: PassCursor,
    /// Pause after a pass over waiting requests and leases found nothing.
    pub passed_without_result: Option<Pause>,
    /// Pause after obstructed hunts couldn't be replanned.
    pub hunts_not_replanned: Option<Pause>,
    /// Pause until booting hosts and hosts that shut down are observed again.
    pub power_watched: Option<Pause>,
    /// Last time that each host was switched on without an error, while it isn't on.
    pub switched_on: BTreeMap<HostId, Timestamp>,
    /// Last decision on which hosts to switch.
    pub power_planned: Option<Planned>,
    /// Pause until leases are repacked onto hosts with lower power draw again, and the last lease that was
    /// tried.
    pub repacked: Option<(Pause, Option<LeaseId>)>,
    /// Inputs from which all owners of preemptible instances know the current preemption times.
    pub announced: Option<Announced>,
    /// Revision at which no queued instance could start.
    pub queue_tried: Option<Revision>,
    /// Set if the budget of a cycle didn't suffice for all queued instances: the revision when the first was
    /// tried, and the last one tried.
    pub queue_resumes: Option<(Revision, GuestId)>,
    /// Number of consecutive cycles that skipped queued instances because something else was due.
    pub queue_left_out: u32,
    /// Instances that are known to have no other gap.
    pub relocations_tried: Option<Tried>,
    /// Last instance for which another gap was searched, if the budget didn't suffice for all.
    pub relocations_resume: Option<GuestId>,
    /// Pause until old records are deleted again.
    pub tidied: Option<Pause>,
    /// Pause until counts of refused requests are written to the store again.
    pub refusals_written: Option<Pause>,
}

/// Inputs of the decision on preemption times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    /// Revision of the store.
    pub revision: Revision,
    /// Observed preemptible guests that were not started through the service.
    pub elsewhere: BTreeMap<HostId, StartedElsewhere>,
}

/// Preemptible guests on a host without an instance record, because they were not started through the
/// service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartedElsewhere {
    pub guests: Vec<Guest>,
    /// Leases that have slots on the host now or soon.
    pub leases: BTreeSet<LeaseId>,
}

/// Time and revision of the last power plan, and the time of the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub at: Timestamp,
    pub revision: Revision,
    pub next_at: Option<Timestamp>,
}

/// Instances without another gap, at this revision of the store.
pub(crate) type Tried = (Revision, BTreeSet<GuestId>);

/// Memory of the service that counts guests not started through the service.
#[derive(Clone, Debug)]
pub(crate) struct Counting {
    pub known: KnownGuests,
    /// Leased hosts and their recorded occupants.
    pub watch: Watch,
    /// Period in which no other service counts guests.
    pub role: Pause,
}

/// State of tidying, and its findings about the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tidying {
    /// Whether there is more to remove and this service is the one to do it.
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
