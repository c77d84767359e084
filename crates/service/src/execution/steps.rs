//! Claims, execution and results of steps.

use std::collections::BTreeMap;

use fleet::hooks::RunningHook;
use fleet::{About, FleetError, HookedCall, LeaseFacts, OperationKey, Outcome};
use jiff::{SignedDuration, Timestamp};
use leases::ids::LeaseId;
use leases::lease::Reservation;
use leases::plan::{Action, Step};
use store::{Claim, Finished, StoreError};

use super::Execution;
use super::progress::InFlight;
use crate::floating_ips::FloatingIps;
use crate::instances::Instances;
use crate::leasing::Leases;
use crate::writing::Writer;

/// Interval of polling a pending step.
const ASK_AGAIN: SignedDuration = SignedDuration::from_secs(1);

/// A step that this service has claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedStep {
    pub claim: Claim,
    /// `None` if it isn't for a lease.
    pub lease: Option<LeaseId>,
    /// Time limit for the fleet's response.
    pub until: Timestamp,
}

/// A step that the fleet is carrying out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepUnderWay {
    /// Step in words, with the name of its host.
    pub action: String,
    /// Time at which the service gives up.
    pub until: Timestamp,
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    pub step: ClaimedStep,
    pub answer: Result<Outcome, FleetError>,
}

