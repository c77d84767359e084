//! Commits: leases release, hosts and addresses are added and removed, leases take, and at last a revision is
//! made.
//!
//! All commits take locks in one order, so that they can't deadlock: the key of the request, leases, hosts,
//! addresses, spans of usage, each sorted, and the row of the revision at the very end. For other collisions,
//! such as two new hosts with one name, the database rolls a transaction back, and it is retried.

mod bookings;
mod free_pools;
mod instances;
mod inventory;
mod leases;
mod take;
mod texts;

use std::collections::BTreeSet;

use sqlx::PgConnection;
use store::booking::Subject;
use store::{Advance, Commit, Write};

use crate::columns::uuid;
use crate::error::TxError;
use crate::{feed, journal, power, usage};

pub(crate) use take::Pace;

/// Writes a commit. The caller ends the transaction.
pub(crate) async fn write(db: &mut PgConnection, commit: &Commit, pace: Pace) -> Result<Advance, TxError> {
    journal::enter_request(db, commit).await?;
    let leases = leases::Rewriting::begin(db, &commit.writes).await?;
    lock(db, leases.subjects().chain(commit.writes.iter().filter_map(subject)).collect()).await?;
    let mut taken = leases.write(db).await?;
    for write in &commit.writes {
        inventory::write(db, write).await?;
    }
    take::all(db, &mut taken, pace).await?;
    usage::write(db, &commit.usage).await?;
    power::write(db, &commit.slept).await?;
    feed::commit(db, commit).await
}

/// The host or address that is changed or removed.
fn subject(write: &Write) -> Option<Subject> {
    match write {
        Write::Host { record, .. } => Some(Subject::Host(record.host.id)),
        Write::RemoveHost { id, .. } => Some(Subject::Host(*id)),
        Write::RemoveFloatingIp(id) => Some(Subject::FloatingIp(*id)),
        _ => None,
    }
}

/// Locks existing hosts and addresses, in order.
async fn lock(db: &mut PgConnection, subjects: BTreeSet<Subject>) -> Result<(), TxError> {
    let (mut hosts, mut floating_ips) = (Vec::new(), Vec::new());
    for subject in subjects {
        match subject {
            Subject::Host(id) => hosts.push(id.0.cast_signed()),
            Subject::FloatingIp(id) => floating_ips.push(uuid(id.0)),
        }
    }
    if !hosts.is_empty() {
        let lock = sqlx::query!("SELECT FROM host WHERE id = ANY($1) ORDER BY id FOR UPDATE", &hosts);
        lock.execute(&mut *db).await?;
    }
    if !floating_ips.is_empty() {
        let lock =
            sqlx::query!("SELECT FROM floating_ip WHERE id = ANY($1) ORDER BY id FOR UPDATE", &floating_ips);
        lock.execute(&mut *db).await?;
    }
    Ok(())
}
