//! Bounded retries.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};

use crate::error::TxError;
use crate::pool::Pool;

/// Maximum number of attempts.
const ATTEMPTS: u32 = 6;

/// Half of the pause after the first conflict. The pause doubles with each attempt.
const PAUSE: Duration = Duration::from_millis(5);

/// Time limit for any operation, longer than the server's limits for its parts. It is for waits that the
/// server doesn't end, such as a commit that waits for a standby. A server that is gone is noticed earlier
/// ([`crate::hints`]).
pub(crate) const LIMIT: Duration = Duration::from_secs(150);

/// Number of failed attempts of one operation.
#[derive(Debug, Default)]
pub(crate) struct Attempts(u32);

impl Attempts {
    /// Waits if another attempt is worthwhile; otherwise returns the error.
    pub(crate) async fn again(&mut self, pool: &Pool, error: TxError) -> Result<(), TxError> {
        self.0 += 1;
        match error {
            TxError::Disconnected(_) if self.0 < ATTEMPTS => {
                tracing::debug!(?error, "reconnecting");
                pool.forget_idle();
            }
            TxError::Overrun(_) if self.0 < ATTEMPTS => {
                tracing::debug!(?error, "retrying transaction");
                tokio::time::sleep(PAUSE * 2_u32.pow(self.0)).await;
            }
            // Retry at once, because the conflicting booking is often gone. If it isn't, the caller inserts
            // bookings one by one to find the rejected one.
            TxError::Obstructed if self.0 < ATTEMPTS => {}
            other => return Err(other),
        }
        Ok(())
    }
}

/// Evaluates `$work` with a connection from the pool, bound to `$pooled`. Evaluates it again, up to
/// [`ATTEMPTS`] times, if it fails with an error that a retry can resolve.
macro_rules! attempts {
    ($pool:expr, $pooled:ident => $work:expr) => {{
        let mut attempts = $crate::attempt::Attempts::default();
        loop {
            let attempt = async {
                #[allow(unused_mut, reason = "depends on the work")]
                let mut $pooled = $pool.acquire().await?;
                let given_up = $pooled.given_up();
                let work = async move { $work };
                $crate::attempt::unless(given_up, work).await
            };
            let attempt = ::tokio::time::timeout($crate::attempt::LIMIT, attempt).await;
            let error = match attempt.unwrap_or_else(|_| Err($crate::attempt::too_slow())) {
                Ok(done) => break Ok(done),
                Err(error) => error,
            };
            if let Err(error) = attempts.again($pool, error).await {
                break Err(error);
            }
        }
    }};
}
pub(crate) use attempts;

/// [Attempts](attempts) in a transaction.
macro_rules! transaction {
    ($pool:expr, $begin:literal, $db:ident => $work:expr) => {
        $crate::attempt::attempts!($pool, pooled => {
            let mut transaction = ::sqlx::Connection::begin_with(&mut *pooled, $begin).await?;
            let $db = &mut *transaction;
            let done: Result<_, $crate::error::TxError> = async { $work }.await;
            match done {
                Ok(done) => {
                    $crate::attempt::ended(transaction.commit().await)?;
                    pooled.give_back();
                    Ok(done)
                }
                Err(error) => {
                    if transaction.rollback().await.is_ok() {
                        pooled.give_back();
                    }
                    Err(error)
                }
            }
        })
    };
}
pub(crate) use transaction;

/// [Attempts](attempts) at a single read-only statement, without a transaction, which would take three times
/// as long.
macro_rules! question {
    ($pool:expr, $db:ident => $work:expr) => {
        $crate::attempt::attempts!($pool, pooled => {
            let $db = &mut *pooled;
            let answer: Result<_, $crate::error::TxError> = async { $work }.await;
            if answer.is_ok() {
                pooled.give_back();
            }
            answer
        })
    };
}
pub(crate) use question;

/// Translates a failed commit. If the connection broke during the commit, its outcome is unknown, so it must
/// not be retried.
pub(crate) fn ended(commit: Result<(), sqlx::Error>) -> Result<(), TxError> {
    commit.map_err(|error| match TxError::from(error) {
        TxError::Disconnected(error) => TxError::Failed(error),
        other => other,
    })
}

/// Result of the work, or an error as soon as its server is given up. After that error, it is unknown whether
/// a transaction was committed.
pub(crate) async fn unless<T>(
    given_up: impl Future<Output = ()>,
    work: impl Future<Output = Result<T, TxError>>,
) -> Result<T, TxError> {
    match select(pin!(work), pin!(given_up)).await {
        Either::Left((done, _)) => done,
        Either::Right(((), _)) => Err(too_slow()),
    }
}

pub(crate) fn too_slow() -> TxError {
    TxError::Failed(store::StoreError::Unavailable("the database does not answer".to_owned()))
}
