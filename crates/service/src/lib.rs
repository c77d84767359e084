//! The leasing service without HTTP.
//!
//! A [`Service`] keeps what the store holds in memory, decides with the crate `leases`, commits what was
//! decided, and only then shows it. Its loop ([`Service::run`]) observes the fleet, heals, plans, commits, and
//! carries out the steps that are due, each on its own, so that a slow one delays nobody else.
//!
//! Who may do what is the server's business: calls here are made on behalf of a [`Caller`] who may.

mod attributes;
mod availability;
mod calendar;
mod client;
mod deciding;
mod departures;
mod displaced_offers;
mod drift;
mod energy;
mod execution;
mod flavors;
mod floating_ips;
mod free_pools;
mod guest_facts;
mod hints;
mod hosts;
mod hosts_now;
mod housekeeping;
mod instances;
mod lease_pools;
mod leasing;
mod listing;
mod notices;
mod offers;
mod places;
mod placing;
mod preemptible_projects;
mod properties;
mod proposals;
mod queue;
mod reading;
mod relocation;
mod settings;
mod sorted;
mod state;
mod suspension;
mod tokens;
mod traces;
mod transact;
mod types;
mod usage;
mod waitlist;
mod writing;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use ambient::{Clock, Ids};
use fleet::Fleet;
use jiff::Timestamp;
use leases::plan::Observed;
use store::{Store, StoreError};
use tokio::sync::{Notify, watch};

use crate::deciding::Ended;
use crate::execution::Progress;
use crate::places::Places;
use crate::state::State;

pub use calendar::{
    Bar, BarKind, CalendarHost, CalendarPage, CalendarQuestion, CalendarRow, CalendarStatus, CalendarViewer,
};
pub use client::Client;
pub use drift::Drift;
pub use energy::{EnergyMode, EnergySettings};
pub use execution::{ClaimedStep, Cycle, Done, Look, Looked, Performed, Task};
pub use guest_facts::GuestFacts;
pub use hosts_now::{GuestNow, HostGroup, HostNow};
pub use lease_pools::LeasePoolHost;
pub use leasing::series::{Missing, NewSeries, Series};
pub use listing::{Page, Position};
pub use offers::{OfferLimits, Offers};
pub use properties::{properties_of_changes, properties_of_terms};
pub use settings::Settings;
pub use suspension::Acceptable;
pub use types::{
    AllocationFilter, Caller, Created, Enforcer, EnforcerVerdict, FreePoolChange, GrantedLease,
    HostAllocation, HostAnswer, HostPower, HostQuestion, HostRefusal, HostSelector, HostUpdate,
    IdempotencyKey, LeaseChanges, LeaseFilter, LeasePoolChange, LeaseUsage, NewFloatingIp, NewFreePool,
    NewInstance, NewLease, NewMaintenance, NotFound, OpenError, OtherInstances, Placing, PlannedMaintenance,
    PreemptibleUsage, Property, ServiceError, Statistics,
};

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
    parts: Parts,
    settings: Settings,
    /// What the store holds. Never locked across a wait, nor while anything is decided: decisions have a
    /// [snapshot](Self::snapshot).
    state: RwLock<Arc<State>>,
    /// How far things are. Never locked across a wait, and always after `state` where both are.
    progress: Mutex<Progress>,
    /// The write lock, so that what is decided on is what is committed to; and places to decide without it.
    places: Arc<Places>,
    /// Decisions that ended early.
    ended: Ended,
    /// Who has it brings `state` up to date. See [`writing::Memory`].
    memory: tokio::sync::Mutex<()>,
    /// `state` contradicts what the store holds, and is to be loaded again.
    contradicted: AtomicBool,
    /// Counts changes of `state`.
    changes: watch::Sender<u64>,
    /// Wakes the loop.
    wake: Notify,
    /// The loop runs.
    running: AtomicBool,
}

impl Service {
    /// Loads what the store holds and gives up claims of an earlier run.
    pub async fn open(parts: Parts, settings: Settings) -> Result<Arc<Self>, OpenError> {
        parts.store.release_claims(&settings.holder, &[]).await?;
        let snapshot = parts.store.load().await?;
        let state = State::new(snapshot, settings.cleaning_time, parts.clock.now())
            .map_err(|conflict| OpenError::Contradiction(conflict.to_string()))?;
        let places = Places::new(settings.decisions_at_once);
        let service = Arc::new(Self {
            parts,
            settings,
            state: RwLock::new(Arc::new(state)),
            progress: Mutex::default(),
            places,
            ended: Ended::default(),
            memory: tokio::sync::Mutex::default(),
            contradicted: AtomicBool::new(false),
            changes: watch::Sender::new(0),
            wake: Notify::new(),
            running: AtomicBool::new(false),
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
    fn state(&self) -> RwLockReadGuard<'_, Arc<State>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the store holds at this moment, for as long as it takes: nobody waits for whoever has it. Who changes
    /// something meanwhile pays for a copy.
    fn snapshot(&self) -> Arc<State> {
        Arc::clone(&self.state())
    }

    /// Changes what is in memory. Snapshots stay as they are.
    fn change_state<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(Arc::make_mut(&mut self.state.write().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What was last seen of the fleet, for as long as it takes.
    fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.progress().observed)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the loop if that instant comes before it would look at the clock by itself.
    fn wake_if_soon(&self, at: Timestamp) {
        if at <= self.now() + self.settings.observe_interval {
            self.wake.notify_one();
        }
    }
}
