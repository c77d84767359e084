//! Preemptible guests started outside the service (PRE-06): since when each is on a host.
//!
//! Such a guest can land on an open host at any moment, even just before capacity is granted there, so only
//! guests that must have been noticed count as in the way.

use std::collections::BTreeMap;

use fleet::simulated::SimulatedFleet;
use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::{GuestOwner, ObservedHost};

/// Tracks how long each such guest has been on its host.
#[derive(Debug, Default)]
pub(super) struct ElsewhereWatch {
    /// First time that each guest was seen on its current host.
    since: BTreeMap<HostId, BTreeMap<GuestId, Timestamp>>,
    /// Time within which a guest that is in the way is noticed and has left, if nothing goes wrong. `None` if
    /// anything can.
    pub(super) gone_within: Option<SignedDuration>,
    /// An injected fault suspends the deadline until then.
    pub(super) disturbed_until: Timestamp,
}

impl ElsewhereWatch {
    /// Follows one host, as observed.
    pub fn follow(&mut self, fleet: &SimulatedFleet, (host, seen): (HostId, &ObservedHost), now: Timestamp) {
        let before = self.since.remove(&host).unwrap_or_default();
        let preemptible = seen.guests.iter().filter(|guest| guest.owner == GuestOwner::Preemptible);
        let there = preemptible.filter(|guest| !fleet.is_instance(guest.id));
        let since = |id| before.get(&id).copied().unwrap_or(now);
        self.since.insert(host, there.map(|guest| (guest.id, since(guest.id))).collect());
    }

    /// Whether the guest has been on the host long enough to be gone by now, had it been in the way.
    pub fn should_be_gone(&self, guest: GuestId, host: HostId, now: Timestamp) -> bool {
        let since = self.since.get(&host).and_then(|there| there.get(&guest));
        self.gone_within
            .zip(since)
            .is_some_and(|(within, since)| now.duration_since((*since).max(self.disturbed_until)) > within)
    }
}
