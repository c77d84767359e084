//! Readiness of the service. A check is answered within a time limit, even if the store hangs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::SignedDuration;
use store::StoreError;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Maximum duration of a probe before the service counts as not ready.
const LIMIT: Duration = Duration::from_secs(2);

/// Age up to which the answer of a probe is reused. Readiness checks aren't restricted, and each probe writes
/// to the store.
const MAX_AGE: SignedDuration = SignedDuration::from_secs(1);

/// Reason why the service can't serve requests.
#[derive(Clone, Debug, Error)]
pub enum NotReady {
    /// A table or a file is locked, or the store hangs.
    #[error("the store did not answer within {} s", LIMIT.as_secs())]
    NoAnswer,
    /// The store answered with an error, or rejects changes.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// The loop has stopped, so no leases start or end.
    #[error("the loop that carries plans out does not run")]
    LoopStopped,
    /// The probe panicked.
    #[error("the readiness check broke off; the log says why")]
    Broken,
}

/// The latest probe, shared by all callers.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<Probe>>);

#[derive(Clone, Debug)]
struct Probe {
    /// Time at which the probe began, by the steady clock of the service.
    begun: SignedDuration,
    limit: Instant,
    /// `None` until the probe ends.
    answer: watch::Receiver<Option<Result<(), NotReady>>>,
}

impl Probe {
    fn has_ended(&self) -> bool {
        self.answer.borrow().is_some() || self.answer.has_changed().is_err()
    }

    fn is_recent(&self, now: SignedDuration) -> bool {
        now.saturating_sub(self.begun).abs() < MAX_AGE
    }
}

impl Readiness {
    /// Result of the running or recent probe; starts a probe with `check` if there is neither. `now` is the
    /// time by the steady clock. Callers share a probe. It continues when they leave, and the next probe
    /// starts only after it has ended.
    pub(crate) async fn answer(
        &self,
        now: SignedDuration,
        check: impl Future<Output = Result<(), NotReady>> + Send + 'static,
    ) -> Result<(), NotReady> {
        let Probe { limit, mut answer, .. } = self.probe(now, check);
        let ended = timeout_at(limit, answer.wait_for(Option::is_some)).await;
        let answer = ended.map_err(|_| NotReady::NoAnswer)?;
        answer.ok().and_then(|answer| answer.clone()).unwrap_or(Err(NotReady::Broken))
    }

    fn probe(
        &self,
        now: SignedDuration,
        check: impl Future<Output = Result<(), NotReady>> + Send + 'static,
    ) -> Probe {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(probe) = latest.as_ref().filter(|probe| !probe.has_ended() || probe.is_recent(now)) {
            return probe.clone();
        }
        let (sender, answer) = watch::channel(None);
        tokio::spawn(async move { sender.send_replace(Some(check.await)) });
        latest.insert(Probe { begun: now, limit: Instant::now() + LIMIT, answer }).clone()
    }
}
