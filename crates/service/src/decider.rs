//! What decisions are made with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ambient::Ids;
use jiff::SignedDuration;
use leases::plan::Observed;

use crate::execution::progress::Progress;
use crate::settings::Settings;

/// What decisions are made with, beside the state that they are made on. There is no store, no fleet and no clock among
/// it: no decision can wait for anything, nor depend on anything that it was not given, but for new identifiers.
#[derive(Debug)]
pub(crate) struct Decider {
    pub settings: Settings,
    /// New identifiers.
    pub ids: Arc<dyn Ids>,
    /// What the fleet is able to do.
    pub abilities: Abilities,
    /// How far things are. Never locked across a wait, and always after the service's state where both are.
    progress: Mutex<Progress>,
}

/// What a fleet is able to do, as long as the service runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// It switches hosts off and on.
    pub switches_hosts: bool,
    /// It prepares something for reservations as a whole.
    pub prepares: bool,
    /// Maximum duration of the hooks of a step, which have time limits of their own.
    pub longest_step: SignedDuration,
    /// What operators can do about a guest that it doesn't delete.
    pub remedy: Option<&'static str>,
}

impl Decider {
    pub fn new(settings: Settings, ids: Arc<dyn Ids>, abilities: Abilities) -> Self {
        Self { settings, ids, abilities, progress: Mutex::default() }
    }

    /// One that remembers as much and draws other identifiers. What it remembers from then on is its own.
    pub fn twin(&self, ids: Arc<dyn Ids>) -> Self {
        let progress = Mutex::new(self.progress().clone());
        Self { settings: self.settings.clone(), ids, abilities: self.abilities, progress }
    }

    /// Maximum duration of a step: no less than its hooks may take.
    pub fn step_time(&self) -> SignedDuration {
        self.settings.step_time.max(self.abilities.longest_step)
    }

    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was last seen of the fleet, for as long as it takes.
    pub fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.progress().observed)
    }
}
