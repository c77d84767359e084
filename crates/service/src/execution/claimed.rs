//! What is remembered of claims in a store that several services share: the terms of this service's claims, and the steps
//! that others have claimed.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use leases::ids::LeaseId;
use leases::plan::Action;

use super::pause::Pause;

/// Interval at which a service looks at the effects of steps that others have claimed. Each look costs requests to the
/// fleet; a claim lasts 8 s, so that a step is taken over within 15 s.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(4);

/// How long a claim holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    /// When the service stops relying on it, by its own clock.
    pub until: Timestamp,
    /// When it is renewed next; `until` if it never is.
    pub renew_at: Timestamp,
}

/// Steps that other services had claimed when this one was about to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    steps: BTreeMap<Action, Option<LeaseId>>,
    /// Until they are looked at.
    pause: Option<Pause>,
}

impl Elsewhere {
    pub fn note(&mut self, refused: impl Iterator<Item = (Action, Option<LeaseId>)>, now: Timestamp) {
        self.steps.extend(refused);
        if !self.steps.is_empty() && !self.pause.is_some_and(|pause| pause.lasts(now)) {
            self.pause = Some(Pause::of(now, LOOK_EVERY));
        }
    }

    /// Whether the step is not tried again yet.
    pub fn has(&self, action: Action) -> bool {
        self.steps.contains_key(&action)
    }

    /// When they are looked at.
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
