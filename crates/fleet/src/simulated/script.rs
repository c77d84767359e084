//! What can happen to simulated machines without anybody in the service having asked for it.

use jiff::SignedDuration;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::plan::GuestOwner;
use serde::{Deserialize, Serialize};

use crate::saved::id;

/// Something that happens, by [`super::SimulatedFleet::schedule`] at a time, or at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// A host does not work any more. What it had is still there when it recovers.
    HostFails(#[serde(with = "id")] HostId),
    /// Nothing is heard about a host. It works, and does what it is told.
    HostFallsSilent(#[serde(with = "id")] HostId),
    /// A host will not come up the next time that it is switched on.
    HostWillNotBoot(#[serde(with = "id")] HostId),
    /// A host works again.
    HostRecovers(#[serde(with = "id")] HostId),
    /// A host is gone with all that was on it, as long as the process runs.
    HostVanishes(#[serde(with = "id")] HostId),
    /// Somebody starts a guest on a host: preemptible ones in the free pool, those of a lease on what it has,
    /// others on hosts that the service has not fenced or given away. Otherwise nothing happens.
    GuestStarts {
        /// Where.
        #[serde(with = "id")]
        host: HostId,
        /// Whose.
        #[serde(with = "SavedOwner")]
        owner: GuestOwner,
        /// How long it runs, if it ends by itself.
        runs_for: Option<SignedDuration>,
    },
    /// A guest ends by itself.
    GuestEnds(#[serde(with = "id")] GuestId),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GuestOwner", rename_all = "snake_case")]
pub(super) enum SavedOwner {
    Preemptible,
    Lease(#[serde(with = "id")] LeaseId),
    Other,
}
