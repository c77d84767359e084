//! The service: its parts and its memory.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ambient::{Clock, Ids};
use fleet::{Fleet, FleetError, HookedCall};
use jiff::{SignedDuration, Timestamp};
use leases::hints::HintRules;
use leases::host::FloatingIp;
use leases::plan::Observed;
use store::{Store, StoreError};
use tokio::sync::{Notify, watch};

use crate::decider::{Abilities, Decider};
use crate::ended::Ended;
use crate::execution::progress::Progress;
use crate::places::Places;
use crate::readiness::Readiness;
use crate::refusals::Refusals;
use crate::settings::Settings;
use crate::state::State;
use crate::types::{Enforcer, OpenError, ServiceError};
use crate::waiting::Waiting;

/// Dependencies of a service.
#[derive(Clone, Debug)]
pub struct Parts {
    pub store: Arc<dyn Store>,
    /// Driver of the machines.
    pub fleet: Arc<dyn Fleet>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    /// External service that can reject leases (API-enforcement), if there is one.
    pub enforcer: Option<Arc<dyn Enforcer>>,
}

/// The leasing service.
#[derive(Debug)]
pub struct Service {
    pub(crate) parts: Parts,
    pub(crate) decider: Decider,
    /// The store's contents. Never locked across an await or during a decision: decisions use a
    /// [snapshot](Self::snapshot).
    pub(crate) state: RwLock<Arc<State>>,
    /// The write lock, which guarantees that a commit applies to the state it was decided on, and places to
    /// decide without it.
    pub(crate) places: Arc<Places>,
    /// Decisions that ended early.
    pub(crate) ended: Ended,
    /// Refused requests that the loop will write to the store.
    pub(crate) refusals: Refusals,
    /// Held to bring `state` up to date. See [`crate::writing::Memory`].
    pub(crate) memory: tokio::sync::Mutex<()>,
    /// Set if `state` contradicts the store and must be reloaded.
    pub(crate) contradicted: AtomicBool,
    /// Counts changes of `state`.
    pub(crate) changes: watch::Sender<u64>,
    /// Counts completed observations of all hosts.
    pub(crate) looked: watch::Sender<u64>,
    /// Held while the whole fleet is compared with the store for an administrator. The fleet answers one such
    /// comparison at a time.
    pub(crate) comparison: tokio::sync::Mutex<()>,
    /// Clients and listeners that wait for notifications.
    pub(crate) waiting: Waiting,
    /// Wakes the loop.
    pub(crate) wake: Notify,
    /// Whether the loop runs.
    pub(crate) running: AtomicBool,
    pub(crate) readiness: Readiness,
}

impl Service {
    /// Loads the store's contents and gives up claims of an earlier run.
    pub async fn open(parts: Parts, settings: Settings) -> Result<Arc<Self>, OpenError> {
        parts.store.release_claims(&settings.holder, &[]).await?;
        let snapshot = parts.store.load().await?;
        let state = State::new(snapshot, settings.cleaning_time, parts.clock.now())
            .map_err(|conflict| OpenError::Contradiction(conflict.to_string()))?;
        let places = Places::new(settings.decisions_at_once);
        let abilities = Abilities {
            switches_hosts: parts.fleet.switches_hosts(),
            prepares: parts.fleet.prepares(),
            remedy: parts.fleet.remedy(),
        };
        let decider = Decider::new(settings, Arc::clone(&parts.ids), abilities);
        let service = Arc::new(Self {
            parts,
            decider,
            state: RwLock::new(Arc::new(state)),
            places,
            ended: Ended::default(),
            refusals: Refusals::default(),
            memory: tokio::sync::Mutex::default(),
            contradicted: AtomicBool::new(false),
            changes: watch::Sender::new(0),
            looked: watch::Sender::new(0),
            comparison: tokio::sync::Mutex::default(),
            waiting: Waiting::default(),
            wake: Notify::new(),
            running: AtomicBool::new(false),
            readiness: Readiness::default(),
        });
        // Detects a wrong clock before any request is served.
        match async {
            service.loop_writer().await.map(drop)?;
            service.count_what_is_held().await
        }
        .await
        {
            Ok(()) => Ok(service),
            // The clock can be corrected or accepted while the service runs. Until then, it changes nothing.
            Err(StoreError::Suspended(_)) => {
                service.progress().uncounted = true;
                Ok(service)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// The store's contents, for a short read. Changes under the lock are atomic to readers, and a reader
    /// that panics leaves nothing inconsistent, so poisoning is ignored.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, Arc<State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store's contents at this moment. A snapshot can be kept for any time and blocks no writer, but the
    /// next change has to copy the state.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state())
    }

    /// Changes the state in memory. Existing snapshots don't change.
    pub(crate) fn change_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(Arc::make_mut(&mut self.state.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The last observation of the fleet. It can be kept for any time.
    pub(crate) fn observed(&self) -> Arc<Observed> {
        self.decider.observed()
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.decider.progress()
    }

    pub fn hint_rules(&self) -> &HintRules {
        &self.decider.settings.rules.hints
    }

    /// All addresses that can be leased. The fleet reports the reservations that have them.
    pub(crate) fn addresses(&self) -> Vec<FloatingIp> {
        self.state().inventory.floating_ips().cloned().collect()
    }

    /// Awaits a call to the fleet for at most the maximum duration of a step.
    pub(crate) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, ServiceError> {
        let limit = self.now() + self.decider.settings.step_time;
        self.until(limit, call).await.map_err(fleet_error)
    }

    /// Awaits a call to the fleet that can run hooks, for at most the [time](Self::time_for) for such a call.
    pub(crate) async fn in_time_for<T>(
        &self,
        hooked: HookedCall,
        call: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, ServiceError> {
        let limit = self.now() + self.time_for(hooked);
        self.until(limit, call).await.map_err(fleet_error)
    }

    /// Time limit for a call: the maximum duration of a step, or of the call's hooks if that is longer.
    pub(crate) fn time_for(&self, call: HookedCall) -> SignedDuration {
        let hooks = SignedDuration::try_from(self.parts.fleet.hooks_time(call)).unwrap_or_default();
        self.decider.settings.step_time.max(hooks)
    }

    /// Awaits a call to the fleet until `limit`.
    pub(crate) async fn until<T>(
        &self,
        limit: Timestamp,
        call: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.parts.clock.sleep_until(limit) => {
                Err(FleetError::Unavailable("no answer in time".to_owned()))
            }
        }
    }

    /// Wakes the loop if `at` comes before its next regular observation.
    pub(crate) fn wake_if_soon(&self, at: Timestamp) {
        if at <= self.now() + self.decider.settings.observe_interval {
            self.wake.notify_one();
        }
    }
}

fn fleet_error(error: FleetError) -> ServiceError {
    match error {
        FleetError::Unavailable(why) => ServiceError::Fleet(why),
        FleetError::Refused(why) => ServiceError::Conflict(why),
    }
}
