//! Inputs of decisions other than the state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ambient::Ids;
use leases::plan::Observed;

use crate::execution::progress::Progress;
use crate::settings::Settings;

/// Settings, abilities and memory that decisions use in addition to the state. It has no store, fleet or
/// clock, so a decision can't wait for anything. Apart from new identifiers, it depends only on its
/// arguments.
#[derive(Debug)]
pub(crate) struct Decider {
    pub settings: Settings,
    pub ids: Arc<dyn Ids>,
    pub abilities: Abilities,
    /// Never locked across an await. Where both are locked, the service's state is locked first.
    progress: Mutex<Progress>,
}

/// Abilities of the fleet. They don't change while the service runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// It can switch hosts on and off.
    pub switches_hosts: bool,
    /// It has preparation steps for reservations as a whole.
    pub prepares: bool,
    /// Advice for operators about a guest that the fleet doesn't delete.
    pub remedy: Option<&'static str>,
}

impl Decider {
    pub fn new(settings: Settings, ids: Arc<dyn Ids>, abilities: Abilities) -> Self {
        Self { settings, ids, abilities, progress: Mutex::default() }
    }

    /// A copy with another source of identifiers. From then on, the memories of both are independent.
    pub fn twin(&self, ids: Arc<dyn Ids>) -> Self {
        let progress = Mutex::new(self.progress().clone());
        Self { settings: self.settings.clone(), ids, abilities: self.abilities, progress }
    }

    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Latest observation of the fleet.
    pub fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.progress().observed)
    }
}
