//! Events of simulated machines that the service doesn't cause.

use jiff::SignedDuration;
use leases::ids::{GuestId, HostId, LeaseId};
use leases::plan::GuestOwner;
use serde::{Deserialize, Serialize};

use crate::saved::id;

/// An event, immediate or at a time set by [`super::SimulatedFleet::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Happening {
    /// A host fails. Its guests are still there when it recovers.
    HostFails(#[serde(with = "id")] HostId),
    /// The health of a host becomes unknown. It works and carries out calls.
    HostFallsSilent(#[serde(with = "id")] HostId),
    /// A host won't boot the next time it is switched on.
    HostWillNotBoot(#[serde(with = "id")] HostId),
    /// A host works again.
    HostRecovers(#[serde(with = "id")] HostId),
    /// A host is removed with all its guests, for the lifetime of the process.
    HostVanishes(#[serde(with = "id")] HostId),
    /// A guest starts on a host: a preemptible guest in the free pool, a lease's guest on its hosts and
    /// slots, other guests on hosts that are neither fenced nor handed over. Otherwise, nothing happens.
    GuestStarts {
        #[serde(with = "id")]
        host: HostId,
        #[serde(with = "SavedOwner")]
        owner: GuestOwner,
        /// `None` if the guest doesn't end by itself.
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
