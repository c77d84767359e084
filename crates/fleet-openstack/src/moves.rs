//! Which servers Nova moves, and how; and what is remembered of moves that it was asked for. Nothing is asked here.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::Mobility;

use crate::wire::{Server, is_true};

/// What was begun and has not ended after so long is forgotten: its server is gone, or nobody waits for it.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// A move that another service has begun is left to it for that long, and one that was confirmed to Nova.
const LEFT_ALONE: SignedDuration = SignedDuration::from_mins(1);

/// How a server gets to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// While it runs, or is paused.
    Live,
    /// While it is shut off.
    Cold,
}

/// What a flavor may ask for that a server cannot take along while it runs, by the beginnings of extra specs.
const STAYS_WHILE_RUNNING: [&str; 3] = ["pci_passthrough:alias", "accel:device_profile", "hw:tpm_version"];

impl Way {
    /// How Nova moves that server; none if it does not, as it is now. Servers are never shut down to be moved.
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
            // What its TPM keeps only its owner can read.
            "SHUTOFF" => (!has("hw:tpm_version")).then_some(Self::Cold),
            _ => None,
        }
    }

    /// What it takes.
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
    /// Whether it is to be confirmed.
    waits: bool,
    /// Whether this service has begun it, since it runs.
    own: bool,
}

/// A server on its new host that waits for somebody to confirm that it works there.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    /// The migration.
    migration: u64,
    /// Since when it is left alone, if it is.
    left_since: Option<Timestamp>,
}

/// Moves that Nova was asked for. Losing them costs that one which fails is begun again without a word, and that one is
/// confirmed a minute later.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    begun: BTreeMap<GuestId, Begun>,
    arrived: BTreeMap<GuestId, Arrived>,
}

impl Moves {
    /// This service has asked for a move.
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

    /// Whether any is to be confirmed, as far as is known.
    pub(crate) fn any_waits(&self, now: Timestamp) -> bool {
        self.begun.values().any(|begun| begun.waits && now.duration_since(begun.since) < FORGOTTEN_AFTER)
    }

    /// Notes whether that one is still to be confirmed.
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

    /// Whether to confirm a move whose server has arrived: not again at once, and first of all by the service that has
    /// begun it. Of two confirmations that reach Nova at the same time it may accept both, and the second one leaves the
    /// server in ERROR.
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

    /// Nova has not taken the confirmation.
    pub(crate) fn not_confirmed(&mut self, guest: GuestId) {
        if let Some(arrived) = self.arrived.get_mut(&guest) {
            arrived.left_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nova answers as if there were nothing to do as well when it is busy with the server.
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
