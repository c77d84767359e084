//! The loop: observe, heal, plan, commit, carry out, and again.
//!
//! A cycle ([`Service::cycle`]) decides and hands out steps; each step is carried out on its own
//! ([`Service::perform`]) and what became of it is noted ([`Service::note`]) for the next cycle. So a slow step
//! delays nobody else (spec W3), and whoever drives the cycles, the loop or a simulation, has every step in its
//! hands. Nothing here remembers what must happen next: a crash at any point costs nothing (spec W4).

mod cycle;
mod observe;
mod plan;
mod progress;
mod steps;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub(crate) use self::progress::Progress;
pub use self::steps::{ClaimedStep, Performed};
use crate::Service;

/// What came of a cycle.
#[derive(Debug)]
pub struct Cycle {
    /// Steps to carry out now, each on its own.
    pub steps: Vec<ClaimedStep>,
    /// When to go through the next cycle, unless something happens before: a step is noted, or something is
    /// changed by a call.
    pub wake_at: Timestamp,
    /// The store did not work, so nothing else was done; changes are no reason to try again earlier.
    pub failed: bool,
}

impl Service {
    /// The loop: returns when `stop` becomes true, after steps that are running have ended or their time is up.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let _running = Running::new(&self.running);
        let mut steps = JoinSet::new();
        while !*stop.borrow_and_update() {
            let cycle = self.cycle().await;
            for step in &cycle.steps {
                let (service, step) = (self.clone(), step.clone());
                steps.spawn(async move { service.perform(step).await });
            }
            tokio::select! {
                biased;
                changed = stop.changed() => if changed.is_err() { break },
                Some(done) = steps.join_next() => self.note_all(done, &mut steps),
                () = self.wake.notified(), if !cycle.failed => {}
                () = self.parts.clock.sleep_until(cycle.wake_at) => {}
            }
        }
        while let Some(done) = steps.join_next().await {
            self.note_all(done, &mut steps);
        }
        if let Err(error) = self.record_outcomes().await {
            tracing::warn!(%error, "what became of the last steps is not recorded; they will be done again");
        }
    }

    /// Notes a step, and with it all others that have come to an end meanwhile.
    fn note_all(&self, first: Result<Performed, tokio::task::JoinError>, steps: &mut JoinSet<Performed>) {
        let mut next = Some(first);
        while let Some(done) = next {
            match done {
                Ok(performed) => self.note(performed),
                // Its claim ends some time, and then it is tried again.
                Err(error) => tracing::error!(%error, "a step broke off"),
            }
            next = steps.try_join_next();
        }
    }
}

/// Shows that the loop runs, as long as it does.
struct Running<'a>(&'a AtomicBool);

impl<'a> Running<'a> {
    fn new(flag: &'a AtomicBool) -> Self {
        flag.store(true, Ordering::Release);
        Self(flag)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
