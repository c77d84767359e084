//! Power of a single host: decisions, their outcome, and the next action.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use super::PowerRules;
use super::record::{Power, PowerState};
use crate::host::Health;
use crate::ids::HostId;
use crate::plan::{Action, ObservedHost, Place, Powered};
use crate::window::later;

/// Number of boots to remember.
const BOOTS: usize = 5;
/// Longer boots aren't recorded: they include a repair of the host.
const LONGEST_BOOT: SignedDuration = SignedDuration::from_hours(1);
/// Bounds of the pause before a host that doesn't come up is switched on again.
const SHORTEST_SWITCH_PAUSE: SignedDuration = SignedDuration::from_secs(30);
const LONGEST_SWITCH_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// Period over which switching off is counted.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// A power problem reported to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Alarm {
    #[error("it was switched on and does not come up")]
    BootFailed,
    #[error("it has come up after all")]
    CameUpLate,
    #[error("it could not be switched off")]
    ShutdownFailed,
    #[error("it has gone off although it was to stay on")]
    WentOff,
    #[error("somebody else has switched it on")]
    SwitchedOnByOthers,
}

/// Result of [`settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub power: Power,
    /// The sleep that has just ended, if any.
    pub slept: Option<Slept>,
    pub alarm: Option<Alarm>,
}

/// A period during which a host was off, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slept {
    pub from: Timestamp,
    /// Time at which it was switched on.
    pub until: Timestamp,
    /// Duration of the boot that followed; `None` if it wasn't measured.
    pub boot: Option<SignedDuration>,
    /// The host didn't come up in time.
    pub failed: bool,
}

impl Power {
    /// Whether guests can be started on the host, as far as its power state is concerned.
    pub fn is_on(&self) -> bool {
        self.state == PowerState::On
    }

    /// Whether the power state explains why the host doesn't respond.
    pub fn excuses_silence(&self) -> bool {
        !matches!(self.state, PowerState::On | PowerState::Failed { .. })
    }

    /// Expected time from switching the host on until it responds: the longest recorded boot, but at least
    /// `shortest_boot`.
    pub fn boot_time(&self, rules: &PowerRules) -> SignedDuration {
        self.boots.iter().copied().max().unwrap_or_default().max(rules.shortest_boot)
    }

    /// Deadline for a host that is being switched on. Half of the margin is left to arrange the lease without
    /// it.
    pub fn boots_until(&self, since: Timestamp, rules: &PowerRules) -> Timestamp {
        later(since, self.boot_time(rules).saturating_add(rules.margin / 2))
    }

    /// Number of times the host was switched off within the 24 hours before `at`.
    pub fn rests_before(&self, at: Timestamp) -> usize {
        let lately = |off: &&Timestamp| at.duration_since(**off) < DAY;
        self.switched_off_at.iter().filter(lately).count()
    }

    /// Record of a host that is being switched off from `now` on.
    #[must_use]
    pub fn switched_off(&self, now: Timestamp) -> Self {
        let mut off = self.clone();
        off.switched_off_at.retain(|at| now.duration_since(*at) < DAY);
        off.switched_off_at.push(now);
        Self { state: PowerState::ShuttingDown { since: now }, ..off }
    }

    /// Record of a host that is being switched on from `now` on. Unchanged if it is on, booting or failed.
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

    /// Record of a host that is up. Remembers the boot's duration up to [`LONGEST_BOOT`].
    fn booted(&self, took: SignedDuration) -> Self {
        let mut on = self.with(PowerState::On);
        if took <= LONGEST_BOOT {
            on.boots.push(took.max(SignedDuration::ZERO));
            on.boots.drain(..on.boots.len().saturating_sub(BOOTS));
        }
        on
    }
}

/// Updates a host's power record from an observation, or from its absence. `None` if nothing changes.
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
        // A shutdown can still complete after it was given up.
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
                // A host that never went off hasn't booted, so there is nothing to measure.
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

/// Whether guests run on the host, or reservations hold slots on it.
fn in_use(seen: &ObservedHost) -> bool {
    !seen.guests.is_empty() || !seen.slots.is_empty()
}

/// Earliest time to switch a host on again that was switched on without an error at `last` but doesn't come up. The
/// pause is the time since the first attempt, but at least 30 seconds and at most 5 minutes. `last` if the host isn't
/// being switched on.
pub fn next_switch_on(power: &Power, last: Timestamp) -> Timestamp {
    match power.state {
        PowerState::Booting { since, .. } | PowerState::Failed { since } => {
            later(last, last.duration_since(since).clamp(SHORTEST_SWITCH_PAUSE, LONGEST_SWITCH_PAUSE))
        }
        _ => last,
    }
}

/// Next action to bring the machine to its recorded power state. A host is switched off only once it is
/// fenced and not in use.
pub fn step(host: HostId, power: &Power, seen: Option<&ObservedHost>) -> Option<Action> {
    match (power.state, seen) {
        (PowerState::ShuttingDown { .. }, Some(seen)) if seen.powered == Powered::On => match seen.place {
            Place::FreePool => Some(Action::Fence(host)),
            Place::Fenced { .. } if !in_use(seen) => Some(Action::PowerOff(host)),
            _ => None,
        },
        (PowerState::Booting { .. }, Some(seen)) => {
            (seen.powered == Powered::Off).then_some(Action::PowerOn(host))
        }
        // If checks fail, it is unknown whether the host has power.
        (PowerState::Failed { .. }, Some(seen)) => {
            let is_off = seen.powered == Powered::Off || seen.health == Health::Unknown;
            is_off.then_some(Action::PowerOn(host))
        }
        _ => None,
    }
}
