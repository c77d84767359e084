//! The service itself: what it is made of, and what it remembers.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ambient::{Clock, Ids};
use fleet::{Fleet, FleetError};
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

/// What a service is made of.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where things are kept.
    pub store: Arc<dyn Store>,
    /// What runs the machines.
    pub fleet: Arc<dyn Fleet>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// New identifiers.
    pub ids: Arc<dyn Ids>,
    /// The external service that may refuse leases, if there is one (API-enforcement).
    pub enforcer: Option<Arc<dyn Enforcer>>,
}

/// The leasing service.
#[derive(Debug)]
pub struct Service {
    pub(crate) parts: Parts,
    /// What it decides with.
    pub(crate) decider: Decider,
    /// What the store holds. Never locked across a wait, nor while anything is decided: decisions have a
    /// [snapshot](Self::snapshot).
    pub(crate) state: RwLock<Arc<State>>,
    /// The write lock, so that what is decided on is what is committed to; and places to decide without it.
    pub(crate) places: Arc<Places>,
    /// Decisions that ended early.
    pub(crate) ended: Ended,
    /// Refused requests that the loop writes to the store.
    pub(crate) refusals: Refusals,
    /// Who has it brings `state` up to date. See [`crate::writing::Memory`].
    pub(crate) memory: tokio::sync::Mutex<()>,
    /// `state` contradicts what the store holds, and is to be loaded again.
    pub(crate) contradicted: AtomicBool,
    /// Counts changes of `state`.
    pub(crate) changes: watch::Sender<u64>,
    /// Counts looks at all hosts that have ended.
    pub(crate) looked: watch::Sender<u64>,
    /// Held while the whole fleet is compared with the store for an administrator. The fleet answers one such comparison at
    /// a time.
    pub(crate) comparison: tokio::sync::Mutex<()>,
    /// Who waits for notifications.
    pub(crate) waiting: Waiting,
    /// Wakes the loop.
    pub(crate) wake: Notify,
    /// The loop runs.
    pub(crate) running: AtomicBool,
    pub(crate) readiness: Readiness,
}

impl Service {
    /// Loads what the store holds and gives up claims of an earlier run.
    pub async fn open(parts: Parts, settings: Settings) -> Result<Arc<Self>, OpenError> {
        parts.store.release_claims(&settings.holder, &[]).await?;
        let snapshot = parts.store.load().await?;
        let state = State::new(snapshot, settings.cleaning_time, parts.clock.now())
            .map_err(|conflict| OpenError::Contradiction(conflict.to_string()))?;
        let places = Places::new(settings.decisions_at_once);
        let abilities = Abilities {
            switches_hosts: parts.fleet.switches_hosts(),
            prepares: parts.fleet.prepares(),
            longest_step: SignedDuration::try_from(parts.fleet.longest_step()).unwrap_or_default(),
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
        // A wrong clock is found out before anybody is served.
        match async {
            service.loop_writer().await.map(drop)?;
            service.count_what_is_held().await
        }
        .await
        {
            Ok(()) => Ok(service),
            // It may be set right, or accepted, while the service runs; until then nothing is changed.
            Err(StoreError::Suspended(_)) => {
                service.progress().uncounted = true;
                Ok(service)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The time that the service goes by.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.parts.clock
    }

    /// What the store holds, for a short look. What is changed under the lock is changed whole, so a reader that
    /// panicked leaves nothing behind.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, Arc<State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store holds at this moment, for as long as it takes: nobody waits for whoever has it. Who changes
    /// something meanwhile pays for a copy.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state())
    }

    /// Changes what is in memory. Snapshots stay as they are.
    pub(crate) fn change_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(Arc::make_mut(&mut self.state.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What was last seen of the fleet, for as long as it takes.
    pub(crate) fn observed(&self) -> Arc<Observed> {
        self.decider.observed()
    }

    pub(crate) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.decider.progress()
    }

    /// What hints may be given.
    pub fn hint_rules(&self) -> &HintRules {
        &self.decider.settings.rules.hints
    }

    /// All addresses that may be leased, for the fleet to say who has them.
    pub(crate) fn addresses(&self) -> Vec<FloatingIp> {
        self.state().inventory.floating_ips().cloned().collect()
    }

    /// What the fleet says, if it says it within the time that a step may take.
    pub(crate) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, ServiceError> {
        let limit = self.now() + self.decider.step_time();
        self.until(limit, call).await.map_err(|error| match error {
            FleetError::Unavailable(why) => ServiceError::Fleet(why),
            FleetError::Refused(why) => ServiceError::Conflict(why),
        })
    }

    /// What the fleet says, if it says it by then.
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

    /// Wakes the loop if that instant comes before it would look at the clock by itself.
    pub(crate) fn wake_if_soon(&self, at: Timestamp) {
        if at <= self.now() + self.decider.settings.observe_interval {
            self.wake.notify_one();
        }
    }
}
