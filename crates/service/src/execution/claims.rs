//! Duration of step claims in a shared store, and their renewal while steps run.
//!
//! Claims in a shared store are short, so that other services soon take over the steps of a service that was
//! killed. A claim is renewed while its step runs. A service that can't renew its claims stops asking the
//! fleet before another service can claim the step. The request in progress can still take effect, as after a
//! lost response; steps can be repeated safely.
//!
//! A store without its own clock is used by one service only. There, a claim lasts as long as the step may.

use std::collections::BTreeSet;
use std::pin::pin;

use fleet::{FleetError, Outcome};
use jiff::{SignedDuration, Timestamp};
use leases::plan::{Action, Step};
use store::Claim;

use super::Execution;
use super::claimed::Term;
use super::progress::{InFlight, Progress};
use super::steps::ClaimedStep;

/// Time that a service relies on a claim without renewal.
const HOLDS_FOR: SignedDuration = SignedDuration::from_secs(6);
/// Additional time that other services respect the claim. Covers the error in comparing clocks, and the time
/// that a step takes to stop.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);
/// Short enough for one of two renewals to fail.
const RENEW_EVERY: SignedDuration = SignedDuration::from_millis(2_500);

/// The times of a claim or a renewal.
pub(super) struct Times {
    pub term: Term,
    /// Current time by the store's clock.
    pub now: Timestamp,
    /// Time after which other services can claim the step, by the store's clock.
    pub until: Timestamp,
}

impl Progress {
    /// Observes the effects of steps that other services have claimed, if it is time. The plan after the
    /// observation contains a step only if it was not finished. This service can then claim it once the claim
    /// is no longer renewed.
    pub fn look_at_steps_elsewhere(&mut self, now: Timestamp) {
        for (action, lease) in self.elsewhere.take_due(now) {
            self.look_at_effect(action, lease);
        }
    }

    /// The term of this service's claim. Ends it now if the clock was set back, because then its actual end
    /// is unknown.
    fn own_term(&mut self, claim: &Claim, now: Timestamp) -> Option<Term> {
        let is_renewed = self.clock_ahead.is_some();
        let own = self.in_flight.get_mut(&claim.action).filter(|own| own.claim == *claim)?;
        if is_renewed && own.term.until > now + HOLDS_FOR + MARGIN {
            own.term.until = now;
        }
        Some(own.term)
    }

    fn renewed(&mut self, claims: &[Claim], renewed: &[Claim], until: Timestamp, now: Timestamp) {
        let renewed: BTreeSet<u64> = renewed.iter().map(|claim| claim.fence).collect();
        for claim in claims {
            let own = self.in_flight.get_mut(&claim.action).filter(|own| own.claim == *claim);
            if let Some(own) = own {
                own.term.until = if renewed.contains(&claim.fence) { until } else { now };
            }
        }
    }
}

impl Execution<'_> {
    /// Times of a claim that is made or renewed at `now`. `limit` is the deadline of its steps.
    pub(super) fn times(self, now: Timestamp, limit: Timestamp) -> Times {
        let Some(ahead) = self.service.progress().clock_ahead else {
            return Times { term: Term { until: limit, renew_at: limit }, now, until: limit };
        };
        let term = Term { until: now + HOLDS_FOR, renew_at: now + RENEW_EVERY };
        let now = now - ahead;
        Times { term, now, until: now + HOLDS_FOR + MARGIN }
    }

    /// Notes due steps that other services have claimed.
    pub(super) fn note_claimed_elsewhere(self, due: &[Step], claimed: &[Claim], now: Timestamp) {
        let claimed: BTreeSet<Action> = claimed.iter().map(|claim| claim.action).collect();
        let refused = due.iter().filter(|step| !claimed.contains(&step.action));
        let refused = refused.map(|step| (step.action, step.lease));
        self.service.progress().elsewhere.note(refused, now);
    }

    /// Waits for the fleet's response to a step while the claim holds, and renews the claim.
    ///
    /// If the claim is lost, another service can carry out the step. It then counts as pending, not failed,
    /// and is claimed again if it is still wanted.
    pub(super) async fn while_claimed(
        self,
        step: &ClaimedStep,
        call: impl Future<Output = Result<Outcome, FleetError>>,
    ) -> Result<Outcome, FleetError> {
        let mut call = pin!(call);
        loop {
            let now = self.service.now();
            if step.until <= now {
                return Err(FleetError::Unavailable("no answer in time".to_owned()));
            }
            let term = self.service.progress().own_term(&step.claim, now);
            let Some(term) = term.filter(|term| now < term.until) else {
                tracing::warn!(action = %step.claim.action, lease = ?step.lease, "claim lost, step given up");
                return Ok(Outcome::Pending);
            };
            let end = term.until.min(step.until);
            if now < term.renew_at {
                tokio::select! {
                    biased;
                    answer = &mut call => return answer,
                    () = self.service.parts.clock.sleep_until(end.min(term.renew_at)) => {}
                }
                continue;
            }
            let mut renewal = pin!(self.renew_claims(now, end));
            tokio::select! {
                biased;
                answer = &mut call => {
                    // The renewal also covers other steps.
                    renewal.await;
                    return answer;
                }
                () = &mut renewal => {}
            }
        }
    }

    /// Renews the claims of all running steps in one request, so the cost doesn't depend on the number of
    /// steps. Gives up at `end`.
    async fn renew_claims(self, now: Timestamp, end: Timestamp) {
        let Times { term, until, .. } = self.times(now, end);
        let claims: Vec<Claim> = {
            let mut progress = self.service.progress();
            // A pending step that the loop no longer polls is left to other services.
            let is_asked_about = |own: &InFlight| {
                own.ask_again_at.is_none_or(|at| now < at.saturating_add(HOLDS_FOR).unwrap_or(at))
            };
            let held = progress
                .in_flight
                .values_mut()
                .filter(|own| now < own.until.min(own.term.until) && is_asked_about(own));
            held.map(|own| {
                own.term.renew_at = term.renew_at;
                own.claim.clone()
            })
            .collect()
        };
        let renewal = tokio::select! {
            biased;
            renewed = self.service.parts.store.renew_claims(&claims, until) => renewed,
            () = self.service.parts.clock.sleep_until(end.min(term.renew_at)) => return,
        };
        match renewal {
            Ok(renewed) => self.service.progress().renewed(&claims, &renewed, term.until, now),
            Err(error) => tracing::warn!(%error, "claims not renewed"),
        }
    }
}
