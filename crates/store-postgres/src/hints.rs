//! Hints that something changed, by PostgreSQL's LISTEN and NOTIFY, and detection of a server that is gone.
//!
//! Hints arrive on a connection of their own, and are missed while it is down. So waiting callers also look
//! now and then without a hint.
//!
//! A server that has lost its network or its power ends no connection. A client that waits for its answer
//! waits until the operating system gives up, which takes a quarter of an hour. A time limit for answers
//! would have to be longer than the slowest operation. So the server is pinged on this connection, where
//! nothing takes long. If it is silent, everything that waits for it on other connections is given up as well
//! ([`Pool::give_up`]).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::TxError;
use crate::pool::Pool;

/// The channel that the schema's trigger notifies.
const CHANNEL: &str = "allot_revision";

/// Pause before listening again.
const PAUSE: Duration = Duration::from_secs(1);

/// Silence after which the server is pinged.
const SILENCE: Duration = Duration::from_secs(3);

/// Time limit for the answer to a ping, and for starting to listen.
const ANSWER: Duration = Duration::from_secs(5);

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Hints {
    heard: watch::Receiver<()>,
    task: JoinHandle<()>,
}

impl Hints {
    /// Starts to listen to the server that takes writes.
    pub(crate) fn of(pool: Arc<Pool>) -> Self {
        let (sender, heard) = watch::channel(());
        let task = tokio::spawn(async move {
            loop {
                let server = pool.server();
                match AssertUnwindSafe(listen(&pool, server, &sender)).catch_unwind().await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => {
                        tracing::debug!(%error, "change hints unavailable");
                        if is_gone(error) {
                            pool.give_up(server);
                        }
                    }
                    Err(_) => tracing::error!("change hints panicked, retrying"),
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self { heard, task }
    }

    /// Receives the next hint.
    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        let mut receiver = self.heard.clone();
        receiver.mark_unchanged();
        receiver
    }

    pub(crate) fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Listens until the connection breaks. A server that has become a standby doesn't allow listening.
async fn listen(pool: &Pool, server: usize, sender: &watch::Sender<()>) -> Result<(), sqlx::Error> {
    let Some(options) = pool.servers().options(server) else { return Ok(()) };
    let mut listener = answered(connect(options)).await?;
    // Wakes waiting callers, because hints before this point could have been missed.
    sender.send_replace(());
    loop {
        match tokio::time::timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(_))) => sender.send_replace(()),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            Err(_) => _ = answered(listener.execute("SELECT")).await?,
        }
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgListener, sqlx::Error> {
    let one = PgPoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&one).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}

/// Waits for the server's answer with a time limit, because the server can go silent at any point.
async fn answered<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    tokio::time::timeout(ANSWER, answer).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Whether an error means that the server doesn't answer, or no longer takes writes.
fn is_gone(error: sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut) || matches!(TxError::from(error), TxError::Disconnected(_))
}
