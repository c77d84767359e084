//! The power of one host: what was decided, what becomes of that, and what is to be done.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::PowerRules;
use super::record::{Power, PowerState};
use crate::host::Health;
use crate::ids::HostId;
use crate::plan::{Action, ObservedHost, Place, Powered};
use crate::window::later;

/// So many boots are remembered.
const BOOTS: usize = 5;
/// What took longer was no boot: somebody has repaired the host.
const LONGEST_BOOT: SignedDuration = SignedDuration::from_hours(1);
/// So long counts when a host was switched off.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Something that the operator should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    /// It did not boot.
    #[error("it was switched on and does not come up")]
    BootFailed,
    /// It came up after all.
    #[error("it has come up after all")]
    CameUpLate,
    /// It did not shut down.
    #[error("it could not be switched off")]
    ShutdownFailed,
    /// It was to stay on, and has gone off.
    #[error("it has gone off although it was to stay on")]
    WentOff,
    /// It runs although it was switched off.
    #[error("somebody else has switched it on")]
    SwitchedOnByOthers,
}

/// What becomes of the power of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// As it is now.
    pub power: Power,
    /// The time that it was off for, if that is over.
    pub slept: Option<Slept>,
    /// What the operator should know.
    pub alarm: Option<Alarm>,
}

/// A time that a host was off for, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    /// From when it was off.
    pub from: Timestamp,
    /// When it was switched on.
    pub until: Timestamp,
    /// How long it took to boot then, if it was measured.
    pub boot: Option<SignedDuration>,
    /// It did not come up in time.
    pub failed: bool,
}

impl Power {
    /// Whether guests can be started there, as far as its power goes.
    pub fn is_on(&self) -> bool {
        self.state == PowerState::On
    }

    /// Whether nobody need wonder that it does not answer.
    pub fn excuses_silence(&self) -> bool {
        !matches!(self.state, PowerState::On | PowerState::Failed { .. })
    }

    /// How long it takes from switching it on until it answers: the longest of the last boots, and not less than the
    /// operator reckons with.
    pub fn boot_time(&self, rules: &PowerRules) -> SignedDuration {
        self.boots.iter().copied().max().unwrap_or_default().max(rules.shortest_boot)
    }

    /// Until when it is waited for a host that is being switched on. Half of the margin is left to do without it.
    pub fn boots_until(&self, since: Timestamp, rules: &PowerRules) -> Timestamp {
        later(since, self.boot_time(rules).saturating_add(rules.margin / 2))
    }

    /// How often it was switched off within a day before that.
    pub fn rests_before(&self, at: Timestamp) -> usize {
        let lately = |off: &&Timestamp| at.duration_since(**off) < DAY;
        self.switched_off_at.iter().filter(lately).count()
    }

    /// The same, about to be switched off.
    #[must_use]
    pub fn switched_off(&self, now: Timestamp) -> Self {
        let mut off = self.clone();
        off.switched_off_at.retain(|at| now.duration_since(*at) < DAY);
        off.switched_off_at.push(now);
        Self { state: PowerState::ShuttingDown { since: now }, ..off }
    }

    /// The same, about to be switched on.
    #[must_use]
    pub fn switched_on(&self, now: Timestamp) -> Self {
        let off_since = match self.state {
            PowerState::Off { since } => Some(since),
            PowerState::ShuttingDown { .. } => None,
            PowerState::On | PowerState::Booting { .. } | PowerState::Failed { .. } => return self.clone(),
        };
        Self { state: PowerState::Booting { since: now, off_since }, ..self.clone() }
    }

    fn with(&self, state: PowerState) -> Self {
        Self { state, ..self.clone() }
    }

    /// The same, on; and how long that took, if it is worth remembering.
    fn booted(&self, took: SignedDuration) -> Self {
        let mut on = self.with(PowerState::On);
        if took <= LONGEST_BOOT {
            on.boots.push(took.max(SignedDuration::ZERO));
            on.boots.drain(..on.boots.len().saturating_sub(BOOTS));
        }
        on
    }
}

/// What becomes of the power of a host that was seen so, or not at all; none if nothing does.
pub fn settle(
    power: &Power,
    seen: Option<&ObservedHost>,
    rules: &PowerRules,
    now: Timestamp,
) -> Option<Settled> {
    let powered = seen.map(|seen| seen.powered);
    let works = seen.is_some_and(|seen| seen.powered == Powered::On && seen.health == Health::Up);
    let plain = |power| Some(Settled { power, slept: None, alarm: None });
    match power.state {
        // A switch that was given up may have been on its way.
        PowerState::On => {
            let went_off = powered == Some(Powered::Off) && !power.switched_off_at.is_empty();
            went_off.then(|| Settled {
                power: power.with(PowerState::Off { since: now }),
                slept: None,
                alarm: Some(Alarm::WentOff),
            })
        }
        PowerState::ShuttingDown { .. } if powered == Some(Powered::Off) => {
            plain(power.with(PowerState::Off { since: now }))
        }
        PowerState::ShuttingDown { .. } if seen.is_some_and(in_use) => plain(power.switched_on(now)),
        PowerState::ShuttingDown { since } => {
            let given_up = now >= later(since, rules.longest_shutdown);
            let on = || power.switched_on(now);
            given_up.then(|| Settled { power: on(), slept: None, alarm: Some(Alarm::ShutdownFailed) })
        }
        PowerState::Off { since } => works.then(|| Settled {
            power: power.with(PowerState::On),
            slept: Some(Slept { from: since, until: now, boot: None, failed: false }),
            alarm: Some(Alarm::SwitchedOnByOthers),
        }),
        PowerState::Booting { since, off_since } => {
            let slept = |boot: Option<SignedDuration>| {
                off_since.map(|from| Slept { from, until: since, boot, failed: boot.is_none() })
            };
            if works {
                let took = now.duration_since(since);
                // One that never was off has not booted.
                let on = if off_since.is_some() { power.booted(took) } else { power.with(PowerState::On) };
                return Some(Settled { power: on, slept: slept(Some(took)), alarm: None });
            }
            let failed = now >= power.boots_until(since, rules);
            failed.then(|| Settled {
                power: power.with(PowerState::Failed { since }),
                slept: slept(None),
                alarm: Some(Alarm::BootFailed),
            })
        }
        PowerState::Failed { since } => works.then(|| Settled {
            power: power.booted(now.duration_since(since)),
            slept: None,
            alarm: Some(Alarm::CameUpLate),
        }),
    }
}

/// Whether somebody is there, or has the right to be.
fn in_use(seen: &ObservedHost) -> bool {
    !seen.guests.is_empty() || !seen.slots.is_empty()
}

/// What is to be done to a host that was seen so, to have it as was decided. A host is switched off only once it is
/// fenced and nobody is there.
pub fn step(host: HostId, power: &Power, seen: Option<&ObservedHost>) -> Option<Action> {
    match (power.state, seen) {
        (PowerState::ShuttingDown { .. }, Some(seen)) if seen.powered == Powered::On => match seen.place {
            Place::FreePool => Some(Action::Fence(host)),
            Place::Fenced { .. } if !in_use(seen) => Some(Action::PowerOff(host)),
            _ => None,
        },
        (PowerState::Booting { .. } | PowerState::Failed { .. }, Some(seen)) => {
            (seen.powered == Powered::Off).then_some(Action::PowerOn(host))
        }
        _ => None,
    }
}
