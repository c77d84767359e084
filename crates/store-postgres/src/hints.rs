//! Hints that something was changed, by PostgreSQL's LISTEN and NOTIFY; and whether the server is still there.
//!
//! They are heard on a connection of their own, and are missed while there is none; whoever waits looks now and
//! then without them.
//!
//! A server whose network is cut, or that has lost its power, ends no connection: whoever waits for its answer
//! waits until the operating system gives up, which takes a quarter of an hour. A limit of time for answers would
//! have to be longer than what may take long. So the server is asked on this connection, where nothing takes long;
//! if it is silent, all that it was asked on others is given up as well ([`Pool::give_up`]).

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Trouble;
use crate::pool::Pool;

/// The channel that the schema's trigger notifies.
const CHANNEL: &str = "allot_revision";

/// How long to wait before listening again.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the server may have nothing to say before it is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(3);

/// How long it may take to say so, or to let somebody listen.
const ANSWER: Duration = Duration::from_secs(5);

/// What is heard, as long as it is not dropped.
#[derive(Debug)]
pub(crate) struct Hints {
    heard: watch::Receiver<()>,
    task: JoinHandle<()>,
}

impl Hints {
    /// Begins to listen to the server that takes writes.
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

    /// To wait for the next one.
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

/// Listens until the connection breaks. A server that has become a standby does not let anybody listen.
async fn listen(pool: &Pool, server: usize, sender: &watch::Sender<()>) -> Result<(), sqlx::Error> {
    let Some(options) = pool.servers().options(server) else { return Ok(()) };
    let mut listener = answered(connect(options)).await?;
    // There may have been some before this.
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

/// What the server says, if it does so in time: it may go silent at any word.
async fn answered<T>(answer: impl Future<Output = Result<T, sqlx::Error>>) -> Result<T, sqlx::Error> {
    tokio::time::timeout(ANSWER, answer).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

/// Whether an error means that the server does not answer, or not any more as the one that takes writes.
fn is_gone(error: sqlx::Error) -> bool {
    matches!(error, sqlx::Error::PoolTimedOut) || matches!(Trouble::from(error), Trouble::Disconnected(_))
}
