//! Preemptible guests that others have started, beside the service (PRE-06): since when each is on a host.
//!
//! One may land on an open host at any moment, also just before room is granted there, so only those are in the way that must
//! have been noticed.

use std::collections::BTreeMap;

use fleet::simulated::SimulatedFleet;
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::{GuestOwner, ObservedHost};

/// Watches over them.
#[derive(Debug, Default)]
pub(super) struct ElsewhereWatch {
    /// Since when they were seen where they are.
    since: BTreeMap<HostId, BTreeMap<GuestId, Timestamp>>,
    /// Whoever has been there for so long and is in the way has been noticed and has left, if nothing goes wrong; none if
    /// anything may.
    pub(super) gone_within: Option<SignedDuration>,
    /// Until then something is wrong nevertheless.
    pub(super) disturbed_until: Timestamp,
}

impl ElsewhereWatch {
    /// A host, as it is.
    pub fn follow(&mut self, fleet: &SimulatedFleet, (host, seen): (HostId, &ObservedHost), now: Timestamp) {
        let before = self.since.remove(&host).unwrap_or_default();
        let preemptible = seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible);
        let there = preemptible.filter(|guest| !fleet.is_instance(guest.id));
        let since = |id| before.get(&id).copied().unwrap_or(now);
        self.since.insert(host, there.map(|guest| (guest.id, since(guest.id))).collect());
    }

    /// Whether the guest has been on the host for so long that it should be gone by now, were it in the way.
    pub fn should_be_gone(&self, guest: GuestId, host: HostId, now: Timestamp) -> bool {
        let since = self.since.get(&host).and_then(|there| there.get(&guest));
        self.gone_within
            .zip(since)
            .is_some_and(|(within, since)| now.duration_since((*since).max(self.disturbed_until)) > within)
    }
}
