//! Servers that Nova can move, and moves that Nova was asked for. This module sends no requests.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::Mobility;

use crate::wire::{Server, is_true};

/// Time after which a move that hasn't ended is forgotten. Its server is gone, or no step waits for it
/// anymore.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// Time before a move that another service began is confirmed here, and before a confirmation is repeated.
const LEFT_ALONE: SignedDuration = SignedDuration::from_mins(1);

/// The way in which a server is moved to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// While it is running or paused.
    Live,
    /// While it is shut off.
    Cold,
}

/// Prefixes of the extra specs of flavors whose servers can't be moved while they run.
const STAYS_WHILE_RUNNING: [&str; 3] = ["pci_passthrough:alias", "accel:device_profile", "hw:tpm_version"];

impl Way {
    /// The way in which Nova can move the server in its current state. `None` if it can't. Servers are never
    /// shut down to be moved.
    pub(crate) fn of(server: &Server) -> Option<Self> {
        let specs = &server.flavor.extra_specs;
        let has = |beginning: &str| specs.keys().any(|key| key.starts_with(beginning));
        let has_vgpu = specs.keys().any(|key| key.starts_with("resources") && key.ends_with(":VGPU"));
        let is_encrypted = specs.get("hw:mem_encryption").is_some_and(|value| is_true(value));
        match server.status.as_str() {
            _ if server.task_state.is_some() => None,
            "ACTIVE" | "PAUSED" => {
                let stays = has_vgpu || is_encrypted || STAYS_WHILE_RUNNING.iter().any(|key| has(key));
                (!stays).then_some(Self::Live)
            }
            // Only the owner can read the contents of its TPM.
            "SHUTOFF" => (!has("hw:tpm_version")).then_some(Self::Cold),
            _ => None,
        }
    }

    pub(crate) fn mobility(self) -> Mobility {
        match self {
            Self::Live => Mobility::default(),
            Self::Cold => Mobility { downtime_ms: 0, ..Mobility::default() },
        }
    }
}

/// A move that Nova was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) to: HostId,
    since: Timestamp,
    /// Whether it must be confirmed.
    waits: bool,
    /// Whether this process began it.
    own: bool,
}

/// A server on its new host, where the move must be confirmed.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    migration: u64,
    /// Start of the time in which it isn't confirmed. `None` if it can be confirmed now.
    left_since: Option<Timestamp>,
}

/// Moves that Nova was asked for. If this is lost, a move that fails is begun again without a log message,
/// and a move is confirmed a minute later.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    begun: BTreeMap<GuestId, Begun>,
    arrived: BTreeMap<GuestId, Arrived>,
}

impl Moves {
    /// Records a move that this service has asked for. `waits`: it must be confirmed.
    pub(crate) fn begin(&mut self, guest: GuestId, to: HostId, waits: bool, now: Timestamp) {
        self.follow(guest, Begun { to, since: now, waits, own: true }, now);
    }

    fn follow(&mut self, guest: GuestId, begun: Begun, now: Timestamp) {
        self.begun.retain(|_, begun| now.duration_since(begun.since) < FORGOTTEN_AFTER);
        self.arrived.retain(|guest, _| self.begun.contains_key(guest));
        self.begun.insert(guest, begun);
    }

    pub(crate) fn end(&mut self, guest: GuestId) -> Option<Begun> {
        self.begun.remove(&guest)
    }

    /// Whether any known move must be confirmed.
    pub(crate) fn any_waits(&self, now: Timestamp) -> bool {
        self.begun.values().any(|begun| begun.waits && now.duration_since(begun.since) < FORGOTTEN_AFTER)
    }

    /// Records whether a move must still be confirmed.
    pub(crate) fn note(&mut self, guest: GuestId, to: Option<HostId>, waits: bool, now: Timestamp) {
        if !waits {
            self.arrived.remove(&guest);
        }
        match (self.begun.get_mut(&guest), to) {
            (Some(begun), _) => begun.waits = waits,
            (None, Some(to)) if waits => self.follow(guest, Begun { to, since: now, waits, own: false }, now),
            (None, _) => {}
        }
    }

    /// Whether to confirm the move of a server that has arrived. The service that began the move confirms it
    /// first, and confirmations are not repeated at once. If two reach Nova at the same time, it can accept
    /// both, and the second one leaves the server in ERROR.
    pub(crate) fn confirms(&mut self, guest: GuestId, migration: u64, now: Timestamp) -> bool {
        let own = self.begun.get(&guest).is_some_and(|begun| begun.own);
        let new = Arrived { migration, left_since: (!own).then_some(now) };
        let arrived = self.arrived.entry(guest).or_insert(new);
        if arrived.migration != migration {
            *arrived = new;
        }
        let left = |since: Timestamp| since <= now && now.duration_since(since) < LEFT_ALONE;
        if arrived.left_since.is_some_and(left) {
            return false;
        }
        arrived.left_since = Some(now);
        true
    }

    /// Nova has not accepted the confirmation, so it can be repeated at once.
    pub(crate) fn not_confirmed(&mut self, guest: GuestId) {
        if let Some(arrived) = self.arrived.get_mut(&guest) {
            arrived.left_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For a server that it is busy with, Nova gives the same answer as for one without a move to confirm.
    #[test]
    fn what_waits_though_it_was_confirmed_is_confirmed_again_after_a_minute() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let (guest, mut moves) = (GuestId(1), Moves::default());
        moves.begin(guest, HostId(2), true, at(0));
        let confirms = [1, 2, 60, 61, 62].map(|second| moves.confirms(guest, 7, at(second)));
        assert_eq!(confirms, [true, false, false, true, false]);
        assert!(moves.confirms(guest, 8, at(63)), "it is another move");
    }
}
