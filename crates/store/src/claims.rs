//! Claims of steps in a store that only one process uses.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use leases::plan::Action;

use crate::{Claim, Holder};

/// Claims that weren't given up. They end with the process, so a service that starts again doesn't wait for them.
#[derive(Debug, Default)]
pub struct Claims(BTreeMap<Action, Claimed>);

#[derive(Debug)]
struct Claimed {
    holder: Holder,
    fence: u64,
    until: Timestamp,
}

impl Claims {
    /// Returns the steps that can be claimed at `now`, each once, in the order given.
    pub fn free(&self, actions: &[Action], now: Timestamp) -> Vec<Action> {
        let mut seen = BTreeSet::new();
        let is_free = |action: &Action| self.0.get(action).is_none_or(|claimed| claimed.until <= now);
        actions.iter().copied().filter(|action| is_free(action) && seen.insert(*action)).collect()
    }

    /// Claims steps for `holder` until `until`. Their fences are consecutive and end with `last_fence`.
    pub fn add(
        &mut self,
        actions: &[Action],
        last_fence: u64,
        holder: &Holder,
        until: Timestamp,
    ) -> Vec<Claim> {
        let fences = last_fence.saturating_sub(actions.len() as u64) + 1..=last_fence;
        let claim = |(action, fence): (&Action, u64)| {
            self.0.insert(*action, Claimed { holder: holder.clone(), fence, until });
            Claim { action: *action, fence }
        };
        actions.iter().zip(fences).map(claim).collect()
    }

    /// Renews claims. Returns those that [hold](Self::holds).
    pub fn renew(&mut self, claims: &[Claim], until: Timestamp) -> Vec<Claim> {
        let mut renewed = claims.to_vec();
        renewed.retain(|claim| self.holds(claim));
        for claim in &renewed {
            self.0.entry(claim.action).and_modify(|claimed| claimed.until = until);
        }
        renewed
    }

    /// Whether this is the last claim of its step, and wasn't given up.
    pub fn holds(&self, claim: &Claim) -> bool {
        self.0.get(&claim.action).is_some_and(|claimed| claimed.fence == claim.fence)
    }

    /// Gives up a claim. Returns whether it [held](Self::holds).
    pub fn give_up(&mut self, claim: &Claim) -> bool {
        let held = self.holds(claim);
        if held {
            self.0.remove(&claim.action);
        }
        held
    }

    /// Gives up all claims of a holder except the `known` ones.
    pub fn release(&mut self, holder: &Holder, known: &[Claim]) {
        let known: BTreeSet<u64> = known.iter().map(|claim| claim.fence).collect();
        self.0.retain(|_, claimed| claimed.holder != *holder || known.contains(&claimed.fence));
    }
}
