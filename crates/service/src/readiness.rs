//! Whether requests can be served, answered within a limit however long the store takes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use store::StoreError;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use crate::service::Service;

/// Time that a probe can take before the service counts as not ready.
const LIMIT: Duration = Duration::from_secs(2);

/// Why requests cannot be served.
#[derive(Clone, Debug, Error)]
pub enum NotReady {
    /// A table or a file is locked, or the store hangs.
    #[error("the store did not answer within {} s", LIMIT.as_secs())]
    NoAnswer,
    /// It answered with an error, or nothing may be changed.
    #[error(transparent)]
    Store(Arc<StoreError>),
    /// Nothing starts or ends.
    #[error("the loop that carries plans out does not run")]
    LoopStopped,
    /// The probe panicked.
    #[error("the readiness check broke off; the log says why")]
    Broken,
}

/// The probe that all callers share.
#[derive(Debug, Default)]
pub(crate) struct Readiness(Mutex<Option<Probe>>);

#[derive(Clone, Debug)]
struct Probe {
    limit: Instant,
    /// `None` until it ends.
    answer: watch::Receiver<Option<Result<(), NotReady>>>,
}

impl Probe {
    fn has_ended(&self) -> bool {
        self.answer.borrow().is_some() || self.answer.has_changed().is_err()
    }
}

impl Service {
    /// Whether requests can be served: the store can be written to, goes by the same time, and the loop runs. It waits
    /// for no decision, and for the store only until the limit. Callers share one probe; it outlives them, and the next
    /// one starts only after it has ended.
    pub async fn ready(self: &Arc<Self>) -> Result<(), NotReady> {
        let Probe { limit, mut answer } = self.probe();
        let ended = timeout_at(limit, answer.wait_for(Option::is_some)).await;
        let answer = ended.map_err(|_| NotReady::NoAnswer)?;
        answer.ok().and_then(|answer| answer.clone()).unwrap_or(Err(NotReady::Broken))
    }

    /// The probe that runs, or a new one.
    fn probe(self: &Arc<Self>) -> Probe {
        let mut latest = self.readiness.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = latest.as_ref().filter(|probe| !probe.has_ended()) {
            return running.clone();
        }
        let (sender, answer) = watch::channel(None);
        let service = Arc::clone(self);
        tokio::spawn(async move { sender.send_replace(Some(service.check_readiness().await)) });
        latest.insert(Probe { limit: Instant::now() + LIMIT, answer }).clone()
    }

    async fn check_readiness(&self) -> Result<(), NotReady> {
        let store = async {
            self.parts.store.check().await?;
            self.refuse_suspended().await?;
            self.update().await
        };
        store.await.map_err(|error| NotReady::Store(Arc::new(error)))?;
        if self.running.load(Ordering::Acquire) { Ok(()) } else { Err(NotReady::LoopStopped) }
    }
}
