//! What is on record of a host's power. It knows no rules.

use jiff::{SignedDuration, Timestamp};

/// What was decided about the power of a host, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Power {
    /// Whether it is on, or on its way.
    pub state: PowerState,
    /// How long the last boots took, the latest last.
    pub boots: Vec<SignedDuration>,
    /// When it was switched off lately.
    pub switched_off_at: Vec<Timestamp>,
}

/// Whether a host is on, or on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PowerState {
    /// It is meant to be on, and was.
    #[default]
    On,
    /// It is being switched off.
    ShuttingDown {
        /// Since then.
        since: Timestamp,
    },
    /// It is off.
    Off {
        /// Since then.
        since: Timestamp,
    },
    /// It is being switched on.
    Booting {
        /// Since then.
        since: Timestamp,
        /// Since when it was off; none if it was still on its way there.
        off_since: Option<Timestamp>,
    },
    /// It was to be on long ago, and is not.
    Failed {
        /// Since when it was being switched on.
        since: Timestamp,
    },
}

impl PowerState {
    /// The name: `on`, `shutting_down`, `off`, `booting`, `failed`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::On => "on",
            Self::ShuttingDown { .. } => "shutting_down",
            Self::Off { .. } => "off",
            Self::Booting { .. } => "booting",
            Self::Failed { .. } => "failed",
        }
    }

    /// Since when it is so, if that is known.
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
