//! Hints that something was changed, by PostgreSQL's LISTEN and NOTIFY.
//!
//! They are heard on a connection of their own, and are missed while there is none; whoever waits looks now and
//! then without them.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::pool::Pool;

/// The channel that the schema's trigger notifies.
const CHANNEL: &str = "allot_revision";

/// How long to wait before listening anew.
const PAUSE: Duration = Duration::from_secs(1);

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
                if let Err(error) = listen(&pool, &sender).await {
                    tracing::debug!(%error, "no hints of changes at present");
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
async fn listen(pool: &Pool, sender: &watch::Sender<()>) -> Result<(), sqlx::Error> {
    let Some(options) = pool.servers().options(pool.server()) else { return Ok(()) };
    let one = PgPoolOptions::new().max_connections(1).connect_lazy_with(options.clone());
    let mut listener = PgListener::connect_with(&one).await?;
    listener.listen(CHANNEL).await?;
    // There may have been some before this.
    sender.send_replace(());
    while listener.try_recv().await?.is_some() {
        sender.send_replace(());
    }
    Ok(())
}
