//! Memory about claims in a store that several services share: the terms of this service's claims, and steps
//! that other services have claimed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::LeaseId;
use leases::plan::Action;

use super::pause::Pause;

/// Interval of observing the effects of steps that other services have claimed. Each observation costs
/// requests to the fleet. A claim lasts 8 s, so a step is taken over within 15 s.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(4);

/// Validity of a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// This service stops relying on the claim then, by its own clock.
    pub until: Timestamp,
    /// Time of the next renewal; `until` if the claim is never renewed.
    pub renew_at: Timestamp,
}

/// Due steps that other services had claimed already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    steps: BTreeMap<Action, Option<LeaseId>>,
    /// Pause before their effects are observed.
    pause: Option<Pause>,
}

impl Elsewhere {
    pub fn note(&mut self, refused: impl Iterator<Item = (Action, Option<LeaseId>)>, now: Timestamp) {
        self.steps.extend(refused);
        if !self.steps.is_empty() && !self.pause.is_some_and(|pause| pause.lasts(now)) {
            self.pause = Some(Pause::of(now, LOOK_EVERY));
        }
    }

    /// Whether another service has claimed the step, and it is too early to try again.
    pub fn has(&self, action: Action) -> bool {
        self.steps.contains_key(&action)
    }

    /// Time of the next observation of their effects.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.pause.filter(|_| !self.steps.is_empty()).map(Pause::end)
    }

    pub fn take_due(&mut self, now: Timestamp) -> BTreeMap<Action, Option<LeaseId>> {
        if self.pause.is_some_and(|pause| pause.lasts(now)) {
            return BTreeMap::new();
        }
        std::mem::take(&mut self.steps)
    }
}
