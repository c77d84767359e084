//! Commits: leases release, hosts and addresses are added and removed, leases take.

mod bookings;
mod free_pools;
mod instances;
mod inventory;
mod leases;
mod take;
mod texts;

use sqlx::SqliteConnection;
use store::{Advance, Commit, CommitError};

use crate::{feed, journal, power, usage};

/// Writes a commit. The caller ends the transaction.
pub(crate) async fn write(db: &mut SqliteConnection, commit: &Commit) -> Result<Advance, CommitError> {
    journal::check_repetition(db, commit).await?;
    let taken = leases::write(db, &commit.writes).await?;
    for write in &commit.writes {
        inventory::write(db, write).await?;
    }
    take::all(db, &taken).await?;
    journal::write(db, commit).await?;
    usage::write(db, &commit.usage).await?;
    power::write(db, &commit.slept).await?;
    Ok(feed::enter(db, &commit.keys()).await?)
}
