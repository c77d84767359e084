//! Stored power state of a host. Independent of the operator's rules.

use jiff::{SignedDuration, Timestamp};

/// Decided power state of a host, with its history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Power {
    pub state: PowerState,
    /// Durations of the last boots, latest last.
    pub boots: Vec<SignedDuration>,
    /// Recent times at which the host was switched off.
    pub switched_off_at: Vec<Timestamp>,
}

/// Power state, including transitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerState {
    /// Meant to be on, and has been seen on.
    #[default]
    On,
    /// Being switched off.
    ShuttingDown {
        since: Timestamp,
    },
    Off {
        since: Timestamp,
    },
    /// Being switched on.
    Booting {
        since: Timestamp,
        /// Start of the time off; `None` if the host was still shutting down.
        off_since: Option<Timestamp>,
    },
    /// Was switched on and didn't come up by its deadline.
    Failed {
        /// Time at which it was switched on.
        since: Timestamp,
    },
}

impl PowerState {
    pub fn name(&self) -> &'static str {
        match self {
            Self::On => "on",
            Self::ShuttingDown { .. } => "shutting_down",
            Self::Off { .. } => "off",
            Self::Booting { .. } => "booting",
            Self::Failed { .. } => "failed",
        }
    }

    /// Start of this state; unknown (`None`) for `On`.
    pub fn since(&self) -> Option<Timestamp> {
        match *self {
            Self::On => None,
            Self::ShuttingDown { since }
            | Self::Off { since }
            | Self::Booting { since, .. }
            | Self::Failed { since } => Some(since),
        }
    }
}
