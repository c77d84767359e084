//! Connections to the server that currently takes writes.
//!
//! `sqlx` has a pool of its own, but it knows only one server, and waits for it when it is gone.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use store::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use crate::error::TxError;
use crate::servers::{Found, Servers};

/// Maximum number of connections. Commits take turns in the end, so more connections would only wait for each
/// other.
const CONNECTIONS: usize = 12;

/// Time to wait for a free connection.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Pool {
    servers: Servers,
    /// Closed together with the pool.
    permits: Semaphore,
    idle: Mutex<Vec<Connected>>,
    /// Number of the server that took writes last.
    server: AtomicUsize,
    /// Number of the server that was given up last. Sent each time, even if it is the same one.
    given_up: watch::Sender<usize>,
}

/// A connection and the number of its server.
#[derive(Debug)]
struct Connected {
    connection: PgConnection,
    server: usize,
}

impl Pool {
    pub(crate) fn new(servers: Servers) -> Self {
        Self {
            servers,
            permits: Semaphore::new(CONNECTIONS),
            idle: Mutex::default(),
            server: AtomicUsize::new(0),
            given_up: watch::Sender::new(0),
        }
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The number of the server that took writes last.
    pub(crate) fn server(&self) -> usize {
        self.server.load(Ordering::Relaxed)
    }

    /// An idle connection, or a new one.
    pub(crate) async fn acquire(&self) -> Result<Pooled<'_>, TxError> {
        let unavailable = |why: &str| StoreError::Unavailable(why.to_owned());
        let permit = tokio::time::timeout(WAIT, self.permits.acquire()).await;
        let permit = permit.map_err(|_| unavailable("all connections are in use"))?;
        let permit = permit.map_err(|_| unavailable("it was closed"))?;
        let idle = self.idle().pop();
        let connected = match idle {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        Ok(Pooled { connected, pool: self, _permit: permit })
    }

    async fn connect(&self) -> Result<Connected, StoreError> {
        let found = self.servers.connect(self.server()).await;
        let Found { connection, server } =
            found.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        if self.server.swap(server, Ordering::Relaxed) != server {
            // The previous server no longer takes writes.
            self.forget_idle();
        }
        Ok(Connected { connection, server })
    }

    /// Drops idle connections after a broken one was found, since they are probably broken too.
    pub(crate) fn forget_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        drop(idle);
    }

    /// Ends everything that waits for a server that no longer answers.
    pub(crate) fn give_up(&self, server: usize) {
        self.forget_idle();
        self.given_up.send_replace(server);
    }

    /// Closes the pool. It gives out no more connections.
    pub(crate) fn close(&self) {
        self.permits.close();
        self.forget_idle();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connected>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection for one caller. It is closed when it is dropped, because after an interruption its state is
/// unknown. A caller that is done gives it back.
#[derive(Debug)]
pub(crate) struct Pooled<'a> {
    connected: Connected,
    pool: &'a Pool,
    _permit: SemaphorePermit<'a>,
}

impl Pooled<'_> {
    /// Makes the connection available again. It must have no open transaction.
    pub(crate) fn give_back(self) {
        let Self { connected, pool, _permit } = self;
        if !pool.permits.is_closed() {
            pool.idle().push(connected);
        }
    }

    /// Waits until its server is given up.
    pub(crate) fn given_up(&self) -> impl Future<Output = ()> + use<> {
        let server = self.connected.server;
        let mut given_up = self.pool.given_up.subscribe();
        async move {
            while given_up.changed().await.is_ok() {
                if *given_up.borrow_and_update() == server {
                    return;
                }
            }
            // The pool is gone, so nothing can be given up anymore.
            std::future::pending::<()>().await;
        }
    }
}

impl Deref for Pooled<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connected.connection
    }
}

impl DerefMut for Pooled<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connected.connection
    }
}
