//! What became of steps, as stores write it down.

use std::collections::{BTreeMap, BTreeSet};

use leases::plan::Action;

use super::action_key;
use crate::Finished;

/// How stores tell claims apart: by the [key](action_key) of the action, and the fence.
pub type ClaimKey = (String, i64);

/// What became of steps that were claimed, each claim once and in order.
#[derive(Debug)]
pub struct Outcomes<'a>(BTreeMap<ClaimKey, &'a Finished>);

impl<'a> Outcomes<'a> {
    /// Those of these steps.
    pub fn of(finished: impl IntoIterator<Item = &'a Finished>) -> Self {
        let key = |step: &Finished| (action_key(step.claim.action), step.claim.fence.cast_signed());
        Self(finished.into_iter().map(|step| (key(step), step)).collect())
    }

    /// The claims that they were carried out under.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimKey> {
        self.0.keys()
    }

    /// Those whose claims `given_up` contains.
    #[must_use]
    pub fn given_up(mut self, given_up: &BTreeSet<ClaimKey>) -> Self {
        self.0.retain(|key, _| given_up.contains(key));
        self
    }

    /// Sorts them by how they ended.
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

/// Steps with their keys, by how they ended.
#[derive(Debug, Default)]
pub struct Counted<'a> {
    /// Those that succeeded.
    pub succeeded: BTreeMap<String, Action>,
    /// Those that failed, and what was said.
    pub failed: Vec<(String, Action, &'a str)>,
}
