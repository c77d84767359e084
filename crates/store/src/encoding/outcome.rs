//! Results of steps, as stores write them.

use std::collections::{BTreeMap, BTreeSet};

use leases::plan::Action;

use super::action_key;
use crate::Finished;

/// Identifies a claim: the [key](action_key) of the action, and the fence.
pub type ClaimKey = (String, i64);

/// Results of claimed steps, each claim once and in order.
#[derive(Debug)]
pub struct Outcomes<'a>(BTreeMap<ClaimKey, &'a Finished>);

impl<'a> Outcomes<'a> {
    pub fn of(finished: impl IntoIterator<Item = &'a Finished>) -> Self {
        let key = |step: &Finished| (action_key(step.claim.action), step.claim.fence.cast_signed());
        Self(finished.into_iter().map(|step| (key(step), step)).collect())
    }

    /// Claims that the steps were carried out under.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimKey> {
        self.0.keys()
    }

    /// Keeps the results whose claims are in `given_up`.
    #[must_use]
    pub fn given_up(mut self, given_up: &BTreeSet<ClaimKey>) -> Self {
        self.0.retain(|key, _| given_up.contains(key));
        self
    }

    /// Groups the results into successes and failures.
    pub fn counted(self) -> Counted<'a> {
        let mut counted = Counted::default();
        for (key, Finished { claim, result }) in self.0 {
            match result {
                Ok(()) => _ = counted.succeeded.insert(key.0, claim.action),
                Err(message) => counted.failed.push((key.0, claim.action, message)),
            }
        }
        counted
    }
}

/// Steps with their keys, grouped by result.
#[derive(Debug, Default)]
pub struct Counted<'a> {
    pub succeeded: BTreeMap<String, Action>,
    /// Failed steps with their error messages.
    pub failed: Vec<(String, Action, &'a str)>,
}