impl Execution<'_> {
    /// Asks the fleet to carry out a step, while the claim holds.
    pub(super) async fn perform_step(self, step: ClaimedStep) -> Performed {
        let action = step.claim.action;
        let facts = self.facts(action, step.lease);
        let key = OperationKey::of(action, step.claim.fence, step.lease).with_facts(facts);
        let call = async {
            let instance = match action {
                Action::StartGuest(_, guest) => {
                    let wanted = Instances::of(self.service).still_wanted(guest).await;
                    wanted.map_err(|error| FleetError::Unavailable(error.to_string()))?
                }
                // The request said whether the instance is kept.
                Action::StopGuest(_, guest) | Action::DeleteGuest(_, guest) => {
                    Instances::of(self.service).get(guest)
                }
                _ => None,
            };
            let address = action.floating_ip().and_then(|ip| FloatingIps::of(self.service).get(ip));
            let about = About {
                instance: instance.as_ref().map(|record| &record.instance),
                address: address.as_ref().map(|record| &record.floating_ip),
            };
            fleet::perform(self.service.parts.fleet.as_ref(), action, about, &key).await
        };
        let answer = self.while_claimed(&step, call).await;
        Performed { step, answer }
    }

    /// Facts about the lease that the fleet gets with the step.
    fn facts(self, action: Action, lease: Option<LeaseId>) -> Option<LeaseFacts> {
        let record = Leases::of(self.service).get(lease?)?;
        let lease = &record.lease;
        let of_action = |reservation: &&Reservation| Some(reservation.id) == action.reservation();
        let reservation = lease.reservations.iter().find(of_action);
        Some(LeaseFacts {
            name: lease.name.clone(),
            project: lease.owner.project.clone(),
            user: lease.owner.user.clone(),
            window: lease.window,
            reservation: reservation.map(|reservation| (reservation.id, reservation.terms.clone())),
            properties: reservation.map(|reservation| api::v1::reservation_properties(&record, reservation)),
            images_for: lease.images_for(),
        })
    }

    /// Steps that the fleet is carrying out. A stopping service waits for them.
    pub fn under_way(self) -> Vec<StepUnderWay> {
        let state = self.service.state();
        let progress = self.service.progress();
        let ended = |own: &InFlight| progress.outcomes.iter().any(|finished| finished.claim == own.claim);
        let running = progress.in_flight.values().filter(|own| own.ask_again_at.is_none() && !ended(own));
        running
            .map(|own| {
                let action = own.claim.action.named(Some(&state.inventory));
                StepUnderWay { action, until: own.until }
            })
            .collect()
    }

    /// Hooks of steps that were called and have not answered.
    pub fn running_hooks(self) -> Vec<RunningHook> {
        self.service.parts.fleet.running_hooks()
    }

    /// Notes the result of a step. The next cycle records it, observes the effect, and plans again.
    pub(super) fn note_step(self, performed: Performed) {
        let Performed { step, answer } = performed;
        let action = step.claim.action;
        let now = self.service.now();
        // Before progress is locked: the lock order is state, then progress.
        let said = answer.is_err().then(|| action.named(Some(&self.service.state().inventory)));
        let mut progress = self.service.progress();
        let ours = progress.in_flight.get_mut(&action).filter(|own| own.claim == step.claim);
        let Some(own) = ours else { return };
        let result = match answer {
            Ok(Outcome::Pending) => {
                own.ask_again_at = Some(now + ASK_AGAIN);
                progress.look_at_effect(action, step.lease);
                return;
            }
            Ok(Outcome::Done) => {
                if let Action::ResumeGuest(host, id) = action {
                    let seen = progress.observed.hosts.get(&host);
                    let guest = seen.and_then(|seen| seen.guests.iter().find(|guest| guest.id == id));
                    let project = guest.and_then(|guest| guest.project.clone());
                    progress.resumed.extend(project.map(|project| (id, project)));
                }
                Ok(())
            }
            Err(error) => {
                tracing::warn!(action = said, lease = ?step.lease, %error, "step failed");
                Err(error.to_string())
            }
        };
        // A failed step might have had its effect: perhaps only the response was lost.
        progress.look_at_effect(action, step.lease);
        match result {
            Ok(()) => progress.steps_done += 1,
            Err(_) => progress.steps_failed += 1,
        }
        progress.outcomes.push(Finished { claim: step.claim, result });
    }

    /// Records results of steps, so that the steps can be claimed again. Returns whether there were any.
    pub(super) async fn record_outcomes(self, writer: &Writer<'_>) -> Result<bool, StoreError> {
        let outcomes = self.service.progress().outcomes.clone();
        if outcomes.is_empty() {
            return Ok(false);
        }
        let now = self.service.now();
        let memory = self.service.memory().await;
        let advance = self.service.parts.store.finish(&outcomes, now).await?;
        self.service.change_state(|state| {
            let mut progress = self.service.progress();
            for Finished { claim, result } in &outcomes {
                match result {
                    Ok(()) => state.history.succeeded(claim.action, now),
                    Err(message) => state.history.failed(claim.action, now, message.as_str()),
                }
                if let (Action::PowerOn(host), Ok(())) = (claim.action, result) {
                    progress.memos.switched_on.insert(host, now);
                }
                progress.in_flight.remove(&claim.action);
            }
            // More results might have been appended in the meantime.
            progress.outcomes.drain(..outcomes.len());
        });
        if let Some(advance) = advance {
            writer.advanced(&memory, advance).await;
        }
        Ok(true)
    }

    /// Claims steps up to the limit of concurrent steps. Steps with the fewest failures come first, so that a
    /// step that keeps failing doesn't block others.
    pub(super) async fn claim(
        self,
        planned: &[Step],
        now: Timestamp,
    ) -> Result<Vec<ClaimedStep>, StoreError> {
        let leases: BTreeMap<Action, Option<LeaseId>> =
            planned.iter().map(|step| (step.action, step.lease)).collect();
        let mut steps = self.ask_again(&leases, now);
        match self.claim_due(&leases, planned, now).await {
            Ok(claimed) => steps.extend(claimed),
            Err(error) => {
                // No task carries out these steps now.
                let mut progress = self.service.progress();
                for step in steps {
                    let own = progress.in_flight.get_mut(&step.claim.action);
                    if let Some(own) = own.filter(|own| own.claim == step.claim) {
                        own.ask_again_at = Some(now);
                    }
                }
                return Err(error);
            }
        }
        Ok(steps)
    }

    async fn claim_due(
        self,
        leases: &BTreeMap<Action, Option<LeaseId>>,
        planned: &[Step],
        now: Timestamp,
    ) -> Result<Vec<ClaimedStep>, StoreError> {
        let mut steps = Vec::new();
        let due = self.due(planned, now);
        let room =
            self.service.decider.settings.steps_at_once.saturating_sub(self.service.progress().running());
        let due = self.first(due, room);
        if due.is_empty() {
            return Ok(steps);
        }
        self.give_up_unheard_claims().await?;
        let actions: Vec<_> = due.iter().map(|step| step.action).collect();
        self.service.progress().unheard_claims = true;
        // The cycle might have taken long.
        let now = self.service.now();
        let limit = |action: Action| now + self.service.time_for(HookedCall::Step(action));
        let times = self.times(now, actions.iter().copied().map(limit).max().unwrap_or(now));
        let holder = &self.service.decider.settings.holder;
        let claims = self.service.parts.store.claim(&actions, holder, times.now, times.until).await?;
        self.note_claimed_elsewhere(&due, &claims, now);
        let mut progress = self.service.progress();
        progress.unheard_claims = false;
        for claim in claims {
            let lease = leases.get(&claim.action).copied().flatten();
            let until = limit(claim.action);
            let in_flight =
                InFlight { claim: claim.clone(), lease, until, term: times.term, ask_again_at: None };
            progress.in_flight.insert(claim.action, in_flight);
            steps.push(ClaimedStep { claim, lease, until });
        }
        Ok(steps)
    }

    /// Releases claims whose response was lost. If the store granted them, they would keep every service from
    /// carrying out the steps, including this one.
    async fn give_up_unheard_claims(self) -> Result<(), StoreError> {
        let known: Vec<Claim> = {
            let progress = self.service.progress();
            if !progress.unheard_claims {
                return Ok(());
            }
            progress.in_flight.values().map(|own| own.claim.clone()).collect()
        };
        self.service.parts.store.release_claims(&self.service.decider.settings.holder, &known).await?;
        self.service.progress().unheard_claims = false;
        Ok(())
    }

    /// Pending steps to poll now, with the leases that currently want them. Gives up claims that have ended:
    /// the step is planned again if it is still wanted. Also gives up claims of steps that are no longer
    /// wanted, because polling the move of a guest would make it move, although its destination might have
    /// changed by now.
    fn ask_again(self, planned: &BTreeMap<Action, Option<LeaseId>>, now: Timestamp) -> Vec<ClaimedStep> {
        let mut progress = self.service.progress();
        let wanted = |own: &mut InFlight| {
            if own.ask_again_at.is_none() {
                return true;
            }
            let lease = planned.get(&own.claim.action);
            own.lease = lease.copied().flatten();
            lease.is_some()
        };
        let under_way = progress.in_flight.len();
        progress.in_flight.retain(|_, own| wanted(own));
        let running_late = |own: &InFlight| {
            own.ask_again_at.is_none() && now < own.until + self.service.decider.settings.step_time
        };
        let held = |own: &InFlight| now < own.until.min(own.term.until);
        progress.in_flight.retain(|_, own| held(own) || running_late(own));
        progress.unheard_claims |= progress.in_flight.len() < under_way;
        let due = progress.in_flight.values_mut().filter(|own| own.ask_again_at.is_some_and(|at| at <= now));
        due.map(|own| {
            own.ask_again_at = None;
            ClaimedStep { claim: own.claim.clone(), lease: own.lease, until: own.until }
        })
        .collect()
    }

    fn first(self, mut due: Vec<Step>, room: usize) -> Vec<Step> {
        due.retain(|step| !self.service.progress().in_flight.contains_key(&step.action));
        let state = self.service.state();
        let failures = |step: &Step| state.history.failures.get(&step.action).map_or(0, |f| f.times);
        due.sort_by_cached_key(failures);
        due.truncate(room);
        due
    }
}
