//! Long text, which is stored once, and the references of leases to it.

use ::leases::ids::LeaseId;
use sqlx::PgConnection;
use store::encoding::{TextChanges, TextHash};
use uuid::Uuid;

use crate::columns::{text, uuid};
use crate::error::{TxError, refers, unavailable};

/// Stores text that isn't stored yet, and adds and removes references. A trigger deletes text with its last reference.
pub(super) async fn write(db: &mut PgConnection, changes: &TextChanges) -> Result<(), TxError> {
    let (removed_from, removed) = columns(&changes.removed);
    if !removed.is_empty() {
        // Lock in the order of hashes to prevent a deadlock with a commit that adds references to text that
        // this commit dereferences, and the reverse.
        let all: Vec<&[u8]> =
            changes.texts.keys().map(|hash| hash.0.as_slice()).chain(removed.iter().copied()).collect();
        let lock = sqlx::query!(
            "SELECT FROM long_text WHERE hash = ANY($1) ORDER BY hash FOR UPDATE",
            &all as &[&[u8]]
        );
        lock.execute(&mut *db).await?;
    }
    if !changes.added.is_empty() {
        let hashes: Vec<&[u8]> = changes.texts.keys().map(|hash| hash.0.as_slice()).collect();
        let bodies: Vec<String> = changes.texts.values().map(|body| text(body).into_owned()).collect();
        let insertion = sqlx::query!(
            "INSERT INTO long_text (hash, body)
             SELECT * FROM unnest($1::bytea[], $2::text[]) AS new (hash, body) ORDER BY hash
             ON CONFLICT DO NOTHING",
            &hashes as &[&[u8]],
            &bodies,
        );
        insertion.execute(&mut *db).await?;
        let (leases, hashes) = columns(&changes.added);
        let insertion = sqlx::query!(
            "INSERT INTO lease_text (lease, hash)
             SELECT * FROM unnest($1::uuid[], $2::bytea[]) AS new (lease, hash) ORDER BY hash",
            &leases,
            &hashes as &[&[u8]],
        );
        // Another commit removed the last reference, and with it the text. The transaction is retried.
        let vanished = |error: sqlx::Error| {
            if refers(&error) { TxError::Overrun(unavailable(&error)) } else { error.into() }
        };
        insertion.execute(&mut *db).await.map_err(vanished)?;
    }
    if !removed.is_empty() {
        let deletion = sqlx::query!(
            "DELETE FROM lease_text
             WHERE (lease, hash) IN (SELECT * FROM unnest($1::uuid[], $2::bytea[]))",
            &removed_from,
            &removed as &[&[u8]],
        );
        deletion.execute(db).await?;
    }
    Ok(())
}

fn columns(references: &[(LeaseId, TextHash)]) -> (Vec<Uuid>, Vec<&[u8]>) {
    references.iter().map(|(lease, hash)| (uuid(lease.0), hash.0.as_slice())).unzip()
}
