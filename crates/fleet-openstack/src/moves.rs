//! Which servers Nova moves, and how; and what is remembered of moves that it was asked for. Nothing is asked here.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::{GuestId, HostId};
use leases::plan::Mobility;

use crate::wire::{Server, is_true};

/// What was begun and has not ended after so long is forgotten: its server is gone, or nobody waits for it.
const FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);

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
}

/// Moves that Nova was asked for. Losing them costs that one which fails is begun again without a word.
#[derive(Debug, Default)]
pub(crate) struct Moves(BTreeMap<GuestId, Begun>);

impl Moves {
    pub(crate) fn begin(&mut self, guest: GuestId, to: HostId, waits: bool, now: Timestamp) {
        self.0.retain(|_, begun| now.duration_since(begun.since) < FORGOTTEN_AFTER);
        self.0.insert(guest, Begun { to, since: now, waits });
    }

    pub(crate) fn end(&mut self, guest: GuestId) -> Option<Begun> {
        self.0.remove(&guest)
    }

    /// Whether any is to be confirmed, as far as is known.
    pub(crate) fn any_waits(&self, now: Timestamp) -> bool {
        self.0.values().any(|begun| begun.waits && now.duration_since(begun.since) < FORGOTTEN_AFTER)
    }

    /// Notes whether that one is still to be confirmed.
    pub(crate) fn note(&mut self, guest: GuestId, to: Option<HostId>, waits: bool, now: Timestamp) {
        match (self.0.get_mut(&guest), to) {
            (Some(begun), _) => begun.waits = waits,
            (None, Some(to)) if waits => self.begin(guest, to, waits, now),
            (None, _) => {}
        }
    }
}
